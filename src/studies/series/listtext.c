#include "studies/series/listtext.h"

#include <errno.h>
#include <stdlib.h>

void listtext_write(const uint32_t *numbers, size_t count, struct strbuf *ret)
{
	for (size_t i = 0; i < count;) {
		size_t last = i;

		while (last + 1 < count && numbers[last + 1] == numbers[last] + 1)
			last++;
		strbuf_addf(ret, "%s%u", i > 0 ? "," : "", numbers[i]);
		if (last > i)
			strbuf_addf(ret, "-%u", numbers[last]);
		i = last + 1;
	}
}

/* One number; false when there is none or it is too large. */
static bool number(const char **at, uint32_t limit, uint32_t *ret)
{
	uint64_t value = 0;
	const char *start = *at;

	for (; **at >= '0' && **at <= '9' && value < limit; ++*at)
		value = value * 10 + (uint64_t)(**at - '0');
	*ret = (uint32_t)value;
	return *at > start && value < limit;
}

static bool range(const char **at, uint32_t limit, struct numbers *ret)
{
	uint32_t first, last;

	if (!number(at, limit, &first))
		return false;
	last = first;
	if (**at == '-') {
		++*at;
		if (!number(at, limit, &last) || last < first)
			return false;
	}
	for (uint32_t i = first; i <= last; i++)
		VEC_PUSH(&ret->list, i);
	return ret->list.count <= limit;
}

int listtext_read(const char *text, uint32_t limit, struct numbers *ret, struct err *err)
{
	const char *at = text;

	ret->list.count = 0;
	while (range(&at, limit, ret)) {
		if (*at == '\0')
			return 0;
		if (*at++ != ',')
			break;
	}
	return err_set(err, -EINVAL, "the case has a list that cannot be read: '%.40s'", text);
}
