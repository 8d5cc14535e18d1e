#pragma once

#include "arch/store.h"
#include "debuginfo/symbols.h"
#include "model/evidence.h"
#include "read/logs.h"

/*
 * The hits that the processes of a trial left in their logs, and what each of them was.
 */
struct caught {
	struct event_log *log;
	const struct log_hit *hit; /* in the log */
	const void *stack;	   /* hit->stack_bytes of it */
	struct log_item item;	   /* head.seq 0: out of the ring, with nothing else kept of it */
};

struct watch_log {
	struct event_logs logs;
	VEC(struct caught) hits; /* by log, then in the order in which they happened */
};

/* A trial without hits gives an empty list. */
int watch_log_open(int trials, const char *trial, struct watch_log *ret, struct err *err);
void watch_log_deinit(struct watch_log *log);

/* The instruction behind a hit. -ENOENT when no store can be found there. Where the bytes before
 * can be read in more than one way, `symbols` are asked where the function begins; NULL: nobody is.
 */
int caught_decode(const struct caught *caught, struct symbols *symbols, struct writer *ret);

/* By its registers the store wrote some of the watched bytes. */
bool caught_covers(const struct caught *caught, struct symbols *symbols);

/* All that can be told about a hit. `ret` is empty before; `writer` from caught_decode(), NULL when
 * that failed. */
void caught_tell(const struct caught *caught, const struct writer *writer, struct symbols *symbols,
		 struct write_seen *ret);

/* The two in one. */
void caught_describe(const struct caught *caught, struct symbols *symbols, struct write_seen *ret);

/* The life of a block that was watched, as far as its log knows it by its key. */
struct block_life *caught_block(struct event_log *log, const struct log_watched *watched,
				struct symbols *symbols);

/* What names this instruction in every run: module and offset of the store, or the function and
 * text of emitted code. The caller's to free. */
char *caught_key(const struct caught *caught, const struct writer *writer,
		 const struct write_seen *write);

/* The first eight bytes of a value. */
uint64_t watched_word(const uint8_t bytes[LOG_WATCH_BYTES], uint32_t len);
