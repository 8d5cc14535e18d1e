/*
 * What a sanitizer or Valgrind reported in the program's own output. It looked at every access, so
 * what it names is so; that the trial failed of it is its own doing, as a rule: it ends the
 * program.
 */
#include "judge/rules.h"

static enum verdict_class class_of(enum reported_kind kind)
{
	static const enum verdict_class classes[REPORTED_KINDS] = {
		[REPORTED_OVERFLOW] = VERDICT_OVERFLOW,
		[REPORTED_UNDERFLOW] = VERDICT_UNDERFLOW,
		[REPORTED_OVER_READ] = VERDICT_OVER_READ,
		[REPORTED_FREED_USE] = VERDICT_USE_AFTER_FREE,
		[REPORTED_FREED_WRITE] = VERDICT_WRITE_AFTER_FREE,
		[REPORTED_DOUBLE_FREE] = VERDICT_DOUBLE_FREE,
		[REPORTED_INVALID_FREE] = VERDICT_INVALID_FREE,
		[REPORTED_UNINITIALISED] = VERDICT_UNINITIALISED,
		[REPORTED_RACE] = VERDICT_RACE,
		[REPORTED_NULL] = VERDICT_NULL_POINTER,
		[REPORTED_STACK] = VERDICT_STACK_EXHAUSTED,
		[REPORTED_DIVISION] = VERDICT_DIVISION_BY_ZERO,
	};

	return kind < REPORTED_KINDS ? classes[kind] : VERDICT_NOT_CAUGHT;
}

void weigh_reported(const struct rule *rule, const struct facts *facts, struct proof *ret)
{
	/* A bad pointer now and then may come of what the tool did not watch: libraries that were
	 * built without it. */
	if (BIT(rule->class) & PLAIN_FAULTS && !(facts->failure && facts->failure->always))
		return;
	VEC_FOREACH (&facts->list->list, e) {
		if (e->kind != EVIDENCE_REPORTED || !e->failing ||
		    class_of(e->reported->kind) != rule->class)
			continue;
		/* What the rule itself found did not fit. */
		if (!ret->main || ret->main->kind != EVIDENCE_REPORTED) {
			ret->main = e;
			ret->pieces.count = 0;
		}
		VEC_PUSH(&ret->pieces, e);
	}
	if (!ret->main || ret->main->kind != EVIDENCE_REPORTED)
		return;
	ret->fits = true;
	ret->spared = UINT32_MAX; /* nobody has looked for anything else */
	ret->caught = ret->watched = EVIDENCE_TRIALS(&ret->pieces);
}

void tell_reported(const struct proof *proof, struct verdict *ret, struct said *sentence)
{
	const struct reported *r = proof->main->reported;

	evidence_say(proof->main, sentence);
	if (r->write || ret->class == VERDICT_DOUBLE_FREE || ret->class == VERDICT_INVALID_FREE ||
	    ret->class == VERDICT_RACE)
		stack_copy(&ret->writer, &r->user);
	ret->width = (unsigned int)r->width;
	stack_copy(&ret->other, &r->other);
	if (!r->block)
		return;
	/* A variable of a function is no block: nobody allocated or freed it. */
	if (r->block->key && r->block->allocated.count > 0) {
		const struct frame *owner = stack_site(&r->block->allocated);

		ret->home = (struct home){ .kind = HOME_STACK,
					   .name = owner && owner->function
							   ? mem_strdup(owner->function)
							   : NULL,
					   .field = mem_strdup(r->block->key),
					   .len = r->block->size };
		return;
	}
	ret->victim = block_life_dup(r->block);
	stack_copy(&ret->freed_by, &r->block->freed);
	ret->home = (struct home){ .kind = HOME_ADDRESS, .address = r->block->value };
}
