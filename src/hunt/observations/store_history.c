/* What is known of a caught write besides: what it stored, and what its instruction did there
 * before. */
#include <string.h>

#include "hunt/bench.h"

#define HABITS_TOLD 4u /* of one trial */

/* An earlier write to the same place of the same block. */
static bool wrote_before(const struct hit *caught, const struct event_log *in,
			 const struct log_hit *last)
{
	const struct log_hit *hit = caught->hit;

	return caught->log == in && hit->address == last->address && hit->id == last->id &&
	       hit->number < last->number &&
	       !(hit->flags & (LOG_HIT_ALONGSIDE | LOG_HIT_IMPRECISE));
}

/* … by the same instruction, that changed it. */
static bool did_before(const struct hit *caught, const struct event_log *in,
		       const struct log_hit *last)
{
	const struct log_hit *hit = caught->hit;

	return wrote_before(caught, in, last) &&
	       hit->gregs[LOG_GREG_RIP] == last->gregs[LOG_GREG_RIP] &&
	       memcmp(hit->old, hit->new, sizeof(hit->new)) != 0;
}

void see_store_history(struct bench *bench, const struct trial_hits *log,
		       const struct event_log *in, const struct observation *observation,
		       const struct watchset_result *result)
{
	unsigned int told = 0;

	if (!result->exact)
		return;
	for (size_t i = log->hits.count; i-- > 0 && told < HABITS_TOLD;) {
		struct evidence e;

		if (!did_before(&log->hits.items[i], in, result->last->hit))
			continue;
		e = evidence_new(EVIDENCE_WRITE, observation->trial, true);
		hit_describe(&log->hits.items[i], bench->symbols, e.write);
		home_deinit(&e.write->home);
		home_copy(&e.write->home, &observation->write.write->home);
		VEC_PUSH(&bench->ret->evidence.list, e);
		told++;
	}
}

/* Did a register hold what was stored there, a pointer into a block that the old value is in, too,
 * and the new one is not? */
static bool was_for_block(const struct log_hit *hit, const struct write_seen *write)
{
	uint64_t stored = 0;

	memcpy(&stored, hit->new, sizeof(stored));
	for (size_t i = 0; i < LOG_HIT_OWNERS && hit->owners[i].greg != 255; i++) {
		const struct log_hit_owner *o = &hit->owners[i];

		if (hit->gregs[o->greg] == stored && o->space == 0 && o->relation == LOG_INSIDE &&
		    o->state == LOG_BLOCK_LIVE && write->old - o->start <= o->size_low &&
		    write->new - o->start > o->size_low)
			return true;
	}
	return false;
}

void see_pointer(const struct trial_hits *log, const struct event_log *in,
		 const struct watchset_result *result, struct write_seen *write)
{
	const struct log_hit *hit = result->exact ? result->last->hit : NULL;

	if (write->value_len != 8 || hit == NULL)
		return;
	if (VEC_ANY(&log->hits, h, wrote_before(h, in, hit) && was_for_block(h->hit, write)))
		write->flags |= WRITE_LEFT_BLOCK;
	for (size_t i = 0; i < LOG_HIT_OWNERS && hit->owners[i].greg != 255; i++) {
		const struct log_hit_owner *owner = &hit->owners[i];

		if (hit->gregs[owner->greg] == write->new && owner->start == write->new &&
		    owner->space == 0 && owner->relation == LOG_INSIDE)
			write->new_was_block = true;
	}
}

static bool is_zero(const struct log_hit *hit)
{
	for (uint32_t i = 0; i < hit->bytes && i < LOG_WATCH_BYTES; i++)
		if (hit->new[i] != 0)
			return false;
	return true;
}

/* A bit for each of the watched bytes that the store covered. */
static uint32_t covered_part(const struct log_hit *hit, const struct writer *writer, uint32_t bytes)
{
	uint32_t part = 0;

	for (uint32_t i = 0; i < bytes; i++)
		if (hit->address + i >= writer->low && hit->address + i < writer->high)
			part |= 1u << i;
	return part;
}

/* A store to the same bytes up to the last one. Cleared as a whole, they are still nothing. */
static bool is_earlier(const struct log_hit *hit, const struct log_hit *last)
{
	return hit->address == last->address && hit->id == last->id &&
	       hit->number <= last->number && !(hit->flags & LOG_HIT_ALONGSIDE) && !is_zero(hit);
}

void see_parts(const struct trial_hits *log, const struct event_log *in,
	       const struct watchset_result *result, struct symbols *symbols,
	       struct write_seen *write)
{
	const struct log_hit *last = result->exact ? result->last->hit : NULL;
	struct write_parts parts = { .known = true };
	uint64_t first_rip = 0;
	uint32_t seen = 0, all;

	if (!last || last->id == 0 || write->fit != FIT_NARROW || last->bytes > LOG_WATCH_BYTES)
		return;
	all = (uint32_t)((1ull << last->bytes) - 1);
	VEC_FOREACH (&log->hits, caught) {
		const struct log_hit *hit = caught->hit;
		struct writer writer;
		uint32_t part;

		if (caught->log != in || !is_earlier(hit, last))
			continue;
		if (hit_decode(caught, symbols, &writer) < 0 || !writer.covers ||
		    writer.store.string || writer.store.to.index != NO_REGISTER)
			return;
		part = covered_part(hit, &writer, last->bytes);
		if (part == all) {
			parts.whole++;
			continue;
		}
		parts.writers += parts.writers == 0 || hit->gregs[LOG_GREG_RIP] != first_rip;
		first_rip = parts.writers == 1 ? hit->gregs[LOG_GREG_RIP] : first_rip;
		seen |= part;
	}
	parts.covered = seen == all;
	write->parts = parts;
}

void see_first(const struct trial_hits *log, const struct event_log *in,
	       const struct watchset_result *result, struct write_seen *write)
{
	const struct log_hit *last = result->exact ? result->last->hit : NULL;

	if (!last || last->id == 0)
		return;
	write->nth_of_block = 1;
	VEC_FOREACH (&log->hits, caught)
		write->nth_of_block += caught->log == in && caught->hit->address == last->address &&
				       caught->hit->id == last->id &&
				       caught->hit->number < last->number;
}
