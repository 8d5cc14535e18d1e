/*
 * Stories about plain faults: a NULL pointer, a zero divisor, a full stack, an instruction that
 * stops the program.
 */
#include "verdict_stories.h"

#define TRIALS 3u

/* A fault in each of some trials, the value behind it, and what looked for damage. */
static void faults(struct evidence_list *l, enum fault_class fault)
{
	struct evidence *failure;

	for (unsigned int i = 1; i <= TRIALS; i++)
		add(l, made_crash(i, fault));
	add(l, made_experiment(EXPERIMENT_GUARDS, 6));
	add(l, made_experiment(EXPERIMENT_FENCES, 2));
	failure = add(l, made_failure(true));
	failure->failure->kind = FAILURE_SIGNAL;
	failure->failure->fault = true;
	failure->failure->trials = failure->failure->failed = 12;
	failure->failure->ran = failure->failure->ran_failed = 20;
}

static struct evidence *value(struct evidence_list *l, uint64_t trial, bool divisor)
{
	return add(l, made_fault_value(trial, divisor));
}

/* A function returned NULL, and nobody asked. */
static void null_returned(struct evidence_list *l)
{
	faults(l, FAULT_NULL);
	value(l, 1, false)->fault_value->source = POINTER_RETURNED;
	EACH_PIECE(l, e)
	if (e->kind == EVIDENCE_FAULT_VALUE)
		e->fault_value->returned_by = mem_strdup("find");
}

/* The field was cleared by its owner. */
static void null_in_a_cleared_field(struct evidence_list *l)
{
	faults(l, FAULT_NULL);
	tell_story(l, "set_to_null_by_name");
	for (unsigned int i = 1; i <= TRIALS; i++)
		(void)value(l, i, false);
}

/* A small number was read in the pointer's place: that is no NULL pointer. */
static void number_for_a_pointer(struct evidence_list *l)
{
	null_in_a_cleared_field(l);
	VEC_FOREACH (&l->list, e)
		if (e->kind == EVIDENCE_FAULT_VALUE)
			e->fault_value->value = 73;
}

/* It comes and goes: what differs between the runs is the question. */
static void null_now_and_then(struct evidence_list *l)
{
	faults(l, FAULT_NULL);
	EACH_PIECE(l, e)
	if (e->kind == EVIDENCE_FAILURE)
		e->failure->ran_failed--;
}

static void null_in_few_runs(struct evidence_list *l)
{
	faults(l, FAULT_NULL);
	EACH_PIECE(l, e)
	if (e->kind == EVIDENCE_FAILURE)
		e->failure->ran = e->failure->ran_failed = 11;
}

static void null_without_fences(struct evidence_list *l)
{
	faults(l, FAULT_NULL);
	EACH_PIECE(l, e)
	if (e->kind == EVIDENCE_EXPERIMENT && e->experiment->kind == EXPERIMENT_FENCES)
		e->experiment->telling = 0;
}

static void null_with_few_guards(struct evidence_list *l)
{
	faults(l, FAULT_NULL);
	EACH_PIECE(l, e)
	if (e->kind == EVIDENCE_EXPERIMENT && e->experiment->kind == EXPERIMENT_GUARDS)
		e->experiment->telling = 4;
}

/* One of its crashes was another: it is no plain fault. */
static void null_and_a_wild_pointer(struct evidence_list *l)
{
	faults(l, FAULT_NULL);
	add(l, made_crash(TRIALS + 1, FAULT_NON_CANONICAL));
}

/* What reads a freed block may read a zero there. */
static void null_and_a_freed_block(struct evidence_list *l)
{
	faults(l, FAULT_NULL);
	add(l, made_freed_use(1, false));
}

/* A race that nothing came of. */
static void null_and_turns(struct evidence_list *l)
{
	faults(l, FAULT_NULL);
	add(l, made_race(1, false))->race->locked = true;
}

static void null_and_turns_in_a_success(struct evidence_list *l)
{
	null_and_turns(l);
	EACH_PIECE(l, e)
	if (e->kind == EVIDENCE_RACE)
		e->failing = false;
}

static void divided_by_zero(struct evidence_list *l)
{
	faults(l, FAULT_ARITHMETIC);
	for (unsigned int i = 1; i <= TRIALS; i++)
		(void)value(l, i, true);
}

static void divided_by_who_knows(struct evidence_list *l)
{
	faults(l, FAULT_ARITHMETIC);
}

/* The smallest number by -1: the result does not fit. */
static void divided_by_minus_one(struct evidence_list *l)
{
	divided_by_zero(l);
	EACH_PIECE(l, e)
	if (e->kind == EVIDENCE_FAULT_VALUE)
		e->fault_value->value = UINT32_MAX;
}

/* Somebody stored it, through a pointer that may have been meant for another place. */
static void divisor_stored_in_passing(struct evidence_list *l)
{
	divided_by_zero(l);
	caught(l, (struct made_write){ .writer = "load", .width = 8, .old = 0x12345678, .new = 7 },
	       TRIALS);
	EACH_PIECE(l, e)
	if (e->kind == EVIDENCE_CRASH)
		e->crash->fault = FAULT_ARITHMETIC;
}

/* The divisor's owner did: the number is wrong, the store is not. */
static void divisor_stored_by_name(struct evidence_list *l)
{
	divisor_stored_in_passing(l);
	EACH_PIECE(l, e)
	if (e->kind == EVIDENCE_WRITE)
		made_traits(e->write, MADE_NAMED);
}

/* A table of functions that has none for this. */
static void null_called(struct evidence_list *l)
{
	faults(l, FAULT_EXECUTE);
	EACH_PIECE(l, e)
	if (e->kind == EVIDENCE_CRASH)
		e->crash->address = 0;
}

/* Code jumped into the heap. */
static void called_elsewhere(struct evidence_list *l)
{
	faults(l, FAULT_EXECUTE);
	EACH_PIECE(l, e)
	if (e->kind == EVIDENCE_CRASH)
		e->crash->address = 0x700000;
}

static void full_stack(struct evidence_list *l)
{
	faults(l, FAULT_STACK_OVERFLOW);
}

static void stopped_by_ud2(struct evidence_list *l)
{
	faults(l, FAULT_ILLEGAL);
}

static void stopped_by_int3(struct evidence_list *l)
{
	faults(l, FAULT_TRAP);
}

static void stopped_and_unguarded(struct evidence_list *l)
{
	faults(l, FAULT_ILLEGAL);
	EACH_PIECE(l, e)
	if (e->kind == EVIDENCE_EXPERIMENT)
		e->experiment->telling = 1;
}

/* Code that has no name may be data that was jumped into. */
static void stopped_in_nameless_code(struct evidence_list *l)
{
	faults(l, FAULT_ILLEGAL);
	EACH_PIECE(l, e)
	if (e->kind == EVIDENCE_CRASH) {
		mem_free(e->crash->stack.frames[0].function);
		e->crash->stack.frames[0].function = NULL;
	}
}

/* It has never failed as it is run; with guards it did, in every trial. */
static void only_with_guards(struct evidence_list *l, enum fault_class fault)
{
	struct failure_seen *f;

	faults(l, fault);
	EACH_PIECE(l, e)
	if (e->kind == EVIDENCE_CRASH) {
		e->failing = false;
		SAY(&e->note, "noted:observed");
	}
	f = l->list.items[l->list.count - 1].failure;
	f->failed = f->ran_failed = 0;
	f->signature[0] = '\0';
	l->list.items[l->list.count - 1].failing = false;
	f->ran_failed = 8; /* of the 20 trials of all kinds */
}

static void null_with_guards_only(struct evidence_list *l)
{
	only_with_guards(l, FAULT_NULL);
}

static void division_with_guards_only(struct evidence_list *l)
{
	only_with_guards(l, FAULT_ARITHMETIC);
}

static void full_stack_with_guards_only(struct evidence_list *l)
{
	only_with_guards(l, FAULT_STACK_OVERFLOW);
}

/* Whoever called abort() knows why. */
static void abort_with_guards_only(struct evidence_list *l)
{
	only_with_guards(l, FAULT_ABORT);
}

static void two_faults_with_guards_only(struct evidence_list *l)
{
	only_with_guards(l, FAULT_NULL);
	l->list.items[1].crash->fault = FAULT_ARITHMETIC;
}

/* What is hunted is another failure: that one is not explained by it. */
static void null_with_guards_beside_another(struct evidence_list *l)
{
	only_with_guards(l, FAULT_NULL);
	EACH_PIECE(l, e)
	if (e->kind == EVIDENCE_FAILURE)
		e->failure->failed = 3;
}

/* … which comes of memory that was read after its free. */
static void null_with_guards_and_a_freed_block(struct evidence_list *l)
{
	only_with_guards(l, FAULT_NULL);
	add(l, made_freed_use(1, false));
}

const struct story stories_fault[] = {
	ROW(null_returned, NULL_POINTER, FIRM, NULL),
	ROW(null_in_a_cleared_field, NULL_POINTER, FIRM, NULL),
	ROW(number_for_a_pointer, NOT_CAUGHT, DOUBTED, NULL),
	ROW(null_now_and_then, NOT_CAUGHT, DOUBTED, NULL),
	ROW(null_in_few_runs, NOT_CAUGHT, DOUBTED, NULL),
	ROW(null_without_fences, NULL_POINTER, DOUBTED, NULL),
	ROW(null_with_few_guards, NULL_POINTER, DOUBTED, NULL),
	ROW(null_and_a_wild_pointer, NOT_CAUGHT, DOUBTED, NULL),
	ROW(null_and_a_freed_block, USE_AFTER_FREE, DOUBTED, NULL),
	ROW(null_and_turns, NULL_POINTER, DOUBTED, NULL),
	ROW(null_and_turns_in_a_success, NULL_POINTER, FIRM, NULL),

	ROW(null_with_guards_only, NULL_POINTER, DOUBTED, NULL),
	ROW(division_with_guards_only, DIVISION_BY_ZERO, DOUBTED, NULL),
	ROW(full_stack_with_guards_only, STACK_EXHAUSTED, DOUBTED, NULL),
	ROW(abort_with_guards_only, NOT_CAUGHT, DOUBTED, NULL),
	ROW(two_faults_with_guards_only, NOT_CAUGHT, DOUBTED, NULL),
	ROW(null_with_guards_beside_another, NOT_CAUGHT, DOUBTED, NULL),
	ROW(null_with_guards_and_a_freed_block, USE_AFTER_FREE, DOUBTED, NULL),

	ROW(divided_by_zero, DIVISION_BY_ZERO, FIRM, NULL),
	ROW(divided_by_who_knows, DIVISION_BY_ZERO, DOUBTED, NULL),
	ROW(divided_by_minus_one, NOT_CAUGHT, DOUBTED, NULL),
	ROW(divisor_stored_in_passing, NARROW_WRITE, FIRM, "load"),
	ROW(divisor_stored_by_name, DIVISION_BY_ZERO, FIRM, NULL),

	ROW(null_called, NULL_POINTER, FIRM, NULL),
	ROW(called_elsewhere, NOT_CAUGHT, DOUBTED, NULL),
	ROW(full_stack, STACK_EXHAUSTED, FIRM, NULL),
	ROW(stopped_by_ud2, ILLEGAL_INSTRUCTION, FIRM, NULL),
	ROW(stopped_by_int3, ILLEGAL_INSTRUCTION, FIRM, NULL),
	ROW(stopped_and_unguarded, ILLEGAL_INSTRUCTION, DOUBTED, NULL),
	ROW(stopped_in_nameless_code, NOT_CAUGHT, DOUBTED, NULL),
};
const size_t stories_fault_count = ARRAY_SIZE(stories_fault);
