/*
 * Fuzzer of the event-log reader (libFuzzer): tools/fuzz wire.
 *
 * The input is a list of patches (offset, length, bytes) on a sound log, half of them followed by
 * sealing the header again: random bytes alone would never pass the first checksum. An input that
 * starts with 0xff is taken as a whole log.
 */
#include <stdlib.h>
#include <string.h>

#include "unit/sample_log.h"
#include "unit/sample_walk.h"
#include "wire/plan.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void patch(unsigned char *bytes, const uint8_t *data, size_t size)
{
	while (size >= 5) {
		uint32_t at =
			(uint32_t)(data[0] | data[1] << 8 | (data[2] & 3) << 16) % SAMPLE_BYTES;
		size_t len = data[3] % 32 + 1;

		data += 4;
		size -= 4;
		if (len > size)
			len = size;
		if (len > SAMPLE_BYTES - at)
			len = SAMPLE_BYTES - at;
		memcpy(bytes + at, data, len);
		data += len;
		size -= len;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static unsigned char *clean, *bytes;
	struct plan_header plan;
	struct log_header *header;
	uint64_t touched;

	if (!clean) {
		clean = aligned_alloc(4096, SAMPLE_BYTES);
		bytes = aligned_alloc(4096, SAMPLE_BYTES);
		sample_fill(clean);
	}
	if (size && data[0] == 0xff) {
		unsigned char *whole = aligned_alloc(8, (size + 7) & ~(size_t)7);

		memcpy(whole, data + 1, size - 1);
		(void)sample_walk(whole, size - 1, &touched);
		(void)plan_check(whole, size - 1, &plan);
		free(whole);
		return 0;
	}
	memcpy(bytes, clean, SAMPLE_BYTES);
	if (size)
		patch(bytes, data + 1, size - 1);
	if (size && data[0] & 1) {
		header = (struct log_header *)bytes;
		header->magic = LOG_MAGIC;
		header->version = LOG_VERSION;
		header->header_bytes = sizeof(*header);
		header->check = checksum_add(CHECKSUM_SEED, header, LOG_FIXED_BYTES);
	}
	(void)sample_walk(bytes, SAMPLE_BYTES, &touched);
	return 0;
}
