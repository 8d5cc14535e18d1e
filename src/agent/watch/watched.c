#include "agent/watch/watched.h"

#include <string.h>
#include <time.h>

#include "agent/arch/x86_64.h"
#include "agent/core/clock.h"
#include "agent/core/log.h"
#include "agent/core/secret.h"
#include "agent/core/thread.h"
#include "agent/watch/unexplained_changes.h"
#include "agent/watch/watch_ptrace.h"
#include "agent/watch/watch_registers.h"
#include "wire/checksum.h"

#define SETTLE_STEP_NS 50000
#define SETTLE_STEPS 400u	/* 20 ms for one change… */
#define SETTLE_STEPS_ALL 10000u /* …and half a second for all */

static uint32_t settling; /* steps waited so far; atomic */

bool watched_read(const struct watch_armed *armed, uint64_t words[WATCH_WORDS])
{
	memset(words, 0, WATCH_WORDS * sizeof(words[0]));
	return watch_read_sigsafe(words, armed->address, armed->bytes);
}

void watched_row_seal(struct log_watched *row)
{
	struct log_watched sealed = *row;

	/* Hits are counted without sealing it anew. */
	sealed.hits = 0;
	sealed.check = 0;
	row->check = checksum_add(CHECKSUM_SEED, &sealed, sizeof(sealed));
}

void watched_row_begin(struct watch_armed *armed, uint64_t number, uint32_t context)
{
	struct log_watched *row = &watch_state.area->watched[number % LOG_WATCHED];

	memset(row, 0, sizeof(*row));
	row->number = number;
	row->address = armed->address;
	row->id = armed->id;
	row->start = armed->start;
	row->size = armed->size;
	row->key = armed->key;
	row->watch = armed->watch;
	row->begin_ns = clock_ns_sigsafe(CLOCK_MONOTONIC);
	row->context = context;
	row->lane = thread_self ? thread_self->lane : UINT32_MAX;
	row->first_value = armed->last[0];
	secret_hide_sigsafe(&row->first_value, sizeof(row->first_value), row->address);
	row->last_value = row->last_seen = row->first_value;
	watched_row_seal(row);
	armed->row = row;
	watch_state.area->watched_count = number;
}

static bool differs(const struct watch_armed *armed, const uint64_t words[WATCH_WORDS])
{
	return memcmp(words, armed->last, sizeof(armed->last)) != 0 &&
	       memcmp(words, armed->noted, sizeof(armed->noted)) != 0;
}

/* Another thread may be between its store and our handler, and not even on a CPU. It is waited for,
 * a little: where a hit comes in, that was it. False: so it was. */
static bool settled(const struct watch_armed *armed, uint64_t number)
{
	static const struct timespec step = { .tv_nsec = SETTLE_STEP_NS };
	uint64_t hits = __atomic_load_n(&armed->row->hits, __ATOMIC_RELAXED);
	uint32_t i;

	for (i = 0; i < SETTLE_STEPS; i++) {
		if (__atomic_fetch_add(&settling, 1, __ATOMIC_RELAXED) >= SETTLE_STEPS_ALL)
			break;
		(void)raw_syscall2(SYS_nanosleep, &step, 0);
		if (__atomic_load_n(&armed->row->hits, __ATOMIC_RELAXED) != hits ||
		    (armed->number && armed->number != number))
			return false;
	}
	return true;
}

static void changed_write(struct watch_armed *armed, uint64_t number,
			  const uint64_t words[WATCH_WORDS])
{
	struct log_watch_changed changed = { .watched = number,
					     .address = armed->address,
					     .hit = watch_state.hit_count,
					     .watch = armed->watch,
					     .bytes = armed->bytes };

	if (!differs(armed, words))
		return;
	if (!armed->paged && memcmp(words, armed->beside, sizeof(armed->beside)) != 0 &&
	    !settled(armed, number))
		return;
	memcpy(armed->noted, words, sizeof(armed->noted));
	memcpy(changed.expected, armed->last, sizeof(changed.expected));
	memcpy(changed.found, words, sizeof(changed.found));
	secret_hide_sigsafe(changed.expected, changed.bytes, changed.address);
	secret_hide_sigsafe(changed.found, changed.bytes, changed.address);
	if (!armed->paged)
		unexplained_look_sigsafe(armed->row->hits, &changed);
	log_event_sigsafe(LOG_WATCH_CHANGED, &changed, sizeof(changed));
}

void watch_check_sigsafe(void)
{
	uint64_t words[WATCH_WORDS], number;
	unsigned i;

	for (i = 0; watch_state.area && i < WATCH_ARMED_MAX; i++) {
		struct watch_armed *armed = &watch_state.armed[i];

		number = __atomic_load_n(&armed->number, __ATOMIC_ACQUIRE);
		if (number && watched_read(armed, words))
			changed_write(armed, number, words);
	}
}

void watch_line_sigsafe(int fd, const void *text, size_t bytes)
{
	(void)fd;
	(void)text;
	(void)bytes;
	watch_check_sigsafe();
}

void watch_end(struct watch_armed *armed, enum log_watched_end why)
{
	uint64_t number = __atomic_exchange_n(&armed->number, 0, __ATOMIC_ACQ_REL);
	uint64_t words[WATCH_WORDS];
	struct log_watched *row = armed->row;

	if (!number)
		return;
	if (watched_read(armed, words))
		changed_write(armed, number, words);
	else
		memcpy(words, armed->last, sizeof(words));
	if (row->number != number)
		return;
	row->end = why;
	row->end_ns = clock_ns_sigsafe(CLOCK_MONOTONIC);
	row->last_seen = armed->last[0];
	row->last_value = words[0];
	secret_hide_sigsafe(&row->last_seen, sizeof(row->last_seen), row->address);
	secret_hide_sigsafe(&row->last_value, sizeof(row->last_value), row->address);
	watched_row_seal(row);
	if (why == LOG_WATCHED_DISPLACED)
		watch_state.area->rows[armed->watch].displaced++;
}

void watch_exiting_sigsafe(void)
{
	unsigned i;

	for (i = 0; watch_state.area && i < WATCH_ARMED_MAX; i++)
		watch_end(&watch_state.armed[i], LOG_WATCHED_EXIT);
}

void watch_leave_sigsafe(void)
{
	unsigned i;

	if (!watch_state.area)
		return;
	for (i = 0; i < WATCH_ARMED_MAX; i++)
		watch_end(&watch_state.armed[i], LOG_WATCHED_YIELDED);
	if (!watch_state.area->rows[0].yielded)
		watch_state.area->rows[0].yielded = LOG_YIELDED_SANDBOX;
	if (!watched_pages_leave())
		watch_registers_close_sigsafe();
}

void watch_traced_sigsafe(int pid)
{
	watch_ptrace_yield_sigsafe(pid);
	if (pid || !watch_state.area || !agent_owns_process_sigsafe() ||
	    (watch_registers_mode() != LOG_WATCH_PERF && !agent.faults))
		return;
	watch_state.area->rows[0].yielded = LOG_YIELDED_TO_OTHER;
	if (!agent.faults)
		watch_leave_sigsafe();
}

void watched_take_value(struct watch_armed *armed)
{
	(void)watched_read(armed, armed->last);
	memcpy(armed->noted, armed->last, sizeof(armed->noted));
	memcpy(armed->beside, armed->last, sizeof(armed->beside));
}

void watch_begin(struct watch_armed *armed, uint32_t context)
{
	uint64_t number = __atomic_add_fetch(&watch_state.numbers, 1, __ATOMIC_RELAXED);

	watched_take_value(armed);
	watched_row_begin(armed, number, context);
	__atomic_store_n(&armed->number, number, __ATOMIC_RELEASE);
}

void watch_look(struct watch_armed *armed)
{
	uint64_t words[WATCH_WORDS];

	if (watched_read(armed, words))
		changed_write(armed, armed->number, words);
}

bool watch_outlives(const struct watch_armed *armed)
{
	return watch_state.plans[armed->watch]->flags & PLAN_WATCH_AFTER_FREE;
}
