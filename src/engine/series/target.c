#include "engine/series/target.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

/* So many failures of one kind settle it, twice as many as any other has; or so many at all. */
#define ENOUGH 3
#define ENOUGH_AMONG_OTHERS 8

void target_deinit(struct target *t)
{
	signature_deinit(&t->signature);
	VEC_FOREACH (&t->members, member)
		signature_deinit(member);
	VEC_DEINIT(&t->members);
	VEC_DEINIT(&t->candidates);
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
	(void)err_prefix(err, "--signature");
	return err_remedy(err, "redhand repro -- PROGRAM lists them, with the same --case");
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

static int note_one(struct target *t, struct case_store *cs, const char *id, struct err *err)
{
	struct target_candidate candidate = { .count = 1 };
	struct signature signature = { 0 };
	int r;

	VEC_FOREACH (&t->candidates, c) {
		if (strcmp(c->id, id) == 0) {
			c->count++;
			return 0;
		}
	}
	r = case_signature(cs, id, &signature, err);
	if (r < 0)
		return r;
	/* The user's victim, failing in whatever way, is what the user means. */
	candidate.crash = is_crash(t, &signature);
	if (t->victim && signature.test)
		candidate.crash = strcmp(signature.test, t->victim) == 0;
	memcpy(candidate.id, id, strlen(id) + 1);
	if ((!t->victim || !signature.test || candidate.crash) &&
	    (!t->among || target_is(t->among, &signature)))
		VEC_PUSH(&t->candidates, candidate);
	signature_deinit(&signature);
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

int target_choose(struct target *t, struct case_store *cs, bool last, struct err *err)
{
	const struct target_candidate *best = NULL;
	uint64_t second = 0;

	VEC_FOREACH (&t->candidates, c) {
		if (!c->crash && !last)
			continue;
		if (!best || c->crash > best->crash ||
		    (c->crash == best->crash && c->count > best->count)) {
			second = best ? best->count : 0;
			best = c;
		} else if (c->crash == best->crash && c->count > second) {
			second = c->count;
		}
	}
	if (!best)
		return 0;
	if (last || (best->count >= ENOUGH && best->count >= 2 * second) ||
	    best->count >= ENOUGH_AMONG_OTHERS)
		return settle(t, cs, best->id, err);
	return 0;
}

static bool same_text(const char *a, const char *b)
{
	return strcmp(a, b) == 0;
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
	return !a || !b || same_text(a, b) || (is_wild(a) && is_wild(b));
}

static bool is_access(const struct signature *s)
{
	return s->kind == FAILURE_SIGNAL && (s->signal == SIGSEGV || s->signal == SIGBUS);
}

static bool is_cut(const struct signature *s)
{
	return s->fault && same_text(s->fault, fault_class_name(FAULT_MAPPING_SHRANK));
}

/* Is this the target, as far as the target says? A signature from a run that did not tell its
 * tests, or that nobody observed, names no test or no site. */
static bool alike(const struct target *t, const struct signature *s)
{
	const struct signature *target = &t->signature;

	if (target->kind != s->kind)
		return false;
	/* Whose child it was depends on who started it: a test runner, or the command of one test.
	 */
	if (target->stray != s->stray &&
	    !(target->site && s->site && same_text(target->site, s->site)))
		return false;
	/* A file that was cut, or written anew, fails whoever touches it next, in whatever way; the
	 * crash that says so speaks for the others. */
	if (t->faults && !t->exact && is_cut(s) && is_access(target))
		return true;
	if (t->cuts && is_cut(target))
		return false;
	if (target->signal != s->signal &&
	    !(t->faults && !t->exact && target->test && is_access(target) && is_access(s)))
		return false;
	if (target->kind == FAILURE_EXIT && target->exit_status != s->exit_status)
		return false;
	if (target->test && !(s->test ? same_text(target->test, s->test) : t->lenient))
		return false;
	/* Damaged memory kills the same test in different functions; only the user, by naming a
	 * signature, or the lack of a test's name makes the function count. */
	if ((t->exact || !target->test) && target->site && s->site &&
	    (!same_text(target->site, s->site) ||
	     (t->faults && !same_fault(target->fault, s->fault))))
		return false;
	if (target->kind == FAILURE_OUTPUT)
		return target->crumb && s->crumb && same_text(target->crumb, s->crumb);
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

static bool is_member(const struct target *t, const struct signature *signature)
{
	VEC_FOREACH (&t->members, member)
		if (strcmp(member->id, signature->id) == 0 || signatures_akin(member, signature))
			return true;
	return false;
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
	    !target->site || !signature->site || !same_text(target->site, signature->site))
		return false;
	return target->test && signature->test ? same_text(target->test, signature->test)
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
