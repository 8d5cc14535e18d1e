/*
 * Who let go of an object that was used later.
 *
 * An object of CPython ends when its count of references falls to 0. The free is right where it
 * stands; what is wrong is that this reference was not the last. So the count of the very object is
 * watched, by its key, with the guards on: the store that leaves 0 has the C function and the
 * Python frames that it was given back in, and the stores before it are its account.
 */
#include "hunt/inquiry.h"

#include <inttypes.h>
#include <string.h>

/* ob_refcnt: first in the object, which begins behind the collector's two words if it has them,
 * and behind two more if it has a dictionary of its own (3.12). Which one it is, the stores
 * tell. */
static const int64_t count_offsets[] = { 0, 16, 32 };

#define OBJECT_MIN 16 /* a count and a type */
#define SITES_TOLD 3u
#define RELEASE_TRIALS 8u
#define RELEASES_WANTED 2u

void release_deinit(struct release *release)
{
	mem_free(release->key);
	mem_free(release->account);
	stack_deinit(&release->last);
	*release = (struct release){ 0 };
}

static bool is_used_object(const struct heap_finding *f)
{
	return f->python && f->key && !f->live && !f->continued && f->freed.count > 0 &&
	       (f->kind == HEAP_USE_AFTER_FREE || f->kind == HEAP_WRITE_AFTER_FREE);
}

void refcount_note(struct bench *bench, const struct heap_report *report)
{
	const struct heap_finding *found = NULL;

	VEC_FOREACH (&report->findings, f)
		if (is_used_object(f) && (!found || (found->kind != HEAP_USE_AFTER_FREE &&
						     f->kind == HEAP_USE_AFTER_FREE)))
			found = f;
	if (!found || bench->release.key)
		return;
	bench->release.key = mem_strdup(found->key);
	bench->release.size = found->size;
}

static bool stake_out(struct bench *bench)
{
	for (size_t i = 0; i < ARRAY_SIZE(count_offsets); i++)
		if (bench->release.size >= (uint64_t)count_offsets[i] + OBJECT_MIN)
			(void)stakeout_add_count(&bench->stakeout, bench->release.key,
						 count_offsets[i]);
	return bench->stakeout.list.count > 0;
}

/* ---- the account ------------------------------------------------------------------------------
 */

static uint32_t count_of(const uint8_t *bytes)
{
	uint32_t count;

	memcpy(&count, bytes, sizeof(count));
	return count;
}

/* The block that the crash used although it was freed; 0: none. */
static uint64_t used_block(struct bench *bench)
{
	const struct crash *crash = bench_crash(bench);

	if (!crash)
		return 0;
	VEC_FOREACH (&crash->blocks, block)
		if (block->telling && block->state == BLOCK_FREED && !block->former)
			return block->id;
	return 0;
}

/* The store that left 0, by the last reference of this block; of the words that were watched, the
 * one that counts. */
static const struct hit *last_reference(const struct trial_hits *log, uint64_t id)
{
	const struct hit *found = NULL;

	VEC_FOREACH (&log->hits, caught) {
		const struct log_hit *hit = caught->hit;

		if (hit->id == id && !(hit->flags & (LOG_HIT_ALONGSIDE | LOG_HIT_IMPRECISE)) &&
		    count_of(hit->old) == 1 && count_of(hit->new) == 0)
			found = caught;
	}
	return found;
}

static void say_place(struct strbuf *sb, const struct hit *caught, struct symbols *symbols)
{
	struct evidence e = evidence_new(EVIDENCE_WRITE, 0, false);
	const struct frame *site;

	hit_describe(caught, symbols, e.write);
	site = stack_site(&e.write->writer);
	if (site)
		frame_describe(site, sb);
	else
		strbuf_adds(sb, "somebody");
	evidence_deinit(&e);
}

/* Who took and gave back references, as often as each; of those that the ring still has. */
struct account {
	struct {
		uint64_t rip;
		unsigned int times;
		const struct hit *caught;
	} sites[SITES_TOLD];
	unsigned int count, more, raised, dropped;
};

static void account_add(struct account *account, const struct hit *caught)
{
	uint32_t old = count_of(caught->hit->old), new = count_of(caught->hit->new);
	uint64_t rip = caught->hit->gregs[LOG_GREG_RIP];

	if (new == old + 1)
		account->raised++;
	else if (new + 1 == old)
		account->dropped++;
	if (new != old + 1)
		return;
	for (unsigned int i = 0; i < account->count; i++)
		if (account->sites[i].rip == rip) {
			account->sites[i].times++;
			return;
		}
	if (account->count == SITES_TOLD) {
		account->more++;
		return;
	}
	account->sites[account->count].rip = rip;
	account->sites[account->count].times = 1;
	account->sites[account->count++].caught = caught;
}

static char *account_of(const struct trial_hits *log, const struct hit *last,
			struct symbols *symbols)
{
	struct account account = { 0 };
	struct strbuf sb = { 0 };

	VEC_FOREACH (&log->hits, caught)
		if (caught->log == last->log && caught->hit->id == last->hit->id &&
		    caught->hit->address == last->hit->address &&
		    caught->hit->number <= last->hit->number &&
		    !(caught->hit->flags & LOG_HIT_ALONGSIDE))
			account_add(&account, caught);
	strbuf_adds(&sb, "that was its last reference: ");
	if (account.raised == 0) {
		strbuf_adds(&sb, "nobody had taken one beside that which it was made with");
		return strbuf_take(&sb);
	}
	strbuf_addf(&sb, "%u had been taken and %u given back; taken by ", account.raised,
		    account.dropped);
	for (unsigned int i = 0; i < account.count; i++) {
		strbuf_adds(&sb, i > 0 ? ", " : "");
		say_place(&sb, account.sites[i].caught, symbols);
		if (account.sites[i].times > 1)
			strbuf_addf(&sb, " (%u times)", account.sites[i].times);
	}
	if (account.more > 0)
		strbuf_addf(&sb, " and %u more", account.more);
	return strbuf_take(&sb);
}

static void read_any(struct bench *bench, bool passed)
{
	struct release *release = &bench->release;
	uint64_t id = used_block(bench);
	const struct hit *last =
		id != 0 ? last_reference(reading_hits(bench->round.reading), id) : NULL;

	if (last) {
		struct evidence e = evidence_new(EVIDENCE_WRITE, bench->round.number, true);

		release->caught++;
		hit_describe(last, bench->symbols, e.write);
		if (release->last.count == 0) {
			stack_copy(&release->last, &e.write->writer);
			release->account = account_of(reading_hits(bench->round.reading), last,
						      bench->symbols);
		}
		evidence_deinit(&e);
	}
}

static bool enough(struct bench *bench)
{
	return bench->release.caught >= RELEASES_WANTED || bench->round.trials >= RELEASE_TRIALS;
}

static uint64_t missing(const struct bench *bench, struct rate *seen)
{
	uint64_t caught = bench->release.caught;

	*seen = (struct rate){ .trials = bench->round.trials, .failed = caught };
	return caught < RELEASES_WANTED ? RELEASES_WANTED - caught : 0;
}

static const struct round_ops refcount_round = { .id = 5,
						 .observer = OBSERVE_HEAP,
						 .planned = true,
						 .read_any = read_any,
						 .enough = enough,
						 .missing = missing };

/* ---- as evidence ------------------------------------------------------------------------------
 */

static bool has_function(const struct stack *stack, const char *function)
{
	for (size_t i = 0; i < stack->count; i++)
		if (stack->frames[i].function && stack->frames[i].kind != FRAME_PYTHON &&
		    strcmp(stack->frames[i].function, function) == 0)
			return true;
	return false;
}

/* Is the place where the last reference went on the way to the free that is known? By the first
 * frames that have a name and are not inlined: an interpreter may have few names. */
static bool leads_to(const struct stack *last, const struct stack *freed)
{
	for (size_t i = 0; i < last->count; i++)
		if (last->frames[i].function && last->frames[i].kind == FRAME_NATIVE)
			return has_function(freed, last->frames[i].function);
	return freed->count == 0;
}

static void tell(struct bench *bench, struct evidence_list *list)
{
	struct release *release = &bench->release;

	if (release->last.count == 0)
		return;
	VEC_FOREACH (&list->list, e) {
		struct block_life *block = e->kind == EVIDENCE_HOLDER	   ? e->holder->target
					   : e->kind == EVIDENCE_FREED_USE ? e->freed_use->block
									   : NULL;

		if (!block || !key_same_stack(release->key, block->key) ||
		    !leads_to(&release->last, &block->freed))
			continue;
		stack_deinit(&block->freed);
		block->freed = (struct stack){ 0 };
		stack_copy(&block->freed, &release->last);
		if (!e->note)
			e->note = mem_strdup(release->account);
	}
}

/* ---- the experiment ---- */

/* Guards have shown an object that was used after its end. */
static bool applies(struct inquiry *inq, struct strbuf *why)
{
	return inq->bench->told && inq->bench->release.key;
}

static void price(const struct inquiry *inq, struct price *ret)
{
	price_of_failures(inq, RELEASES_WANTED, 2, ret);
}

static int run(struct inquiry *inq)
{
	struct bench *bench = inq->bench;
	struct stakeout homes = bench->stakeout;
	int r = 0;

	bench->stakeout = (struct stakeout){ 0 };
	if (stake_out(bench)) {
		bench_say(bench, "an object was used after its end: watching its count of "
				 "references");
		r = bench_plan(bench, inq->err);
		if (r == 0)
			r = round_run(bench, &refcount_round, inq->err);
		tell(bench, &bench->ret->evidence);
	}
	stakeout_deinit(&bench->stakeout);
	bench->stakeout = homes;
	return r;
}

const struct experiment_ops experiment_refcount = { .name = "refcount",
						    .question = QUESTION_WHO,
						    .kind = EXPERIMENT_WATCH,
						    .chance = 0.7,
						    .refines = true,
						    .applies = applies,
						    .price = price,
						    .run = run };
