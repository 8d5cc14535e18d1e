#include "agent/watch/hit.h"

#include <string.h>
#include <time.h>

#include "agent/arch/vectors.h"
#include "agent/arch/x86_64.h"
#include "agent/core/agent.h"
#include "agent/core/clock.h"
#include "agent/core/log.h"
#include "agent/core/modules.h"
#include "agent/core/real.h"
#include "agent/core/secret.h"
#include "agent/core/thread.h"
#include "agent/python/interpreter.h"
#include "agent/watch/predicate.h"
#include "agent/watch/registers_assign.h"
#include "agent/watch/watch.h"
#include "agent/watch/watch_registers.h"
#include "wire/checksum.h"

#define KEPT_MAX 8u
#define WRITER_PROBES 16u
#define OWNER_REACH 4096u	     /* how far below a pointer its block may begin */
#define OWNER_REACH_FIRST (1u << 20) /* the first time a writer is seen */
#define RED_ZONE 128u

/* What a hit is about, while it is written down. */
struct catch
{
	const struct watch_armed *armed;
	uint64_t number; /* of the object */
	uint32_t flags;	 /* enum log_hit_flags */
	uint32_t call;	 /* LOG_HIT_KERNEL */
	uint64_t old[WATCH_WORDS], new[WATCH_WORDS];
	uint64_t age;
	bool changed; /* the value; secrets in it are hidden later */
	bool first;   /* of its writer */
	bool kept;    /* for good: the first of its writer, and a few more */
	const ucontext_t *context;
};

static uint64_t greg(const ucontext_t *context, int n)
{
	return (uint64_t)context->uc_mcontext.gregs[n];
}

static void value_count(struct log_writer_row *row, uint64_t value)
{
	unsigned i;

	for (i = 0; i < LOG_WRITER_VALUES; i++) {
		if (!row->value_counts[i])
			row->values[i] = value;
		if (row->values[i] == value) {
			__atomic_fetch_add(&row->value_counts[i], 1, __ATOMIC_RELAXED);
			return;
		}
	}
}

/* NULL when the table is full. A new writer is the first hit's. */
static struct log_writer_row *writer_row(uint64_t rip, uint32_t watch, bool *ret_first)
{
	uint64_t at = checksum_mix(rip, watch);
	unsigned i;

	*ret_first = false;
	for (i = 0; i < WRITER_PROBES; i++) {
		uint32_t n = (uint32_t)(at + i) % LOG_WRITERS;
		struct log_writer_row *row = &watch_state.area->writers[n];
		uint64_t none = 0;

		if (!row->rip && __atomic_compare_exchange_n(&row->rip, &none, rip, false,
							     __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
			row->watch = watch;
			row->check = log_context_check(rip, watch, n);
			*ret_first = true;
			return row;
		}
		if (row->rip == rip && row->watch == watch)
			return row;
	}
	return NULL;
}

/* The second, fourth and eighth are kept as well: what a rare writer does first, while the program
 * starts, need not be what it does later. */
static void writer_count(struct log_writer_row *row, uint64_t number, struct catch *catch)
{
	uint64_t count;

	catch->kept = catch->first;
	if (!row)
		return;
	count = __atomic_add_fetch(&row->count, 1, __ATOMIC_RELAXED);
	catch->kept |= count <= KEPT_MAX && (count & (count - 1)) == 0;
	if (catch->changed)
		__atomic_fetch_add(&row->changed, 1, __ATOMIC_RELAXED);
	if (!row->first_hit)
		row->first_hit = number;
	row->last_hit = number;
	value_count(row, catch->new[0]);
}

static void owners_fill(struct log_hit *hit, const struct catch *catch)
{
	uint64_t reach = catch->first ? OWNER_REACH_FIRST : OWNER_REACH;
	unsigned n = 0, i, space;

	for (i = 0; i < LOG_GREG_RSP && n < LOG_HIT_OWNERS; i++) {
		uint64_t value = greg(catch->context, (int)i);

		if (value < 0x10000 || value >> BLOCKS_ADDRESS_BITS)
			continue;
		for (space = 0; space < BLOCKS_SPACES && n < LOG_HIT_OWNERS; space++) {
			struct log_hit_owner *owner = &hit->owners[n];
			struct block_view view;

			if (!block_find_sigsafe((enum block_space)space, value, reach, &view, 1))
				continue;
			owner->id = view.block.id;
			owner->start = view.start;
			owner->size_low = (uint32_t)view.size;
			owner->context = view.block.context & BLOCK_CONTEXT_MASK;
			owner->free_context = view.block.free_context;
			owner->ordinal = view.block.ordinal;
			owner->reserved = 0;
			owner->greg = (uint8_t)i;
			owner->state = view.block.state;
			owner->relation = (uint8_t)view.relation;
			owner->space = (uint8_t)space;
			n++;
		}
	}
	for (; n < LOG_HIT_OWNERS; n++) {
		memset(&hit->owners[n], 0, sizeof(hit->owners[n]));
		hit->owners[n].greg = 255;
	}
}

static void code_fill(struct log_hit *hit, uint64_t rip)
{
	uint64_t from = rip - LOG_HIT_CODE_BEFORE, page = rip & ~4095ull;

	hit->code_bytes = LOG_HIT_CODE;
	if (!watch_read_sigsafe(hit->code, from, LOG_HIT_CODE)) {
		/* Near the edge of its mapping: what lies on the instruction's own page. */
		from = from < page ? page : from;
		hit->code_bytes = LOG_HIT_CODE;
		if (from + hit->code_bytes > page + 4096)
			hit->code_bytes = (uint32_t)(page + 4096 - from);
		if (!watch_read_sigsafe(hit->code, from, hit->code_bytes))
			hit->code_bytes = 0;
	}
	hit->code_address = from;
}

static void stack_fill(struct log_hit *hit, unsigned char *to, uint64_t rsp)
{
	const struct thread *self = thread_self;
	uint64_t from = (rsp - RED_ZONE) & ~7ull, bytes = LOG_HIT_STACK;

	if (self && rsp < self->stack_high && self->stack_high - from < bytes)
		bytes = self->stack_high - from;
	while (bytes && !watch_read_sigsafe(to, from, (uint32_t)bytes))
		bytes = bytes > 1024 ? bytes / 2 : 0;
	bytes &= ~7ull;
	secret_hide_sigsafe(to, bytes, from);
	hit->stack_address = from;
	hit->stack_bytes = (uint32_t)bytes;
	hit->stack_high = self ? self->stack_high : 0;
}

static void fields_fill(struct log_hit *hit, const struct catch *catch)
{
	const struct watch_armed *armed = catch->armed;
	const struct thread *self = thread_self;
	unsigned i;

	hit->time_ns = clock_ns_sigsafe(CLOCK_MONOTONIC);
	hit->tid = self ? self->tid : (uint32_t)raw_syscall0(SYS_gettid);
	hit->lane = self ? self->lane : UINT32_MAX;
	hit->watch = armed->watch;
	hit->flags = catch->flags | (self ? 0 : LOG_HIT_NO_LANE);
	hit->watched = catch->number;
	hit->address = armed->address;
	hit->id = armed->id;
	hit->start = armed->start;
	hit->size = armed->size;
	hit->key = armed->key;
	hit->age = catch->age;
	hit->allocations = self ? self->fast.next_id : 0;
	hit->bytes = armed->bytes;
	hit->last_syscall = catch->call;
	memcpy(hit->old, catch->old, sizeof(hit->old));
	memcpy(hit->new, catch->new, sizeof(hit->new));
	for (i = 0; i < LOG_GREGS; i++)
		hit->gregs[i] = greg(catch->context, (int)i);
	secret_hide_registers_sigsafe(hit->gregs, sizeof(hit->gregs), 8);
	if (arch_vectors_sigsafe(catch->context, &hit->vectors))
		hit->flags |= LOG_HIT_WITH_VECTORS;
	if (hit->flags & LOG_HIT_WITH_VECTORS)
		secret_hide_registers_sigsafe(hit->vectors.vectors, sizeof(hit->vectors.vectors),
					      16);
}

/* A block goes on behind what is watched as well as before it. NULL: it cannot be read. */
static const struct log_hit_block *block_fill(const struct catch *catch, uint64_t number)
{
	struct log_hit_block *block =
		(struct log_hit_block *)(watch_state.hits + (uint64_t)LOG_HITS * LOG_HIT_SLOT) +
		number % LOG_HITS;
	const struct watch_armed *armed = catch->armed;
	uint64_t from = armed->address, end = from + armed->bytes;

	__atomic_store_n(&block->number, 0, __ATOMIC_RELAXED);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	if (armed->id && from - armed->start < armed->size) {
		from = armed->start;
		if (armed->size > LOG_HIT_BLOCK && armed->address - from > LOG_HIT_BLOCK / 2)
			from = (armed->address - LOG_HIT_BLOCK / 2) & ~7ull;
		end = armed->start + armed->size;
	}
	block->len = end - from > LOG_HIT_BLOCK ? LOG_HIT_BLOCK : (uint32_t)(end - from);
	if (!watch_read_sigsafe(block->bytes, from, block->len))
		return NULL;
	memset(block->bytes + block->len, 0, LOG_HIT_BLOCK - block->len);
	secret_hide_sigsafe(block->bytes, block->len, from);
	block->address = from;
	block->nth = armed->row->hits;
	block->reserved = 0;
	block->check = log_hit_block_sum(number, block);
	__atomic_store_n(&block->number, number, __ATOMIC_RELEASE);
	return block;
}

/* For good, with the bytes of the block, and the Python frames if there are any. */
static void hit_keep(const struct log_hit *hit, const struct log_hit_block *block)
{
	struct log_crash_done done = { 0 };
	struct log_crash place = { .tid = hit->tid, .fs_base = arch_fs_base() };
	struct log_writer writer;

	log_writer_init_sigsafe(&writer, LOG_TO_EVENTS);
	writer.owner =
		log_append_sigsafe(&writer, LOG_HIT, hit, sizeof(*hit), hit + 1, hit->stack_bytes);
	if (!writer.owner)
		return;
	if (block)
		(void)log_append_sigsafe(&writer, LOG_HIT_BYTES, block,
					 offsetof(struct log_hit_block, bytes), block->bytes,
					 block->len);
	/* An interpreter that came later would have to be looked for: not here. */
	if (real.python_runtime)
		interpreter_write_sigsafe(&writer, &place);
	(void)log_append_sigsafe(&writer, LOG_CRASH_DONE, &done, sizeof(done), NULL, 0);
}

static void hit_write(const struct catch *catch, uint64_t number)
{
	struct log_hit *hit = (void *)(watch_state.hits + number % LOG_HITS * LOG_HIT_SLOT);
	const struct log_hit_block *block;

	__atomic_store_n(&hit->number, 0, __ATOMIC_RELAXED);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	fields_fill(hit, catch);
	owners_fill(hit, catch);
	code_fill(hit, greg(catch->context, REG_RIP));
	stack_fill(hit, (unsigned char *)(hit + 1), greg(catch->context, REG_RSP));
	/* A library that allocates nothing itself is noticed by nobody else, and may be gone later.
	 */
	if (catch->first && modules_grown_sigsafe())
		modules_refresh_sigsafe();
	block = block_fill(catch, number);
	hit->check = 0;
	hit->check = log_hit_sum(number, hit, hit + 1);
	__atomic_store_n(&hit->number, number, __ATOMIC_RELEASE);
	watch_state.area->hit_count = number;
	if (catch->kept)
		hit_keep(hit, block);
}

/* Two threads that hit the same address at once may leave a torn entry: then its sum is wrong. */
static void last_note(const struct catch *catch, uint64_t number)
{
	const struct watch_armed *armed = catch->armed;
	struct log_last *at = NULL;
	uint32_t i;

	for (i = 0; i < LOG_LAST_PROBES; i++) {
		uint32_t slot = (log_last_slot(armed->address) + i) % LOG_LASTS;
		struct log_last *last = &watch_state.area->lasts[slot];

		if (last->address == armed->address) {
			at = last;
			break;
		}
		if (!at || (at->address && last->hit < at->hit))
			at = last;
		if (!last->address)
			break;
	}
	if (at->address != armed->address)
		at->count = at->changed_hit = 0;
	at->address = armed->address;
	at->watched = catch->number;
	at->hit = number;
	at->id = armed->id;
	at->rip = greg(catch->context, REG_RIP);
	at->old_word = catch->old[0];
	at->new_word = catch->new[0];
	at->time_ns = clock_ns_sigsafe(CLOCK_MONOTONIC);
	at->tid = thread_self ? thread_self->tid : 0;
	at->watch = armed->watch;
	at->bytes = armed->bytes;
	at->flags = catch->flags;
	at->count++;
	if (catch->changed)
		at->changed_hit = number;
	at->check = log_last_sum(at);
}

static void stop_here(const struct plan_watch *plan)
{
	static uint32_t stopped;

	if (!(plan->flags & PLAN_WATCH_STOP) || __atomic_exchange_n(&stopped, 1, __ATOMIC_RELAXED))
		return;
	watch_registers_yield_sigsafe(); /* or the debugger could not attach */
	(void)raw_syscall2(SYS_kill, agent.pid, SIGSTOP);
}

static uint64_t age_of(const struct watch_armed *armed)
{
	const struct thread *self = thread_self;
	uint64_t now = agent.next_id;

	if (!armed->id)
		return 0;
	if (self && self->lane == armed->key.lane && self->fast.next_id > armed->id)
		now = self->fast.next_id;
	return now - armed->id;
}

static bool counts(const struct catch *catch)
{
	const struct watch_armed *armed = catch->armed;
	struct predicate_input input = { .old_value = catch->old[0],
					 .new_value = catch->new[0],
					 .size = armed->size,
					 .tid = thread_self ? thread_self->tid : 0,
					 .age = catch->age,
					 .rip = greg(catch->context, REG_RIP),
					 .bytes = armed->bytes };

	if (watch_state.plans[armed->watch]->step_count)
		input.rip = watch_original_code(input.rip);
	return predicate_holds_sigsafe(watch_state.plans[armed->watch], &input);
}

/* Guards and poison are written by ourselves: the value is as it should be. */
static bool own_write(struct watch_armed *armed, const ucontext_t *context)
{
	uint64_t words[WATCH_WORDS] = { 0 };

	if (greg(context, REG_RIP) - agent.text_low >= agent.text_high - agent.text_low)
		return false;
	if (watch_read_sigsafe(words, armed->address, armed->bytes))
		memcpy(armed->last, words, sizeof(armed->last));
	return true;
}

/* The last reference was given back: of all hits on a count this is the one that matters, whether
 * or not the same instruction was seen before. */
static bool count_is_over(const struct catch *catch)
{
	return (watch_state.plans[catch->armed->watch]->flags & PLAN_WATCH_COUNT) &&
	       !(uint32_t) catch->new[0] && (uint32_t) catch->old[0] == 1;
}

/* Counts it, and writes it down if the predicate lets it through. */
static void catch_tell(struct catch *catch)
{
	const struct watch_armed *armed = catch->armed;
	struct log_watch_row *row = &watch_state.area->rows[armed->watch];
	bool alongside = catch->flags & LOG_HIT_ALONGSIDE, over;
	struct log_writer_row *who;
	uint64_t number;

	catch->changed = memcmp(catch->old, catch->new, sizeof(catch->old)) != 0;
	if (!alongside) {
		__atomic_fetch_add(&row->hits, 1, __ATOMIC_RELAXED);
		if (!catch->changed)
			__atomic_fetch_add(&row->unchanged, 1, __ATOMIC_RELAXED);
		if (armed->row->number == catch->number)
			__atomic_fetch_add(&armed->row->hits, 1, __ATOMIC_RELAXED);
	}
	catch->age = age_of(armed);
	if (!counts(catch))
		return;
	over = count_is_over(catch);
	secret_hide_sigsafe(catch->old, armed->bytes, armed->address);
	secret_hide_sigsafe(catch->new, armed->bytes, armed->address);
	if (!alongside)
		__atomic_fetch_add(&row->matched, 1, __ATOMIC_RELAXED);
	number = __atomic_add_fetch(&watch_state.hit_count, 1, __ATOMIC_RELAXED);
	who = writer_row(greg(catch->context, REG_RIP),
			 armed->watch | (alongside ? LOG_WRITER_ALONGSIDE : 0) |
				 (catch->flags & LOG_HIT_KERNEL ? LOG_WRITER_OF_CALL(catch->call)
								: 0),
			 &catch->first);
	writer_count(who, number, catch);
	catch->kept |= over;
	hit_write(catch, number);
	last_note(catch, number);
	stop_here(watch_state.plans[armed->watch]);
}

void hit_store_sigsafe(const struct watch_armed *armed, const uint64_t old[WATCH_WORDS],
		       const uint64_t new[WATCH_WORDS], int call, const ucontext_t *context)
{
	struct catch catch = { .armed = armed,
			       .number = armed->number,
			       .flags = call < 0 ? LOG_HIT_AT : LOG_HIT_KERNEL,
			       .call = call < 0 ? 0 : (uint32_t)call,
			       .context = context };

	if (!watch_state.area || !agent_switch.crash)
		return;
	memcpy(catch.old, old, sizeof(catch.old));
	memcpy(catch.new, new, sizeof(catch.new));
	catch_tell(&catch);
}

static void caught(struct watch_armed *armed, uint64_t number, uint32_t flags,
		   const ucontext_t *context)
{
	struct catch catch = {
		.armed = armed, .number = number, .flags = flags, .context = context
	};
	unsigned i;

	if (own_write(armed, context) ||
	    !watch_read_sigsafe(catch.new, armed->address, armed->bytes))
		return;
	for (i = 0; i < WATCH_WORDS; i++)
		catch.old[i] = flags & LOG_HIT_ALONGSIDE
				       ? __atomic_load_n(&armed->last[i], __ATOMIC_RELAXED)
				       : __atomic_exchange_n(&armed->last[i], catch.new[i],
							     __ATOMIC_RELAXED);
	if (flags & LOG_HIT_ALONGSIDE) {
		if (!memcmp(catch.old, catch.new, sizeof(catch.old)) ||
		    !memcmp(armed->beside, catch.new, sizeof(catch.new)))
			return;
		memcpy(armed->beside, catch.new, sizeof(armed->beside));
	}
	catch_tell(&catch);
}

/* A store that is wider than a register's eight bytes has one trap, for one of the registers that
 * it touched. */
static void others_look(const struct watch_armed *caught_one, const ucontext_t *context)
{
	unsigned i;

	for (i = 0; i < WATCH_ARMED_MAX; i++) {
		struct watch_armed *armed = &watch_state.armed[i];
		uint64_t number = __atomic_load_n(&armed->number, __ATOMIC_ACQUIRE);

		if (number && armed != caught_one)
			caught(armed, number, LOG_HIT_ALONGSIDE, context);
	}
}

static struct watch_armed *armed_at(uint64_t address)
{
	unsigned i;

	for (i = 0; i < WATCH_ARMED_MAX; i++) {
		struct watch_armed *armed = &watch_state.armed[i];

		if (__atomic_load_n(&armed->number, __ATOMIC_ACQUIRE) &&
		    address - armed->address < armed->bytes)
			return armed;
	}
	return NULL;
}

#define CODE_TRAP_BRKPT 1
#define OPCODE_INT1 0xf1

/* Some hypervisors lose the debug status register now and then (seen once in 150,000 hits): the
 * kernel then takes the exception for an `int1` instruction and sends TRAP_BRKPT. Where there is no
 * such instruction, it was a watchpoint; which one, the values tell. The same where the tracer that
 * set the registers has been killed: the kernel leaves them set. */
static bool nameless_trap(const siginfo_t *info, const ucontext_t *context)
{
	uint64_t rip = greg(context, REG_RIP);
	struct watch_armed *only = NULL;
	unsigned i, count = 0, changed = 0;
	uint8_t byte = 0;

	if (watch_registers_mode() == LOG_WATCH_OFF)
		return false;
	if (!watch_registers_nameless_sigsafe(info) &&
	    (info->si_code != CODE_TRAP_BRKPT || (uint64_t)info->si_addr != rip ||
	     !watch_read_sigsafe(&byte, rip - 1, 1) || byte == OPCODE_INT1))
		return false;
	for (i = 0; i < WATCH_ARMED_MAX; i++) {
		struct watch_armed *armed = &watch_state.armed[i];
		uint64_t number = __atomic_load_n(&armed->number, __ATOMIC_ACQUIRE);
		uint64_t words[WATCH_WORDS] = { 0 };

		if (!number)
			continue;
		count++;
		only = armed;
		if (!watch_read_sigsafe(words, armed->address, armed->bytes) ||
		    !memcmp(words, armed->last, sizeof(words)))
			continue;
		changed++;
		caught(armed, number, 0, context);
	}
	if (changed)
		return true;
	/* The same value once more: no doubt where there is only one place it can have been. */
	if (count == 1 && only->number && !watch_register_lingers_sigsafe())
		caught(only, only->number, 0, context);
	else
		__atomic_fetch_add(&watch_state.area->rows[0].late, 1, __ATOMIC_RELAXED);
	return true; /* also where no object is armed: a register keeps its aim until the next */
}

bool hit_signal_sigsafe(int signo, const siginfo_t *info, ucontext_t *context)
{
	struct watch_armed *armed;
	uint64_t tag, number;
	bool late;

	if (signo != SIGTRAP || !watch_state.area)
		return false;
	if (!watch_registers_trap_sigsafe(info, &tag, &late))
		return nameless_trap(info, context);
	armed = armed_at((uint64_t)info->si_addr);
	number = armed ? __atomic_load_n(&armed->number, __ATOMIC_ACQUIRE) : 0;
	if (!number) {
		/* Its object has ended: no more of these until the register has a new one. */
		__atomic_fetch_add(&watch_state.area->rows[0].late, 1, __ATOMIC_RELAXED);
		watch_retire_register_sigsafe((unsigned)tag - 1, (uint64_t)info->si_addr);
		return true;
	}
	if (late)
		__atomic_fetch_add(&watch_state.area->rows[armed->watch].imprecise, 1,
				   __ATOMIC_RELAXED);
	caught(armed, number, late ? LOG_HIT_IMPRECISE : 0, context);
	others_look(armed, context);
	watch_registers_settle_sigsafe();
	return true;
}
