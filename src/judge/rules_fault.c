/*
 * Rules about plain faults: a NULL pointer, a zero divisor, a full stack, an instruction that stops
 * the program. Every run shows them, and no damaged memory is needed to explain them.
 */
#include "judge/rules.h"

#include <inttypes.h>
#include <string.h>

#include "judge/ledger.h"
#include "judge/store_facts.h"

#define RUNS_LEAST 12u /* all of which failed: then it is said of every run */
#define RECURS 3u      /* frames of one function: it calls itself */

static bool in_every_run(const struct failure_seen *f)
{
	return f && f->fault && f->failed > 0 && f->failed == f->trials && f->ran >= RUNS_LEAST &&
	       f->ran == f->ran_failed;
}

static enum verdict_class class_of(const struct crash *crash)
{
	if (crash_is_null_call(crash))
		return VERDICT_NULL_POINTER;
	switch (crash->fault) {
	case FAULT_NULL:
		return VERDICT_NULL_POINTER;
	case FAULT_ARITHMETIC:
		return VERDICT_DIVISION_BY_ZERO;
	case FAULT_STACK_OVERFLOW:
		return VERDICT_STACK_EXHAUSTED;
	case FAULT_ILLEGAL:
	case FAULT_TRAP:
		return VERDICT_ILLEGAL_INSTRUCTION;
	default:
		return VERDICT_NOT_CAUGHT;
	}
}

/* What the instruction could not use, in the trial of that crash; NULL unknown. */
const struct fault_value *fault_value_of(const struct facts *facts, const struct evidence *crash)
{
	VEC_FOREACH (&facts->list->list, e)
		if (e->kind == EVIDENCE_FAULT_VALUE && e->trial == crash->trial)
			return e->fault_value;
	return NULL;
}

/* Code that nobody has a name for may be data that was jumped into. */
static bool fits_class(const struct rule *rule, const struct facts *facts, const struct evidence *e)
{
	const struct fault_value *value = fault_value_of(facts, e);

	if (e->crash->hidden || class_of(e->crash) != rule->class)
		return false;
	if (rule->class == VERDICT_DIVISION_BY_ZERO)
		return !value || (value->divisor && value->value == 0);
	if (rule->class == VERDICT_ILLEGAL_INSTRUCTION)
		return e->crash->stack.count > 0 && e->crash->stack.frames[0].function &&
		       e->crash->stack.frames[0].kind == FRAME_NATIVE;
	return true;
}

void weigh_fault(const struct rule *rule, const struct facts *facts, struct proof *ret)
{
	if (!in_every_run(facts->failure))
		return;
	VEC_FOREACH (&facts->list->list, e) {
		if (e->kind != EVIDENCE_CRASH || !e->failing)
			continue;
		if (!fits_class(rule, facts, e)) {
			ret->main = NULL;
			return;
		}
		if (!ret->main || (!fault_value_of(facts, ret->main) && fault_value_of(facts, e)))
			ret->main = e;
		VEC_PUSH(&ret->pieces, e);
	}
	if (!ret->main)
		return;
	ret->fits = true;
	ret->caught = ret->watched = facts->failure->ran_failed;
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

static void say_source(const struct facts *facts, const struct fault_value *value,
		       struct verdict *ret, struct strbuf *sb)
{
	const char *what = value->divisor ? "divisor" : "pointer";
	const struct write_seen *writer = last_writer(facts, value);
	const struct watch_account *unset = never_set(facts, value);

	if (value->source == POINTER_RETURNED)
		strbuf_addf(sb, "; the %s was returned by %s", what,
			    value->returned_by ? value->returned_by : "a call");
	if (value->source == POINTER_GIVEN)
		strbuf_addf(sb, "; the %s was given to it by its caller", what);
	if (value->source != POINTER_LOADED)
		return;
	strbuf_addf(sb, "; the %s was read from ", what);
	home_describe(&value->home, sb);
	home_copy(&ret->home, &value->home);
	if (writer) {
		strbuf_adds(sb, ", where ");
		say_site(sb, &writer->writer);
		strbuf_addf(sb, " had put 0x%" PRIx64, writer->new);
		stack_copy(&ret->other, &writer->writer);
		ret->victim = block_life_dup(writer->victim);
	} else if (unset) {
		strbuf_adds(sb, ", which nobody has written since its block was allocated");
		ret->victim = block_life_dup(unset->victim);
	}
}

static bool calls_itself(const struct stack *stack, const struct frame *site)
{
	unsigned int times = 0;

	for (size_t i = 0; site && site->function && i < stack->count; i++)
		times += stack->frames[i].function &&
			 strcmp(stack->frames[i].function, site->function) == 0;
	return times >= RECURS;
}

static void say_fault(const struct rule *rule, const struct crash *crash, struct strbuf *sb)
{
	switch (rule->class) {
	case VERDICT_NULL_POINTER:
		strbuf_adds(sb, crash_is_null_call(crash) ? "a call through a NULL pointer in "
				: crash->write		  ? "a write through a NULL pointer in "
							  : "a read through a NULL pointer in ");
		say_site(sb, &crash->stack);
		if (crash->address > 0 && (int64_t)crash->address > 0)
			strbuf_addf(sb, ", at offset %" PRIu64, crash->address);
		break;
	case VERDICT_DIVISION_BY_ZERO:
		strbuf_adds(sb, "division by zero in ");
		say_site(sb, &crash->stack);
		break;
	case VERDICT_STACK_EXHAUSTED:
		strbuf_addf(sb, "the stack of thread '%s' is full: ",
			    crash->thread ? crash->thread : "?");
		frame_describe(crash_site(crash) ?: &crash->stack.frames[0], sb);
		strbuf_adds(sb, calls_itself(&crash->stack, crash_site(crash))
					? " calls itself, directly or through others"
					: " needed more than was left of it");
		break;
	default:
		say_site(sb, &crash->stack);
		strbuf_addf(sb, " came to the instruction '%s', which stops the program",
			    crash->instruction ? crash->instruction : "?");
	}
}

void tell_fault(const struct facts *facts, const struct proof *proof, struct verdict *ret,
		struct strbuf *sentence)
{
	const struct crash *crash = proof->main->crash;
	const struct fault_value *value = fault_value_of(facts, proof->main);
	const struct experiment_made *guards = &facts->made[EXPERIMENT_GUARDS];
	const struct experiment_made *fences = &facts->made[EXPERIMENT_FENCES];

	for (size_t i = 0; i < rule_count; i++)
		if (rules[i].class == ret->class)
			say_fault(&rules[i], crash, sentence);
	strbuf_adds(sentence, ", in every run");
	if (value)
		say_source(facts, value, ret, sentence);
	if (crash->instruction)
		ret->instruction = mem_strdup(crash->instruction);
	if (guards->telling > 0 && guards->shown + guards->shown_passing == 0)
		strbuf_addf(sentence,
			    "; guards%s around blocks saw no damage in %" PRIu64 " failing trials",
			    fences->telling > 0 && fences->shown + fences->shown_passing == 0
				    ? " and fences"
				    : "",
			    guards->telling + fences->telling);
}
