/*
 * Fuzzer of evidence and verdicts as the case keeps them. What can be read is judged by packing it
 * again.
 */
#include "model/evidence.h"
#include "model/verdict.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct evidence evidence = { 0 };
	struct verdict verdict = { 0 };
	struct strbuf again = { 0 };

	if (size == 0)
		return 0;
	if (data[0] & 1) {
		if (evidence_unpack(data + 1, size - 1, &evidence, NULL) == 0) {
			evidence_pack(&evidence, &again);
			evidence_deinit(&evidence);
		}
	} else if (verdict_unpack(data + 1, size - 1, &verdict, NULL) == 0) {
		verdict_pack(&verdict, &again);
		verdict_deinit(&verdict);
	}
	strbuf_deinit(&again);
	return 0;
}
