/* Two objects, one after the other, at one place. */
#include "hunt/bench.h"

/* The last two objects that were watched at an address. */
static bool last_two(const struct event_log *in, uint64_t address, struct log_watched *ret_first,
		     struct log_watched *ret_second)
{
	ret_first->number = ret_second->number = 0;
	for (uint32_t i = 0; i < LOG_WATCHED; i++) {
		struct log_watched row;

		if (!log_watched(&in->reader, i, &row) || row.address != address)
			continue;
		if (row.number > ret_second->number) {
			*ret_first = *ret_second;
			*ret_second = row;
		} else if (row.number > ret_first->number) {
			*ret_first = row;
		}
	}
	return ret_first->number != 0 && ret_first->id != 0 && ret_second->id != 0 &&
	       ret_first->id != ret_second->id;
}

/* Was this write the first that the object got, as far as hits tell? */
static bool is_first(const struct trial_hits *log, const struct event_log *in,
		     const struct log_watched *object, const struct observation *observation)
{
	bool found = false;

	VEC_FOREACH (&log->hits, caught) {
		const struct log_hit *hit = caught->hit;

		if (caught->log != in || hit->watched != object->number ||
		    (hit->flags & LOG_HIT_ALONGSIDE))
			continue;
		if (!found && watched_word(hit->new, hit->bytes) != observation->victim.value)
			return false;
		found = true;
	}
	return found;
}

/* Does a home hold what its own block was given when it was made? */
static bool as_it_was_made(const struct observation *observation)
{
	const struct write_seen *write = observation ? observation->write.write : NULL;

	if (!observation || !observation->watched || observation->dangling.stale)
		return false;
	return !write ? observation->since_birth
		      : observation->since_birth && write->old == write->new;
}

void see_instances(struct bench *bench, const struct crash_reading *crashed,
		   const struct trial_hits *log, struct event_log *in,
		   const struct watch_spec *spec)
{
	struct log_watched first, second;
	const struct observation *found = observation_of(bench, spec->level, crashed->trial);
	struct conflation_seen *seen;
	struct evidence e;

	if (!found || !found->write.write ||
	    !last_two(in, found->victim.address, &first, &second) ||
	    first.last_value == found->victim.value || !is_first(log, in, &second, found))
		return;
	found->write.write->nth_of_object = 1;
	if (spec->level == 0)
		return;
	for (unsigned int i = 0; i < spec->level; i++)
		if (!as_it_was_made(observation_of(bench, i, crashed->trial)))
			return;
	e = evidence_new(EVIDENCE_CONFLATION, crashed->trial, true);
	if (!bench->probe.own.given)
		said_copy(&e.note, &bench->probe.own.basis);
	seen = e.conflation;
	seen->address = second.start;
	seen->offset = (int64_t)(second.address - second.start);
	seen->first_id = first.id;
	seen->second_id = second.id;
	seen->first_key = event_log_key(in, &first.key, 0);
	seen->second_key = event_log_key(in, &second.key, 0);
	seen->first_value = first.last_value;
	seen->second_value = found->victim.value;
	seen->value_len = found->victim.len;
	seen->first = hit_block(in, &first, bench->symbols);
	seen->second = hit_block(in, &second, bench->symbols);
	seen->watched = true;
	VEC_PUSH(&bench->ret->evidence.list, e);
}
