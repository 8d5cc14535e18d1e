/*
 * Fuzzer of evidence, verdicts and statements as the case keeps them; the first byte says which.
 * What can be read is packed again, and that must be readable.
 */
#include <stdlib.h>

#include "model/evidence.h"
#include "model/said.h"
#include "model/verdict.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct evidence evidence = { 0 };
	struct verdict verdict = { 0 };
	struct said said = { 0 };
	struct strbuf again = { 0 };

	if (size == 0)
		return 0;
	if (data[0] % 3 == 1) {
		if (evidence_unpack(data + 1, size - 1, &evidence, NULL) == 0) {
			evidence_pack(&evidence, &again);
			evidence_deinit(&evidence);
			if (evidence_unpack(again.data, again.len, &evidence, NULL) < 0)
				abort();
			evidence_deinit(&evidence);
		}
	} else if (data[0] % 3 == 2) {
		if (said_unpack(data + 1, size - 1, &said)) {
			said_pack(&said, &again);
			said_deinit(&said);
			if (!said_unpack(again.data, again.len, &said))
				abort();
		}
		said_deinit(&said);
	} else if (verdict_unpack(data + 1, size - 1, &verdict, NULL) == 0) {
		verdict_pack(&verdict, &again);
		verdict_deinit(&verdict);
		if (verdict_unpack(again.data, again.len, &verdict, NULL) < 0)
			abort();
		verdict_deinit(&verdict);
	}
	strbuf_deinit(&again);
	return 0;
}
