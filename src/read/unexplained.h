#pragma once

#include "read/hits.h"

/*
 * Changes of watched memory that nobody was caught at.
 */

/* A hit tells who it was after all. */
bool change_explained(const struct trial_hits *log, const struct event_log *in,
		      const struct log_watch_changed *changed, struct symbols *symbols);

/* The change, with what is known of the time in which it happened. The caller's to free, as an
 * evidence of kind EVIDENCE_OUTSIDE. `changed->watch` is less than LOG_WATCHES. */
struct outside_change *unexplained_tell(struct event_log *in,
					const struct log_watch_changed *changed,
					struct symbols *symbols);

/* The change that left `value` (of `len` bytes) in the object that was watched as number `number`;
 * NULL: there was none, or somebody was caught at it. */
struct outside_change *unexplained_find(const struct trial_hits *log, struct event_log *in,
					uint64_t number, uint64_t value, unsigned int len,
					struct symbols *symbols);
