/*
 * Who touched a closed page: told once for each instruction and kind of block, counted from then
 * on, and let through. The page is opened, the one instruction runs with the trap flag set, and the
 * page is closed again at the trap behind it.
 *
 * Meanwhile other threads can use the page unseen. A page that is used over and over stays open,
 * and so does one that a long string instruction is at: the program is to come to an end.
 */
#include <string.h>

#include "agent/arch/step.h"
#include "agent/arch/x86_64.h"
#include "agent/core/lanes.h"
#include "agent/core/log.h"
#include "agent/core/memory.h"
#include "agent/core/secret.h"
#include "agent/core/signals.h"
#include "agent/core/spin.h"
#include "agent/fence/fence_inside.h"
#include "agent/ids/blocks.h"
#include "wire/checksum.h"

#define SITES 1024u /* a power of two */
#define SITE_PROBES 32u
#define BORROWED 64u
#define STEP_PAGES 4u
#define STEP_REPEATS 64u  /* of one string instruction */
#define SLOT_FAULTS 64u	  /* then its page stays open */
#define ALL_FAULTS 20000u /* then each stays open after its first */
#define RETRIES 64u
#define ERROR_WRITE 2u
#define STRAYS_TOLD 2u /* with all that is needed to read back where the pointer came from */
#define STRAY_LEAST 64u

/* An instruction that touches blocks of one context in one way. */
struct access_site {
	uint64_t rip; /* 0: free */
	uint64_t about;
	uint64_t count;
	uint32_t number;
};

/* A thread that runs one instruction with pages open. By lane. */
struct access_step {
	uint32_t count; /* 0: it does not */
	uint32_t repeats;
	bool own; /* the target steps itself, too */
	bool written;
	uint64_t rip;
	const struct fence_slot *told; /* whose block, and how */
	uint32_t told_flags;
	uint64_t pages[STEP_PAGES];
	uint64_t retried; /* the address of the last fault on a page that was open, and how often */
	uint32_t retries;
};

static struct {
	uint32_t lock; /* of `borrowed` and of what keep.c has of pages */
	struct {
		uint64_t page; /* 0: none */
		uint32_t users;
		bool written;
	} borrowed[BORROWED];
	uint32_t sites_lock;
	uint32_t numbers;
	uint32_t strays;
	uint64_t let_through, left_open;
	struct access_site *sites;
	struct access_step *steps; /* PLAN_THREAD_SLOTS */
} state;

bool access_init(void)
{
	state.sites = memory_map_sigsafe(SITES * sizeof(state.sites[0]));
	state.steps = memory_map_sigsafe(PLAN_THREAD_SLOTS * sizeof(state.steps[0]));
	return state.sites && state.steps;
}

/* Only one thread is left, and it runs no such instruction. */
void access_after_fork(void)
{
	state.lock = state.sites_lock = 0;
	state.numbers = state.strays = 0;
	state.let_through = 0;
	memset(state.sites, 0, SITES * sizeof(state.sites[0]));
}

static uint64_t greg(const ucontext_t *context, int n)
{
	return (uint64_t)context->uc_mcontext.gregs[n];
}

static bool used(const struct fence_slot *slot)
{
	return slot && slot->state != FENCE_FREE;
}

/* Between two blocks it is about the nearer one. */
bool access_about_sigsafe(uint64_t address, struct fence_seen *ret)
{
	struct fence_slot *slot = slot_at_sigsafe(address), *behind;
	uint64_t end;

	if (!slot) /* before the very first */
		slot = slot_at_sigsafe(address + FENCE_PAGE);
	if (!slot)
		return false;
	if (address >= fence_high(slot)) {
		behind = slot_behind_sigsafe(slot);
		end = slot->start + slot->size;
		if (!used(slot) || (used(behind) && behind->start - address < address - end))
			slot = behind;
	}
	if (!used(slot))
		return false;
	ret->slot = slot;
	ret->address = address;
	if (slot->state == FENCE_FREED)
		ret->side = LOG_FENCE_FREED;
	else
		ret->side = address < slot->start ? LOG_FENCE_BEFORE : LOG_FENCE_BEHIND;
	return true;
}

bool access_closed_sigsafe(const struct fence_slot *slot, uint64_t address)
{
	return address >= fence_high(slot) || slot->state == FENCE_FREED;
}

/* NULL: no room. */
static struct access_site *site_find(uint64_t rip, uint64_t about)
{
	uint64_t at = checksum_mix(rip, about);
	unsigned i;

	for (i = 0; i < SITE_PROBES; i++) {
		struct access_site *site = &state.sites[(at + i) % SITES];

		if (!site->rip) {
			*site = (struct access_site){ .rip = rip, .about = about };
			return site;
		}
		if (site->rip == rip && site->about == about)
			return site;
	}
	return NULL;
}

static uint32_t stack_context(const ucontext_t *context)
{
	struct caller caller = { greg(context, REG_RIP) + 1, greg(context, REG_RSP) - 16,
				 greg(context, REG_RBP) };
	struct guard guard;
	uint32_t found;

	if (!thread_self || thread_self->fast.busy || !guard_enter(&guard))
		return 0;
	found = context_find(&guard, caller);
	guard_leave(&guard);
	return found;
}

static void record(const struct fence_seen *seen, const struct block *block,
		   const ucontext_t *context, uint32_t number)
{
	struct log_fence_access record = { .number = number,
					   .side = seen->side,
					   .flags = seen->flags,
					   .call = seen->call,
					   .address = seen->address,
					   .length = seen->length };
	struct log_block hit = { .via = LOG_VIA_FENCE,
				 .where = seen->address,
				 .value = seen->address };
	struct block_view view = { .start = seen->slot->start,
				   .size = seen->slot->size,
				   .relation = LOG_INSIDE };
	struct log_writer writer;

	record.context = stack_context(context);
	record.tid = (uint32_t)raw_syscall0(SYS_gettid);
	record.offset = (int64_t)(seen->address - seen->slot->start);
	record.code_bytes = (uint32_t)memory_read_sigsafe(record.code, greg(context, REG_RIP),
							  sizeof(record.code));
	memcpy(record.gregs, context->uc_mcontext.gregs, sizeof(record.gregs));
	secret_hide_registers_sigsafe(record.gregs, sizeof(record.gregs), 8);
	if (block)
		view.block = *block;
	log_writer_init_sigsafe(&writer, LOG_TO_EVENTS);
	(void)log_begin_sigsafe(&writer, LOG_FENCE_ACCESS, &record, sizeof(record));
	block_describe_sigsafe(&view, &hit);
	(void)log_append_sigsafe(&writer, LOG_BLOCK, &hit, sizeof(hit), NULL, 0);
}

void access_record_sigsafe(int signo, const siginfo_t *info, const ucontext_t *context)
{
	static const struct sigaction by_default;
	uint64_t last = thread_self ? thread_self->signals.last_crash : 0;

	if (__atomic_fetch_add(&state.strays, 1, __ATOMIC_RELAXED) >= STRAYS_TOLD)
		return;
	signals_recorder.handled(signals_recorder.record(signo, info, context, LOG_CRASH_FORWARDED,
							 &by_default),
				 NULL);
	if (thread_self)
		thread_self->signals.last_crash = last;
}

/* No run over an end leads so far: the pointer itself may be bad. */
static bool strays(const struct fence_seen *seen)
{
	return seen->info && seen->side != LOG_FENCE_FREED &&
	       seen->address + STRAY_LEAST - seen->slot->start >=
		       seen->slot->size + 2 * STRAY_LEAST;
}

void access_tell_sigsafe(const struct fence_seen *seen, const ucontext_t *context)
{
	const struct block *block = block_at_sigsafe(BLOCKS_HEAP, fence_key(seen->slot));
	uint64_t about = block ? block->context & BLOCK_CONTEXT_MASK : 0;
	uint32_t number = 0;
	struct access_site *site;

	__atomic_fetch_add(&state.let_through, 1, __ATOMIC_RELAXED);
	if (!agent_switch.ids || !spin_take_sigsafe(&state.sites_lock, FENCE_SPINS))
		return;
	site = site_find(greg(context, REG_RIP),
			 about << 8 | (uint64_t)seen->side << 4 | seen->flags);
	if (site && !site->count++)
		number = site->number = ++state.numbers;
	spin_give_sigsafe(&state.sites_lock);
	if (number) {
		record(seen, block, context, number);
		if (strays(seen))
			access_record_sigsafe(SIGSEGV, seen->info, context);
	}
}

void access_counts_sigsafe(struct log_fence_end *ret)
{
	struct log_fence_counts record = { .first = 1 };
	uint32_t i;

	ret->accesses = state.numbers;
	ret->let_through = state.let_through;
	ret->left_open = state.left_open;
	for (; record.first <= state.numbers; record.first += LOG_FENCE_COUNTS) {
		memset(record.counts, 0, sizeof(record.counts));
		record.count = state.numbers + 1 - record.first;
		if (record.count > LOG_FENCE_COUNTS)
			record.count = LOG_FENCE_COUNTS;
		for (i = 0; i < SITES; i++)
			if (state.sites[i].rip &&
			    state.sites[i].number - record.first < LOG_FENCE_COUNTS)
				record.counts[state.sites[i].number - record.first] =
					state.sites[i].count;
		log_event_sigsafe(LOG_FENCE_COUNT, &record, sizeof(record));
	}
}

bool page_borrow_sigsafe(struct fence_slot *slot, uint64_t page)
{
	struct shutter_range range = { page, FENCE_PAGE };
	uint32_t i, spare = BORROWED;
	bool good = true;

	if (!spin_take_sigsafe(&state.lock, FENCE_SPINS))
		return false;
	for (i = 0; i < BORROWED && state.borrowed[i].page != page; i++)
		if (!state.borrowed[i].page)
			spare = i;
	if (i < BORROWED) {
		state.borrowed[i].users++;
	} else {
		/* One that was left open has what the target wrote there since. */
		if (!memory_readable_sigsafe(page, 1)) {
			good = shutter_open(&range, 1);
			if (good)
				keep_restore_sigsafe(slot, page);
		}
		slot->faults++;
		if (spare < BORROWED) {
			state.borrowed[spare].page = page;
			state.borrowed[spare].users = 1;
			state.borrowed[spare].written = false;
		}
	}
	spin_give_sigsafe(&state.lock);
	return good;
}

/* Is it to be closed again? */
static bool closes(uint64_t page)
{
	const struct fence_slot *slot = slot_at_sigsafe(page);

	if (fence.left)
		return false;
	if (page == fence.base)
		return true;
	return slot && access_closed_sigsafe(slot, page) && slot->state != FENCE_FREE &&
	       slot->faults < SLOT_FAULTS && state.let_through < ALL_FAULTS;
}

void page_return_sigsafe(uint64_t page, bool written)
{
	uint32_t i;

	if (!spin_take_sigsafe(&state.lock, FENCE_SPINS))
		return;
	for (i = 0; i < BORROWED && state.borrowed[i].page != page; i++)
		;
	if (i == BORROWED) { /* too many at once: it stays open */
		state.left_open++;
	} else {
		state.borrowed[i].written |= written;
		if (!--state.borrowed[i].users) {
			if (closes(page) && (!state.borrowed[i].written || keep_page_sigsafe(page)))
				(void)shutter_close(page, FENCE_PAGE);
			else
				state.left_open++;
			state.borrowed[i].page = 0;
		}
	}
	spin_give_sigsafe(&state.lock);
}

void page_leave_sigsafe(struct fence_slot *slot, uint64_t page, bool written)
{
	if (!page_borrow_sigsafe(slot, page))
		return;
	slot->faults += SLOT_FAULTS;
	page_return_sigsafe(page, written);
}

static struct access_step *step_of(void)
{
	struct thread *self = thread_self ? thread_self : thread_adopt_sigsafe();

	return self && self->lane < PLAN_THREAD_SLOTS ? &state.steps[self->lane] : NULL;
}

static void step_end(struct access_step *step, ucontext_t *context)
{
	uint32_t i;

	for (i = 0; i < step->count; i++)
		page_return_sigsafe(step->pages[i], step->written);
	step->count = 0;
	if (!step->own)
		context->uc_mcontext.gregs[REG_EFL] &= ~(greg_t)FLAG_TRAP;
}

/* Another page of the same instruction, or the first. */
static bool step_begin(struct access_step *step, struct fence_slot *slot, uint64_t page,
		       ucontext_t *context)
{
	if (step->count == STEP_PAGES)
		step_end(step, context);
	if (!page_borrow_sigsafe(slot, page))
		return false;
	if (!step->count) {
		step->own = greg(context, REG_EFL) & FLAG_TRAP;
		step->repeats = 0;
		step->written = false;
	}
	step->rip = greg(context, REG_RIP);
	step->written |= greg(context, REG_ERR) & ERROR_WRITE;
	step->pages[step->count++] = page;
	context->uc_mcontext.gregs[REG_EFL] |= FLAG_TRAP;
	return true;
}

static bool step_signal(const siginfo_t *info, ucontext_t *context)
{
	struct access_step *step = thread_self && thread_self->lane < PLAN_THREAD_SLOTS
					   ? &state.steps[thread_self->lane]
					   : NULL;
	bool own;

	if (!step || !step->count || !step_trap(info, context))
		return false;
	/* A string instruction traps behind each of its parts. */
	if (greg(context, REG_RIP) == step->rip && step->repeats++ < STEP_REPEATS)
		return true;
	if (step->repeats >= STEP_REPEATS) {
		uint32_t i;

		for (i = 0; i < step->count; i++) {
			struct fence_slot *slot = slot_at_sigsafe(step->pages[i]);

			if (slot)
				slot->faults += SLOT_FAULTS; /* stays open */
		}
	}
	own = step->own;
	step_end(step, context);
	return !own;
}

/* Another thread has opened it meanwhile: the instruction is tried again. Not for ever. */
static bool tries_again(struct access_step *step, uint64_t address)
{
	if (step->retried != address)
		step->retries = 0;
	step->retried = address;
	return step->retries++ < RETRIES;
}

/* An access of the target's to memory of ours? The agent's own reads come back by themselves. */
static bool fault_about(const siginfo_t *info, uint64_t rip, bool ours, struct fence_seen *ret)
{
	if (info->si_code <= 0 || !fence_holds(info->si_addr))
		return false;
	if (ours &&
	    (arch_fault_resume(rip) || (thread_self && thread_self->signals.recovery_armed)))
		return false;
	return access_about_sigsafe((uint64_t)info->si_addr, ret);
}

static bool fault_signal(const siginfo_t *info, ucontext_t *context)
{
	uint64_t address = (uint64_t)info->si_addr, rip = greg(context, REG_RIP);
	struct access_step *step = step_of();
	struct fence_seen seen = { .info = info };
	struct fence_slot *slot;
	bool ours;

	if (!step)
		return false;
	ours = rip - agent.text_low < agent.text_high - agent.text_low;
	if (!fault_about(info, rip, ours, &seen)) {
		if (step->count) /* it faults elsewhere: the target's own */
			step_end(step, context);
		return false;
	}
	slot = slot_at_sigsafe(address) ?: seen.slot;
	if (address >= fence_low(slot) && !access_closed_sigsafe(slot, address))
		return tries_again(step, address);
	seen.flags = greg(context, REG_ERR) & ERROR_WRITE ? LOG_FENCE_WRITE : 0;
	/* A hook that looks at what the target hands on: the system call behind it is told. An
	 * instruction may read one block and write another. */
	if (!ours && (!step->count || step->rip != rip || step->told != seen.slot ||
		      step->told_flags != seen.flags))
		access_tell_sigsafe(&seen, context);
	step->told = seen.slot;
	step->told_flags = seen.flags;
	if (step_begin(step, slot, address & ~(uint64_t)(FENCE_PAGE - 1), context))
		return true;
	/* Another thread is at the pages, and waits for a core on a busy machine: the target must
	 * not die of that. */
	(void)raw_syscall0(SYS_sched_yield);
	return tries_again(step, address);
}

bool fence_signal_sigsafe(int signo, const siginfo_t *info, ucontext_t *context)
{
	if (!(agent.faults & AGENT_FAULTS_FENCES))
		return false;
	if (signo == SIGSEGV && fence.left) { /* who was about to close it meanwhile did so */
		struct shutter_range page = { (uint64_t)info->si_addr & ~(FENCE_PAGE - 1ull),
					      FENCE_PAGE };

		return fence_holds(info->si_addr) && shutter_open(&page, 1);
	}
	if (signo == SIGSEGV)
		return fault_signal(info, context);
	return signo == SIGTRAP && step_signal(info, context);
}
