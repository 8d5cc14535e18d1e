/*
 * A small, complete event log made in memory, for the tests and the fuzzer of the reader.
 */
#ifndef REDHAND_TESTS_SAMPLE_LOG_H
#define REDHAND_TESTS_SAMPLE_LOG_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "wire/checksum.h"
#include "wire/log_format.h"

#define SAMPLE_BYTES (56u << 10)
#define SAMPLE_RING 64u
#define SAMPLE_LANES 2u
#define SAMPLE_ROWS 64u
#define SAMPLE_STACK 10000u
#define SAMPLE_EVENTS 12u

struct sample {
	unsigned char *bytes;
	struct log_header *header;
	uint64_t at, seq; /* where the next record goes */
};

static inline uint64_t sample_record(struct sample *s, enum log_record_type type, uint64_t owner,
				     const void *fixed, size_t fixed_bytes, const void *rest,
				     size_t rest_bytes)
{
	struct log_record head = { .magic = LOG_RECORD_MAGIC, .type = (uint16_t)type };
	unsigned char *to = s->bytes + s->at;

	head.bytes = (uint32_t)(fixed_bytes + rest_bytes);
	head.tid = 100;
	head.seq = ++s->seq;
	head.owner = owner;
	head.head_check = log_head_check(&head);
	if (fixed_bytes)
		memcpy(to + sizeof(head), fixed, fixed_bytes);
	if (rest_bytes)
		memcpy(to + sizeof(head) + fixed_bytes, rest, rest_bytes);
	head.check = checksum_add(checksum_add(CHECKSUM_SEED, &head, sizeof(head)),
				  to + sizeof(head), head.bytes);
	memcpy(to, &head, sizeof(head));
	s->at += log_record_span(head.bytes);
	return head.seq;
}

static inline void sample_blob(struct sample *s, uint64_t owner, enum log_blob_kind kind,
			       uint64_t address, const unsigned char *data, size_t len)
{
	struct log_blob blob = { .kind = (uint16_t)kind, .address = address, .total = len };

	for (blob.offset = 0; blob.offset < len; blob.offset += blob.bytes) {
		size_t left = len - blob.offset;

		blob.bytes = left < LOG_BLOB_CHUNK ? (uint32_t)left : LOG_BLOB_CHUNK;
		sample_record(s, LOG_BLOB, owner, &blob, sizeof(blob), data + blob.offset,
			      blob.bytes);
	}
}

static inline uint64_t sample_region(struct log_header *h, enum log_region_kind kind, uint64_t at,
				     uint64_t bytes)
{
	bytes = (bytes + LOG_PAGE - 1) & ~(uint64_t)(LOG_PAGE - 1);
	h->regions[kind].offset = at;
	h->regions[kind].bytes = bytes;
	return at + bytes;
}

static inline void sample_header(struct log_header *h)
{
	uint64_t at = 2 * LOG_PAGE;

	memset(h, 0, sizeof(*h));
	h->magic = LOG_MAGIC;
	h->version = LOG_VERSION;
	h->header_bytes = sizeof(*h);
	h->pid = 100;
	h->ring_records = SAMPLE_RING;
	h->thread_slots = SAMPLE_LANES;
	h->context_rows = SAMPLE_ROWS;
	at = sample_region(h, LOG_REGION_THREADS, at, SAMPLE_LANES * sizeof(struct log_thread));
	at = sample_region(h, LOG_REGION_RESERVE, at, 16u << 10);
	at = sample_region(h, LOG_REGION_CONTEXTS, at, SAMPLE_ROWS * sizeof(struct log_context));
	at = sample_region(h, LOG_REGION_RINGS, at,
			   SAMPLE_LANES * SAMPLE_RING * sizeof(struct log_life));
	(void)sample_region(h, LOG_REGION_EVENTS, at, SAMPLE_BYTES - at);
	h->file_bytes = SAMPLE_BYTES;
	h->check = checksum_add(CHECKSUM_SEED, h, LOG_FIXED_BYTES);
}

/* Lane 0 has written its ring one and a half times; lane 1 a few records. */
static inline void sample_rings(struct sample *s)
{
	struct log_thread *threads =
		(void *)(s->bytes + s->header->regions[LOG_REGION_THREADS].offset);
	struct log_life *rings = (void *)(s->bytes + s->header->regions[LOG_REGION_RINGS].offset);
	unsigned lane, i, count;

	for (lane = 0; lane < SAMPLE_LANES; lane++) {
		count = lane ? 5 : SAMPLE_RING * 3 / 2;
		threads[lane].tid = 100 + lane;
		threads[lane].ring_position = count;
		for (i = 0; i < count; i++) {
			struct log_life *life = &rings[lane * SAMPLE_RING + i % SAMPLE_RING];

			life->id = i + 1;
			life->start = 0x7f0000001000ull + i * 32;
			life->op = LOG_LIFE_FREE;
			life->size_low = 24;
			life->context = 1;
			life->epoch = i / 64;
			life->check = log_life_check(life);
		}
	}
}

static inline void sample_fill(unsigned char *bytes)
{
	struct sample s = { .bytes = bytes, .header = (struct log_header *)bytes };
	struct log_crash crash = { .signo = 11, .fault_address = 0x18, .tid = 100 };
	struct log_context_seen seen = { .stack_hash = 77, .context = 1, .stack_bytes = 512 };
	struct log_crash_done done = { .write_ns = 1000 };
	struct log_block block = { .via = LOG_VIA_REGISTER, .state = LOG_BLOCK_FREED, .id = 3 };
	unsigned char stack[SAMPLE_STACK];
	struct log_context *rows;
	uint64_t owner;
	unsigned i;

	memset(bytes, 0, SAMPLE_BYTES);
	sample_header(s.header);
	memcpy(bytes + LOG_PAGE, bytes, LOG_PAGE);
	rows = (void *)(bytes + s.header->regions[LOG_REGION_CONTEXTS].offset);
	for (i = 1; i < 10; i++) {
		rows[i].stack_hash = 76 + i;
		rows[i].allocs = i;
		rows[i].check = log_context_check(rows[i].stack_hash, 0, i);
	}
	sample_rings(&s);
	for (i = 0; i < sizeof(stack); i++)
		stack[i] = (unsigned char)(i * 7 + (i >> 8));

	s.at = s.header->regions[LOG_REGION_RESERVE].offset;
	owner = sample_record(&s, LOG_CRASH, 0, &crash, sizeof(crash), NULL, 0);
	sample_blob(&s, owner, LOG_BLOB_STACK, 0x7ffc00000000ull, stack, sizeof(stack));
	sample_blob(&s, owner, LOG_BLOB_CODE, 0x401000, stack, 192);
	sample_record(&s, LOG_BLOCK, owner, &block, sizeof(block), NULL, 0);
	sample_record(&s, LOG_CRASH_DONE, owner, &done, sizeof(done), NULL, 0);
	s.header->reserve_tail = s.at - s.header->regions[LOG_REGION_RESERVE].offset;

	s.at = s.header->regions[LOG_REGION_EVENTS].offset;
	for (i = 0; i < SAMPLE_EVENTS; i++)
		sample_record(&s, LOG_CONTEXT, 0, &seen, sizeof(seen), stack, seen.stack_bytes);
	s.header->events_tail = s.at - s.header->regions[LOG_REGION_EVENTS].offset;
}

#endif
