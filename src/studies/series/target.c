#include "studies/series/target.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

#include "base/cstr.h"
#include "model/test_name.h"

/* So many failures of one kind settle it, twice as many as any other has; or so many at all. */
#define ENOUGH 3
#define ENOUGH_AMONG_OTHERS 8

void target_deinit(struct target *t)
{
	signature_deinit(&t->signature);
	VEC_FREE(&t->members, member, signature_deinit(member));
	VEC_FREE(&t->candidates, c, failure_family_deinit(&c->family));
}

static int settle(struct target *t, struct case_store *cs, const char *id, struct err *err)
{
	int r = case_signature(cs, id, &t->signature, err);

	if (r < 0)
		return r;
	t->known = true;
	return 0;
}

int target_set(struct target *t, struct case_store *cs, const char *id, struct err *err)
{
	int r = settle(t, cs, id, err);

	t->exact = r == 0;
	if (r == 0)
		return 0;
	(void)err_set_prefix(err, "--signature");
	return err_set_remedy(err, "redhand repro -- PROGRAM lists them, with the same --case");
}

/* What a shell makes of a crash in the command that it ran. */
static bool shell_crash(int status)
{
	return status == 128 + SIGSEGV || status == 128 + SIGBUS || status == 128 + SIGABRT ||
	       status == 128 + SIGILL || status == 128 + SIGFPE || status == 128 + SIGTRAP;
}

static bool is_crash(const struct target *t, const struct signature *s)
{
	switch (s->kind) {
	case FAILURE_SIGNAL:
	case FAILURE_TIMEOUT:
	case FAILURE_OUTPUT:
		return true;
	case FAILURE_EXIT:
		return shell_crash(s->exit_status) || !t->progress;
	default:
		return false;
	}
}

static struct target_candidate *candidate_of(struct target *t, const struct signature *signature)
{
	VEC_FOREACH (&t->candidates, c)
		if (family_takes(&c->family, signature))
			return c;
	VEC_PUSH(&t->candidates, ((struct target_candidate){ 0 }));
	return &t->candidates.items[t->candidates.count - 1];
}

static bool is_access(const struct signature *s)
{
	return s->kind == FAILURE_SIGNAL && (s->signal == SIGSEGV || s->signal == SIGBUS);
}

/* It was chosen where runs did not tell their tests. One that does names the test, and damaged
 * memory dies there in another function each time: nothing tells the two apart. */
static bool untold(const struct target *t, const struct signature *signature)
{
	return !t->exact && !t->signature.test && signature->test && is_access(&t->signature) &&
	       is_access(signature);
}

/* The user's victim, failing in whatever way, is what the user means. */
static bool is_candidate(const struct target *t, const struct signature *signature, bool *ret_crash)
{
	bool of_victim = t->victim && signature->test && test_name_same(signature->test, t->victim);

	*ret_crash = t->victim && signature->test ? of_victim : is_crash(t, signature);
	return (!t->victim || !signature->test || of_victim) &&
	       (!t->among || target_is(t->among, signature) || untold(t->among, signature));
}

static int note_one(struct target *t, struct case_store *cs, const char *id, struct err *err)
{
	AUTO(signature_deinit) struct signature signature = { 0 };
	struct target_candidate *candidate;
	bool crash;
	int r = case_signature(cs, id, &signature, err);

	if (r < 0 || !is_candidate(t, &signature, &crash))
		return r;
	candidate = candidate_of(t, &signature);
	candidate->crash |= crash;
	candidate->family.rate.failed += candidate->run != t->runs;
	candidate->run = t->runs;
	family_count(&candidate->family, &signature);
	return 0;
}

int target_note(struct target *t, struct case_store *cs, const char *signatures, struct err *err)
{
	char id[SIGNATURE_ID_LEN + 1];
	int r = 0;

	t->runs++;
	for (const char *at = signatures; r == 0 && (at = signature_next_id(at, id)) != NULL;)
		r = note_one(t, cs, id, err);
	return r;
}

static const struct target_candidate *best_candidate(const struct target *t, bool last)
{
	const struct target_candidate *best = NULL;

	VEC_FOREACH (&t->candidates, c) {
		if (!c->crash && !last)
			continue;
		if (!best || c->crash > best->crash ||
		    (c->crash == best->crash && c->family.rate.failed > best->family.rate.failed))
			best = c;
	}
	return best;
}

/* Only a test tells two failures apart: without one, a corruption that dies in many functions looks
 * like many. */
static bool apart(const struct target_candidate *a, const struct target_candidate *b)
{
	return a->crash != b->crash || (family_test(&a->family) && family_test(&b->family));
}

static void take_candidates(struct target *t, const struct target_candidate *best)
{
	if (t->exact)
		return;
	VEC_FOREACH (&t->candidates, c)
		if (c == best || !apart(c, best))
			target_take_family(t, &c->family);
}

int target_choose(struct target *t, struct case_store *cs, bool last, struct err *err)
{
	const struct target_candidate *best = best_candidate(t, last);
	uint64_t count = 0, second = 0;
	int r;

	if (!best)
		return 0;
	VEC_FOREACH (&t->candidates, c) {
		uint64_t failed = c->family.rate.failed;

		if (c == best || !apart(c, best))
			count += failed;
		else if (c->crash == best->crash && failed > second)
			second = failed;
	}
	if (!last && !(count >= ENOUGH && count >= 2 * second) && count < ENOUGH_AMONG_OTHERS)
		return 0;
	r = settle(t, cs, family_name(&best->family)->id, err);
	if (r == 0)
		take_candidates(t, best);
	return r;
}

int target_adopt(struct target *t, struct case_store *cs, const char *id, struct err *err)
{
	int r = target_set(t, cs, id, err);

	t->exact = false;
	if (r < 0)
		return r;
	VEC_FOREACH (&t->candidates, c)
		if (family_has(&c->family, id)) {
			take_candidates(t, c);
			break;
		}
	return 0;
}

/* A pointer that leads nowhere good: with allocation ids more is known about where. NULL is
 * another matter, and so is everything that no pointer is to blame for. */
static bool is_wild(const char *fault)
{
	static const enum fault_class wild[] = { FAULT_UNKNOWN,	   FAULT_FREED,
						 FAULT_RECYCLED,   FAULT_BEYOND,
						 FAULT_UNMAPPED,   FAULT_READ_ONLY,
						 FAULT_MISALIGNED, FAULT_NON_CANONICAL };

	for (size_t i = 0; i < ARRAY_SIZE(wild); i++)
		if (strcmp(fault_class_name(wild[i]), fault) == 0)
			return true;
	return false;
}

static bool same_fault(const char *a, const char *b)
{
	return !a || !b || cstr_same(a, b) || (is_wild(a) && is_wild(b));
}

static bool is_cut(const struct signature *s)
{
	return s->fault && cstr_same(s->fault, fault_class_name(FAULT_MAPPING_SHRANK));
}

/* Damaged memory kills the same test by one signal or another. */
static bool same_signal(const struct target *t, const struct signature *s)
{
	const struct signature *target = &t->signature;

	return target->signal == s->signal ||
	       (t->faults && !t->exact && target->test && is_access(target) && is_access(s));
}

/* Damaged memory kills the same test in different functions; only the user, by naming a signature,
 * or the lack of a test's name makes the function count. */
static bool same_place(const struct target *t, const struct signature *s)
{
	const struct signature *target = &t->signature;

	if ((!t->exact && target->test) || !target->site || !s->site)
		return true;
	return cstr_same(target->site, s->site) &&
	       (!t->faults || same_fault(target->fault, s->fault));
}

/* Whose child it was depends on who started it: a test runner, or the command of one test. */
static bool same_process(const struct signature *a, const struct signature *b)
{
	return a->stray == b->stray || (a->site && b->site && cstr_same(a->site, b->site));
}

static bool same_test(const struct target *t, const struct signature *s)
{
	const char *test = t->signature.test;

	return !test || (s->test ? test_name_same(test, s->test) : t->lenient);
}

/* A file that was cut, or written anew, fails whoever touches it next, in whatever way; the crash
 * that says so speaks for the others. */
static bool speaks_for_others(const struct target *t, const struct signature *s)
{
	return t->faults && !t->exact && is_cut(s) && is_access(&t->signature);
}

/* Is this the target, as far as the target says? A signature from a run that did not tell its
 * tests, or that nobody observed, names no test or no site. */
static bool alike(const struct target *t, const struct signature *s)
{
	const struct signature *target = &t->signature;

	if (target->kind != s->kind || !same_process(target, s))
		return false;
	if (speaks_for_others(t, s))
		return true;
	if (t->cuts && is_cut(target))
		return false;
	if (!same_signal(t, s))
		return false;
	if (target->kind == FAILURE_EXIT && target->exit_status != s->exit_status)
		return false;
	if (!same_test(t, s) || !same_place(t, s))
		return false;
	if (target->kind == FAILURE_OUTPUT)
		return target->crumb && s->crumb && cstr_same(target->crumb, s->crumb);
	return true;
}

static void add_member(struct target *t, const struct signature *member)
{
	struct signature copy;

	signature_copy(&copy, member);
	VEC_PUSH(&t->members, copy);
}

void target_take_family(struct target *t, const struct failure_family *family)
{
	if (t->exact || !family)
		return;
	VEC_FOREACH (&family->members, member)
		add_member(t, member);
}

void target_take_members(struct target *t, const struct target *from)
{
	VEC_FOREACH (&from->members, member)
		add_member(t, member);
}

/* A test that only says that it failed is none of a crash's ways, unless that was seen of it: it
 * may need what another test of the list sets up. */
static bool is_way_of(const struct signature *member, const struct signature *signature)
{
	return signatures_akin(member, signature) &&
	       (signature->kind != FAILURE_TEST || member->kind == FAILURE_TEST);
}

static bool is_member(const struct target *t, const struct signature *signature)
{
	return VEC_ANY(&t->members, member,
		       strcmp(member->id, signature->id) == 0 || is_way_of(member, signature));
}

bool target_is(const struct target *t, const struct signature *signature)
{
	return strcmp(signature->id, t->signature.id) == 0 || alike(t, signature) ||
	       is_member(t, signature);
}

bool target_kin(const struct target *t, const struct signature *signature)
{
	const struct signature *target = &t->signature;

	if (t->exact || target->kind != FAILURE_SIGNAL || signature->kind != FAILURE_SIGNAL ||
	    !target->site || !signature->site || !cstr_same(target->site, signature->site))
		return false;
	return target->test && signature->test ? test_name_same(target->test, signature->test)
					       : !target->test == !signature->test;
}

int target_shown(const struct target *t, struct case_store *cs, const char *signatures, bool *ret,
		 struct err *err)
{
	char id[SIGNATURE_ID_LEN + 1];
	bool shown = false;

	for (const char *at = signatures; !shown && (at = signature_next_id(at, id)) != NULL;) {
		struct signature other = { 0 };
		int r;

		shown = strcmp(id, t->signature.id) == 0;
		if (shown)
			continue;
		r = case_signature(cs, id, &other, err);
		if (r < 0)
			return r;
		shown = target_is(t, &other);
		signature_deinit(&other);
	}
	*ret = shown;
	return 0;
}
