#pragma once

#include "arch/store.h"
#include "debuginfo/symbols.h"
#include "model/evidence.h"
#include "read/logs.h"

/*
 * The hits that the processes of a trial left in their logs, and what each of them was.
 */
struct hit {
	struct event_log *log;
	const struct log_hit *hit; /* in the log */
	const void *stack;	   /* hit->stack_bytes of it */
	struct log_item item;	   /* head.seq 0: out of the ring, with nothing else kept of it */
	/* Kept with it, with as many bytes as it says; NULL: what the ring has. */
	const struct log_hit_block *block;
};

struct trial_hits {
	VEC(struct hit) hits; /* by log, then in the order in which they happened */
};

/* They point into `logs`. */
void trial_hits_read(struct event_logs *logs, struct trial_hits *ret);
void trial_hits_deinit(struct trial_hits *hits);

/* Was the watched block freed by then? While it lives its bytes are its owner's, and when its place
 * has been given to another they are that one's. */
bool hit_freed(const struct log_hit *hit);

/* The instruction behind a hit. -ENOENT when no store can be found there. Where the bytes before
 * can be read in more than one way, `symbols` are asked where the function begins; NULL: nobody is.
 */
int hit_decode(const struct hit *caught, struct symbols *symbols, struct writer *ret);

/* By its registers the store wrote some of the watched bytes. */
bool hit_covers(const struct hit *caught, struct symbols *symbols);

/* All that can be told about a hit. `ret` is empty before; `writer` from hit_decode(), NULL when
 * that failed. */
void hit_tell(const struct hit *caught, const struct writer *writer, struct symbols *symbols,
	      struct write_seen *ret);

/* The two in one. */
void hit_describe(const struct hit *caught, struct symbols *symbols, struct write_seen *ret);

/* The life of a block that was watched, as far as its log knows it by its key. */
struct block_life *hit_block(struct event_log *log, const struct log_watched *watched,
			     struct symbols *symbols);

/* What names this instruction in every run: module and offset of the store, or the function and
 * text of emitted code. The caller's to free. */
char *hit_key(const struct hit *caught, const struct writer *writer,
	      const struct write_seen *write);

/* The first eight bytes of a value. */
uint64_t watched_word(const uint8_t bytes[LOG_WATCH_BYTES], uint32_t len);
