#include "agent/growth/checkpoint.h"

#include <string.h>
#include <time.h>

#include "agent/core/agent.h"
#include "agent/core/clock.h"
#include "agent/core/feature.h"
#include "agent/core/log.h"
#include "agent/core/memory.h"
#include "agent/core/secret.h"
#include "agent/core/thread.h"
#include "agent/growth/holders.h"

#define GROWTH_ROWS 256u /* per record */
#define BYTES_MIX 0x9e3779b97f4a7c15ull

static struct {
	uint32_t *rows;	  /* in order of appearance; 0: not yet written */
	uint64_t *counts; /* live blocks and bytes of rows[i] at the last checkpoint, mixed */
	uint32_t used;	  /* atomic */
	uint32_t busy;	  /* atomic */
	uint64_t last_ns;
	uint64_t last_epoch;
	uint32_t lines; /* checkpoints at lines so far */
	struct log_growth batch[GROWTH_ROWS];
	struct {
		uint64_t bytes;	   /* atomic: seen on this descriptor so far */
		uint32_t mid_line; /* atomic */
	} streams[3];
} growth;

bool checkpoint_init(void)
{
	if (!(agent.plan.flags & PLAN_GROWTH))
		return true;
	growth.rows = memory_map_sigsafe(agent.plan.context_rows * sizeof(*growth.rows));
	growth.counts = memory_map_sigsafe(agent.plan.context_rows * sizeof(*growth.counts));
	return growth.rows && growth.counts;
}

void checkpoint_note_context(uint32_t row, uint64_t stack_hash, const uint64_t *frames,
			     uint32_t count)
{
	uint32_t at;

	(void)stack_hash;
	(void)frames;
	(void)count;

	if (!growth.rows)
		return;
	at = __atomic_fetch_add(&growth.used, 1, __ATOMIC_RELAXED);
	if (at < agent.plan.context_rows)
		__atomic_store_n(&growth.rows[at], row, __ATOMIC_RELEASE);
}

static uint64_t live_blocks(const struct log_context *row)
{
	uint64_t freed = row->frees_own + __atomic_load_n(&row->frees_other, __ATOMIC_RELAXED);

	return row->allocs > freed ? row->allocs - freed : 0;
}

static uint64_t live_bytes(const struct log_context *row)
{
	uint64_t freed =
		row->free_bytes_own + __atomic_load_n(&row->free_bytes_other, __ATOMIC_RELAXED);

	return row->alloc_bytes > freed ? row->alloc_bytes - freed : 0;
}

static uint32_t rows_write(struct log_writer *writer)
{
	uint32_t used = __atomic_load_n(&growth.used, __ATOMIC_ACQUIRE), i, n = 0, total = 0;

	if (used > agent.plan.context_rows)
		used = agent.plan.context_rows;
	for (i = 0; i < used; i++) {
		uint32_t row = growth.rows[i];
		uint64_t live = row ? live_blocks(&log_map.contexts[row]) : 0;
		uint64_t bytes = row ? live_bytes(&log_map.contexts[row]) : 0;
		uint64_t mark = live ^ bytes * BYTES_MIX;

		/* One block that is made larger and larger is told as well. */
		if (mark == growth.counts[i])
			continue;
		growth.counts[i] = mark;
		growth.batch[n].context = row;
		growth.batch[n].live_blocks = live;
		growth.batch[n].live_bytes = bytes;
		total++;
		if (++n == GROWTH_ROWS) {
			(void)log_append_sigsafe(writer, LOG_GROWTH, growth.batch,
						 n * sizeof(growth.batch[0]), NULL, 0);
			n = 0;
		}
	}
	if (n)
		(void)log_append_sigsafe(writer, LOG_GROWTH, growth.batch,
					 n * sizeof(growth.batch[0]), NULL, 0);
	return total;
}

/* Which blocks were there already, as far as their ids tell. */
static void ids_note(struct log_checkpoint *point)
{
	const struct thread *self = thread_self;

	point->lane = self ? self->lane : UINT32_MAX;
	point->next_id = self ? self->fast.next_id : 0;
	point->ids_given = __atomic_load_n(&agent.next_id, __ATOMIC_RELAXED);
}

static void checkpoint_take(enum log_checkpoint_why why, int fd, const void *text, size_t bytes)
{
	struct log_checkpoint point;
	struct log_writer writer;
	uint32_t idle = 0;
	uint64_t began;

	if (!agent_switch.lines || FEATURES_ASK(line.refused) ||
	    !__atomic_compare_exchange_n(&growth.busy, &idle, 1, false, __ATOMIC_ACQUIRE,
					 __ATOMIC_RELAXED))
		return;
	began = clock_ns_sigsafe(FEATURE_LINE_COST);
	memset(&point, 0, sizeof(point));
	point.why = why;
	point.fd = fd;
	point.realtime_ns = clock_ns_sigsafe(CLOCK_REALTIME);
	point.epoch = growth.last_epoch = __atomic_load_n(&agent.epoch, __ATOMIC_RELAXED);
	if (fd >= 0)
		point.stream_bytes = __atomic_load_n(&growth.streams[fd].bytes, __ATOMIC_RELAXED);
	if (bytes > sizeof(point.text))
		bytes = sizeof(point.text);
	point.text_bytes = (uint32_t)bytes;
	if (memory_read_sigsafe(point.text, (uint64_t)text, bytes))
		secret_hide_sigsafe(point.text, bytes, (uint64_t)text);
	log_writer_init_sigsafe(&writer, LOG_TO_EVENTS);
	ids_note(&point);
	if (log_begin_sigsafe(&writer, LOG_CHECKPOINT, &point, sizeof(point)) && growth.rows)
		(void)rows_write(&writer);
	FEATURES_TELL(line.cost, clock_ns_sigsafe(FEATURE_LINE_COST) - began);
	if (why == LOG_CHECKPOINT_WRITE)
		FEATURES_TELL(line.told, writer.owner);
	growth.lines += why == LOG_CHECKPOINT_WRITE;
	if (why == LOG_CHECKPOINT_EXIT || why == LOG_CHECKPOINT_WRITE)
		holders_look_sigsafe(why == LOG_CHECKPOINT_WRITE ? growth.lines : UINT32_MAX);
	growth.last_ns = clock_ns_sigsafe(CLOCK_MONOTONIC);
	__atomic_store_n(&growth.busy, 0, __ATOMIC_RELEASE);
}

void checkpoint_time_sigsafe(void)
{
	uint64_t gap = agent.plan.checkpoint_gap_ms * 1000000ull;

	if (!agent_switch.growth)
		return;
	if (clock_ns_sigsafe(CLOCK_MONOTONIC_COARSE) - growth.last_ns < gap)
		return;
	if (clock_ns_sigsafe(CLOCK_MONOTONIC) - growth.last_ns >= gap)
		checkpoint_take(LOG_CHECKPOINT_TIME, -1, NULL, 0);
}

void checkpoint_exit_sigsafe(void)
{
	checkpoint_take(LOG_CHECKPOINT_EXIT, -1, NULL, 0);
}

void checkpoint_line_begin_sigsafe(int fd, const void *text, size_t bytes)
{
	if (!__atomic_load_n(&growth.streams[fd].mid_line, __ATOMIC_RELAXED) ||
	    __atomic_load_n(&agent.epoch, __ATOMIC_RELAXED) != growth.last_epoch)
		checkpoint_take(LOG_CHECKPOINT_WRITE, fd, text, bytes);
}

void checkpoint_write_sigsafe(int fd, const void *text, size_t bytes)
{
	checkpoint_take(LOG_CHECKPOINT_WRITE, fd, text, bytes);
}

void checkpoint_line_end_sigsafe(int fd, size_t bytes, bool ended)
{
	__atomic_fetch_add(&growth.streams[fd].bytes, bytes, __ATOMIC_RELAXED);
	__atomic_store_n(&growth.streams[fd].mid_line, !ended, __ATOMIC_RELAXED);
}

void checkpoint_switch_on(void)
{
	agent_switch.growth = agent.plan.observer >= PLAN_OBSERVE_IDS &&
			      !(agent.plan.flags & PLAN_NO_BLOCKS) &&
			      (agent.plan.flags & PLAN_GROWTH);
	agent_switch.lines |= agent_switch.growth;
}

void checkpoint_forget(void)
{
	if (growth.rows) {
		memset(growth.rows, 0, growth.used * sizeof(*growth.rows));
		memset(growth.counts, 0, growth.used * sizeof(*growth.counts));
	}
	growth.used = 0;
	growth.busy = 0;
	growth.lines = 0;
	memset(growth.streams, 0, sizeof(growth.streams));
}
