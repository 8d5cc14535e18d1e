/*
 * Fuzzer of sentinel.txt. What can be read is written and read again: it must come out the same.
 */
#include <stdlib.h>
#include <string.h>

#include "studies/sentinel/sentinel.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sentinel sentinel, again;
	struct strbuf first = { 0 }, second = { 0 };
	char *text = malloc(size + 1);

	memcpy(text, data, size);
	text[size] = '\0';
	if (sentinel_read(text, &sentinel, NULL) == 0) {
		sentinel_write(&sentinel, &first);
		if (sentinel_read(strbuf_str(&first), &again, NULL) == 0) {
			sentinel_write(&again, &second);
			if (first.len != second.len ||
			    memcmp(first.data, second.data, first.len) != 0)
				abort();
			sentinel_deinit(&again);
		}
		sentinel_deinit(&sentinel);
	}
	strbuf_deinit(&first);
	strbuf_deinit(&second);
	free(text);
	return 0;
}
