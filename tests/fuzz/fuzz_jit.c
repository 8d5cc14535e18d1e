/*
 * Fuzzer of the readers of perf maps and jitdump files. The first byte says which.
 */
#include <stdlib.h>
#include <string.h>

#include "debuginfo/jit_names.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct jit_names *names = jit_names_new();
	struct jit_name found;
	uint8_t *copy = malloc(size + 1); /* of its own size: what reads behind it is seen */

	if (size > 0) {
		memcpy(copy, data + 1, size - 1);
		if (data[0] & 1)
			(void)jit_names_add_perf_map(names, (const char *)copy, size - 1);
		else
			(void)jit_names_add_dump(names, copy, size - 1);
		for (taddr at = 0; at < 64; at++)
			(void)jit_names_find(names, at * 0x400, &found);
		(void)jit_names_find(names, UINT64_MAX, &found);
	}
	free(copy);
	jit_names_free(names);
	return 0;
}
