/*
 * Who gave back a reference too many.
 *
 * A block was freed, and later somebody took one off a number in it: a count of references that
 * went on after the last. Whoever came last is seldom to blame. So the count of that block is
 * watched from its birth to beyond its end, with guards on: each store that adds or takes one is
 * booked to the function that asked for it, and an account below zero is the one that is off.
 */
#include "hunt/inquiry.h"

#include <string.h>

#define TRIALS 8u
#define ACCOUNTS_WANTED 2u
#define CROSSED_MOST 8u /* more is no count: a mark that a destructor leaves */

static uint64_t cut_to(uint64_t value, unsigned int len)
{
	return len >= 8 ? value : value & ((UINT64_C(1) << len * 8) - 1);
}

/* A late store took one off: by the bytes that are known, the lowest of the word. */
static bool takes_one(const struct write_seen *w)
{
	return w->value_len > 0 && w->victim && w->home.offset >= 0 &&
	       w->store_start == w->victim->start + (uint64_t)w->home.offset &&
	       (w->width == 4 || w->width == 8) && cut_to(w->old - w->new, w->value_len) == 1;
}

static const struct write_seen *late_release(const struct evidence_list *list)
{
	VEC_FOREACH (&list->list, e)
		if (e->kind == EVIDENCE_WRITE && e->failing && e->write->flags & WRITE_LAST &&
		    e->write->victim && e->write->victim->state == BLOCK_FREED &&
		    e->write->home.kind == HOME_BLOCK && e->write->home.key && takes_one(e->write))
			return e->write;
	return NULL;
}

/* A store to the count: who made it, and who called that. */
struct booking {
	struct stack stack;
	size_t inner, outer; /* frames that tell; stack.count: none */
	bool taken;
};

struct ledger {
	VEC(struct booking) list;
};

static const char *function_at(const struct booking *b, size_t frame)
{
	return frame < b->stack.count ? b->stack.frames[frame].function : NULL;
}

static size_t telling_from(const struct stack *stack, size_t from)
{
	while (from < stack->count &&
	       !(stack->frames[from].function && frame_is_telling(&stack->frames[from])))
		from++;
	return from;
}

static bool is_site(const struct stack *stack, const char *function)
{
	const struct frame *site = stack_site(stack);

	return site && site->function && strcmp(site->function, function) == 0;
}

/* How often it calls others that count, and how many call it. */
static void relations(const struct ledger *ledger, const char *function, unsigned int *ret_calls,
		      unsigned int *ret_callers)
{
	const char *first = NULL;

	*ret_calls = *ret_callers = 0;
	VEC_FOREACH (&ledger->list, b) {
		const char *inner = function_at(b, b->inner), *outer = function_at(b, b->outer);

		if (!inner || !outer || strcmp(inner, outer) == 0)
			continue;
		*ret_calls += strcmp(outer, function) == 0;
		if (strcmp(inner, function) != 0 || (first && strcmp(first, outer) == 0))
			continue;
		first = outer;
		(*ret_callers)++;
	}
}

/* Does it only count, for whoever calls it? So do the function that made the block, the one that
 * freed it, and those with several callers. Of one with a single caller it is not known: `alone`.
 */
static bool only_counts(const struct ledger *ledger, const struct write_seen *late,
			const char *function, bool alone)
{
	unsigned int calls, callers;

	relations(ledger, function, &calls, &callers);
	if (calls > 0)
		return false;
	return callers > 1 || is_site(&late->victim->allocated, function) ||
	       (alone && callers == 1);
}

static void book(struct reference_account *account, const struct booking *b, size_t from)
{
	struct reference_party *party = NULL;

	VEC_FOREACH (&account->parties, p)
		if (strcmp(p->at.frames[0].function, function_at(b, from)) == 0)
			party = p;
	if (!party) {
		VEC_PUSH(&account->parties, (struct reference_party){ 0 });
		party = &account->parties.items[account->parties.count - 1];
		for (size_t i = from; i < b->stack.count; i++)
			(void)stack_push(&party->at, &b->stack.frames[i]);
	}
	party->taken += b->taken;
	party->given += !b->taken;
}

/* The one account below zero, where none is above it: what one function takes another may give back
 * for it. NULL: it cannot be told. */
static const char *off_balance(const struct reference_account *account)
{
	const char *found = NULL;

	VEC_FOREACH (&account->parties, party) {
		if (party->taken > party->given || (found && party->given > party->taken))
			return NULL;
		if (party->given > party->taken)
			found = party->at.frames[0].function;
	}
	return found;
}

static void settle(const struct ledger *ledger, const struct write_seen *late, bool alone,
		   struct reference_account *ret)
{
	VEC_FOREACH (&ledger->list, b) {
		const char *inner = function_at(b, b->inner);

		if (inner)
			book(ret, b,
			     function_at(b, b->outer) && only_counts(ledger, late, inner, alone)
				     ? b->outer
				     : b->inner);
	}
}

static void parties_free(struct reference_account *account)
{
	VEC_FREE(&account->parties, party, stack_deinit(&party->at));
}

/* Functions with one caller are read both ways; where both name somebody, and not the same, nobody
 * is named. */
static bool settle_both(const struct ledger *ledger, const struct write_seen *late,
			struct reference_account *ret)
{
	struct reference_account other = { 0 };
	const char *one, *two;
	bool told;

	settle(ledger, late, true, ret);
	settle(ledger, late, false, &other);
	one = off_balance(ret);
	two = off_balance(&other);
	told = (one || two) && (!one || !two || strcmp(one, two) == 0);
	if (told && !one) {
		parties_free(ret);
		*ret = other;
		return true;
	}
	parties_free(&other);
	return told;
}

/* The first store gives the block's maker the one that it is made with. */
static int64_t change_of(const struct log_hit *hit, unsigned int len, bool first)
{
	uint64_t old = cut_to(watched_word(hit->old, len), len);
	uint64_t new = cut_to(watched_word(hit->new, len), len);

	if (first)
		return new == 1 ? 1 : 0;
	return new == old + 1 ? 1 : new + 1 == old ? -1 : 0;
}

static void enter(struct ledger *ledger, const struct stack *stack, bool taken)
{
	struct booking b = { .taken = taken };

	stack_copy(&b.stack, stack);
	b.inner = telling_from(&b.stack, 0);
	b.outer = telling_from(&b.stack, b.inner + 1);
	VEC_PUSH(&ledger->list, b);
}

/* What is known of the count up to here. */
struct following {
	bool begun, freed;
	bool crossed;	/* an update was lost: no account adds up, and nobody gave too much */
	uint64_t value; /* that the last store left */
};

/* Two threads that count at the same time: one stores what it made of a number that the other has
 * changed since. So the word stays as it is, or moves by more than one. */
static bool is_crossed(const struct log_hit *hit, unsigned int len)
{
	uint64_t old = cut_to(watched_word(hit->old, len), len);
	uint64_t new = cut_to(watched_word(hit->new, len), len);
	uint64_t by = new > old ? new - old : old - new;

	return by != 1 && by <= CROSSED_MOST;
}

/* Compilers leave the store of 0 out where the block is freed next: then the free is what is left
 * of the last reference. */
static void note_free(const struct write_seen *w, struct following *so_far, struct ledger *ret)
{
	if (so_far->freed || !w->victim || w->victim->state != BLOCK_FREED)
		return;
	so_far->freed = true;
	if (so_far->begun && so_far->value == 1 && w->victim->freed.count > 0)
		enter(ret, &w->victim->freed, false);
}

static void note(struct bench *bench, const struct hit *caught, unsigned int width,
		 struct following *so_far, struct ledger *ret)
{
	struct evidence e = evidence_new(EVIDENCE_WRITE, 0, false);
	int64_t change;

	hit_describe(caught, bench->symbols, e.write);
	note_free(e.write, so_far, ret);
	change = stack_in_allocator(&e.write->writer)
			 ? 0
			 : change_of(caught->hit, width, !so_far->begun);
	if (change != 0)
		enter(ret, &e.write->writer, change > 0);
	else if (so_far->begun && !so_far->freed && !stack_in_allocator(&e.write->writer))
		so_far->crossed |= is_crossed(caught->hit, width);
	so_far->begun |= change != 0;
	so_far->value = cut_to(watched_word(caught->hit->new, width), width);
	evidence_deinit(&e);
}

static bool keep_account(struct bench *bench, const struct write_seen *late,
			 struct reference_account *ret)
{
	const struct trial_hits *log = reading_hits(bench->round.reading);
	struct ledger ledger = { 0 };
	uint64_t id = 0;
	struct following so_far = { 0 };
	bool told;

	VEC_FOREACH (&log->hits, caught) {
		if (caught->hit->flags & (LOG_HIT_ALONGSIDE | LOG_HIT_IMPRECISE) ||
		    (id != 0 && caught->hit->id != id))
			continue;
		id = caught->hit->id;
		note(bench, caught, late->width, &so_far, &ledger);
	}
	told = so_far.begun && !so_far.crossed && settle_both(&ledger, late, ret);
	VEC_FREE(&ledger.list, b, stack_deinit(&b->stack));
	return told;
}

static void read_any(struct bench *bench, bool passed)
{
	const struct write_seen *late = late_release(&bench->ret->evidence);
	struct evidence e = evidence_new(EVIDENCE_ACCOUNT, bench->round.number, true);

	(void)passed;
	if (late && keep_account(bench, late, e.account)) {
		home_copy(&e.account->home, &late->home);
		e.account->home.len = late->width;
		e.account->block = block_life_dup(late->victim);
		VEC_PUSH(&bench->ret->evidence.list, e);
		bench->accounts++;
		return;
	}
	evidence_deinit(&e);
}

static bool enough(struct bench *bench)
{
	return bench->accounts >= ACCOUNTS_WANTED || bench->round.trials >= TRIALS;
}

static const struct round_ops account_round = {
	.id = 9, .observer = OBSERVE_HEAP, .planned = true, .read_any = read_any, .enough = enough
};

static bool applies(struct inquiry *inq, struct said *why)
{
	(void)why;
	return late_release(&inq->bench->ret->evidence) != NULL;
}

static void price(const struct inquiry *inq, struct price *ret)
{
	price_of_trials(inq, ACCOUNTS_WANTED, 2, ret);
}

static int run(struct inquiry *inq)
{
	struct bench *bench = inq->bench;
	const struct write_seen *late = late_release(&bench->ret->evidence);
	struct watchset homes = bench->watchset;
	int r = 0;

	bench->watchset = (struct watchset){ 0 };
	if (watchset_add_block(&bench->watchset, late->home.key, late->home.offset, late->width)) {
		bench->watchset.list.items[0].after_free = true;
		bench->watchset.list.items[0].size = late->victim->size;
		BENCH_SAY(bench, "chase:references");
		r = bench_plan(bench, inq->err);
		if (r == 0)
			r = round_run(bench, &account_round, inq->err);
	}
	watchset_deinit(&bench->watchset);
	bench->watchset = homes;
	return r;
}

EXPERIMENT(over_release, .name = "over-release", .question = QUESTION_WHO, .kind = EXPERIMENT_WATCH,
	   .chance = 0.7, .refines = true, .applies = applies, .price = price, .run = run);
