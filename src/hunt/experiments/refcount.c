/*
 * Who let go of an object that was used later, who kept a pointer to it, and who used that first.
 *
 * An object of CPython ends when its count of references falls to 0. The free is right where it
 * stands; what is wrong is that this reference was not the last. So the count of the very object is
 * watched, by its key, with the guards on: the store that leaves 0 has the C function and the
 * Python frames that it was given back in, and the stores before it are its account. Whoever wants
 * to use the object takes a reference first: so the first access to the count afterwards is the
 * first use, mostly far away from where it fails.
 *
 * Where one place, a global or a word of a block, still pointed to the object when the process
 * died, that is watched as well, with reads: who stored the pointer, and whether the first user had
 * it from there. Which element of a table it is may go by the hash of a string, so those are the
 * same in all trials of the round.
 */
#include "hunt/inquiry.h"

#include <string.h>

#include "base/cstr.h"
#include "read/sweeps.h"

/* ob_refcnt: first in the object, which begins behind the collector's two words if it has them,
 * and behind two more if it has a dictionary of its own (3.12). Which one it is, the stores
 * tell. */
static const int64_t count_offsets[] = { 0, 16, 32 };

#define OBJECT_MIN 16 /* a count and a type */
#define SITES_TOLD 3u
#define RELEASE_TRIALS 12u
#define RELEASES_WANTED 2u
#define COUNT_LIKELY \
	(1u << 24) /* what is more is no count, but what freed blocks are filled with */

void release_deinit(struct release *release)
{
	mem_free(release->key);
	said_deinit(&release->account);
	stack_deinit(&release->born);
	stack_deinit(&release->last);
	stack_deinit(&release->stored);
	if (release->touch.freed_use)
		evidence_deinit(&release->touch);
	watchset_deinit(&release->held);
	*release = (struct release){ 0 };
}

static bool is_used_object(const struct heap_finding *f)
{
	/* Without its ordinal the key would be that of all objects made there. */
	return f->python && f->key && strchr(f->key, '#') && !f->live && !f->continued &&
	       f->freed.count > 0 &&
	       (f->kind == HEAP_USE_AFTER_FREE || f->kind == HEAP_WRITE_AFTER_FREE ||
		f->kind == HEAP_DOUBLE_FREE);
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

static bool watch_round(struct bench *bench)
{
	struct watchset *watchset = &bench->watchset;

	for (size_t i = 0; i < ARRAY_SIZE(count_offsets); i++)
		if (bench->release.size >= (uint64_t)count_offsets[i] + OBJECT_MIN &&
		    watchset_add_count(watchset, bench->release.key, count_offsets[i]))
			watchset->list.items[watchset->list.count - 1].after_free = true;
	return watchset->list.count > 0;
}

/* The holders come last. Of the words that may be the count, the one that is: others have traffic
 * of their own. */
static void set_watch_on_holders(struct bench *bench)
{
	struct watchset *held = &bench->release.held, *counts = &bench->watchset;
	size_t kept = 0;

	for (size_t i = 0; i < counts->list.count; i++)
		if (counts->list.items[i].offset == bench->release.offset)
			counts->list.items[kept++] = counts->list.items[i];
		else
			home_deinit(&counts->list.items[i].home);
	counts->list.count = kept;
	bench->release.first_holder = bench->release.holder = kept;
	VEC_FOREACH (&held->list, spec) {
		spec->reads = true;
		VEC_PUSH(&counts->list, *spec);
	}
	held->list.count = 0;
}

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

static const struct hit *first_touch(const struct trial_hits *log, const struct hit *last);

/* The store that left 0, by the last reference of this block; of the words that were watched, the
 * one that counts. Where the crash does not know the block (0), of one that was counted on. */
static const struct hit *last_reference(const struct trial_hits *log, uint64_t id)
{
	const struct hit *found = NULL;

	VEC_FOREACH (&log->hits, caught) {
		const struct log_hit *hit = caught->hit;

		if ((hit->id == id || id == 0) &&
		    !(hit->flags & (LOG_HIT_ALONGSIDE | LOG_HIT_IMPRECISE)) &&
		    count_of(hit->old) == 1 && count_of(hit->new) == 0 &&
		    (id != 0 || first_touch(log, caught)))
			found = caught;
	}
	return found;
}

static struct stack writer_of(const struct hit *caught, struct symbols *symbols)
{
	struct evidence e = evidence_new(EVIDENCE_WRITE, 0, false);
	struct stack writer;

	hit_describe(caught, symbols, e.write);
	writer = e.write->writer;
	e.write->writer = (struct stack){ 0 };
	evidence_deinit(&e);
	return writer;
}

static struct said_value place_of(const struct hit *caught, struct symbols *symbols)
{
	AUTO(stack_deinit) struct stack writer = writer_of(caught, symbols);

	return said_frame(stack_site(&writer));
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

static bool has_function(const struct stack *stack, const char *function)
{
	for (size_t i = 0; i < stack->count; i++)
		if (stack->frames[i].function && stack->frames[i].kind != FRAME_PYTHON &&
		    strcmp(stack->frames[i].function, function) == 0)
			return true;
	return false;
}

/* What each function of an extension did to the count in all. The interpreter's own go through
 * values that they have from elsewhere. */
struct balance {
	char *function, *place;
	int taken, given;
	bool clouded;		/* Python code that it called counted, too */
	const struct hit *gave; /* the latest */
};

struct balances {
	VEC(struct balance) list;
	int net, taken;		    /* of all of them */
	const struct hit *overdrew; /* with which more had been given back than taken */
	bool by_member; /* the interpreter took one for a field of an extension's object */
};

static void balances_deinit(struct balances *balances)
{
	VEC_FREE(&balances->list, b, MEM_FREE(b->function, b->place));
}

static bool is_extension(const struct frame *frame)
{
	return frame->function && frame->kind <= FRAME_INLINE && frame_is_telling(frame) &&
	       !frame_is_interpreter(frame);
}

/* NULL where nobody knows, or where it is to be an extension and is not. */
static char *function_at(const struct hit *caught, struct symbols *symbols, bool extension)
{
	AUTO(stack_deinit) struct stack writer = writer_of(caught, symbols);
	const struct frame *site = stack_site(&writer);

	return site && site->function && (!extension || is_extension(site))
		       ? mem_strdup(site->function)
		       : NULL;
}

static char *function_of(const struct hit *caught, struct symbols *symbols)
{
	return function_at(caught, symbols, false);
}

/* The extension's function whose doing it is; NULL: the interpreter's, or Python's. */
static char *by_extension(const struct hit *caught, struct symbols *symbols)
{
	return function_at(caught, symbols, true);
}

static struct balance *balance_of(struct balances *balances, const char *function)
{
	VEC_FOREACH (&balances->list, b)
		if (strcmp(b->function, function) == 0)
			return b;
	VEC_PUSH(&balances->list, ((struct balance){ .function = mem_strdup(function) }));
	return &balances->list.items[balances->list.count - 1];
}

/* By Python code: whichever extension called that may have been given the reference by it. */
static void balance_cloud(struct balances *balances, const struct stack *stack)
{
	for (size_t i = 0; i < stack->count; i++)
		if (is_extension(&stack->frames[i]))
			balance_of(balances, stack->frames[i].function)->clouded = true;
}

static void balance_add(struct balances *balances, const struct hit *caught,
			struct symbols *symbols)
{
	AUTO(stack_deinit) struct stack writer = writer_of(caught, symbols);
	uint32_t old = count_of(caught->hit->old), new = count_of(caught->hit->new);
	int change = new == old + 1 ? 1 : new + 1 == old ? -1 : 0;
	struct balance *found = NULL;
	struct strbuf place = { 0 };
	const struct frame *site = stack_site(&writer);

	if (change != 0 && site && is_extension(site)) {
		found = balance_of(balances, site->function);
		balances->net += change;
		balances->taken += change > 0;
		if (balances->net < 0 && !balances->overdrew)
			balances->overdrew = caught;
		found->taken += change > 0;
		found->given += change < 0;
		if (change < 0) {
			found->gave = caught;
			frame_describe(site, &place);
			mem_free(found->place);
			found->place = strbuf_take(&place);
		}
	} else if (change != 0) {
		balance_cloud(balances, &writer);
		balances->by_member |= change > 0 && has_function(&writer, "PyMember_SetOne");
	}
}

static bool is_of_count(const struct hit *caught, const struct hit *last)
{
	return caught->log == last->log && caught->hit->id == last->hit->id &&
	       caught->hit->address == last->hit->address;
}

static bool on_stack(const struct hit *caught, const char *function, struct symbols *symbols)
{
	AUTO(stack_deinit) struct stack writer = writer_of(caught, symbols);

	return has_function(&writer, function);
}

/* The store that made its count, if that was seen. The interpreter keeps lists, dictionaries and
 * others to give them out again without its allocator: of the lives of a place the one that ended
 * with `last` counts. While its finalizer runs an object has a count again. */
static const struct hit *birth(const struct trial_hits *log, const struct hit *last,
			       struct symbols *symbols)
{
	static const char finalizer[] = "PyObject_CallFinalizerFromDealloc";
	const struct hit *found = NULL;

	VEC_FOREACH (&log->hits, caught)
		if (is_of_count(caught, last) && caught->hit->number < last->hit->number &&
		    !hit_freed(caught->hit) && count_of(caught->hit->old) - 1 > 1 &&
		    count_of(caught->hit->new) == 1 &&
		    !(found && on_stack(caught, finalizer, symbols)))
			found = caught;
	return found;
}

/* The place was given to another object when the one before had ended: who held that gives back
 * what the other one has. */
static bool had_other_lives(const struct trial_hits *log, const struct hit *last,
			    struct symbols *symbols)
{
	const struct hit *born = birth(log, last, symbols);

	return born &&
	       VEC_ANY(&log->hits, caught,
		       is_of_count(caught, born) && caught->hit->number < born->hit->number &&
			       count_of(caught->hit->old) == 1 && count_of(caught->hit->new) == 0);
}

/* A change of the count between the object's birth, `born` if that was seen, and its end. */
static bool is_booked(const struct hit *caught, const struct hit *born, const struct hit *last)
{
	return is_of_count(caught, last) && caught->hit->number <= last->hit->number &&
	       (!born || caught->hit->number > born->hit->number) &&
	       !(caught->hit->flags & LOG_HIT_ALONGSIDE);
}

static void balances_read(const struct trial_hits *log, const struct hit *last,
			  struct symbols *symbols, struct balances *ret)
{
	const struct hit *born = birth(log, last, symbols);

	VEC_FOREACH (&log->hits, caught)
		if (is_booked(caught, born, last))
			balance_add(ret, caught, symbols);
}

/* Did one of them give back more than it had taken? What owns a reference of somebody else's may.
 */
static struct said_value balance_value(const struct trial_hits *log, const struct hit *last,
				       struct symbols *symbols)
{
	struct balances balances = { 0 };
	struct said list = { 0 };

	balances_read(log, last, symbols, &balances);
	VEC_FOREACH (&balances.list, b) {
		struct said one = { 0 };

		if (b->given <= b->taken || !b->place)
			continue;
		if (!said_anything(&list))
			SAY(&list, "clauses");
		SAY(&one, "account:balance", said_text(b->place),
		    said_number((uint64_t)(b->given - b->taken)));
		said_add(&list, said_part(&one));
	}
	balances_deinit(&balances);
	return said_part(&list);
}

static void account_of(const struct trial_hits *log, const struct hit *last,
		       struct symbols *symbols, struct said *ret)
{
	const struct hit *born = birth(log, last, symbols);
	struct account account = { 0 };
	struct said takers = { 0 };

	VEC_FOREACH (&log->hits, caught)
		if (is_booked(caught, born, last))
			account_add(&account, caught);
	for (unsigned int i = 0; i < account.count; i++) {
		struct said taker = { 0 };

		if (i == 0)
			SAY(&takers, "list");
		SAY(&taker, "account:taker", place_of(account.sites[i].caught, symbols),
		    said_count(account.sites[i].times > 1 ? account.sites[i].times : 0));
		said_add(&takers, said_part(&taker));
	}
	SAY(ret, "account", balance_value(log, last, symbols), said_number(account.raised),
	    said_number(account.dropped), said_part(&takers), said_count(account.more));
}

static bool is_after(const struct hit *caught, const struct hit *last)
{
	return caught->log == last->log && caught->hit->number > last->hit->number &&
	       !(caught->hit->flags & (LOG_HIT_ALONGSIDE | LOG_HIT_IMPRECISE));
}

/* The first access to the count when the object was gone. What its own destructor does there comes
 * before its free. */
static const struct hit *first_touch(const struct trial_hits *log, const struct hit *last)
{
	return VEC_FIND(&log->hits, caught,
			is_after(caught, last) && is_of_count(caught, last) &&
				(hit_freed(caught->hit) ||
				 count_of(caught->hit->old) > COUNT_LIKELY));
}

static uint64_t word_of(const uint8_t *bytes)
{
	uint64_t word;

	memcpy(&word, bytes, sizeof(word));
	return word;
}

static bool points_into(uint64_t value, const struct hit *object)
{
	return value - object->hit->start < object->hit->size;
}

/* Who put the pointer where it stood later: the latest before the object's end. */
static const struct hit *pointer_stored(const struct trial_hits *log, const struct hit *last,
					uint32_t watch)
{
	const struct hit *found = NULL;

	VEC_FOREACH (&log->hits, caught)
		if (caught->log == last->log && caught->hit->watch == watch &&
		    caught->hit->number < last->hit->number &&
		    points_into(word_of(caught->hit->new), last) &&
		    word_of(caught->hit->old) != word_of(caught->hit->new) &&
		    !(caught->hit->flags & (LOG_HIT_ALONGSIDE | LOG_HIT_IMPRECISE)))
			found = caught;
	return found;
}

/* Did the function that touched the object, or that called for it, read the pointer there just
 * before? Where nobody came as far as the count, the crash is the touch. */
static bool read_by(struct bench *bench, const struct trial_hits *log, const struct hit *touch,
		    uint32_t watch)
{
	const struct crash *crash = bench_crash(bench);
	const struct hit *found = NULL;
	AUTO(mem_freep) char *reader = NULL;

	VEC_FOREACH (&log->hits, caught)
		if (caught->hit->watch == watch &&
		    (!touch || (caught->log == touch->log && caught->hit->tid == touch->hit->tid &&
				caught->hit->number < touch->hit->number)))
			found = caught;
	if (!found || word_of(found->hit->old) != word_of(found->hit->new))
		return false;
	reader = function_of(found, bench->symbols);
	return reader && (touch	  ? on_stack(touch, reader, bench->symbols)
			  : crash ? has_function(&crash->stack, reader)
				  : false);
}

static void copy_writer(struct bench *bench, const struct hit *caught, struct stack *ret)
{
	if (caught && ret->count == 0)
		*ret = writer_of(caught, bench->symbols);
}

static struct block_life *ended_block(const struct bench *bench, const struct hit *last,
				      uint64_t value)
{
	struct block_life *block = mem_alloc(sizeof(*block));

	*block = (struct block_life){ .id = last->hit->id,
				      .key = mem_strdup(bench->release.key),
				      .start = last->hit->start,
				      .size = last->hit->size,
				      .value = value,
				      .state = BLOCK_FREED };
	return block;
}

/* As a use of the freed block. What the block was, the guards have told. */
static void take_touch(struct bench *bench, const struct hit *touch, const struct hit *last)
{
	struct release *release = &bench->release;
	struct evidence e = evidence_new(EVIDENCE_WRITE, 0, true);
	struct freed_use *use;

	if (!touch || release->touch.freed_use) {
		evidence_deinit(&e);
		return;
	}
	hit_describe(touch, bench->symbols, e.write);
	release->touch = evidence_new(EVIDENCE_FREED_USE, bench->round.number, true);
	use = release->touch.freed_use;
	use->first = true;
	use->write = word_of(touch->hit->old) != word_of(touch->hit->new);
	use->offset = (int64_t)(touch->hit->address - touch->hit->start);
	use->width = e.write->width;
	use->instruction = e.write->instruction ? mem_strdup(e.write->instruction) : NULL;
	stack_copy(&use->user, &e.write->writer);
	use->block = ended_block(bench, last, touch->hit->address);
	evidence_deinit(&e);
}

/* Before they are watched: which globals are they, or which words of which blocks? All of them, or
 * none: of a holder that is not watched nobody knows whether it was counted. */
static void find_holders(struct bench *bench, uint64_t id)
{
	AUTO(swept_holders_deinit) struct swept_holders found;
	struct watchset *held = &bench->release.held;

	sweeps_holders_of(bench->round.reading, id, &found);
	if (held->list.count > 0 || found.known < found.count)
		return;
	for (size_t i = 0; i < found.known; i++)
		if (found.homes[i].kind == HOME_BLOCK)
			(void)watchset_add_block(held, found.homes[i].key, found.homes[i].offset,
						 found.homes[i].len);
		else
			(void)watchset_add_global(held, found.logs[i], &found.homes[i]);
}

/* `at`: where it was given, or handed out. */
static void tell_account(struct bench *bench, const struct hit *at, const struct hit *last,
			 const struct balance *of, bool alone)
{
	struct evidence e = evidence_new(EVIDENCE_ACCOUNT, bench->round.number, true);
	AUTO(stack_deinit) struct stack writer = writer_of(at, bench->symbols);
	struct reference_party party = { .taken = (uint64_t)of->taken,
					 .given = (uint64_t)of->given,
					 .alone = alone };
	const struct frame *site = stack_site(&writer);

	for (size_t i = site ? (size_t)(site - writer.frames) : 0; i < writer.count; i++)
		(void)stack_push(&party.at, &writer.frames[i]);
	VEC_PUSH(&e.account->parties, party);
	e.account->block = ended_block(bench, last, last->hit->start);
	stack_copy(&e.account->block->freed, &bench->release.last);
	stack_copy(&e.account->block->allocated, &bench->release.born);
	e.account->home = (struct home){ .kind = HOME_BLOCK,
					 .key = mem_strdup(bench->release.key),
					 .block_id = last->hit->id,
					 .offset = (int64_t)(last->hit->address - last->hit->start),
					 .len = last->hit->bytes };
	VEC_PUSH(&bench->ret->evidence.list, e);
}

/* The object was made, and all of its references were taken, outside of extensions. */
static bool owes_extensions_nothing(const struct balances *balances, const struct trial_hits *log,
				    const struct hit *last, struct symbols *symbols)
{
	const struct hit *born = birth(log, last, symbols);
	AUTO(stack_deinit) struct stack writer = { 0 };

	if (!born || balances->by_member)
		return false;
	writer = writer_of(born, symbols);
	for (size_t i = 0; i < writer.count; i++)
		if (is_extension(&writer.frames[i]))
			return false;
	return true;
}

/* All functions of extensions together took less than there are pointers left that they keep: one
 * that took references gave back more. One that only gives back may do it for another, unless no
 * extension can have had one to give: then one of them is wrong, of several any. */
static void find_over_release(struct bench *bench, const struct trial_hits *log,
			      const struct hit *last)
{
	struct balances balances = { 0 };
	const struct balance *found = NULL;
	AUTO(swept_holders_deinit) struct swept_holders holders;
	unsigned int below = 0;
	bool clouded = false, none_due;

	sweeps_holders_of(bench->round.reading, last->hit->id, &holders);
	balances_read(log, last, bench->symbols, &balances);
	VEC_FOREACH (&balances.list, b)
		if (b->given > b->taken) {
			below++;
			found = b;
			clouded |= b->clouded;
		}
	none_due = balances.net < 0 && !clouded &&
		   owes_extensions_nothing(&balances, log, last, bench->symbols);
	if (below == 1 && ((found->taken > 0 && balances.net < (int)holders.count) || none_due))
		tell_account(bench, found->gave, last, found, false);
	else if (none_due)
		tell_account(bench, balances.overdrew, last,
			     &(struct balance){ .taken = balances.taken,
						.given = balances.taken - balances.net },
			     true);
	balances_deinit(&balances);
}

static const struct hit *read_end(struct bench *bench, bool passed)
{
	struct release *release = &bench->release;
	const struct trial_hits *log = passed ? NULL : reading_hits(bench->round.reading);
	const struct hit *last = log ? last_reference(log, used_block(bench)) : NULL;

	if (!last)
		return NULL;
	release->caught++;
	release->offset = (int64_t)(last->hit->address - last->hit->start);
	if (release->last.count == 0)
		account_of(log, last, bench->symbols, &release->account);
	copy_writer(bench, birth(log, last, bench->symbols), &release->born);
	copy_writer(bench, last, &release->last);
	take_touch(bench, first_touch(log, last), last);
	if (!had_other_lives(log, last, bench->symbols))
		find_over_release(bench, log, last);
	return last;
}

static void read_any(struct bench *bench, bool passed)
{
	const struct hit *last = read_end(bench, passed);

	if (last)
		find_holders(bench, last->hit->id);
}

static bool enough(struct bench *bench)
{
	return bench->release.caught >= RELEASES_WANTED || bench->release.held.list.count > 0 ||
	       bench->round.trials >= RELEASE_TRIALS;
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
						 .same_hashes = true,
						 .read_any = read_any,
						 .enough = enough,
						 .missing = missing };

/* Called by Python code which that function called. */
static bool by_python_below(const struct stack *stack, const char *function)
{
	for (size_t i = 0; i < stack->count; i++) {
		if (stack->frames[i].kind == FRAME_PYTHON)
			return true;
		if (cstr_known_same(stack->frames[i].function, function))
			return false;
	}
	return false;
}

/* The references that a function has left when the object ends: the first one, of what it made or
 * had made, those that were taken while it ran, and without those that were given back. What Python
 * code below it gives back, that has taken before. */
static int left_to(const struct trial_hits *log, const struct hit *last, const char *function,
		   struct symbols *symbols)
{
	const struct hit *born = birth(log, last, symbols);
	int left = 0;

	VEC_FOREACH (&log->hits, caught) {
		uint32_t old = count_of(caught->hit->old), new = count_of(caught->hit->new);
		AUTO(stack_deinit) struct stack writer = { 0 };

		if (caught == born || is_booked(caught, born, last))
			writer = writer_of(caught, symbols);
		if (!has_function(&writer, function))
			continue;
		if (caught == born || new == old + 1)
			left++;
		else if (new + 1 == old && !by_python_below(&writer, function))
			left--;
	}
	return left;
}

/* These functions of the interpreter's take no reference to what they store, and keep that of their
 * caller. With whatever else it stores goes a reference that it takes, or that is moved. */
static bool steals(const struct frame *by)
{
	static const char *const names[] = { "PyList_SetItem", "PyTuple_SetItem",
					     "PyStructSequence_SetItem", "PyModule_AddObject" };

	return cstr_among(by->function, names, ARRAY_SIZE(names));
}

/* Has that very function taken a reference, or made the object? */
static bool took_one(const struct trial_hits *log, const struct hit *last, const char *keeper,
		     struct symbols *symbols)
{
	const struct hit *born = birth(log, last, symbols);

	VEC_FOREACH (&log->hits, caught) {
		AUTO(mem_freep) char *function = NULL;

		if (caught == born ||
		    (is_booked(caught, born, last) &&
		     count_of(caught->hit->new) == count_of(caught->hit->old) + 1))
			function = function_of(caught, symbols);
		if (cstr_known_same(function, keeper))
			return true;
	}
	return false;
}

/* Has the function that kept the pointer a reference for it? The interpreter has. Whose the first
 * one is that an extension's function made for another of them, nobody knows. */
static bool is_counted(const struct trial_hits *log, const struct hit *last,
		       const struct hit *stored, struct symbols *symbols)
{
	AUTO(mem_freep) char *keeper = by_extension(stored, symbols);
	AUTO(stack_deinit) struct stack writer = writer_of(stored, symbols);

	if (!keeper || writer.count == 0)
		return true;
	if (!frame_is_interpreter(writer.frames))
		return took_one(log, last, keeper, symbols);
	return !steals(writer.frames) || left_to(log, last, keeper, symbols) > 0;
}

/* The keeper had a reference, which the place has now, and gave it back as well. */
static bool find_given_twice(struct bench *bench, const struct trial_hits *log,
			     const struct hit *last, const char *keeper)
{
	struct balances balances = { 0 };
	const struct balance *own = NULL;
	int others = 0;
	bool is;

	if (!keeper || left_to(log, last, keeper, bench->symbols) > 0)
		return false;
	balances_read(log, last, bench->symbols, &balances);
	VEC_FOREACH (&balances.list, b)
		if (strcmp(b->function, keeper) == 0)
			own = b;
		else
			others += b->taken - b->given;
	is = own && own->gave && !own->clouded && others >= 0;
	if (is)
		tell_account(bench, own->gave, last,
			     &(struct balance){ .taken = own->given, .given = own->given + 1 },
			     false);
	balances_deinit(&balances);
	return is;
}

/* The object may have had further lives in its place since. */
static const struct hit *end_after(const struct trial_hits *log, const struct hit *stored,
				   const struct hit *last)
{
	const struct hit *end =
		VEC_FIND(&log->hits, caught,
			 is_of_count(caught, last) && caught->hit->number > stored->hit->number &&
				 !(caught->hit->flags & (LOG_HIT_ALONGSIDE | LOG_HIT_IMPRECISE)) &&
				 count_of(caught->hit->old) == 1 &&
				 count_of(caught->hit->new) == 0);

	return end ? end : last;
}

static void tell_uncounted(struct bench *bench, const char *keeper)
{
	struct release *release = &bench->release;
	struct said account = { 0 };

	said_move(&account, &release->account);
	SAY(&release->account, "account:keeper", said_text(keeper), said_part(&account));
}

/* Is this the function that handed out the holder's own reference? It has read the pointer, took
 * none and has returned; from there on one more was given back than was taken. */
static bool handed_out(const struct trial_hits *log, const struct hit *read, const struct hit *last,
		       struct symbols *symbols)
{
	AUTO(mem_freep) char *reader = by_extension(read, symbols);
	const struct hit *born = birth(log, last, symbols);
	int since = 0;

	if (!reader || on_stack(last, reader, symbols))
		return false;
	VEC_FOREACH (&log->hits, caught) {
		uint32_t old = count_of(caught->hit->old), new = count_of(caught->hit->new);

		if (!is_booked(caught, born, last) || caught->hit->number < read->hit->number)
			continue;
		if (new == old + 1 && on_stack(caught, reader, symbols))
			return false;
		since += new == old + 1 ? 1 : new + 1 == old ? -1 : 0;
	}
	return since == -1;
}

/* Of the holder, which counted its pointer: the latest that was handed out so. */
static bool find_borrowed(struct bench *bench, const struct trial_hits *log,
			  const struct hit *stored, const struct hit *last, uint32_t watch)
{
	const struct balance one = { .given = 1 };
	const struct hit *found = NULL;

	VEC_FOREACH (&log->hits, caught)
		if (caught->log == last->log && caught->hit->watch == watch &&
		    caught->hit->tid == last->hit->tid && caught->hit->number < last->hit->number &&
		    caught->hit->number > stored->hit->number &&
		    word_of(caught->hit->old) == word_of(caught->hit->new) &&
		    handed_out(log, caught, last, bench->symbols))
			found = caught;
	if (found)
		tell_account(bench, found, last, &one, false);
	return found;
}

/* Whoever reads the pointer there has handled the object, counted or not. */
static bool read_by_other(const struct trial_hits *log, const struct hit *last, size_t first_holder,
			  const char *function, struct symbols *symbols)
{
	VEC_FOREACH (&log->hits, caught)
		if (caught->log == last->log && caught->hit->watch >= first_holder &&
		    caught->hit->number < last->hit->number &&
		    points_into(word_of(caught->hit->old), last)) {
			AUTO(mem_freep) char *reader = by_extension(caught, symbols);

			if (reader && strcmp(reader, function) != 0)
				return true;
		}
	return false;
}

/* The holder had its reference, and the interpreter counts right: if one function of an extension
 * alone has handled the object, it was that one, whatever it did. */
static void find_only_one(struct bench *bench, const struct trial_hits *log, const struct hit *last)
{
	struct balances balances = { 0 };
	const struct balance *only = NULL;

	balances_read(log, last, bench->symbols, &balances);
	if (balances.list.count == 1)
		only = &balances.list.items[0];
	if (only && only->gave && only->given == only->taken && !only->clouded &&
	    owes_extensions_nothing(&balances, log, last, bench->symbols) &&
	    !read_by_other(log, last, bench->release.first_holder, only->function, bench->symbols))
		tell_account(bench, only->gave, last, only, true);
	balances_deinit(&balances);
}

/* That place pointed to the object when that ended, and still when the process died of it. */
static void take_holder(struct bench *bench, const struct hit *stored, const struct hit *last,
			bool read_there, bool counted)
{
	struct evidence e = evidence_new(EVIDENCE_HOLDER, bench->round.number, true);
	struct holder_seen *holder = e.holder;

	home_copy(&holder->home, &bench->watchset.list.items[bench->release.holder].home);
	holder->target = ended_block(bench, last, last->hit->start);
	holder->used = holder->exact = true;
	holder->on_stack_too = !read_there;
	holder->counted = counted;
	copy_writer(bench, stored, &holder->written_by);
	VEC_PUSH(&bench->ret->evidence.list, e);
}

static bool still_points(struct bench *bench, uint64_t id, const struct home *watched)
{
	AUTO(swept_holders_deinit) struct swept_holders found;
	bool there = false;

	sweeps_holders_of(bench->round.reading, id, &found);
	for (size_t i = 0; i < found.known; i++)
		there |= same_variable(&found.homes[i], watched) ||
			 (watched->kind == HOME_BLOCK && home_same(&found.homes[i], watched));
	return there && found.known == found.count;
}

/* One that was not counted; else the one that the first user had the pointer from; else any. */
static const struct hit *choose_holder(struct bench *bench, const struct trial_hits *log,
				       const struct hit *last, bool *ret_counted, bool *ret_read)
{
	const struct hit *touch = first_touch(log, last), *chosen = NULL;
	struct release *release = &bench->release;

	for (size_t i = release->first_holder; i < bench->watchset.list.count; i++) {
		const struct hit *stored = pointer_stored(log, last, (uint32_t)i);
		bool counted, read;

		if (!stored ||
		    !still_points(bench, last->hit->id, &bench->watchset.list.items[i].home))
			continue;
		counted = is_counted(log, end_after(log, stored, last), stored, bench->symbols);
		read = read_by(bench, log, touch, (uint32_t)i);
		if (chosen && (*ret_counted < counted || (*ret_counted == counted && !read)))
			continue;
		chosen = stored;
		*ret_counted = counted;
		*ret_read = read;
		release->holder = i;
	}
	return chosen;
}

/* Of the life that the object was in that place for. */
static const struct hit *end_of_life(struct bench *bench, const struct trial_hits *log,
				     const struct hit *stored, const struct hit *last)
{
	struct release *release = &bench->release;

	if (had_other_lives(log, last, bench->symbols)) {
		last = end_after(log, stored, last);
		find_over_release(bench, log, last);
	}
	if (release->stores == 0) {
		stack_deinit(&release->born);
		stack_deinit(&release->last);
		copy_writer(bench, birth(log, last, bench->symbols), &release->born);
		copy_writer(bench, last, &release->last);
	}
	return last;
}

static void read_holders(struct bench *bench, bool passed)
{
	struct release *release = &bench->release;
	const struct hit *last = read_end(bench, passed), *born;
	const struct trial_hits *log = last ? reading_hits(bench->round.reading) : NULL;
	bool read_there = false, counted = false, told = false;
	const struct hit *stored =
		last ? choose_holder(bench, log, last, &counted, &read_there) : NULL;
	AUTO(mem_freep) char *keeper = stored ? function_of(stored, bench->symbols) : NULL;

	if (!stored)
		return;
	last = end_of_life(bench, log, stored, last);
	born = birth(log, last, bench->symbols);
	told = find_given_twice(bench, log, last, keeper);
	counted |= told;
	/* Whoever had the object made has its first reference. */
	if (release->stores++ == 0 && keeper && !counted &&
	    !(born && on_stack(born, keeper, bench->symbols)))
		tell_uncounted(bench, keeper);
	copy_writer(bench, stored, &release->stored);
	for (size_t i = release->first_holder; counted && i < bench->watchset.list.count; i++)
		told = told || find_borrowed(bench, log, stored, last, (uint32_t)i);
	if (counted && !told)
		find_only_one(bench, log, last);
	release->read_there |= read_there;
	take_holder(bench, stored, last, read_there, counted);
}

static bool enough_holders(struct bench *bench)
{
	return bench->release.stores >= RELEASES_WANTED || bench->round.trials >= RELEASE_TRIALS;
}

static const struct round_ops holder_round = { .id = 12,
					       .observer = OBSERVE_HEAP,
					       .planned = true,
					       .same_hashes = true,
					       .read_any = read_holders,
					       .enough = enough_holders };

/* Is the place where the last reference went on the way to the free that is known? By the first
 * frames that have a name and are not inlined: an interpreter may have few names. */
static bool leads_to(const struct stack *last, const struct stack *freed)
{
	for (size_t i = 0; i < last->count; i++)
		if (last->frames[i].function && last->frames[i].kind == FRAME_NATIVE)
			return has_function(freed, last->frames[i].function);
	return freed->count == 0;
}

/* Where the object was made and ended, with the Python code of both. */
static void tell_block(const struct release *release, struct block_life *block)
{
	if (block->freed.count == 0 || leads_to(&release->last, &block->freed)) {
		stack_deinit(&block->freed);
		stack_copy(&block->freed, &release->last);
	}
	if (release->born.count > 0) {
		stack_deinit(&block->allocated);
		stack_copy(&block->allocated, &release->born);
	}
}

static void tell_holder(const struct release *release, const struct home *home,
			struct holder_seen *holder)
{
	if (release->stored.count == 0 ||
	    !(same_variable(home, &holder->home) ||
	      (home->kind == HOME_BLOCK && home_same(home, &holder->home))))
		return;
	stack_deinit(&holder->written_by);
	stack_copy(&holder->written_by, &release->stored);
	if (release->read_there)
		holder->on_stack_too = false;
}

static struct block_life *block_of(const struct evidence *e)
{
	return e->kind == EVIDENCE_HOLDER      ? e->holder->target
	       : e->kind == EVIDENCE_FREED_USE ? e->freed_use->block
	       : e->kind == EVIDENCE_CANARY    ? e->canary->block
	       : e->kind == EVIDENCE_WRITE     ? e->write->base
					       : NULL;
}

static void tell_life(const struct release *release, struct block_life *block)
{
	if (block && key_same_stack(release->key, block->key))
		tell_block(release, block);
}

static void tell(struct bench *bench, const struct home *home, struct evidence_list *list)
{
	struct release *release = &bench->release;

	if (release->last.count == 0)
		return;
	if (release->touch.freed_use) {
		VEC_PUSH(&list->list, release->touch);
		release->touch = (struct evidence){ 0 };
	}
	VEC_FOREACH (&list->list, e) {
		struct block_life *block = block_of(e);

		tell_life(release, block);
		if (e->kind == EVIDENCE_WRITE && e->write->victim != block)
			tell_life(release, e->write->victim);
		if (!block || !key_same_stack(release->key, block->key))
			continue;
		if (e->kind == EVIDENCE_HOLDER && home)
			tell_holder(release, home, e->holder);
		if (!said_anything(&e->note) &&
		    (e->kind == EVIDENCE_HOLDER || e->kind == EVIDENCE_FREED_USE))
			said_copy(&e->note, &release->account);
	}
}

static bool is_ended_object(const struct evidence *e, enum evidence_kind kind)
{
	const struct block_life *block = e->failing && e->kind == kind ? block_of(e) : NULL;

	return block && block->python && block->state == BLOCK_FREED && block->key &&
	       strchr(block->key, '#');
}

const struct block_life *refcount_object(const struct evidence_list *list)
{
	const struct evidence *found =
		VEC_FIND(&list->list, e, is_ended_object(e, EVIDENCE_FREED_USE));

	/* Whoever counted on an ended object has written to it. */
	if (!found)
		found = VEC_FIND(&list->list, e, is_ended_object(e, EVIDENCE_CANARY));
	return found ? block_of(found) : NULL;
}

/* Guards have shown an object that was used after its end, here or before there was a chase. */
static bool applies(struct inquiry *inq, struct said *why)
{
	struct release *release = &inq->bench->release;
	/* What a chase begins with has stayed where it was. */
	const struct evidence_list *seen =
		inq->bench->request->start.lead ? &inq->evidence : &inq->bench->ret->evidence;
	const struct block_life *object = inq->known.damaged ? refcount_object(seen) : NULL;

	if (release->key)
		return inq->bench->told;
	if (object) {
		release->key = mem_strdup(object->key);
		release->size = object->size;
		inq->bench->told = true;
	}
	return release->key;
}

static void price(const struct inquiry *inq, struct price *ret)
{
	price_of_failures(inq, RELEASES_WANTED, 2, ret);
}

static int watch_holder(struct bench *bench, struct err *err)
{
	int r;

	BENCH_SAY(bench, "chase:global");
	set_watch_on_holders(bench);
	r = bench_plan(bench, err);
	return r == 0 ? round_run(bench, &holder_round, err) : r;
}

static int run(struct inquiry *inq)
{
	struct bench *bench = inq->bench;
	struct watchset homes = bench->watchset;
	const struct home *home = NULL;
	int r = 0;

	bench->watchset = (struct watchset){ 0 };
	if (watch_round(bench)) {
		BENCH_SAY(bench, "chase:refcount");
		r = bench_plan(bench, inq->err);
		if (r == 0)
			r = round_run(bench, &refcount_round, inq->err);
		if (r == 0 && bench->release.held.list.count > 0 && bench_may_go_on(bench)) {
			r = watch_holder(bench, inq->err);
			home = &bench->watchset.list.items[bench->release.holder].home;
		}
		tell(bench, home, &bench->ret->evidence);
	}
	watchset_deinit(&bench->watchset);
	bench->watchset = homes;
	return r;
}

EXPERIMENT(refcount, .name = "refcount", .question = QUESTION_WHO, .kind = EXPERIMENT_WATCH,
	   .chance = 0.7, .refines = true, .applies = applies, .price = price, .run = run);
