#include "model/hypothesis.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char *const status_words[HYPOTHESIS_STATUSES] = {
	[HYPOTHESIS_OPEN] = "open",
	[HYPOTHESIS_FALSIFIED] = "falsified",
	[HYPOTHESIS_CONFIRMED] = "confirmed",
};

const char *hypothesis_status_word(enum hypothesis_status status)
{
	return status < HYPOTHESIS_STATUSES ? status_words[status] : "unknown";
}

enum hypothesis_status hypothesis_status_from(const char *word)
{
	unsigned int status = 0;

	while (status < HYPOTHESIS_STATUSES && strcmp(status_words[status], word) != 0)
		status++;
	return status;
}

bool citation_parse(const char *text, struct citation *ret)
{
	bool evidence = text[0] == 'e' || text[0] == 'E';
	const char *digits = text + evidence;
	unsigned long long number;
	char *end;

	if (!isdigit((unsigned char)digits[0]))
		return false;
	errno = 0;
	number = strtoull(digits, &end, 10);
	/* SQLite keeps 63 bits. */
	if (errno != 0 || *end != '\0' || number == 0 || number > INT64_MAX)
		return false;
	*ret = evidence ? (struct citation){ .evidence = number }
			: (struct citation){ .trial = number };
	return true;
}

void hypothesis_deinit(struct hypothesis *hypothesis)
{
	mem_free(hypothesis->text);
	VEC_FREE(&hypothesis->changes, change, mem_free(change->because));
}
