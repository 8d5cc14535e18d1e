#pragma once

#include "base/auto.h"
#include "base/err.h"
#include "run/job.h"

/*
 * A number of slots, each with its own process (slot.h), that run trials side by side.
 */
struct pool;

/* `settings` must outlive the pool. Where they have a fleet, the slots are its workers. `lock_fd`
 * stays open in the slots for as long as they have anything to clean up (see case_lock_fd()); -1
 * for none. */
int pool_open(unsigned int slots, const struct trial_settings *settings, int lock_fd,
	      struct pool **ret, struct err *err);

/* Ends running trials, waits until nothing of them is left. */
void pool_close(struct pool *pool);
AUTO_DEFINE(struct pool, pool_close)

unsigned int pool_slots(const struct pool *pool);
unsigned int pool_busy_count(const struct pool *pool);

/* Can the slot take one more now? Always, but where slots are on other machines and none of these
 * is there for it. */
bool pool_takes(const struct pool *pool, unsigned int slot);
/* Has one come that the next pool_wait() will give, without waiting? */
bool pool_has_result(const struct pool *pool);
/* How many jobs it has: 0 to POOL_DEPTH. */
unsigned int pool_depth(const struct pool *pool, unsigned int slot);

/* Sends a job to job->slot, which must have room for it. */
int pool_start(struct pool *pool, const struct trial_job *job, struct err *err);

/*
 * Waits until a trial has ended, `wake_fd` is readable (-1: none) or the time is over.
 * 1: `ret` is a result, or says that a trial was lost; 0: it is not, look at the rest; negative:
 * error.
 */
int pool_wait(struct pool *pool, int wake_fd, int timeout_ms, struct trial_result *ret,
	      struct err *err);
