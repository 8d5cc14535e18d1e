/*
 * Fuzzer of what is read out of a program's output: reports of sanitizers and of Memcheck, words
 * about a clash. What was read is packed as evidence and told.
 */
#include <stdlib.h>
#include <string.h>

#include "read/clash.h"
#include "read/sanitizer_report.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct evidence evidence = evidence_new(EVIDENCE_REPORTED, 1, true), again = { 0 };
	struct strbuf packed = { 0 };
	char *text = malloc(size + 1); /* of its own size: what reads behind it is seen */

	memcpy(text, data, size);
	if (sanitizer_report_read(text, size, evidence.reported)) {
		if (!evidence.reported->tool || !evidence.reported->what)
			abort();
		evidence_pack(&evidence, &packed);
		if (evidence_unpack(packed.data, packed.len, &again, NULL) < 0)
			abort();
		evidence_deinit(&again);
		strbuf_deinit(&packed);
	}
	evidence_deinit(&evidence);
	text[size] = '\0';
	free(clash_read(text));
	free(text);
	return 0;
}
