/*
 * Reading an event log: any bytes in, records out.
 *
 * Pure functions over the caller's memory: nothing is allocated, no file is opened, no pointer in
 * the log is followed. Any input is answered in time linear in its length, with what could be used
 * and a count of what could not. The bytes may still be changing (the target runs): each answer is
 * then true of some recent moment, and nothing worse.
 *
 *	struct log_reader log;
 *	struct log_item item;
 *
 *	if (log_reader_init(&log, bytes, len) != LOG_READ_OK)
 *		...not a log, or not even its header could be found
 *	while (log_reader_next(&log, &item)) {
 *		struct log_crash crash;
 *
 *		if (item.head.type == LOG_CRASH && log_payload(&item, &crash, sizeof(crash)))
 *			...
 *	}
 *	log.damage.records ...
 *
 * The file is sparse, some 400 MiB long and mostly holes. Map it, or read its data parts
 * (SEEK_DATA) into zeroed memory; on a tmpfs that is full only the latter works, since touching a
 * hole of a mapped file there raises SIGBUS.
 *
 * RESERVE is walked first, then EVENTS, so records do not come in order of time: sort by
 * head.seq where order matters.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/log_format.h"

enum log_read_result {
	LOG_READ_OK = 0,
	LOG_READ_SHORT,	    /* shorter than two pages */
	LOG_READ_NOT_A_LOG, /* neither copy of the header is recognisable */
	LOG_READ_VERSION,   /* another version */
	LOG_READ_UNALIGNED, /* bytes must lie at a multiple of 8 (mmap and malloc do) */
};

/* What could not be used. Bytes are those skipped to find the next sound record. */
struct log_damage {
	uint64_t headers; /* 0..2: damaged copies of the header */
	uint64_t records; /* places in EVENTS and RESERVE where a sound record was lost */
	uint64_t record_bytes;
	uint64_t ring_records; /* non-empty ring entries whose checksum fails */
	uint64_t context_rows;
	uint64_t hits;
	uint64_t incomplete; /* reserved but never finished: the process died while writing */
};

struct log_reader {
	const unsigned char *bytes;
	uint64_t len;
	struct log_header header; /* a copy; fixed part verified, live part as found */
	struct log_damage damage;
	/* where log_reader_next stands */
	unsigned region; /* index into the walk order */
	uint64_t at;	 /* offset in the file */
};

/* One sound record. `payload` points into the caller's bytes. */
struct log_item {
	struct log_record head;
	const void *payload;
	uint64_t offset; /* of the record in the file: names it in messages, and is a cursor */
};

enum log_read_result log_reader_init(struct log_reader *log, const void *bytes, size_t len);

/* A sentence fragment. */
const char *log_read_result_text(enum log_read_result result);

/* The next sound record; false at the end. Damage met on the way is counted once: a second walk
 * after log_reader_rewind counts anew. */
bool log_reader_next(struct log_reader *log, struct log_item *ret);
void log_reader_rewind(struct log_reader *log);

/* The record at `offset` (from a log_item), if it is still sound. */
bool log_record_at(const struct log_reader *log, uint64_t offset, struct log_item *ret);

/* Copies the fixed struct at the start of a payload. A shorter payload (older agent) is filled up
 * with zeros; false only when the payload is empty. */
bool log_payload(const struct log_item *item, void *ret, size_t bytes);

/* The bytes that follow the fixed struct: stack bytes of CONTEXT, text of BLOB. NULL and 0 when
 * there are none. */
const void *log_payload_rest(const struct log_item *item, size_t fixed, size_t *ret_bytes);

/* A blob put together from its pieces. Pieces that were lost leave zeros, and `missing` says how
 * many bytes they were. */
struct log_blob_info {
	uint64_t address;
	uint64_t total;
	uint64_t missing;
};

/* Gathers blob (kind, index) of `owner` into buf. Looks only behind the owner in its region, where
 * the agent puts them. Returns false when no piece was found; bytes beyond cap are left out but
 * counted in ret->total. Pass cap 0 to ask for the size. */
bool log_blob_gather(const struct log_reader *log, const struct log_item *owner,
		     enum log_blob_kind kind, unsigned index, void *buf, size_t cap,
		     struct log_blob_info *ret);

/* The next record after `item` in the same region that belongs to `owner_seq`; begin with the
 * owner itself. For walking BLOCK records of a crash. Stops at its CRASH_DONE. */
bool log_next_owned(const struct log_reader *log, uint64_t owner_seq, struct log_item *item);

/* History. `position` counts records of the lane from the oldest that is still in the ring. */
struct log_ring_cursor {
	uint32_t lane;
	uint64_t index, end; /* positions in the lane's sequence of records */
};

/* Number of lanes that the file has room for; rows that were never used have tid 0. */
uint32_t log_lane_count(const struct log_reader *log);

/* Oldest first. A ring whose position was damaged is read in slot order instead. */
bool log_ring_begin(const struct log_reader *log, uint32_t lane, struct log_ring_cursor *ret);
bool log_ring_next(struct log_reader *log, struct log_ring_cursor *cursor, struct log_life *ret);

/* Context rows 1..log_context_count()-1; false for unused and for damaged rows (counted). */
uint32_t log_context_count(const struct log_reader *log);
bool log_context_row(struct log_reader *log, uint32_t row, struct log_context *ret);

/* Watches. False when the log has none, for rows that were never used and for damaged ones. */
bool log_watch_row(const struct log_reader *log, uint32_t watch, struct log_watch_row *ret);
bool log_writer_row(const struct log_reader *log, uint32_t row, struct log_writer_row *ret);
bool log_watched(const struct log_reader *log, uint32_t row, struct log_watched *ret);

/* The latest hit at exactly this address. */
bool log_last(const struct log_reader *log, uint64_t address, struct log_last *ret);

/* A hit of the ring, by its slot (0..LOG_HITS-1), where it lies: its stack follows it. NULL when
 * the slot is empty or damaged (counted). */
const struct log_hit *log_hit(struct log_reader *log, uint32_t slot);

/* The bytes of the block right after that hit; false: not known. */
bool log_hit_block(const struct log_reader *log, uint64_t number, struct log_hit_block *ret);
