/*
 * Fuzzer of what is made of event logs: crashes, stacks, hits, damage, the way back.
 *
 * The input is a trial of $FUZZ_TRIALS (the unpacked tests/corpus) and a list of changes to its
 * logs: a value in a record, in a row of a table, in the header. Each is sealed again, so that it
 * is believed. Afterwards the log is as it was.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/fd.h"
#include "base/mem.h"
#include "read/reading.h"
#include "wire/checksum.h"
#include "wire/log_reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct log {
	unsigned trial;
	int dir; /* -1: it has been read */
	char *name;
	uint8_t *bytes;
	size_t len;
	VEC(uint64_t) records; /* where each is */
	VEC(uint64_t) rows;    /* of the first ring, where there is one */
};

static VEC(struct log) logs;
static struct symbols *symbols;
static int trials = -1;

/* What stood where something was changed. */
struct old {
	uint8_t *at, bytes[8];
	size_t len;
};
static VEC(struct old) olds;

#define RING_LOOKED_AT (1u << 18)

/* When it is needed: it takes a while, for there are many holes in it. */
static void load(struct log *log)
{
	AUTO(fd_closep) int fd = openat(log->dir, log->name, O_RDWR | O_CLOEXEC);
	struct log_reader reader;
	struct log_item item;
	uint64_t from;
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		abort();
	fd_close(log->dir);
	log->dir = -1;
	log->len = (size_t)st.st_size;
	log->bytes = mmap(NULL, log->len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (log->bytes == MAP_FAILED)
		abort();
	if (log_reader_init(&reader, log->bytes, log->len) != LOG_READ_OK)
		return;
	while (log_reader_next(&reader, &item))
		VEC_PUSH(&log->records, item.offset);
	from = reader.header.regions[LOG_REGION_RINGS].offset;
	for (uint64_t at = from;
	     at < from + RING_LOOKED_AT && at + sizeof(struct log_life) < log->len;
	     at += sizeof(struct log_life))
		if (((const struct log_life *)(log->bytes + at))->id != 0)
			VEC_PUSH(&log->rows, at);
}

static void start(void)
{
	const char *path = getenv("FUZZ_TRIALS");

	trials = path ? open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	if (trials < 0) {
		(void)fprintf(stderr, "FUZZ_TRIALS must name the unpacked tests/corpus\n");
		exit(2);
	}
	symbols = symbols_new(&(struct symbols_options){ .debug_path = path });
	for (unsigned trial = 1; trial < 1000; trial++) {
		AUTO(mem_freep) char *name = mem_printf("%u", trial);
		int dir = openat(trials, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		DIR *stream = dir < 0 ? NULL : fdopendir(dir);
		struct dirent *entry;

		while (stream && (entry = readdir(stream)) != NULL)
			if (strncmp(entry->d_name, "events.", 7) == 0)
				VEC_PUSH(&logs,
					 ((struct log){ .trial = trial,
							.dir = dup(dir),
							.name = mem_strdup(entry->d_name) }));
		if (stream)
			(void)closedir(stream);
	}
	if (logs.count == 0)
		exit(2);
}

/* Of the log, and never beyond its end. */
static void put(struct log *log, uint64_t at, const void *bytes, size_t len)
{
	struct old old = { .at = log->bytes + at, .len = len };

	if (at > log->len || len > log->len - at)
		return;
	memcpy(old.bytes, old.at, len);
	VEC_PUSH(&olds, old);
	memcpy(old.at, bytes, len);
}

static void seal_record(struct log *log, uint64_t at)
{
	struct log_record head;

	memcpy(&head, log->bytes + at, sizeof(head));
	if (head.bytes > log->len - at - sizeof(head))
		return;
	head.head_check = log_head_check(&head);
	head.check = 0;
	head.check = checksum_add(checksum_add(CHECKSUM_SEED, &head, sizeof(head)),
				  log->bytes + at + sizeof(head), head.bytes);
	put(log, at + offsetof(struct log_record, head_check), &head.head_check,
	    sizeof(head.head_check));
	put(log, at + offsetof(struct log_record, check), &head.check, sizeof(head.check));
}

struct change {
	uint8_t what, width, value, raw;
	uint16_t which, where;
};

static uint64_t value_of(const struct log *log, const struct change *c)
{
	const uint64_t values[] = {
		0,     1,	 UINT64_MAX, INT64_MAX,	  INT32_MAX,	    UINT32_MAX, 0x8000,
		4096,  log->len, c->raw,     1ull << 40,  0xfff0,	    1ull << 63, UINT16_MAX,
		65536, c->where, 1ull << 32, 0x7ffffffff, (uint64_t)-c->raw
	};

	return values[c->value % ARRAY_SIZE(values)];
}

static void change(struct log *log, const struct change *c)
{
	static const size_t widths[] = { 1, 2, 4, 8 };
	uint64_t value = value_of(log, c);
	size_t width = widths[c->width % 4];

	if (c->what % 8 == 0) {
		uint64_t at = c->where % (LOG_FIXED_BYTES - 8), sum;

		put(log, at, &value, width);
		sum = checksum_add(CHECKSUM_SEED, log->bytes, LOG_FIXED_BYTES);
		put(log, LOG_FIXED_BYTES, &sum, sizeof(sum));
	} else if (c->what % 8 == 1 && log->rows.count > 0) {
		uint64_t at = log->rows.items[c->which % log->rows.count], sum;

		put(log, at + c->where % (sizeof(struct log_life) - 8), &value, width);
		sum = log_life_check((const struct log_life *)(log->bytes + at));
		put(log, at + offsetof(struct log_life, check), &sum, sizeof(sum));
	} else if (log->records.count > 0) {
		uint64_t at = log->records.items[c->which % log->records.count];
		const struct log_record *head = (const struct log_record *)(log->bytes + at);
		uint64_t in = sizeof(*head) + (head->bytes > 8 ? c->where % (head->bytes - 7) : 0);

		/* The head: what kind it is, how long, whose. */
		if (c->what % 8 == 2)
			in = 4 + c->where % (offsetof(struct log_record, check) - 12);
		put(log, at + in, &value, width);
		seal_record(log, at);
	}
}

static void read_all(unsigned trial)
{
	struct reading_of of = {
		.trials = trials, .trial = trial, .signal = 11, .symbols = symbols
	};
	AUTO(reading_closep) struct reading *reading = reading_open(&of);
	struct evidence_list proof = { 0 };
	struct event_logs *read = NULL;

	(void)reading_logs(reading, &read, NULL);
	(void)reading_crash(reading, CRASH_SITE);
	(void)reading_crashes(reading, CRASH_WHOLE);
	(void)reading_backtrack(reading, THROUGH_OBJECTS);
	reading_tell_proof(reading, &proof);
	(void)reading_hits(reading);
	(void)reading_truncations(reading);
	(void)reading_moments(reading);
	(void)reading_damage(reading);
	evidence_list_deinit(&proof);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct log *log;
	struct change c;

	if (logs.count == 0)
		start();
	if (size < 2)
		return 0;
	log = &logs.items[(data[0] | data[1] << 8) % logs.count];
	if (log->dir >= 0)
		load(log);
	for (data += 2, size -= 2; size >= sizeof(c) && olds.count < 256;
	     data += sizeof(c), size -= sizeof(c)) {
		memcpy(&c, data, sizeof(c));
		change(log, &c);
	}
	read_all(log->trial);
	for (size_t i = olds.count; i-- > 0;)
		memcpy(olds.items[i].at, olds.items[i].bytes, olds.items[i].len);
	olds.count = 0;
	return 0;
}
