/* What a trial that was watched showed. */
#include "hunt/bench.h"

#include <stdlib.h>
#include <string.h>

#include "judge/store_facts.h"
#include "read/pointers.h"
#include "read/unexplained.h"

#define HARMLESS_MAX 40u
#define HARMLESS_PER_TRIAL 6u
/* A trap costs some ten microseconds; who comes much later may have had a lock. */
#define NEAR_NS 100000u

/* The step of this trial's backtrack that is the home of the spec. */
static const struct backtrack_step *same_step(const struct backtrack *backtrack,
					      const struct watch_spec *spec)
{
	return VEC_FIND(&backtrack->steps, step, home_same(&step->home, &spec->home));
}

/* Stored before the block was born that has the place now: it was meant for the one before. Ids of
 * one thread are in the order of time, those of different threads need not be. */
static bool stored_before(const struct log_hit *hit, bool exact, const struct log_block *now)
{
	return exact && hit->lane == now->key.lane && hit->allocations != 0 &&
	       hit->allocations <= now->id;
}

static bool is_of_malloc(const struct log_block *block)
{
	return block->api != LOG_API_HOOKED && block->api != LOG_API_PYTHON_OBJECT &&
	       block->api != LOG_API_PYTHON_MEMORY;
}

/* The block of malloc that the stored pointer led to at that time: a register that held it then
 * knows. */
static const struct log_hit_owner *target_then(const struct watchset_result *result, uint64_t value)
{
	const struct log_hit *hit = result->caught && result->exact ? result->last->hit : NULL;

	for (size_t i = 0; hit && i < LOG_HIT_OWNERS && hit->owners[i].greg != 255; i++) {
		const struct log_hit_owner *owner = &hit->owners[i];

		if (hit->gregs[owner->greg] == value && owner->relation == LOG_INSIDE &&
		    owner->space == 0 && owner->state == LOG_BLOCK_LIVE)
			return owner;
	}
	return NULL;
}

/* As the rings have it, for who freed it; or else as the store saw it. */
static void find_owner(struct event_log *log, const struct log_block *now,
		       const struct log_hit_owner *then, uint64_t value, struct log_block *ret)
{
	struct log_block at = *now, former;

	at.value = value;
	while (block_former(log, &at, &former) && former.id < at.id && former.id >= then->id) {
		former.value = value;
		if (former.id == then->id) {
			*ret = former;
			return;
		}
		at = former;
	}
	*ret = (struct log_block){ .id = then->id,
				   .start = then->start,
				   .size = then->size_low,
				   .value = value,
				   .context = then->context,
				   .state = LOG_BLOCK_FREED,
				   .relation = LOG_FORMER };
}

/* The block that was freed although this pointer to it was kept; id 0: none. */
/* The one that the value pointed into when it was stored, where the crash's records have another
 * one at that place, or none: they have what registers and the stack led to, not everything. */
static void block_then(const struct crash_reading *crashed, const struct backtrack_step *step,
		       const struct log_hit_owner *then, struct log_block *ret)
{
	struct log_block next = { .id = then->id + 1, .value = step->value }, former;

	if (step->to.id != 0)
		find_owner(crashed->record.log, &step->to, then, step->value, ret);
	else if (block_former(crashed->record.log, &next, &former) && former.id == then->id)
		*ret = former;
}

/* The place may have had many owners since a store: the one of that time. */
static void before_store(struct event_log *log, const struct log_hit *store, bool exact,
			 struct log_block *block)
{
	struct log_block former;

	while (stored_before(store, exact, block) && block_former(log, block, &former) &&
	       former.id < block->id)
		*block = former;
}

static void outlived_block(const struct crash_reading *crashed, const struct backtrack_step *step,
			   const struct watchset_result *result, struct log_block *ret)
{
	const struct log_hit_owner *then =
		is_of_malloc(&step->to) ? target_then(result, step->value) : NULL;
	const struct log_hit *store = result->caught && !then ? result->last->hit : NULL;

	*ret = (struct log_block){ 0 };
	if (then && (step->to.id == 0 || then->id != step->to.id)) {
		block_then(crashed, step, then, ret);
		return;
	}
	if (step->to.id != 0 && step->to.state == LOG_BLOCK_FREED &&
	    step->to.relation == LOG_INSIDE)
		*ret = step->to;
	else if (step->to_former.id != 0 && store && stored_before(store, result->exact, &step->to))
		*ret = step->to_former;
	if (ret->id == 0)
		return;
	ret->value = step->value;
	if (store)
		before_store(crashed->record.log, store, result->exact, ret);
}

/* The home was given another value after the pointer had been loaded from it: whoever used it had a
 * copy, in a register or on a stack, and the home holds no pointer to that block any more. One
 * below the block: a tag may be taken off. */
static bool let_go(const struct backtrack_step *step, const struct event_log *in, uint64_t start,
		   uint64_t size)
{
	struct log_last last;

	return step->width == 8 && log_last(&in->reader, step->home.address, &last) &&
	       last.new_word - (start - 1) > size + 1;
}

/* What was caught there was not the last write, then. */
static void see_let_go(struct observation *observation)
{
	observation->let_go = true;
	if (observation->write.write)
		observation->write.write->flags &= ~(unsigned int)WRITE_LAST;
}

static void see_target(struct bench *bench, const struct crash_reading *crashed,
		       const struct backtrack_step *step, struct event_log *in,
		       const struct watchset_result *result, struct observation *observation)
{
	struct log_block freed;

	/* It never was a pointer to what it leads to now. */
	if (observation->write.write && result->exact &&
	    store_bends_pointer(observation->write.write))
		return;
	outlived_block(crashed, step, result, &freed);
	if (freed.id == 0)
		return;
	if (let_go(step, in, freed.start, freed.size)) {
		see_let_go(observation);
		return;
	}
	if (step->to.state == LOG_BLOCK_FREED && freed.id != step->to.id)
		observation->mistaken =
			event_log_key(crashed->record.log, &step->to.key, step->to.context);
	observation->dangling.stale = true;
	observation->dangling.target = mem_alloc(sizeof(*observation->dangling.target));
	block_life_read(crashed->record.log, &freed, "the pointer", bench->symbols,
			observation->dangling.target);
	observation->dangling.target->value = step->value;
	observation->dangling.exact = log_block_begins(freed.api, step->value - freed.start);
	observation->former = freed;
	observation->former.value = step->value;
}

/* The pointer led to a variable of a function when it was stored; is that function still running
 * when it is used? */
static void see_frame(struct bench *bench, const struct crash_reading *crashed,
		      const struct backtrack_step *step, struct event_log *in,
		      const struct watchset_result *result, struct observation *observation)
{
	struct frame_life frame = { 0 };

	if (step->to.id != 0 || step->width != 8 ||
	    !frames_outlived(crashed, result->last, step->value, bench->symbols, &frame))
		return;
	if (let_go(step, in, frame.low, frame.end - frame.low)) {
		see_let_go(observation);
		stack_deinit(&frame.stack);
		return;
	}
	observation->dangling.stale = observation->dangling.frame = observation->dangling.exact =
		true;
	observation->dangling.target = mem_alloc(sizeof(*observation->dangling.target));
	*observation->dangling.target = (struct block_life){ .via = mem_strdup("the pointer"),
							     .value = step->value,
							     .start = frame.low,
							     .size = frame.end - frame.low,
							     .state = BLOCK_FREED,
							     .allocated = frame.stack };
}

/* What is watched may be two variables. */
static bool stores_overlap(const struct write_seen *a, const struct write_seen *b)
{
	return a->store_start < b->store_start + b->store_len &&
	       b->store_start < a->store_start + a->store_len;
}

/* Two threads at one place, one right after the other. */
static void see_race(struct bench *bench, const struct trial_hits *log, const struct event_log *in,
		     struct observation *observation, const struct watchset_result *result)
{
	const struct hit *other = NULL;

	if (!result->exact)
		return;
	VEC_FOREACH (&log->hits, caught) {
		const struct log_hit *hit = caught->hit;

		if (caught->log == in && hit->address == observation->victim.address &&
		    !(hit->flags & (LOG_HIT_ALONGSIDE | LOG_HIT_IMPRECISE)) &&
		    hit->tid != result->last->hit->tid &&
		    hit->number != result->last->hit->number &&
		    llabs((int64_t)(hit->time_ns - result->last->hit->time_ns)) < (int64_t)NEAR_NS)
			other = caught;
	}
	if (!other)
		return;
	observation->race = evidence_new(EVIDENCE_RACE, observation->trial, true);
	observation->race.race->first = mem_alloc(sizeof(*observation->race.race->first));
	observation->race.race->second = mem_alloc(sizeof(*observation->race.race->second));
	home_copy(&observation->race.race->home, &observation->home);
	hit_describe(other, bench->symbols, observation->race.race->first);
	hit_describe(result->last, bench->symbols, observation->race.race->second);
	if (other->hit->time_ns > result->last->hit->time_ns) {
		struct write_seen *first = observation->race.race->first;

		observation->race.race->first = observation->race.race->second;
		observation->race.race->second = first;
	}
	observation->race.race->gap_ns =
		(uint64_t)llabs((int64_t)(other->hit->time_ns - result->last->hit->time_ns));
	/* Both made the same value out of what they had read: one of the two is lost. */
	observation->race.race->lost_update =
		stores_overlap(observation->race.race->first, observation->race.race->second) &&
		observation->race.race->first->new == observation->race.race->second->new &&
		observation->race.race->first->old != observation->race.race->first->new &&
		observation->race.race->second->old == observation->race.race->second->new;
}

/* The last write may only have repeated the value: then who brought it is told, too. */
static void see_repeated(struct bench *bench, const struct trial_hits *log, struct event_log *in,
			 const struct observation *observation,
			 const struct watchset_result *result)
{
	struct watchset_result brought = *result;
	struct source_place unused = { 0 };
	struct evidence e;

	if (!result->exact || observation->write.write->old != observation->write.write->new)
		return;
	brought.last = watchset_brought(log, in, &observation->victim, result);
	if (!brought.last)
		return;
	e = evidence_new(EVIDENCE_WRITE, observation->trial, true);
	watchset_tell(&brought, &observation->victim, in, bench->symbols, e.write, &unused);
	e.write->flags &= ~(unsigned int)(WRITE_LAST | WRITE_FOUND | WRITE_COPIED);
	home_deinit(&e.write->home);
	home_copy(&e.write->home, &observation->write.write->home);
	VEC_PUSH(&bench->ret->evidence.list, e);
}

/* Where blocks are not followed, a pointer to memory that is there may have outlived its block, and
 * then whoever stored it is not to blame. */
static bool may_have_outlived(const struct bench *bench, const struct crash_reading *crashed,
			      uint64_t value)
{
	const struct mappings *mappings = &crashed->record.mappings;

	for (size_t i = 0; bench->request->start.without_ids && i < mappings->count; i++)
		if (value >= mappings->items[i].start && value < mappings->items[i].end)
			return true;
	return false;
}

static void say_stored(struct bench *bench, const struct stack *writer)
{
	const struct frame *site = stack_site(writer);

	if (!site || bench->homes.said_stored)
		return;
	bench->homes.said_stored = true;
	BENCH_SAY(bench, "chase:pointer", said_frame(site));
}

/* The value came with no write that was caught: then the latest one is nobody's that is looked for.
 */
static void see_outside(struct bench *bench, const struct trial_hits *log, struct event_log *in,
			const struct watchset_result *result, struct observation *observation)
{
	struct outside_change *change;
	struct evidence e;

	if (!result->watched ||
	    (observation->write.write && (observation->write.write->flags & WRITE_FOUND)))
		return;
	change = unexplained_find(log, in, result->row.number, observation->victim.value,
				  observation->victim.len, bench->symbols);
	if (!change)
		return;
	/* Named as the crash names it: the same in all trials. */
	home_deinit(&change->home);
	home_copy(&change->home, &observation->home);
	e = (struct evidence){ .kind = EVIDENCE_OUTSIDE,
			       .trial = observation->trial,
			       .failing = true,
			       .outside = change };
	VEC_PUSH(&bench->ret->evidence.list, e);
	if (observation->write.write)
		evidence_deinit(&observation->write);
	observation->write = (struct evidence){ 0 };
}

/* It went astray: what it wrote was right for another place. Then it is the one, whatever it
 * copied. */
static void forget_copy(const struct backtrack_step *step, struct write_seen *write)
{
	bool smashed = step->home.kind == HOME_STACK && step->home.field;
	bool astray = write->base && write->victim && write->base->id != write->victim->id;

	if (!(write->flags & WRITE_COPIED) || !(smashed || astray))
		return;
	write->flags &= ~(unsigned int)WRITE_COPIED;
	home_deinit(&write->source);
	write->source = (struct home){ 0 };
}

static bool is_recycled(const struct crash_reading *crashed, const struct backtrack_step *step)
{
	struct log_block former;

	return step->in_former && is_of_malloc(&step->in) &&
	       block_former(crashed->record.log, &step->in, &former) &&
	       former.context != step->in.context;
}

/* Only a pointer into the block leads there. */
static enum value_leads leads_of(const struct log_block *to)
{
	if (to->id == 0)
		return LEADS_NOWHERE;
	if (to->relation != LOG_INSIDE)
		return LEADS_UNKNOWN;
	return to->state == LOG_BLOCK_LIVE ? LEADS_TO_LIVE : LEADS_TO_FREED;
}

static void found_value(const struct bench *bench, const struct crash_reading *crashed,
			const struct backtrack_step *step, unsigned int level,
			const struct observation *observation, struct value_found *ret)
{
	const struct backtrack *backtrack = &crashed->backtrack;

	*ret = (struct value_found){ .known = true,
				     .step = level,
				     .steps = (unsigned int)backtrack->steps.count,
				     .leads = leads_of(&step->to),
				     .at_start = step->value == step->to.start,
				     .leads_recycled = step->to_former.id != 0,
				     .jumped = backtrack->executes,
				     .indexed = backtrack->by_index,
				     .read_by_code = !step->by_value,
				     .other_places = twins_left(bench, backtrack, step),
				     .replaced = observation->let_go,
				     .outlived = observation->dangling.stale,
				     .strayed = step->strayed.id != 0,
				     .runtime = step->of_runtime,
				     .place_reused = observation->recycled,
				     .owner_reached = true };
}

/* Who was caught there, and what he had done there before. */
static void see_caught(struct bench *bench, const struct crash_reading *crashed,
		       const struct trial_hits *log, struct event_log *in,
		       const struct backtrack_step *step, const struct watchset_result *result,
		       struct observation *observation)
{
	observation->exact =
		result->exact && step->in.id != 0 && result->last->hit->id == step->in.id;
	observation->write = evidence_new(EVIDENCE_WRITE, crashed->trial, true);
	watchset_tell(result, &observation->victim, in, bench->symbols, observation->write.write,
		      &observation->source);
	forget_copy(step, observation->write.write);
	/* Named as the crash names it: the same in all trials. */
	home_deinit(&observation->write.write->home);
	home_copy(&observation->write.write->home, &observation->home);
	if (bench->probe.own.found &&
	    watchset_through_freed_object(result, observation->write.write)) {
		observation->write.write->free_basis =
			bench->probe.own.given ? FREE_SEEN : FREE_INFERRED;
		if (!bench->probe.own.given)
			said_copy(&observation->write.note, &bench->probe.own.basis);
	}
	see_repeated(bench, log, in, observation, result);
	see_pointer(log, in, result, observation->write.write);
	if (result->since_birth) {
		see_first(log, in, result, observation->write.write);
		see_parts(log, in, result, bench->symbols, observation->write.write);
	}
	see_store_history(bench, log, in, observation, result);
	see_race(bench, log, in, observation, result);
}

/* Did the watch lie there, whether or not it tells? */
static bool is_covered(struct event_log *in, const struct watch_spec *spec,
		       const struct victim *victim, const struct watchset_result *result)
{
	bool from_birth = spec->by == LOCATE_KEY || spec->by == LOCATE_CONTEXT;

	return result->caught || watchset_covers(in, victim, from_birth);
}

static void see_level(struct bench *bench, const struct crash_reading *crashed,
		      const struct trial_hits *log, struct event_log *in,
		      const struct watch_spec *spec, const struct backtrack_step *step)
{
	struct observation observation = { .trial = crashed->trial,
					   .followed = bench->probe.own.found,
					   .victim = { .address = step->home.address,
						       .value = step->value,
						       .id = step->in.id,
						       .len = step->width } };
	struct watchset_result result;
	struct value_found found;

	/* The object was handed out anew since: to malloc it is the same block. */
	if (bench->probe.own.found)
		observation.victim.id = 0;
	(void)log_watch_row(&in->reader, 0, &observation.row);
	watchset_look(log, in, &observation.victim, &result);
	observation.watched = result.watched;
	observation.covered = is_covered(in, spec, &observation.victim, &result);
	observation.since_birth =
		result.since_birth && (spec->by == LOCATE_KEY || spec->by == LOCATE_FRAME);
	observation.birth_value = result.watched ? result.row.first_value : 0;
	home_copy(&observation.home,
		  spec->row ? &bench->start.first->backtrack.steps.items[spec->level].home
			    : &step->home);
	if (step->in.id != 0) {
		observation.in = mem_alloc(sizeof(*observation.in));
		block_life_read(crashed->record.log, &step->in, "the home", bench->symbols,
				observation.in);
	}
	if (result.caught)
		see_caught(bench, crashed, log, in, step, &result, &observation);
	observation.recycled = is_recycled(crashed, step);
	see_outside(bench, log, in, &result, &observation);
	see_target(bench, crashed, step, in, &result, &observation);
	if (result.caught && result.exact && !observation.dangling.stale)
		see_frame(bench, crashed, step, in, &result, &observation);
	if (observation.write.write &&
	    may_have_outlived(bench, crashed, observation.victim.value)) {
		say_stored(bench, &observation.write.write->writer);
		evidence_deinit(&observation.write);
		observation.write = (struct evidence){ 0 };
	}
	found_value(bench, crashed, step, spec->level, &observation, &found);
	observation.healthy = value_is_right(&found, observation.write.write);
	if (observation.write.write)
		observation.write.write->found = found;
	observation.by_key = spec->by == LOCATE_KEY;
	observation.same_block =
		observation.by_key && observation.watched &&
		step->in.size == bench->start.first->backtrack.steps.items[spec->level].in.size;
	VEC_PUSH(&bench->homes.levels[spec->level].observations, observation);
}

/* Was the source given another value after the copy was made? By the thread that had put the copied
 * one there, out of what it found: then that was half of its value. */
static void see_replaced(struct bench *bench, const struct trial_hits *log, struct event_log *in,
			 struct write_seen *copy, const struct observation *source)
{
	struct evidence e;
	struct watchset_result result;
	struct victim place = { .address = source->victim.address, .len = source->victim.len };
	struct source_place unused = { 0 };
	const struct write_seen *put = source->write.write;

	if (copy->when_ns == 0 ||
	    !watchset_next_write(log, in, place.address, copy->when_ns, &result))
		return;
	e = evidence_new(EVIDENCE_WRITE, source->trial, true);
	watchset_tell(&result, &place, in, bench->symbols, e.write, &unused);
	e.write->flags &= ~(unsigned int)(WRITE_LAST | WRITE_FOUND);
	home_deinit(&e.write->home);
	home_copy(&e.write->home, &source->home);
	if (put && e.write->tid == put->tid && copy->tid != put->tid &&
	    (e.write->flags & WRITE_UPDATE))
		copy->source_state = SOURCE_TORN;
	VEC_PUSH(&bench->ret->evidence.list, e);
}

/* The source of a copy, in the same trial: the latest write there before the copy. */
static void see_source(struct bench *bench, const struct crash_reading *crashed,
		       const struct trial_hits *log, struct event_log *in,
		       const struct watch_spec *spec)
{
	struct observation *copy = NULL;
	struct watchset_result result;
	struct observation observation = { .trial = crashed->trial };

	for (unsigned int i = 0; i < spec->level; i++)
		VEC_FOREACH (&bench->homes.levels[i].observations, s)
			if (s->trial == crashed->trial && s->write.write &&
			    (s->write.write->flags & WRITE_COPIED) &&
			    home_same(&s->write.write->source, &spec->home))
				copy = s;
	if (!copy)
		return;
	observation.victim = (struct victim){ .address = copy->write.write->source.address,
					      .value = copy->write.write->new,
					      .len = (unsigned int)copy->write.write->source.len };
	VEC_FOREACH (&log->hits, caught)
		if (caught->log == in && caught->hit->address == copy->victim.address &&
		    watched_word(caught->hit->new, caught->hit->bytes) == copy->victim.value)
			observation.victim.before = caught->hit->number;
	watchset_look(log, in, &observation.victim, &result);
	observation.watched = result.watched || spec->by == LOCATE_GLOBAL;
	home_copy(&observation.home, &copy->write.write->source);
	if (result.caught) {
		observation.write = evidence_new(EVIDENCE_WRITE, crashed->trial, true);
		watchset_tell(&result, &observation.victim, in, bench->symbols,
			      observation.write.write, &observation.source);
		home_deinit(&observation.write.write->home);
		home_copy(&observation.write.write->home, &observation.home);
		see_repeated(bench, log, in, &observation, &result);
	}
	see_replaced(bench, log, in, copy->write.write, &observation);
	VEC_PUSH(&bench->homes.levels[spec->level].observations, observation);
}

/* A variable is the same in every run; by itself a hit knows its address only. */
static void name_variable(const struct bench *bench, const struct log_hit *hit, struct home *home)
{
	const struct watch_spec *spec = hit->watch < bench->watchset.list.count
						? &bench->watchset.list.items[hit->watch]
						: NULL;

	if (!spec || spec->by != LOCATE_GLOBAL || home->kind != HOME_ADDRESS)
		return;
	home_deinit(home);
	*home = (struct home){ 0 };
	home_copy(home, &spec->home);
}

/* Who else writes there without harm: for each writer its last whole hit. */
static void see_harmless(struct bench *bench, const struct trial_hits *log, uint64_t trial,
			 bool failing, const struct crash_reading *crashed)
{
	unsigned int told = 0;
	uint64_t seen[HARMLESS_PER_TRIAL];

	for (size_t i = log->hits.count; i-- > 0 && told < HARMLESS_PER_TRIAL;) {
		const struct hit *caught = &log->hits.items[i];
		uint64_t rip = caught->hit->gregs[LOG_GREG_RIP];
		struct evidence e;
		bool known = false, victim = false;

		for (unsigned int k = 0; k < told; k++)
			known |= seen[k] == rip;
		if (crashed && crashed->has_backtrack)
			VEC_FOREACH (&crashed->backtrack.steps, step)
				victim |= step->home.address == caught->hit->address;
		if (known || victim || bench->homes.harmless >= HARMLESS_MAX ||
		    (caught->hit->flags & (LOG_HIT_ALONGSIDE | LOG_HIT_IMPRECISE)))
			continue;
		seen[told++] = rip;
		bench->homes.harmless++;
		e = evidence_new(EVIDENCE_WRITE, trial, failing);
		hit_describe(caught, bench->symbols, e.write);
		name_variable(bench, caught->hit, &e.write->home);
		VEC_PUSH(&bench->ret->evidence.list, e);
	}
}

/* ---- the whole of it
 * ------------------------------------------------------------------------------
 */

const struct observation *observation_of(const struct bench *bench, unsigned int level,
					 uint64_t trial)
{
	return VEC_FIND(&bench->homes.levels[level].observations, observation,
			observation->trial == trial);
}

/* Of a malloc inside the program blocks have no guards and no quarantine, which would tell a write
 * through a pointer to the place's former owner from one to the present. */
static bool is_unguarded(const struct crash_reading *crashed)
{
	return VEC_ANY(&crashed->record.log->hooks, hook,
		       hook->state == LOG_HOOK_PLACED && strcmp(hook->label, "malloc") == 0);
}

static void doubt_pointer(struct evidence *write)
{
	write->write->free_basis = FREE_UNSEEN;
	if (!said_anything(&write->note))
		SAY(&write->note, "noted:unguarded");
}

/* The place was another kind of block's. Whose pointer is it that the failure came by? The present
 * owner's, if it was stored when that one was there already. */
static void see_recycled(struct bench *bench, const struct crash_reading *crashed)
{
	bool unguarded = is_unguarded(crashed);

	for (unsigned int i = 0; i < LEVELS_MAX; i++) {
		const struct observation *led =
			i + 1 < LEVELS_MAX ? observation_of(bench, i + 1, crashed->trial) : NULL;

		VEC_FOREACH (&bench->homes.levels[i].observations, observation) {
			if (observation->trial != crashed->trial || !observation->recycled ||
			    !observation->write.write)
				continue;
			observation->write.write->found.owner_reached =
				led && led->write.write && !led->dangling.stale;
			if (unguarded)
				doubt_pointer(&observation->write);
		}
	}
}

/* Per trial: did a key lead to the block that was hit? */
static void count_keys(struct bench *bench, uint64_t trial)
{
	bool tried = false, right = false, led = false;

	for (unsigned int i = 0; i < LEVELS_MAX; i++)
		VEC_FOREACH (&bench->homes.levels[i].observations, observation) {
			tried |= observation->trial == trial && observation->by_key;
			right |= observation->trial == trial && observation->same_block;
			led |= observation->trial == trial && observation->by_key &&
			       observation->covered;
		}
	bench->homes.key_tried += tried;
	bench->homes.key_right += right;
	bench->homes.key_led += led;
}

/* A home of the same kind, in a block that was not watched. */
static bool is_missed(const struct bench *bench, uint64_t trial)
{
	bool seen = false;

	for (unsigned int i = 0; i < LEVELS_MAX; i++) {
		const struct observation *observation = observation_of(bench, i, trial);

		if (observation && observation->covered)
			return false;
		seen |= observation && observation->home.kind == HOME_BLOCK;
	}
	return seen;
}

/* Fields of the elements of an array, all in one block: it is another element each time. */
static void note_stride(struct bench *bench, const struct backtrack *backtrack)
{
	const struct backtrack *first = &bench->start.first->backtrack;
	const struct backtrack_step *a = first->steps.items, *b = backtrack->steps.items;
	uint64_t apart, rest;

	if (first->steps.count == 0 || backtrack->steps.count == 0 || a->home.kind != HOME_BLOCK ||
	    b->home.kind != HOME_BLOCK || a->in.key.stack_hash != b->in.key.stack_hash ||
	    a->in.size != b->in.size || a->home.offset == b->home.offset)
		return;
	apart = (uint64_t)llabs(a->home.offset - b->home.offset);
	while (bench->homes.stride != 0) {
		rest = apart % bench->homes.stride;
		apart = bench->homes.stride;
		bench->homes.stride = rest;
	}
	bench->homes.stride = apart;
}

void read_failing(struct bench *bench)
{
	const struct crash_reading *crashed =
		reading_backtrack(bench->round.reading,
				  bench->probe.own.found ? THROUGH_WHOLE_BLOCKS : THROUGH_OBJECTS);
	const struct trial_hits *log = reading_hits(bench->round.reading);
	struct event_log *in = crashed->record.log;

	bench->round.failed++;
	if (!crashed->has_backtrack)
		return;
	note_stride(bench, &crashed->backtrack);
	for (size_t i = 0; i < bench->watchset.list.count; i++) {
		const struct watch_spec *spec = &bench->watchset.list.items[i];
		const struct backtrack_step *step = same_step(&crashed->backtrack, spec);

		if (step && spec->level < LEVELS_MAX)
			see_level(bench, crashed, log, in, spec, step);
		else if (spec->level >= LEVELS_MAX)
			see_source(bench, crashed, log, in, spec);
	}
	for (size_t i = 0; i < bench->watchset.list.count; i++) {
		const struct watch_spec *spec = &bench->watchset.list.items[i];

		if (spec->by == LOCATE_RESULT)
			see_instances(bench, crashed, log, in, spec);
	}
	see_recycled(bench, crashed);
	count_keys(bench, crashed->trial);
	bench->round.watched += was_watched(bench, crashed->trial, LEVELS_MAX);
	bench->round.missed += is_missed(bench, crashed->trial);
	see_harmless(bench, log, bench->round.number, true, crashed);
	cuts_note(bench, crashed);
	crash_reading_tell(crashed, bench->symbols, bench_crash(bench), &bench->ret->evidence);
}

void read_passing(struct bench *bench)
{
	if (bench->homes.harmless < HARMLESS_MAX)
		see_harmless(bench, reading_hits(bench->round.reading), bench->round.number, false,
			     NULL);
}
