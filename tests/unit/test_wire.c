#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "sample_log.h"
#include "sample_walk.h"
#include "wire/log_reader.h"
#include "wire/plan.h"

/* The mutation tests are seeded; the seed is part of the name of the case that fails. */
#define SEED 20240607u
#define MUTATIONS 200000u

static uint64_t next_random(uint64_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

static unsigned char *sample_new(void)
{
	unsigned char *bytes = aligned_alloc(4096, SAMPLE_BYTES);

	assert_non_null(bytes);
	sample_fill(bytes);
	return bytes;
}

static void test_reads_what_was_written(void **state)
{
	unsigned char *bytes = sample_new(), stack[SAMPLE_STACK];
	struct log_blob_info info;
	struct log_crash crash;
	struct log_reader log;
	struct log_item item, owned;
	unsigned contexts = 0, blocks = 0, i;

	(void)state;
	assert_int_equal(log_reader_init(&log, bytes, SAMPLE_BYTES), LOG_READ_OK);
	assert_true(log_reader_next(&log, &item));
	assert_int_equal(item.head.type, LOG_CRASH);
	assert_true(log_payload(&item, &crash, sizeof(crash)));
	assert_int_equal(crash.signo, 11);
	assert_int_equal(crash.fault_address, 0x18);
	assert_true(log_blob_gather(&log, &item, LOG_BLOB_STACK, 0, stack, sizeof(stack), &info));
	assert_int_equal(info.total, SAMPLE_STACK);
	assert_int_equal(info.missing, 0);
	assert_int_equal(info.address, 0x7ffc00000000ull);
	for (i = 0; i < sizeof(stack); i++)
		assert_int_equal(stack[i], (unsigned char)(i * 7 + (i >> 8)));
	assert_false(log_blob_gather(&log, &item, LOG_BLOB_MAPS, 0, NULL, 0, &info));
	owned = item;
	while (log_next_owned(&log, item.head.seq, &owned))
		blocks += owned.head.type == LOG_BLOCK;
	assert_int_equal(blocks, 1);
	while (log_reader_next(&log, &item))
		contexts += item.head.type == LOG_CONTEXT;
	assert_int_equal(contexts, SAMPLE_EVENTS);
	assert_int_equal(log.damage.records, 0);
	assert_int_equal(log.damage.incomplete, 0);
	free(bytes);
}

static void test_rings_oldest_first(void **state)
{
	unsigned char *bytes = sample_new();
	struct log_ring_cursor cursor;
	struct log_reader log;
	struct log_life life;
	uint64_t expected = SAMPLE_RING / 2 + 1;

	(void)state;
	assert_int_equal(log_reader_init(&log, bytes, SAMPLE_BYTES), LOG_READ_OK);
	assert_true(log_ring_begin(&log, 0, &cursor));
	while (log_ring_next(&log, &cursor, &life))
		assert_int_equal(life.id, expected++);
	assert_int_equal(expected, SAMPLE_RING * 3 / 2 + 1);
	assert_false(log_ring_begin(&log, SAMPLE_LANES, &cursor));
	free(bytes);
}

/* The agent writes a lane's position once per group: what lies behind it is found by its epoch, and
 * what was there one lap before is not taken for it. */
static void test_a_position_that_lags(void **state)
{
	enum { RING = LOG_RING_LAPS_MIN, WRITTEN = RING + RING / 2 + 37 };
	const uint64_t rings_at = 3 * LOG_PAGE;
	const size_t len = rings_at + RING * sizeof(struct log_life) + LOG_PAGE;
	unsigned char *bytes = aligned_alloc(LOG_PAGE, len);
	struct log_header *h = (struct log_header *)bytes;
	struct log_thread *row = (struct log_thread *)(bytes + 2 * LOG_PAGE);
	struct log_life *ring = (struct log_life *)(bytes + rings_at), life;
	struct log_ring_cursor cursor;
	struct log_reader log;
	uint64_t i, expected;

	(void)state;
	memset(bytes, 0, len);
	h->magic = LOG_MAGIC;
	h->version = LOG_VERSION;
	h->header_bytes = sizeof(*h);
	h->file_bytes = len;
	h->ring_records = RING;
	h->thread_slots = 1;
	h->regions[LOG_REGION_THREADS] = (struct log_region){ 2 * LOG_PAGE, LOG_PAGE };
	h->regions[LOG_REGION_RINGS] = (struct log_region){ rings_at, len - LOG_PAGE - rings_at };
	h->regions[LOG_REGION_EVENTS] = (struct log_region){ len - LOG_PAGE, LOG_PAGE };
	h->check = checksum_add(CHECKSUM_SEED, h, LOG_FIXED_BYTES);
	row->tid = 1;
	for (i = 0; i < WRITTEN; i++) {
		struct log_life *to = &ring[i % RING];

		to->id = i + 1;
		to->start = 0x1000 + i * 32;
		to->op = LOG_LIFE_FREE;
		to->epoch = (uint32_t)(i / (LOG_EPOCH_GROUPS * LOG_LIFE_GROUP));
		to->check = log_life_check(to);
	}
	row->ring_position = WRITTEN - WRITTEN % LOG_LIFE_GROUP;
	assert_int_equal(log_reader_init(&log, bytes, len), LOG_READ_OK);
	assert_true(log_ring_begin(&log, 0, &cursor));
	expected = WRITTEN - RING + 1;
	while (log_ring_next(&log, &cursor, &life))
		assert_int_equal(life.id, expected++);
	assert_int_equal(expected, WRITTEN + 1);
	free(bytes);
}

static void test_a_hit_costs_one_record(void **state)
{
	unsigned char *bytes = sample_new();
	uint64_t touched, all, events;
	struct log_reader log;
	struct log_item item;

	(void)state;
	all = sample_walk(bytes, SAMPLE_BYTES, &touched);
	events = ((struct log_header *)bytes)->regions[LOG_REGION_EVENTS].offset;
	bytes[events + 5 * log_record_span(sizeof(struct log_context_seen) + 512) + 100] ^= 4;
	assert_int_equal(sample_walk(bytes, SAMPLE_BYTES, &touched), all - 1);
	assert_int_equal(log_reader_init(&log, bytes, SAMPLE_BYTES), LOG_READ_OK);
	while (log_reader_next(&log, &item))
		;
	assert_int_equal(log.damage.records, 1);
	free(bytes);
}

static void test_lost_piece_of_a_blob_is_counted(void **state)
{
	unsigned char *bytes = sample_new(), *stack = malloc(SAMPLE_STACK);
	struct log_blob_info info;
	struct log_reader log;
	struct log_item item;
	uint64_t reserve = ((struct log_header *)bytes)->regions[LOG_REGION_RESERVE].offset;

	(void)state;
	/* inside the second piece of the stack */
	bytes[reserve + log_record_span(sizeof(struct log_crash)) +
	      log_record_span(sizeof(struct log_blob) + LOG_BLOB_CHUNK) + 1000] ^= 1;
	assert_int_equal(log_reader_init(&log, bytes, SAMPLE_BYTES), LOG_READ_OK);
	assert_true(log_reader_next(&log, &item));
	assert_true(log_blob_gather(&log, &item, LOG_BLOB_STACK, 0, stack, SAMPLE_STACK, &info));
	assert_int_equal(info.total, SAMPLE_STACK);
	assert_int_equal(info.missing, LOG_BLOB_CHUNK);
	assert_int_equal(stack[LOG_BLOB_CHUNK], 0);
	assert_int_equal(stack[2 * LOG_BLOB_CHUNK], (unsigned char)(8192 * 7 + 32));
	free(stack);
	free(bytes);
}

static void test_one_header_is_enough(void **state)
{
	unsigned char *bytes = sample_new();
	uint64_t touched, all = sample_walk(bytes, SAMPLE_BYTES, &touched);
	struct log_reader log;

	(void)state;
	memset(bytes, 0xff, LOG_PAGE);
	assert_int_equal(sample_walk(bytes, SAMPLE_BYTES, &touched), all);
	assert_int_equal(log_reader_init(&log, bytes, SAMPLE_BYTES), LOG_READ_OK);
	assert_int_equal(log.damage.headers, 1);
	/* and without any header the records are still found */
	memset(bytes + LOG_PAGE, 0, LOG_PAGE);
	assert_int_equal(sample_walk(bytes, SAMPLE_BYTES, &touched), all);
	free(bytes);
}

static void test_refuses_what_is_no_log(void **state)
{
	unsigned char *bytes = calloc(1, SAMPLE_BYTES);
	struct log_reader log;

	(void)state;
	assert_int_equal(log_reader_init(&log, bytes, 100), LOG_READ_SHORT);
	assert_int_equal(log_reader_init(&log, bytes, SAMPLE_BYTES), LOG_READ_NOT_A_LOG);
	assert_int_equal(log_reader_init(&log, bytes + 1, SAMPLE_BYTES - 8), LOG_READ_UNALIGNED);
	sample_header((struct log_header *)bytes);
	((struct log_header *)bytes)->version = 9;
	((struct log_header *)bytes)->check = checksum_add(CHECKSUM_SEED, bytes, LOG_FIXED_BYTES);
	assert_int_equal(log_reader_init(&log, bytes, SAMPLE_BYTES), LOG_READ_VERSION);
	free(bytes);
}

static void test_cut_anywhere(void **state)
{
	unsigned char *bytes = sample_new();
	uint64_t touched, before = 0, now;
	size_t len;

	(void)state;
	for (len = 0; len <= SAMPLE_BYTES; len += 509) {
		unsigned char *copy = aligned_alloc(8, (len + 7) & ~(size_t)7);

		memcpy(copy, bytes, len); /* its own block, so that a read past the end is seen */
		now = sample_walk(copy, len, &touched);
		assert_true(now >= before);
		before = now;
		free(copy);
	}
	free(bytes);
}

/* A thousand stray stores: the bar is that a result remains. */
static void test_thousand_hits(void **state)
{
	unsigned char *bytes = sample_new();
	uint64_t random = SEED, touched;
	unsigned i;

	(void)state;
	for (i = 0; i < 1000; i++)
		bytes[2 * LOG_PAGE + next_random(&random) % (SAMPLE_BYTES - 2 * LOG_PAGE)] ^=
			(unsigned char)(1 + next_random(&random) % 255);
	assert_true(sample_walk(bytes, SAMPLE_BYTES, &touched) > 0);
	free(bytes);
}

static void mutate(unsigned char *bytes, uint64_t *random)
{
	static const uint64_t values[] = { 0,
					   1,
					   0xffffffffffffffffull,
					   0x7fffffffffffffffull,
					   LOG_RECORD_MAGIC,
					   LOG_PAYLOAD_MAX,
					   1ull << 32 };
	unsigned hits = 1 + next_random(random) % 6, i;

	for (i = 0; i < hits; i++) {
		uint64_t where = next_random(random), at;

		/* Half of them where the structure is: headers, heads of records. */
		at = where & 1 ? (where >> 8) % SAMPLE_BYTES : (where >> 8) % (3 * LOG_PAGE);
		if (where & 2)
			bytes[at] = (unsigned char)next_random(random);
		else
			memcpy(bytes + (at & ~7ull), &values[next_random(random) % 7], 8);
	}
}

/* Fixed parts are sealed again after the mutation, else the checksum would stop most of it. */
static void reseal(unsigned char *bytes, uint64_t *random)
{
	struct log_header *h = (struct log_header *)bytes;
	uint64_t offset;

	h->magic = LOG_MAGIC;
	h->version = LOG_VERSION;
	h->header_bytes = sizeof(*h);
	h->check = checksum_add(CHECKSUM_SEED, h, LOG_FIXED_BYTES);
	offset = (next_random(random) % (SAMPLE_BYTES - 4096)) & ~15ull;
	if (offset >= 2 * LOG_PAGE) {
		struct log_record *head = (struct log_record *)(bytes + offset);

		head->magic = LOG_RECORD_MAGIC;
		head->bytes %= 2000;
		head->head_check = log_head_check(head);
		head->check = 0;
		head->check = checksum_add(checksum_add(CHECKSUM_SEED, head, sizeof(*head)),
					   bytes + offset + sizeof(*head), head->bytes);
	}
}

static void test_mutations(void **state)
{
	unsigned char *clean = sample_new(), *bytes = sample_new();
	uint64_t random = SEED, touched, usable = 0;
	unsigned i;

	(void)state;
	for (i = 0; i < MUTATIONS; i++) {
		/* Whole copies are the cost of this test: mutations pile up for a while. */
		if (i % 16 == 0)
			memcpy(bytes, clean, SAMPLE_BYTES);
		mutate(bytes, &random);
		if (i % 2)
			reseal(bytes, &random);
		if (i % 8 == 0 || i % 2)
			usable += sample_walk(bytes, SAMPLE_BYTES, &touched) > 0;
	}
	assert_true(usable > MUTATIONS / 4);
	free(clean);
	free(bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reads_what_was_written),
		cmocka_unit_test(test_rings_oldest_first),
		cmocka_unit_test(test_a_position_that_lags),
		cmocka_unit_test(test_a_hit_costs_one_record),
		cmocka_unit_test(test_lost_piece_of_a_blob_is_counted),
		cmocka_unit_test(test_one_header_is_enough),
		cmocka_unit_test(test_refuses_what_is_no_log),
		cmocka_unit_test(test_cut_anywhere),
		cmocka_unit_test(test_thousand_hits),
		cmocka_unit_test(test_mutations),
	};

	return cmocka_run_group_tests_name("wire", tests, NULL, NULL);
}
