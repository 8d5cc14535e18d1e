#include "judge/facts.h"

#include <math.h>
#include <string.h>

#include "base/cstr.h"

#define CHAIN_MAX 16

uint64_t evidence_trials(const struct evidence *const *items, size_t count)
{
	AUTO(mem_freep) uint64_t *numbers = mem_alloc(count * sizeof(*numbers));
	uint64_t trials = count > 0;

	for (size_t i = 0; i < count; i++)
		numbers[i] = items[i]->trial;
	numbers_sort(numbers, count);
	for (size_t i = 1; i < count; i++)
		trials += numbers[i] != numbers[i - 1];
	return trials;
}

static uint64_t value_mask(unsigned int len)
{
	return len == 0 || len >= 8 ? UINT64_MAX : (UINT64_C(1) << (len * 8)) - 1;
}

/* Bits of the field that it changed. */
static uint64_t write_mask(const struct write_seen *write)
{
	return (write->old ^ write->new) & value_mask(write->value_len);
}

bool write_changed(const struct write_seen *write)
{
	/* Without values nothing speaks against it; WRITE_FOUND is not set then. */
	return write->value_len == 0 || write_mask(write) != 0;
}

/* Same code: a function and, in emitted code, the instruction. */
static bool same_writer(const struct write_seen *a, const struct write_seen *b)
{
	const struct frame *x = stack_site_or_top(&a->writer), *y = stack_site_or_top(&b->writer);

	if (!x || !y || x->kind != y->kind)
		return false;
	/* Emitted code lies elsewhere in every run; the name may be all that it has. */
	if (x->kind == FRAME_JIT)
		return cstr_known_same(a->instruction, b->instruction) &&
		       (cstr_known_same(x->function, y->function) ||
			(!x->function && !y->function));
	if (x->function || y->function)
		return cstr_known_same(x->function, y->function) &&
		       (cstr_known_same(x->file, y->file) || cstr_known_same(x->module, y->module));
	return cstr_known_same(x->module, y->module) && x->offset == y->offset;
}

bool same_store(const struct write_seen *a, const struct write_seen *b)
{
	const struct frame *x = stack_site_or_top(&a->writer), *y = stack_site_or_top(&b->writer);

	if (!same_writer(a, b))
		return false;
	if (a->instruction && b->instruction && strcmp(a->instruction, b->instruction) != 0)
		return false;
	return x->kind == FRAME_JIT || x->line == y->line;
}

/* Did they do the same to the field? Pointers differ from run to run, so a store of another
 * pointer is no likeness; the same few bits, zero, or the very value is. */
static bool same_change(const struct write_seen *a, const struct write_seen *b)
{
	uint64_t mask = write_mask(a);

	if (mask == 0 || write_mask(b) == 0)
		return false;
	if (a->new == b->new)
		return true;
	return __builtin_popcountll(mask) <= 8 && mask == write_mask(b) &&
	       ((a->new &mask) == (b->new &mask));
}

/* The write that gave the home the value that the last store only repeated; NULL when the
 * evidence has none. */
static const struct evidence *before_repeat(const struct evidence_list *list,
					    const struct evidence *last)
{
	const struct evidence *found = NULL;

	VEC_FOREACH (&list->list, e) {
		if (e->kind != EVIDENCE_WRITE || e == last || e->trial != last->trial ||
		    !home_same(&e->write->home, &last->write->home) ||
		    e->write->home.block_id != last->write->home.block_id)
			continue;
		if (e->write->when_ns > last->write->when_ns || !write_changed(e->write) ||
		    e->write->value_len == 0 || e->write->new != last->write->new)
			continue;
		if (!found || e->write->when_ns >= found->write->when_ns)
			found = e;
	}
	return found;
}

static struct suspect *suspect_for(struct chain_link *link, const struct write_seen *write)
{
	VEC_FOREACH (&link->suspects, s)
		if (same_writer(s->writes.items[0]->write, write))
			return s;
	VEC_PUSH(&link->suspects, (struct suspect){ .verified = true });
	return &link->suspects.items[link->suspects.count - 1];
}

static void add_last_write(struct chain_link *link, const struct evidence_list *list,
			   const struct evidence *last)
{
	const struct evidence *culprit = last;
	struct suspect *suspect;

	if (!write_changed(last->write))
		culprit = before_repeat(list, last);
	if (!culprit)
		return;
	if (culprit->write->flags & WRITE_ASYNC || culprit->write->writer.count == 0) {
		VEC_PUSH(&link->imprecise, culprit);
		return;
	}
	suspect = suspect_for(link, culprit->write);
	/* Trials are counted, not writes: two blocks of one trial are one witness. */
	VEC_FOREACH (&suspect->writes, w)
		if ((*w)->trial == culprit->trial)
			return;
	VEC_PUSH(&suspect->writes, culprit);
	if (!(last->write->flags & WRITE_FOUND))
		suspect->verified = false;
}

/* An earlier write to the very block in the same failing trial may be the same deed. */
static bool same_deed(const struct suspect *suspect, const struct evidence *e)
{
	return VEC_ANY(&suspect->writes, mine,
		       (*mine)->trial == e->trial &&
			       (*mine)->write->home.block_id == e->write->home.block_id);
}

static void add_harmless(struct suspect *suspect, const struct evidence_list *list)
{
	const struct write_seen *bad = suspect->writes.items[0]->write;

	VEC_FOREACH (&list->list, e) {
		const struct write_seen *w = e->write;

		if (e->kind != EVIDENCE_WRITE || (e->failing && w->flags & WRITE_LAST) ||
		    w->flags & WRITE_ASYNC || !home_same(&w->home, &bad->home) ||
		    !same_store(w, bad) || !same_change(w, bad))
			continue;
		if (!same_deed(suspect, e))
			VEC_PUSH(&suspect->harmless, e);
	}
}

static int by_caught(const void *a, const void *b)
{
	const struct suspect *x = a, *y = b;

	return (x->writes.count < y->writes.count) - (x->writes.count > y->writes.count);
}

/* Failing trials in which that home of the failing block was watched. What the hop says counts
 * where it says more: a trial in which nobody was caught may have left nothing else. */
static uint64_t count_watched(const struct evidence_list *list, const struct home *home)
{
	VEC(const struct evidence *) seen = { 0 };
	uint64_t watched;

	VEC_FOREACH (&list->list, e)
		if (e->failing && ((e->kind == EVIDENCE_WATCH && e->watch->victim_watched &&
				    home_same(&e->watch->home, home)) ||
				   (e->kind == EVIDENCE_WRITE && e->write->flags & WRITE_LAST &&
				    home_same(&e->write->home, home))))
			VEC_PUSH(&seen, e);
	watched = EVIDENCE_TRIALS(&seen);
	VEC_DEINIT(&seen);
	VEC_FOREACH (&list->list, e)
		if (e->kind == EVIDENCE_HOP && home_same(&e->hop->home, home) &&
		    e->hop->watched > watched)
			watched = e->hop->watched;
	return watched;
}

static void link_init(struct chain_link *link, const struct evidence_list *list,
		      const struct home *home)
{
	*link = (struct chain_link){ .home = home, .watched = count_watched(list, home) };
	VEC_FOREACH (&list->list, e)
		if (e->kind == EVIDENCE_WRITE && e->failing && e->write->flags & WRITE_LAST &&
		    home_same(&e->write->home, home))
			add_last_write(link, list, e);
	VEC_FOREACH (&link->suspects, suspect)
		add_harmless(suspect, list);
	VEC_SORT(&link->suspects, by_caught);
}

static void link_deinit(struct chain_link *link)
{
	VEC_FOREACH (&link->suspects, suspect) {
		VEC_DEINIT(&suspect->writes);
		VEC_DEINIT(&suspect->harmless);
	}
	VEC_DEINIT(&link->suspects);
	VEC_DEINIT(&link->imprecise);
}

static const struct home *home_of(const struct evidence *e)
{
	if (!e->failing)
		return NULL;
	if (e->kind == EVIDENCE_WRITE && e->write->flags & WRITE_LAST)
		return &e->write->home;
	if (e->kind == EVIDENCE_WATCH && e->watch->victim_watched)
		return &e->watch->home;
	return NULL;
}

/* Is it only where a value was copied from? Then it is a later link. */
static bool is_source(const struct evidence_list *list, const struct home *home)
{
	return VEC_ANY(&list->list, e,
		       e->kind == EVIDENCE_WRITE && e->failing && e->write->flags & WRITE_LAST &&
			       e->write->flags & WRITE_COPIED &&
			       home_same(&e->write->source, home) &&
			       !home_same(&e->write->home, home));
}

/* The home that the failure read: the first hop's, or the one watched in most failing trials. */
static const struct home *first_home(const struct evidence_list *list)
{
	const struct home *best = NULL;
	uint64_t most = 0;

	VEC_FOREACH (&list->list, e)
		if (e->kind == EVIDENCE_HOP && e->hop->number == 1 &&
		    e->hop->home.kind != HOME_UNKNOWN)
			return &e->hop->home;
	VEC_FOREACH (&list->list, e) {
		const struct home *home = home_of(e);
		uint64_t watched;

		if (!home || is_source(list, home))
			continue;
		watched = count_watched(list, home);
		if (watched > most) {
			most = watched;
			best = home;
		}
	}
	return best;
}

static const struct home *next_home(const struct facts *facts)
{
	const struct chain_link *link = &facts->chain.items[facts->chain.count - 1];
	const struct suspect *suspect = link_first(link);
	const struct write_seen *write;

	if (!suspect)
		return NULL;
	write = suspect->writes.items[0]->write;
	if (!(write->flags & WRITE_COPIED) || write->source.kind == HOME_UNKNOWN)
		return NULL;
	VEC_FOREACH (&facts->chain, before)
		if (home_same(before->home, &write->source))
			return NULL;
	return &write->source;
}

static uint64_t count_trials(const struct evidence_list *list)
{
	uint64_t trials = list->trials;

	VEC_FOREACH (&list->list, e)
		if (e->kind == EVIDENCE_HOP && e->hop->trials > trials)
			trials = e->hop->trials;
	return trials;
}

double chance_missed(uint64_t telling, double coverage)
{
	/* A damaged case may hold what is no share at all. */
	if (!(coverage > 0 && coverage <= 1))
		return 1;
	return pow(1 - coverage / 2, (double)telling);
}

/* What leaves evidence in every trial needs no record of its own. */
static void count_by_evidence(struct facts *facts, enum experiment_kind kind,
			      bool (*tells)(const struct evidence *e))
{
	VEC(const struct evidence *) seen = { 0 };

	VEC_FOREACH (&facts->list->list, e)
		if (tells(e))
			VEC_PUSH(&seen, e);
	facts->made[kind] = (struct experiment_made){ .kind = kind,
						      .trials = EVIDENCE_TRIALS(&seen),
						      .telling = EVIDENCE_TRIALS(&seen),
						      .coverage = 1 };
	facts->missed[kind] = chance_missed(facts->made[kind].telling, 1);
	VEC_DEINIT(&seen);
}

static bool tells_crash(const struct evidence *e)
{
	return e->kind == EVIDENCE_CRASH && e->failing;
}

static bool tells_watch(const struct evidence *e)
{
	return e->failing && ((e->kind == EVIDENCE_WATCH && e->watch->victim_watched) ||
			      (e->kind == EVIDENCE_WRITE && e->write->flags & WRITE_LAST));
}

static bool tells_machine(const struct evidence *e)
{
	return e->kind == EVIDENCE_HOST && e->host->memory_tested;
}

static uint64_t sum(uint64_t a, uint64_t b)
{
	return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

/* A damaged case may say that more trials could tell than were run. */
static void add_made(struct facts *facts, const struct experiment_made *more)
{
	struct experiment_made *made = &facts->made[more->kind];
	uint64_t telling = more->telling < more->trials ? more->telling : more->trials;

	made->kind = more->kind;
	made->trials = sum(made->trials, more->trials);
	made->telling = sum(made->telling, telling);
	made->shown = sum(made->shown, more->shown);
	made->shown_passing = sum(made->shown_passing, more->shown_passing);
	facts->missed[more->kind] *= chance_missed(telling, more->coverage);
}

bool facts_only_observed(const struct facts *facts)
{
	return facts->failure && facts->failure->failed == 0 && facts->failed > 0;
}

struct experiment_made facts_disturbed(const struct facts *facts)
{
	static const enum experiment_kind kinds[] = { EXPERIMENT_GUARDS, EXPERIMENT_FENCES,
						      EXPERIMENT_FILL_FREED,
						      EXPERIMENT_FILL_FRESH };
	struct experiment_made all = { 0 };

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		all.trials = sum(all.trials, facts->made[kinds[i]].trials);
		all.telling = sum(all.telling, facts->made[kinds[i]].telling);
	}
	return all;
}

static void count_experiments(struct facts *facts)
{
	for (unsigned int i = 0; i < EXPERIMENT_KINDS; i++)
		facts->missed[i] = 1;
	count_by_evidence(facts, EXPERIMENT_CRASH_RECORD, tells_crash);
	count_by_evidence(facts, EXPERIMENT_WATCH, tells_watch);
	count_by_evidence(facts, EXPERIMENT_MACHINE, tells_machine);
	VEC_FOREACH (&facts->list->list, e) {
		if (e->kind == EVIDENCE_EXPERIMENT)
			add_made(facts, e->experiment);
		if (e->kind == EVIDENCE_FAILURE)
			facts->failure = e->failure; /* the latest has counted most */
	}
}

void facts_init(struct facts *facts, const struct evidence_list *list)
{
	const struct home *home = first_home(list);

	*facts = (struct facts){ .list = list,
				 .trials = count_trials(list),
				 .failed = list->failed };
	count_experiments(facts);
	if (facts->failure && facts->failure->ran > 0) {
		facts->trials = facts->failure->ran;
		facts->failed = facts->failure->ran_failed;
	}
	while (home && facts->chain.count < CHAIN_MAX) {
		struct chain_link link;

		link_init(&link, list, home);
		VEC_PUSH(&facts->chain, link);
		home = next_home(facts);
	}
}

void facts_deinit(struct facts *facts)
{
	VEC_FREE(&facts->chain, link, link_deinit(link));
}

const struct suspect *link_first(const struct chain_link *link)
{
	return link && link->suspects.count > 0 ? &link->suspects.items[0] : NULL;
}

/* A source at which somebody was caught only now and then leads nowhere: then the copy is all there
 * is. */
const struct chain_link *facts_origin(const struct facts *facts)
{
	const struct chain_link *first = NULL;

	for (size_t i = facts->chain.count; i > 0; i--) {
		const struct chain_link *link = &facts->chain.items[i - 1];

		if (link->suspects.count == 0)
			continue;
		if (link->suspects.items[0].writes.count * 2 > link->watched)
			return link;
		first = link;
	}
	return first;
}

bool facts_writer_twice(const struct facts *facts)
{
	VEC_FOREACH (&facts->chain, link)
		VEC_FOREACH (&link->suspects, suspect)
			if (suspect->writes.count > 1)
				return true;
	return false;
}
