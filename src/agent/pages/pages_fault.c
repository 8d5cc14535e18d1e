/*
 * Stores to watched pages: pages.h.
 *
 * The instruction is decoded, run on the writable view of the same memory, and who it was is told
 * for every watched object that it wrote to. Old and new value are taken under the lock of the
 * block, with the store in between, so they are right however many threads write there.
 *
 * What cannot be run elsewhere (a scatter, a push where the stack itself is watched) runs where it
 * is, with the pages open for that one instruction. Writes of others in that moment go unseen, so
 * such instructions are counted and told.
 */
#include "agent/pages/pages_inside.h"

#include <string.h>
#include <sys/mman.h>

#include "agent/arch/step.h"
#include "agent/arch/x86_64.h"
#include "agent/arch/x86_64_store.h"
#include "agent/core/lanes.h"
#include "agent/core/told.h"
#include "agent/watch/hit.h"
#include "agent/watch/watched.h"

#define TOUCHED_MOST 32u
#define STRING_CHUNK 512u
#define ERROR_WRITE 2u /* of the page fault's error code */
#define FLAG_DOWN 0x400u
#define CODE_ACCERR 2
#define STACK_STORES 16u /* through a stack pointer that is believed to be another pointer */

/* The bytes that a store writes. */
struct stretch {
	uint64_t low, high;
	const uint64_t *mask; /* of the 128 bytes from mask_low on; NULL: all of them */
	uint64_t mask_low;
};

/* An object that it writes to. */
struct touched {
	struct pages_armed *object; /* while the lock is held */
	struct watch_armed armed;   /* a copy, for afterwards */
	uint64_t old[WATCH_WORDS], new[WATCH_WORDS];
};

static uint64_t greg(const ucontext_t *context, int n)
{
	return (uint64_t)context->uc_mcontext.gregs[n];
}

static void value_take(const struct watch_armed *armed, uint64_t words[WATCH_WORDS])
{
	memset(words, 0, WATCH_WORDS * sizeof(words[0]));
	memcpy(words, (const void *)(armed->address + pages.distance), armed->bytes);
}

static bool covers(const struct stretch *stretch, const struct watch_armed *armed)
{
	uint64_t at, end = armed->address + armed->bytes;

	if (armed->address >= stretch->high || end <= stretch->low)
		return false;
	if (!stretch->mask)
		return true;
	for (at = armed->address; at < end; at++) {
		uint64_t bit = at - stretch->mask_low;

		if (bit < 128 && (stretch->mask[bit / 64] & 1ull << bit % 64))
			return true;
	}
	return false;
}

/* Under the lock. Those that do not fit are left out, and the count tells. */
static uint32_t gather(const struct stretch *stretch, struct touched *ret)
{
	uint32_t count = 0, next;
	uint64_t at;

	for (at = stretch->low; at < stretch->high; at = pages_slot_end_sigsafe(at)) {
		struct pages_slot *slot = pages_slot_sigsafe(at);

		for (next = slot ? slot->armed : 0; next; next = pages.objects[next - 1].next) {
			struct pages_armed *object = &pages.objects[next - 1];

			if (!object->armed.number || !covers(stretch, &object->armed))
				continue;
			if (count < TOUCHED_MOST) {
				ret[count].object = object;
				value_take(&object->armed, ret[count].old);
				if (!object->calls && memcmp(ret[count].old, object->armed.last,
							     sizeof(object->armed.last)) != 0)
					watch_look(&object->armed);
			}
			count++;
		}
	}
	return count;
}

/* After the store, still under the lock. */
static void values_after(struct touched *list, uint32_t count)
{
	uint32_t i;

	for (i = 0; i < count && i < TOUCHED_MOST; i++) {
		struct watch_armed *armed = &list[i].object->armed;

		value_take(armed, list[i].new);
		memcpy(armed->last, list[i].new, sizeof(armed->last));
		list[i].armed = *armed;
	}
}

static void tell(const struct touched *list, uint32_t count, const ucontext_t *before)
{
	uint32_t i;

	for (i = 0; i < count && i < TOUCHED_MOST; i++)
		hit_store_sigsafe(&list[i].armed, list[i].old, list[i].new, -1, before);
}

static struct arch_scratch *spare; /* of threads without a lane */
static uint32_t spare_lock;

static struct arch_scratch *scratch_take(void)
{
	struct thread *self = thread_self;
	uint32_t none = 0;

	if (self) {
		if (!self->told.scratch)
			self->told.scratch = arch_scratch_new();
		return self->told.scratch;
	}
	while (!__atomic_compare_exchange_n(&spare_lock, &none, 1, false, __ATOMIC_ACQUIRE,
					    __ATOMIC_RELAXED)) {
		none = 0;
		(void)raw_syscall0(SYS_sched_yield);
	}
	if (!spare)
		spare = arch_scratch_new();
	return spare;
}

static void scratch_give(void)
{
	if (!thread_self)
		__atomic_store_n(&spare_lock, 0, __ATOMIC_RELEASE);
}

/* Nothing of the instruction is visible to the target but that it is done: not even that it was not
 * stepped over, where the target steps itself. Its trap comes when we return. */
static void trap_owed(const ucontext_t *context)
{
	siginfo_t info;
	uint64_t trap = 1ull << (SIGTRAP - 1);

	if (!(greg(context, REG_EFL) & FLAG_TRAP))
		return;
	memset(&info, 0, sizeof(info));
	info.si_signo = SIGTRAP;
	info.si_code = CODE_TRACE;
	info.si_addr = (void *)greg(context, REG_RIP);
	(void)raw_syscall4(SYS_rt_sigprocmask, SIG_BLOCK, &trap, 0, 8);
	(void)raw_syscall4(SYS_rt_tgsigqueueinfo, raw_syscall0(SYS_getpid),
			   raw_syscall0(SYS_gettid), SIGTRAP, &info);
}

/* For the record. No store changes its own mask, so vector registers may as well be those after it.
 */
static void registers_keep(ucontext_t *to, const ucontext_t *context)
{
	memcpy(&to->uc_mcontext.gregs, &context->uc_mcontext.gregs, sizeof(to->uc_mcontext.gregs));
	to->uc_mcontext.fpregs = context->uc_mcontext.fpregs;
}

static __attribute__((noinline)) bool store_run(const struct arch_store *store, uint64_t address,
						ucontext_t *context)
{
	struct arch_scratch *scratch = scratch_take();
	struct stretch stretch = { store->low, store->low + store->width, NULL, 0 };
	struct touched list[TOUCHED_MOST];
	struct pages_locks locks;
	ucontext_t before;
	uint64_t mask[2];
	uint32_t count;

	if (!scratch) {
		scratch_give();
		return false;
	}
	if (!store->width) {
		arch_store_probe(scratch, store, context, address, &stretch.mask_low, mask);
		stretch.mask = mask;
		stretch.low = stretch.mask_low;
		stretch.high = stretch.low + 128;
		if (stretch.low < pages.base)
			stretch.low = pages.base;
	}
	locks = pages_lock_sigsafe(stretch.low, stretch.high);
	count = gather(&stretch, list);
	if (count)
		registers_keep(&before, context);
	arch_store_run(scratch, store, context, pages.distance);
	values_after(list, count);
	pages_unlock_sigsafe(locks);
	scratch_give();
	tell(list, count, &before);
	trap_owed(context);
	return true;
}

/* Whole elements that can be done at once: inside of these pages. */
static uint64_t elements_at_once(const struct arch_store *store, const ucontext_t *context)
{
	uint64_t to = greg(context, REG_RDI), room;
	uint64_t count = store->repeated ? greg(context, REG_RCX) : 1, width = store->width;
	bool down = greg(context, REG_EFL) & FLAG_DOWN;

	room = down ? to + width - pages.base : pages.top - to;
	if (count > room / width)
		count = room / width;
	if (count > STRING_CHUNK / width)
		count = STRING_CHUNK / width;
	return count ? count : 1;
}

/* A copy onto itself, whose first elements are the source of later ones. */
static bool onto_itself(const struct arch_store *store, const ucontext_t *context, uint64_t count)
{
	uint64_t to = greg(context, REG_RDI), from = greg(context, REG_RSI);
	uint64_t apart = greg(context, REG_EFL) & FLAG_DOWN ? from - to : to - from;

	return store->copies && apart && apart < count * store->width && pages_hold(from);
}

/* Not more than there is room to tell of, and no object in two parts. */
static uint64_t elements_whole(uint64_t low, uint64_t count, uint64_t width, bool down)
{
	uint64_t at, high = low + count * width, seen = 0;
	uint32_t next;

	if (down)
		return count;
	for (at = low; at < high; at = pages_slot_end_sigsafe(at)) {
		struct pages_slot *slot = pages_slot_sigsafe(at);

		for (next = slot ? slot->armed : 0; next; next = pages.objects[next - 1].next) {
			const struct watch_armed *armed = &pages.objects[next - 1].armed;

			if (armed->address >= high || armed->address + armed->bytes <= low)
				continue;
			if ((armed->address + armed->bytes > high || ++seen > TOUCHED_MOST) &&
			    armed->address > low + width)
				high = low + (armed->address - low) / width * width;
		}
	}
	return (high - low) / width;
}

/* One after the other, from the memory itself. */
static void elements_copy(const struct arch_store *store, const ucontext_t *context, uint64_t count)
{
	unsigned char *to = (unsigned char *)(greg(context, REG_RDI) + pages.distance);
	const unsigned char *from =
		(const unsigned char *)(greg(context, REG_RSI) + pages.distance);
	int64_t step = greg(context, REG_EFL) & FLAG_DOWN ? -(int64_t)store->width : store->width;
	uint64_t value = 0;

	for (; count; count--, to += step, from += step) {
		memcpy(&value, from, store->width);
		memcpy(to, &value, store->width);
	}
}

static void string_put(const struct arch_store *store, const ucontext_t *context,
		       const unsigned char *from, uint64_t low, uint64_t count)
{
	unsigned char *to = (unsigned char *)(low + pages.distance);
	uint64_t value = greg(context, REG_RAX), i;

	if (store->copies && !from) {
		elements_copy(store, context, count);
		return;
	}
	if (store->copies) {
		memcpy(to, from, count * store->width);
		return;
	}
	for (i = 0; i < count; i++)
		memcpy(to + i * store->width, &value, store->width);
}

/* The registers as the instruction leaves them after `count` elements; true when it is done. */
static bool string_move(const struct arch_store *store, ucontext_t *context, uint64_t count)
{
	greg_t *gregs = context->uc_mcontext.gregs;
	int64_t step = (int64_t)(count * store->width);

	if (greg(context, REG_EFL) & FLAG_DOWN)
		step = -step;
	gregs[REG_RDI] += step;
	if (store->copies)
		gregs[REG_RSI] += step;
	if (store->repeated)
		gregs[REG_RCX] -= (greg_t)count;
	if (store->repeated && gregs[REG_RCX])
		return false;
	gregs[REG_RIP] += store->length;
	return true;
}

/* One piece of it. False: what it copies from cannot be read; the instruction, run again, faults
 * there, as it would have. */
static bool string_piece(const struct arch_store *store, ucontext_t *context,
			 const ucontext_t *before, bool *ret_done)
{
	bool down = greg(context, REG_EFL) & FLAG_DOWN;
	uint64_t count = elements_at_once(store, context), width = store->width, low, from;
	unsigned char buffer[STRING_CHUNK];
	struct touched list[TOUCHED_MOST];
	struct stretch stretch;
	struct pages_locks locks;
	uint32_t touched;
	bool itself;

	count = elements_whole(greg(context, REG_RDI), count, width, down);
	from = greg(context, REG_RSI) - (down ? (count - 1) * width : 0);
	itself = onto_itself(store, context, count);
	while (store->copies && !itself &&
	       !watch_read_sigsafe(buffer, from, (uint32_t)(count * width))) {
		if (count == 1)
			return false;
		count = 1;
		from = greg(context, REG_RSI);
	}
	low = greg(context, REG_RDI) - (down ? (count - 1) * width : 0);
	stretch = (struct stretch){ low, low + count * width, NULL, 0 };
	locks = pages_lock_sigsafe(stretch.low, stretch.high);
	touched = gather(&stretch, list);
	string_put(store, context, itself ? NULL : buffer, low, count);
	values_after(list, touched);
	pages_unlock_sigsafe(locks);
	tell(list, touched, before);
	*ret_done = string_move(store, context, count);
	return true;
}

static __attribute__((noinline)) void string_run(const struct arch_store *store,
						 ucontext_t *context)
{
	ucontext_t before;
	bool done = false;

	registers_keep(&before, context);
	do {
		if (!string_piece(store, context, &before, &done))
			return;
	} while (!done && pages_hold(greg(context, REG_RDI)) && greg(context, REG_RDI) < pages.top);
	if (done)
		trap_owed(context);
}

static uint32_t opened; /* by so many threads; atomic */

/* For one instruction, after which step_signal() closes them. */
static bool open_and_step(ucontext_t *context, uint64_t address)
{
	struct thread *self = thread_self;

	if (!self)
		self = thread_adopt_sigsafe();
	if (!self)
		return false;
	if (!self->told.stepping) {
		if (!__atomic_fetch_add(&opened, 1, __ATOMIC_ACQ_REL))
			pages_rights_all_sigsafe(true);
		if (watch_state.area)
			__atomic_fetch_add(&watch_state.area->rows[0].opened, 1, __ATOMIC_RELAXED);
		self->told.stepping = 1 + !!(greg(context, REG_EFL) & FLAG_TRAP);
	} else {
		pages_rights_all_sigsafe(true); /* another thread has closed them meanwhile */
	}
	self->told.step_address = address;
	memcpy(self->told.step_gregs, context->uc_mcontext.gregs, sizeof(self->told.step_gregs));
	context->uc_mcontext.gregs[REG_EFL] |= FLAG_TRAP;
	return true;
}

static void step_end(struct thread *self)
{
	self->told.stepping = 0;
	if (__atomic_sub_fetch(&opened, 1, __ATOMIC_ACQ_REL) == 0)
		pages_rights_all_sigsafe(false);
}

/* Everything near that has changed; what was written as it was before cannot be told. */
static void step_tell(const struct thread *self)
{
	uint64_t address = self->told.step_address & ~63ull;
	struct stretch stretch = { address - PAGE < pages.base ? pages.base : address - PAGE,
				   address + PAGE, NULL, 0 };
	struct touched list[TOUCHED_MOST];
	struct pages_locks locks;
	ucontext_t before;
	uint32_t count = 0, next;
	uint64_t at;

	locks = pages_lock_sigsafe(stretch.low, stretch.high);
	for (at = stretch.low; at < stretch.high; at = pages_slot_end_sigsafe(at)) {
		struct pages_slot *slot = pages_slot_sigsafe(at);

		for (next = slot ? slot->armed : 0; next; next = pages.objects[next - 1].next) {
			struct pages_armed *object = &pages.objects[next - 1];

			value_take(&object->armed, list[count].new);
			if (!object->armed.number || object->calls || count == TOUCHED_MOST - 1 ||
			    !memcmp(list[count].new, object->armed.last, sizeof(list[0].new)))
				continue;
			memcpy(list[count].old, object->armed.last, sizeof(list[0].old));
			list[count++].object = object;
		}
	}
	values_after(list, count);
	pages_unlock_sigsafe(locks);
	memcpy(&before.uc_mcontext.gregs, self->told.step_gregs, sizeof(self->told.step_gregs));
	before.uc_mcontext.fpregs = NULL;
	tell(list, count, &before);
}

static bool step_signal(const siginfo_t *info, ucontext_t *context)
{
	struct thread *self = thread_self;
	bool own;

	if (!self || !self->told.stepping || !step_trap(info, context))
		return false;
	own = self->told.stepping == 2; /* the target steps itself: the trap is for it, too */
	step_end(self);
	step_tell(self);
	if (!own)
		context->uc_mcontext.gregs[REG_EFL] &= ~(greg_t)FLAG_TRAP;
	return !own;
}

static uint32_t code_read(uint64_t rip, uint8_t code[ARCH_INSTRUCTION_MAX])
{
	uint32_t bytes = ARCH_INSTRUCTION_MAX, room = PAGE - (uint32_t)(rip % PAGE);

	if (watch_read_sigsafe(code, rip, bytes))
		return bytes;
	return room < bytes && watch_read_sigsafe(code, rip, room) ? room : 0;
}

/* Has the target a handler that would run on whatever stack is in use? */
static bool handlers_come(void)
{
	struct told_action action;
	int signo;

	for (signo = 1; signo <= 64; signo++)
		if (!raw_syscall4(SYS_rt_sigaction, signo, 0, &action, 8) && action.handler > 1 &&
		    !(action.flags & SA_ONSTACK))
			return true;
	return false;
}

/* pushf. It must not be stepped: the step would be among the flags, and popf would make it anew. */
static bool pushes_flags(const uint8_t *code, uint32_t have)
{
	return have > 1 && code[code[0] == 0x66 || (code[0] & 0xf0) == 0x40] == 0x9c;
}

/* Some code stores through the stack pointer where it is none. So it is believed to be one when a
 * signal may come there, when flags are pushed, or when there were many such stores. True: the
 * instruction can be made now, since its own pages were meant. */
static bool stack_opened(const ucontext_t *context, uint64_t address, bool flags)
{
	static uint32_t stores; /* atomic */
	uint64_t stack = greg(context, REG_RSP);

	return pages_hold(stack) &&
	       (__atomic_fetch_add(&stores, 1, __ATOMIC_RELAXED) > STACK_STORES || flags ||
		handlers_come()) &&
	       pages_let_go_sigsafe(stack) && pages_left_sigsafe(address);
}

static bool store_signal(const siginfo_t *info, ucontext_t *context)
{
	uint64_t address = (uint64_t)info->si_addr;
	uint8_t code[ARCH_INSTRUCTION_MAX];
	struct arch_store store;
	uint32_t have;

	if (thread_self && thread_self->told.stepping && !pages_hold(address))
		step_end(thread_self); /* it faults elsewhere: the target's own */
	if (address - pages.base - PAGE >= pages.top - pages.base - PAGE ||
	    info->si_code != CODE_ACCERR || !(greg(context, REG_ERR) & ERROR_WRITE) ||
	    pages_denied_sigsafe(address) || watch_fences())
		return false;
	if (!thread_self || !thread_self->told.dispatched)
		told_interrupted_sigsafe(context);
	have = code_read(greg(context, REG_RIP), code);
	if (stack_opened(context, address, pushes_flags(code, have)))
		return true;
	if (!arch_store_decode(code, have, context, address, &store))
		return open_and_step(context, address);
	if (store.how == ARCH_STORE_STRING) {
		string_run(&store, context);
		return true;
	}
	return store_run(&store, address, context) || open_and_step(context, address);
}

bool pages_signal_sigsafe(int signo, const siginfo_t *info, ucontext_t *context)
{
	if (agent.faults != AGENT_FAULTS_PAGES)
		return false;
	if (signo == SIGSEGV)
		return store_signal(info, context);
	return signo == SIGTRAP && step_signal(info, context);
}
