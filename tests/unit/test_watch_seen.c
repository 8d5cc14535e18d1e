/*
 * What the agent left about watches: the reader's way through it, also when it was damaged, and how
 * writers of several processes and trials become one.
 */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "base/mem.h"
#include "sample_log.h"
#include "says.h"
#include "scratch.h"
#include "studies/watch/gather.h"
#include "wire/log_reader.h"

#define SEED 20260715u
#define EVENT_BYTES (1u << 20)
#define HITS_AT ((sizeof(struct log_watch_area) + LOG_PAGE - 1) & ~(uint64_t)(LOG_PAGE - 1))
#define WATCH_BYTES (HITS_AT + (uint64_t)LOG_HITS * (LOG_HIT_SLOT + sizeof(struct log_hit_block)))
#define FILE_BYTES (3 * LOG_PAGE + EVENT_BYTES + WATCH_BYTES)
#define RIP 0x401080u
#define OBJECT 0x7f0000001000ull
#define FIELD (OBJECT + 0x18)
#define STACK_BYTES 256u

/* The kernel's order of registers, as far as it is needed here. */
enum { GREG_RBX = 11, GREG_RAX = 13 };

static uint64_t next_random(uint64_t *state)
{
	*state = *state * 6364136223846793005ull + 1442695040888963407ull;
	return *state >> 33;
}

/* A log that is being written. */
struct writing {
	struct sample sample;
	struct log_watch_area *area;
	unsigned char *hits;
	uint64_t hit_count, watched_count;
};

/* In trials/TRIAL of the scratch directory, or in memory only. */
static void writing_begin(struct writing *w, const struct scratch *dir, const char *trial,
			  unsigned int pid)
{
	char name[128] = "";
	int fd = -1, flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
	struct log_header *h;
	uint64_t at;

	memset(w, 0, sizeof(*w));
	if (dir) {
		(void)mkdirat(dir->fd, trial, 0755);
		(void)snprintf(name, sizeof(name), "%s/events.%u.0.rhl", trial, pid);
		fd = openat(dir->fd, name, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
		assert_true(fd >= 0 && ftruncate(fd, (off_t)FILE_BYTES) == 0);
		flags = MAP_SHARED;
	}
	w->sample.bytes = mmap(NULL, FILE_BYTES, PROT_READ | PROT_WRITE, flags, fd, 0);
	assert_true(w->sample.bytes != MAP_FAILED);
	(void)close(fd);
	h = w->sample.header = (struct log_header *)w->sample.bytes;
	h->magic = LOG_MAGIC;
	h->version = LOG_VERSION;
	h->header_bytes = sizeof(*h);
	h->pid = pid;
	h->ring_records = SAMPLE_RING;
	h->thread_slots = 1;
	h->context_rows = 16;
	at = sample_region(h, LOG_REGION_THREADS, 2 * LOG_PAGE, sizeof(struct log_thread));
	at = sample_region(h, LOG_REGION_EVENTS, at, EVENT_BYTES);
	(void)sample_region(h, LOG_REGION_WATCH, at, WATCH_BYTES);
	h->file_bytes = FILE_BYTES;
	h->check = checksum_add(CHECKSUM_SEED, h, LOG_FIXED_BYTES);
	memcpy(w->sample.bytes + LOG_PAGE, w->sample.bytes, LOG_PAGE);
	w->sample.at = h->regions[LOG_REGION_EVENTS].offset;
	w->area = (void *)(w->sample.bytes + at);
	w->hits = w->sample.bytes + at + HITS_AT;
	w->area->rows[0] = (struct log_watch_row){ .mode = LOG_WATCH_PERF, .kernel_writes = 1 };
}

static void writing_end(struct writing *w)
{
	struct log_header *h = w->sample.header;

	h->events_tail = w->sample.at - h->regions[LOG_REGION_EVENTS].offset;
	(void)munmap(w->sample.bytes, FILE_BYTES);
}

static void add_watched(struct writing *w, uint64_t address, uint64_t id, uint64_t first,
			uint64_t last, enum log_watched_end end)
{
	uint64_t number = ++w->watched_count;
	struct log_watched *row = &w->area->watched[number % LOG_WATCHED];

	*row = (struct log_watched){ .number = number,
				     .address = address,
				     .id = id,
				     .start = address - 0x18,
				     .size = 32,
				     .end = end,
				     .first_value = first,
				     .last_value = last,
				     .last_seen = last };
	row->check = checksum_add(CHECKSUM_SEED, row, sizeof(*row));
	row->hits = 5;
}

static void add_row(struct writing *w, uint64_t rip, uint32_t watch, uint64_t count, uint64_t value)
{
	uint32_t n = (uint32_t)(rip ^ watch ^ watch >> 20) % LOG_WRITERS;
	struct log_writer_row *row = &w->area->writers[n];

	*row = (struct log_writer_row){ .rip = rip,
					.watch = watch,
					.check = log_context_check(rip, watch, n),
					.count = count,
					.changed = count,
					.values = { value },
					.value_counts = { count } };
	w->area->rows[0].hits += count;
}

/* rbx + 0x18 gets rax, by the instruction before rip. */
static struct log_hit *add_hit(struct writing *w, uint64_t rip, uint32_t flags, uint64_t rbx,
			       uint64_t address, uint64_t old, uint64_t new)
{
	static const uint8_t store[] = { 0x48, 0x89, 0x43, 0x18 }; /* mov [rbx+0x18], rax */
	uint64_t number = ++w->hit_count;
	struct log_hit *hit = (void *)(w->hits + number % LOG_HITS * LOG_HIT_SLOT);

	memset(hit, 0, LOG_HIT_SLOT);
	*hit = (struct log_hit){ .tid = 7,
				 .flags = flags,
				 .watched = 1,
				 .address = address,
				 .id = 12,
				 .start = address - 0x18,
				 .size = 32,
				 .bytes = 8,
				 .stack_bytes = STACK_BYTES,
				 .code_address = rip - LOG_HIT_CODE_BEFORE,
				 .code_bytes = LOG_HIT_CODE };
	memcpy(hit->old, &old, 8);
	memcpy(hit->new, &new, 8);
	hit->gregs[LOG_GREG_RIP] = rip;
	hit->gregs[GREG_RBX] = rbx;
	hit->gregs[GREG_RAX] = new;
	memset(hit->code, 0x90, sizeof(hit->code));
	memcpy(hit->code + LOG_HIT_CODE_BEFORE - sizeof(store), store, sizeof(store));
	hit->owners[0].greg = 255;
	hit->check = log_hit_sum(number, hit, hit + 1);
	hit->number = number;
	return hit;
}

static void add_changed(struct writing *w, uint64_t old, uint64_t new)
{
	struct log_watch_changed changed = { .watched = 1, .address = FIELD, .bytes = 8 };

	memcpy(changed.expected, &old, 8);
	memcpy(changed.found, &new, 8);
	(void)sample_record(&w->sample, LOG_WATCH_CHANGED, 0, &changed, sizeof(changed), NULL, 0);
}

/* ---- the reader ------------------------------------------------------------------------------ */

static void add_last(struct writing *w)
{
	struct log_last *last = &w->area->lasts[(log_last_slot(FIELD) + 1) % LOG_LASTS];

	*last = (struct log_last){ .address = FIELD, .hit = 1, .new_word = 9, .count = 3 };
	last->check = log_last_sum(last);
}

static void reads_back(void **state)
{
	struct log_writer_row row;
	struct log_watched watched;
	struct log_watch_row watch;
	struct log_reader log;
	struct log_last last;
	const struct log_hit *hit;
	struct writing w;

	writing_begin(&w, NULL, NULL, 1);
	add_row(&w, RIP, 0, 40, 9);
	add_watched(&w, FIELD, 12, 1, 9, LOG_WATCHED_FREED);
	add_last(&w);
	(void)add_hit(&w, RIP, 0, OBJECT, FIELD, 1, 9);
	assert_int_equal(log_reader_init(&log, w.sample.bytes, FILE_BYTES), LOG_READ_OK);
	assert_true(log_watch_row(&log, 0, &watch));
	assert_int_equal(watch.hits, 40);
	assert_false(log_watch_row(&log, 1, &watch));
	assert_false(log_watch_row(&log, LOG_WATCHES, &watch));
	assert_true(log_writer_row(&log, RIP % LOG_WRITERS, &row));
	assert_int_equal(row.count, 40);
	assert_false(log_writer_row(&log, RIP % LOG_WRITERS + 1, &row));
	assert_false(log_writer_row(&log, LOG_WRITERS, &row));
	assert_true(log_watched(&log, 1, &watched));
	assert_int_equal(watched.id, 12);
	assert_int_equal(watched.hits, 5);
	assert_false(log_watched(&log, 2, &watched));
	assert_false(log_watched(&log, LOG_WATCHED, &watched));
	assert_true(log_last(&log, FIELD, &last));
	assert_int_equal(last.new_word, 9);
	assert_false(log_last(&log, FIELD + 8, &last));
	hit = log_hit(&log, 1);
	assert_non_null(hit);
	assert_int_equal(hit->gregs[LOG_GREG_RIP], RIP);
	assert_null(log_hit(&log, 2));
	assert_null(log_hit(&log, LOG_HITS));
	assert_int_equal(log.damage.hits, 0);
	writing_end(&w);
}

/* The bytes of the block are the hit's, whole, or nobody's; an older log has none. */
static void blocks_of_hits(void **state)
{
	struct log_hit_block *at, block;
	struct log_reader log;
	struct writing w;

	(void)state;
	writing_begin(&w, NULL, NULL, 1);
	(void)add_hit(&w, RIP, 0, OBJECT, FIELD, 1, 9);
	at = (struct log_hit_block *)(w.hits + (uint64_t)LOG_HITS * LOG_HIT_SLOT) + 1;
	*at = (struct log_hit_block){ .number = 1, .address = OBJECT, .nth = 3, .len = 32 };
	at->bytes[31] = 7;
	at->check = log_hit_block_sum(1, at);
	assert_int_equal(log_reader_init(&log, w.sample.bytes, FILE_BYTES), LOG_READ_OK);
	assert_true(log_hit_block(&log, 1, &block));
	assert_int_equal(block.nth, 3);
	assert_int_equal(block.bytes[31], 7);
	assert_false(log_hit_block(&log, 0, &block));
	assert_false(log_hit_block(&log, 2, &block));
	assert_false(log_hit_block(&log, 1 + LOG_HITS, &block));
	for (size_t i = offsetof(struct log_hit_block, check); i < sizeof(*at); i++) {
		((uint8_t *)at)[i] ^= 0x10;
		assert_false(log_hit_block(&log, 1, &block));
		((uint8_t *)at)[i] ^= 0x10;
	}
	log.header.regions[LOG_REGION_WATCH].bytes -= sizeof(*at);
	assert_false(log_hit_block(&log, 1, &block));
	assert_non_null(log_hit(&log, 1));
	writing_end(&w);
}

/* A hit that is kept for good has the bytes of its block with it: the ring forgets both. */
static void bytes_are_kept_with_a_hit(void **state)
{
	struct log_hit_block block = { .number = 1, .address = OBJECT, .nth = 2, .len = 32 };
	size_t head = offsetof(struct log_hit_block, bytes);
	struct symbols *symbols = symbols_new(&(struct symbols_options){ 0 });
	struct evidence e = evidence_new(EVIDENCE_WRITE, 1, true);
	const struct block_bytes *told = &e.write->block;
	struct reading *reading;
	struct scratch dir;
	struct log_hit *hit;
	struct writing w;
	uint64_t kept;

	(void)state;
	scratch_make(&dir);
	writing_begin(&w, &dir, "1", 100);
	hit = add_hit(&w, RIP, 0, OBJECT, FIELD, 1, 9);
	kept = sample_record(&w.sample, LOG_HIT, 0, hit, sizeof(*hit), hit + 1, STACK_BYTES);
	/* Of nobody, and of more bytes than there are. */
	(void)sample_record(&w.sample, LOG_HIT_BYTES, kept + 9, &block, head, block.bytes, 32);
	(void)sample_record(&w.sample, LOG_HIT_BYTES, kept, &block, head, block.bytes, 24);
	block.bytes[31] = 7;
	(void)sample_record(&w.sample, LOG_HIT_BYTES, kept, &block, head, block.bytes, 32);
	memset(hit, 0, LOG_HIT_SLOT);
	writing_end(&w);
	reading = reading_open(
		&(struct reading_of){ .trials = dir.fd, .trial = 1, .symbols = symbols });
	assert_int_equal(reading_hits(reading)->hits.count, 1);
	hit_tell(&reading_hits(reading)->hits.items[0], NULL, symbols, e.write);
	assert_int_equal(told->nth, 2);
	assert_int_equal(told->offset, 0);
	assert_int_equal(told->bytes.len, 32);
	assert_int_equal(told->bytes.data[31], 7);
	evidence_deinit(&e);
	reading_close(reading);
	symbols_free(symbols);
	scratch_remove(&dir);
}

/* A byte of a sealed thing is changed: it is told apart, each time. */
static void damage_is_seen(void **state)
{
	struct log_watched watched;
	struct log_reader log;
	struct log_last last;
	struct log_hit *hit;
	unsigned char *bytes;
	struct writing w;
	uint64_t random = SEED;

	print_message("# seed %u\n", SEED);
	writing_begin(&w, NULL, NULL, 1);
	add_watched(&w, FIELD, 12, 1, 9, LOG_WATCHED_FREED);
	add_last(&w);
	hit = add_hit(&w, RIP, 0, OBJECT, FIELD, 1, 9);
	assert_int_equal(log_reader_init(&log, w.sample.bytes, FILE_BYTES), LOG_READ_OK);
	bytes = (unsigned char *)&w.area->watched[1];
	for (size_t i = 0; i < sizeof(watched); i++) {
		bytes[i] ^= 0x10;
		assert_int_equal(log_watched(&log, 1, &watched),
				 i - offsetof(struct log_watched, hits) < 8);
		bytes[i] ^= 0x10;
	}
	bytes = (unsigned char *)&w.area->lasts[(log_last_slot(FIELD) + 1) % LOG_LASTS];
	for (size_t i = 0; i < sizeof(last); i++) {
		bytes[i] ^= 0x10;
		assert_false(log_last(&log, FIELD, &last));
		bytes[i] ^= 0x10;
	}
	bytes = (unsigned char *)hit;
	for (int round = 0; round < 5000; round++) {
		size_t at = next_random(&random) % (sizeof(*hit) + STACK_BYTES);
		unsigned char was = bytes[at];

		bytes[at] ^= (unsigned char)(1 + next_random(&random) % 255);
		assert_null(log_hit(&log, 1));
		bytes[at] = was;
	}
	assert_non_null(log_hit(&log, 1));
	assert_true(log.damage.hits > 4900);
	writing_end(&w);
}

/* Reads all there is. */
static uint64_t walk(struct log_reader *log)
{
	struct log_watch_row watch;
	struct log_writer_row row;
	struct log_watched watched;
	struct log_last last;
	uint64_t touched = 0;

	for (uint32_t i = 0; i < LOG_WATCHES + 2; i++)
		touched += log_watch_row(log, i, &watch);
	for (uint32_t i = 0; i < LOG_WRITERS + 2; i++)
		if (log_writer_row(log, i, &row))
			touched += row.count + (LOG_WRITER_WATCH(row.watch) < LOG_WATCHES);
	for (uint32_t i = 0; i < 64; i++)
		if (log_watched(log, i, &watched))
			touched += watched.id + log_last(log, watched.address, &last);
	for (uint32_t i = 0; i < LOG_HITS + 2; i++) {
		const struct log_hit *hit = log_hit(log, i);

		if (hit)
			touched += ((const unsigned char *)(hit + 1))[hit->stack_bytes - 1] +
				   hit->code[hit->code_bytes - 1];
	}
	return touched;
}

/* Any bytes, any length: no fault, and the rest is still read. */
static void any_damage(void **state)
{
	unsigned char *bytes;
	struct log_reader log;
	struct writing w;
	uint64_t random = SEED + 1, touched = 0;

	writing_begin(&w, NULL, NULL, 1);
	for (uint64_t i = 0; i < 40; i++) {
		add_row(&w, RIP + i, i % 3, 10, i);
		add_watched(&w, FIELD + i * 32, i + 1, 1, 2, LOG_WATCHED_FREED);
		(void)add_hit(&w, RIP + i, 0, OBJECT, FIELD, 1, i);
	}
	bytes = (unsigned char *)w.area;
	for (int round = 0; round < 300; round++) {
		for (int i = 0; i < 20; i++) {
			static const uint64_t parts[] = { 0,
							  offsetof(struct log_watch_area, writers) +
								  RIP % LOG_WRITERS * 112,
							  offsetof(struct log_watch_area, watched),
							  HITS_AT };
			uint64_t at = parts[next_random(&random) % 4] + next_random(&random) % 4000;

			bytes[at] = (unsigned char)next_random(&random);
		}
		assert_int_equal(log_reader_init(&log, w.sample.bytes, FILE_BYTES), LOG_READ_OK);
		touched += walk(&log);
		/* A file that was cut. */
		(void)log_reader_init(&log, w.sample.bytes,
				      FILE_BYTES - next_random(&random) % WATCH_BYTES);
		touched += walk(&log);
	}
	assert_true(touched > 0);
	writing_end(&w);
}

/* ---- gathering ------------------------------------------------------------------------------- */

struct gathering {
	struct scratch dir;
	struct watch_report report;
	struct symbols *symbols;
	struct watch_gather gather;
};

static void gathering_begin(struct gathering *g)
{
	memset(g, 0, sizeof(*g));
	scratch_make(&g->dir);
	g->symbols = symbols_new(&(struct symbols_options){ 0 });
	g->gather = (struct watch_gather){ .report = &g->report, .symbols = g->symbols };
	VEC_PUSH(&g->report.targets, ((struct watch_target){ .text = mem_strdup("ret:f"),
							     .what = { .id = mem_strdup("f") } }));
}

static void gathering_end(struct gathering *g)
{
	watch_gather_deinit(&g->gather);
	watch_report_deinit(&g->report);
	symbols_free(g->symbols);
	scratch_remove(&g->dir);
}

static void gather_trial(struct gathering *g, uint64_t trial, bool failing)
{
	AUTO(reading_closep)
	struct reading *reading = reading_open(
		&(struct reading_of){ .trials = g->dir.fd, .trial = trial, .symbols = g->symbols });

	watch_gather_trial(&g->gather, reading);
	watch_gather_settle(&g->gather, failing);
}

static void writers_become_one(void **state)
{
	struct gathering g;
	struct writing w;

	gathering_begin(&g);
	/* Two processes of trial 1, and trial 2, which fails. */
	for (unsigned int i = 0; i < 3; i++) {
		writing_begin(&w, &g.dir, i < 2 ? "1" : "2", 100 + i);
		add_row(&w, RIP, 0, 10, 9);
		(void)add_hit(&w, RIP, 0, OBJECT, FIELD, 1, 9);
		(void)add_hit(&w, RIP, 0, OBJECT, FIELD, 9, 9 + i);
		writing_end(&w);
	}
	gather_trial(&g, 1, false);
	gather_trial(&g, 2, true);
	watch_gather_finish(&g.gather);
	assert_int_equal(g.report.writers.count, 1);
	assert_int_equal(g.report.writers.items[0].count, 30);
	assert_int_equal(g.report.writers.items[0].trials, 2);
	assert_int_equal(g.report.writers.items[0].failing, 1);
	assert_int_equal(g.report.writers.items[0].value_count, 1);
	assert_int_equal(g.report.writers.items[0].values[0].count, 30);
	assert_int_equal(g.report.writers.items[0].first.trial, 1);
	assert_int_equal(g.report.writers.items[0].last.trial, 2);
	assert_true(g.report.writers.items[0].last.failing);
	assert_int_equal(g.report.writers.items[0].last.write->new, 11);
	assert_string_equal(g.report.writers.items[0].first.write->instruction,
			    "mov [rbx+0x18], rax");
	assert_int_equal(g.report.writers.items[0].first.write->fit, FIT_EXACT);
	assert_int_equal(g.report.targets.items[0].hits, 30);
	assert_int_equal(g.report.processes, 3);
	gathering_end(&g);
}

/* A store counts for what it had no trap of its own for only if it reached it. */
static void alongside(void **state)
{
	struct gathering g;
	struct writing w;

	gathering_begin(&g);
	writing_begin(&w, &g.dir, "1", 100);
	add_watched(&w, FIELD, 12, 1, 9, LOG_WATCHED_EXIT);
	/* rbx leads elsewhere: another's trap. */
	add_row(&w, RIP, LOG_WRITER_ALONGSIDE, 1, 9);
	(void)add_hit(&w, RIP, LOG_HIT_ALONGSIDE, OBJECT + 4096, FIELD, 1, 9);
	add_changed(&w, 1, 9);
	writing_end(&w);
	gather_trial(&g, 1, false);
	assert_int_equal(g.report.writers.count, 0);
	assert_int_equal(g.report.outside.count, 1);
	assert_int_equal(g.report.outside.items[0].change->new, 9);
	writing_begin(&w, &g.dir, "2", 100);
	add_watched(&w, FIELD, 12, 1, 9, LOG_WATCHED_EXIT);
	add_row(&w, RIP, LOG_WRITER_ALONGSIDE, 1, 9);
	(void)add_hit(&w, RIP, LOG_HIT_ALONGSIDE, OBJECT, FIELD, 1, 9);
	add_changed(&w, 1, 9);
	writing_end(&w);
	gather_trial(&g, 2, true);
	assert_int_equal(g.report.writers.count, 1);
	assert_int_equal(g.report.outside_count, 1);
	gathering_end(&g);
}

/* Counts and texts of the log are the target's: more than there is room for, and without an end. */
static void known_of_the_time_between(void **state)
{
	struct log_watch_changed changed = { .watched = 1,
					     .address = FIELD,
					     .bytes = 8,
					     .map_low = FIELD - 0x10,
					     .map_offset = 0x1000,
					     .again = 0x5000,
					     .flags = LOG_BETWEEN_MAPPED | LOG_BETWEEN_SHARED |
						      LOG_BETWEEN_LOOKED,
					     .call_count = 7,
					     .other_count = UINT32_MAX };
	const struct said_list *between;
	struct gathering g;
	struct writing w;

	changed.found[0] = 9;
	changed.calls[0] = (struct log_between_call){ .buffer = FIELD, .bytes = 8, .fd = 5 };
	changed.others[0].pid = 77;
	memset(changed.others[0].name, '\n', sizeof(changed.others[0].name));
	memset(changed.path, 'x', sizeof(changed.path));
	gathering_begin(&g);
	writing_begin(&w, &g.dir, "1", 100);
	add_watched(&w, FIELD, 12, 1, 9, LOG_WATCHED_EXIT);
	(void)sample_record(&w.sample, LOG_WATCH_CHANGED, 0, &changed, sizeof(changed), NULL, 0);
	writing_end(&w);
	gather_trial(&g, 1, true);
	assert_int_equal(g.report.outside.count, 1);
	between = &g.report.outside.items[0].change->between;
	assert_int_equal(between->list.count, LOG_BETWEEN_CALLS + 4);
	assert_true(says(&between->list.items[0], "read from descriptor 5 put 8 bytes at"));
	assert_string_equal(sentence_of(&between->list.items[4]),
			    "3 more system calls that filled it");
	assert_true(says(&between->list.items[5], "a shared mapping of a file: xxx"));
	assert_true(says(&between->list.items[5], "x at offset 0x1010"));
	assert_string_equal(sentence_of(&between->list.items[6]),
			    "this process has it mapped for writing at 0x5000, too");
	assert_true(says(&between->list.items[7], "by process 77 ("));
	assert_null(strchr(sentence_of(&between->list.items[7]), '\n'));
	assert_true(says(&between->list.items[7], " and 4294967287 more"));
	gathering_end(&g);
}

/* A change whose hit came a little later has a writer. */
static void outside_writers(void **state)
{
	struct gathering g;
	struct writing w;

	gathering_begin(&g);
	writing_begin(&w, &g.dir, "1", 100);
	add_watched(&w, FIELD, 12, 1, 9, LOG_WATCHED_EXIT);
	add_row(&w, RIP, 0, 1, 9);
	(void)add_hit(&w, RIP, 0, OBJECT, FIELD, 1, 9);
	add_changed(&w, 1, 9);
	add_changed(&w, 9, 10);
	writing_end(&w);
	gather_trial(&g, 1, true);
	assert_int_equal(g.report.outside.count, 1);
	assert_int_equal(g.report.outside.items[0].change->old, 9);
	assert_int_equal(g.report.outside.items[0].change->new, 10);
	assert_true(g.report.outside.items[0].failing);
	assert_int_equal(g.report.outside.items[0].change->home.offset, 0x18);
	gathering_end(&g);
}

static void conflations(void **state)
{
	struct gathering g;
	struct writing w;

	gathering_begin(&g);
	writing_begin(&w, &g.dir, "1", 100);
	add_watched(&w, FIELD, 12, 1, 1, LOG_WATCHED_FREED);
	add_watched(&w, FIELD, 13, 2, 2, LOG_WATCHED_EXIT); /* another object, another value */
	add_watched(&w, FIELD + 64, 14, 5, 5, LOG_WATCHED_FREED);
	add_watched(&w, FIELD + 64, 15, 5, 5,
		    LOG_WATCHED_EXIT); /* the same value: nothing to see */
	add_watched(&w, FIELD + 128, 16, 5, 6, LOG_WATCHED_EXIT);
	writing_end(&w);
	gather_trial(&g, 1, true);
	assert_int_equal(g.report.conflation_count, 2);
	assert_int_equal(g.report.conflations.count, 1);
	assert_int_equal(g.report.conflations.items[0].address, FIELD);
	assert_int_equal(g.report.conflations.items[0].changed_at, 0);
	assert_int_equal(g.report.conflations.items[0].list.count, 2);
	assert_int_equal(g.report.conflations.items[0].list.items[1].id, 13);
	gathering_end(&g);
}

/* Who wrote only where it failed comes first, though others wrote more often. */
static void odd_ones_first(void **state)
{
	struct gathering g;
	struct writing w;

	gathering_begin(&g);
	for (unsigned int i = 0; i < 2; i++) {
		writing_begin(&w, &g.dir, i == 0 ? "1" : "2", 100);
		add_row(&w, RIP, 0, 1000, 9);
		add_hit(&w, RIP, 0, OBJECT, FIELD, 1, 9);
		if (i == 1) {
			struct log_hit *hit = add_hit(&w, RIP + 512, 0, OBJECT, FIELD, 1, 9);

			add_row(&w, RIP + 512, 0, 1, 9);
			/* and qword [rbx+0x18], rax: another text, another writer */
			hit->code[LOG_HIT_CODE_BEFORE - 3] = 0x21;
			hit->check = 0;
			hit->check = log_hit_sum(hit->number, hit, hit + 1);
		}
		writing_end(&w);
		gather_trial(&g, i + 1, i == 1);
	}
	watch_gather_finish(&g.gather);
	assert_int_equal(g.report.writers.count, 2);
	assert_int_equal(g.report.writers.items[0].count, 1);
	assert_string_equal(g.report.writers.items[0].first.write->instruction,
			    "and [rbx+0x18], rax");
	assert_int_equal(g.report.writers.items[1].count, 2000);
	gathering_end(&g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_back),
		cmocka_unit_test(blocks_of_hits),
		cmocka_unit_test(bytes_are_kept_with_a_hit),
		cmocka_unit_test(damage_is_seen),
		cmocka_unit_test(any_damage),
		cmocka_unit_test(writers_become_one),
		cmocka_unit_test(alongside),
		cmocka_unit_test(outside_writers),
		cmocka_unit_test(known_of_the_time_between),
		cmocka_unit_test(conflations),
		cmocka_unit_test(odd_ones_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
