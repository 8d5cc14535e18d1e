/*
 * Rules about plain faults: a NULL pointer, a zero divisor, a full stack, an instruction that stops
 * the program. Every run shows them, and no damaged memory is needed to explain them. Those that
 * only trials under an observer show are told, and never firmly.
 */
#include "judge/rules.h"

#include <string.h>

#include "judge/ledger.h"

#define RUNS_LEAST 12u /* all of which failed: then it is said of every run */
#define RECURS 3u      /* frames of one function: it calls itself */

static bool in_every_run(const struct failure_seen *f)
{
	return f && f->fault && f->failed > 0 && f->failed == f->trials && f->ran >= RUNS_LEAST &&
	       f->ran == f->ran_failed;
}

static enum verdict_class class_of(const struct crash *crash)
{
	static const enum verdict_class classes[FAULT_CLASSES] = {
		[FAULT_NULL] = VERDICT_NULL_POINTER,
		[FAULT_ARITHMETIC] = VERDICT_DIVISION_BY_ZERO,
		[FAULT_STACK_OVERFLOW] = VERDICT_STACK_EXHAUSTED,
		[FAULT_ILLEGAL] = VERDICT_ILLEGAL_INSTRUCTION,
		[FAULT_TRAP] = VERDICT_ILLEGAL_INSTRUCTION,
	};

	if (crash_is_null_call(crash))
		return VERDICT_NULL_POINTER;
	return crash->fault < FAULT_CLASSES ? classes[crash->fault] : VERDICT_NOT_CAUGHT;
}

/* What the instruction could not use, in the trial of that crash; NULL unknown. */
const struct fault_value *fault_value_of(const struct facts *facts, const struct evidence *crash)
{
	const struct evidence *found = VEC_FIND(
		&facts->list->list, e, e->kind == EVIDENCE_FAULT_VALUE && e->trial == crash->trial);

	return found ? found->fault_value : NULL;
}

/* Code that nobody has a name for may be data that was jumped into. */
static bool fits_class(const struct rule *rule, const struct facts *facts, const struct evidence *e)
{
	const struct fault_value *value = fault_value_of(facts, e);

	if (e->crash->hidden || class_of(e->crash) != rule->class)
		return false;
	/* A small number in the pointer's place is a wrong value, and no NULL pointer. */
	if (rule->class == VERDICT_NULL_POINTER && value)
		return value->value == 0;
	if (rule->class == VERDICT_DIVISION_BY_ZERO)
		return !value || (value->divisor && value->value == 0);
	if (rule->class == VERDICT_ILLEGAL_INSTRUCTION)
		return e->crash->stack.count > 0 && e->crash->stack.frames[0].function &&
		       e->crash->stack.frames[0].kind == FRAME_NATIVE;
	return true;
}

void weigh_fault(const struct rule *rule, const struct facts *facts, struct proof *ret)
{
	bool observed = facts_only_observed(facts);

	if (!observed && !in_every_run(facts->failure))
		return;
	VEC_FOREACH (&facts->list->list, e) {
		if (e->kind != EVIDENCE_CRASH || !(observed ? evidence_observed(e) : e->failing))
			continue;
		if (!fits_class(rule, facts, e)) {
			ret->main = NULL;
			return;
		}
		if (!ret->main || (!fault_value_of(facts, ret->main) && fault_value_of(facts, e)))
			ret->main = e;
		proof_add(ret, e);
	}
	if (!ret->main)
		return;
	ret->fits = true;
	ret->caught = ret->watched =
		observed ? EVIDENCE_TRIALS(&ret->pieces) : facts->failure->ran_failed;
}

/* Who wrote the value last, by the watch on the home that it was read from; NULL. A store of what
 * was there already counts: it is no damage, but it is where the value was made. */
static const struct write_seen *last_writer(const struct facts *facts,
					    const struct fault_value *value)
{
	VEC_FOREACH (&facts->list->list, e)
		if (e->kind == EVIDENCE_WRITE && e->failing && e->write->flags & WRITE_LAST &&
		    !(e->write->flags & WRITE_ASYNC) && e->write->value_len > 0 &&
		    e->write->new == value->value &&
		    value->source == POINTER_LOADED &&home_same(&e->write->home, &value->home))
			return e->write;
	return NULL;
}

/* Zero from the birth of its block on. */
static const struct watch_account *never_set(const struct facts *facts,
					     const struct fault_value *value)
{
	VEC_FOREACH (&facts->list->list, e)
		if (e->kind == EVIDENCE_WATCH && e->failing && e->watch->victim_watched &&
		    e->watch->since_birth && e->watch->value_known && e->watch->hits == 0 &&
		    e->watch->value == value->value && value->source == POINTER_LOADED &&
		    home_same(&e->watch->home, &value->home))
			return e->watch;
	return NULL;
}

/* Where the value came from. */
static struct said_value source_value(const struct facts *facts, const struct fault_value *value,
				      struct verdict *ret)
{
	const struct write_seen *writer = last_writer(facts, value);
	const struct watch_account *unset = never_set(facts, value);
	struct said said = { 0 };

	if (value->source == POINTER_RETURNED)
		SAY(&said, "source:returned", said_flag(value->divisor),
		    said_text(value->returned_by));
	if (value->source == POINTER_GIVEN)
		SAY(&said, "source:given", said_flag(value->divisor));
	if (value->source != POINTER_LOADED)
		return said_part(&said);
	SAY(&said, "source:loaded", said_flag(value->divisor), said_home(&value->home));
	home_copy(&ret->home, &value->home);
	if (writer) {
		SAY(&said, "source:written", said_flag(value->divisor), said_home(&value->home),
		    said_site(&writer->writer), said_number(writer->new));
		stack_copy(&ret->other, &writer->writer);
		ret->victim = block_life_dup(writer->victim);
	} else if (unset) {
		SAY(&said, "source:unset", said_flag(value->divisor), said_home(&value->home));
		ret->victim = block_life_dup(unset->victim);
	}
	return said_part(&said);
}

static bool calls_itself(const struct stack *stack, const struct frame *site)
{
	unsigned int times = 0;

	for (size_t i = 0; site && site->function && i < stack->count; i++)
		times += stack->frames[i].function &&
			 strcmp(stack->frames[i].function, site->function) == 0;
	return times >= RECURS;
}

static struct said_value fault_part(enum verdict_class class, const struct crash *crash)
{
	const struct frame *site = crash_site(crash);
	bool offset = crash->address > 0 && (int64_t)crash->address > 0;
	struct said said = { 0 };

	switch (class) {
	case VERDICT_NULL_POINTER:
		SAY(&said, "fault:null", said_flag(crash_is_null_call(crash)),
		    said_flag(crash->write), said_site(&crash->stack),
		    offset ? said_number(crash->address) : said_none());
		break;
	case VERDICT_DIVISION_BY_ZERO:
		SAY(&said, "fault:division", said_site(&crash->stack));
		break;
	case VERDICT_STACK_EXHAUSTED:
		SAY(&said, "fault:stack", said_text(crash->thread ? crash->thread : "?"),
		    said_frame(site ?: &crash->stack.frames[0]),
		    said_flag(calls_itself(&crash->stack, site)));
		break;
	default:
		SAY(&said, "fault:instruction", said_site(&crash->stack),
		    said_text(crash->instruction ? crash->instruction : "?"));
	}
	return said_part(&said);
}

void tell_fault(const struct facts *facts, const struct proof *proof, struct verdict *ret,
		struct said *sentence)
{
	const struct crash *crash = proof->main->crash;
	const struct fault_value *value = fault_value_of(facts, proof->main);
	const struct experiment_made *guards = &facts->made[EXPERIMENT_GUARDS];
	const struct experiment_made *fences = &facts->made[EXPERIMENT_FENCES];
	bool guarded = guards->telling > 0 && guards->shown + guards->shown_passing == 0;
	struct experiment_made disturbed = facts_disturbed(facts);

	SAY(sentence, "told:fault", fault_part(ret->class, crash),
	    value ? source_value(facts, value, ret) : said_none(),
	    said_flag(fences->telling > 0 && fences->shown + fences->shown_passing == 0),
	    guarded ? said_number(guards->telling + fences->telling) : said_none(),
	    said_flag(facts_only_observed(facts)), said_number(disturbed.telling),
	    said_number(disturbed.trials), said_number(facts->failure->trials));
	if (crash->instruction)
		ret->instruction = mem_strdup(crash->instruction);
}
