/*
 * Calls every function of the log reader on a log: what the mutation test and the fuzzer run.
 */
#ifndef REDHAND_TESTS_SAMPLE_WALK_H
#define REDHAND_TESTS_SAMPLE_WALK_H

#include "wire/log_reader.h"

/* Reads all and touches every byte that the reader hands out. Returns the number of records. */
static inline uint64_t sample_walk(const void *bytes, size_t len, uint64_t *ret_touched)
{
	static unsigned char buffer[32768];
	struct log_ring_cursor cursor;
	struct log_blob_info info;
	struct log_context context;
	struct log_reader log;
	struct log_item item, owned;
	struct log_life life;
	struct log_watch_row watch;
	struct log_writer_row writer;
	struct log_watched watched;
	struct log_last last;
	uint64_t count = 0, touched = 0;
	uint32_t i, n;

	*ret_touched = 0;
	if (log_reader_init(&log, bytes, len) != LOG_READ_OK)
		return 0;
	while (log_reader_next(&log, &item)) {
		const unsigned char *payload = item.payload;

		count++;
		if (item.head.bytes) /* first and last: the sanitizer knows the rest by the range */
			touched += payload[0] + payload[item.head.bytes - 1];
		if (item.head.type != LOG_CRASH)
			continue;
		if (log_blob_gather(&log, &item, LOG_BLOB_STACK, 0, buffer, sizeof(buffer), &info))
			touched += buffer[0] + info.total;
		(void)log_blob_gather(&log, &item, LOG_BLOB_MAPS, 0, NULL, 0, &info);
		owned = item;
		for (n = 0; n < 10000 && log_next_owned(&log, item.head.seq, &owned); n++)
			touched += owned.head.type;
	}
	for (i = 0; i < log_lane_count(&log) && i < 4096; i++)
		if (log_ring_begin(&log, i, &cursor))
			while (log_ring_next(&log, &cursor, &life))
				touched += life.id;
	for (i = 1; i < log_context_count(&log); i++)
		if (log_context_row(&log, i, &context))
			touched += context.allocs;
	/* The sample has no room for watches, but a damaged header may claim some. */
	for (i = 0; i < 20; i++) {
		const struct log_hit *hit = log_hit(&log, i);

		if (hit && hit->stack_bytes)
			touched += ((const unsigned char *)(hit + 1))[hit->stack_bytes - 1];
		touched += log_watch_row(&log, i, &watch) + log_writer_row(&log, i, &writer) +
			   log_watched(&log, i, &watched) + log_last(&log, i * 8, &last);
	}
	*ret_touched = touched;
	return count;
}

#endif
