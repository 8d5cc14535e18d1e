#include "debuginfo/unwinder.h"

#include <errno.h>
#include <stdbool.h>

#include "arch/arch.h"
#include "arch/store.h"
#include "debuginfo/cfi.h"
#include "debuginfo/jit_names.h"
#include "debuginfo/module.h"
#include "debuginfo/space.h"
#include "debuginfo/tails.h"

#define SIGNALS_MAX 16			    /* nested signal frames */
#define GUESSES_MAX 8			    /* in one stack: beyond that it is noise */
#define GUESS_WORDS 512			    /* how far up a return address is looked for */
#define GUESS_STEPS 3			    /* from a guess on that must lead to code again */
#define CHECKS_MAX 1024			    /* in one stack: of guesses, where they lead */
#define REST_WORDS 512			    /* how far down what a function left is looked for */
#define FRAME_BYTES_MAX (UINT64_C(8) << 20) /* a frame pointer further away is not believed */
#define CODE_BYTES 256

struct walker {
	const struct arch *arch;
	struct space *space;
	struct jit_names *jit;
	struct registers registers;
	taddr missed; /* the address whose memory a rule wanted last and did not get; 0 for none */
	bool exact;   /* the pc is where execution stands, not a return address */
	unsigned int signals, guesses, checks;
};

/* What one step found out. */
struct unwind_step {
	bool signal;   /* this frame is a signal trampoline */
	bool began;    /* nobody called this frame's function: it was put there to begin */
	bool returned; /* the frame that was found is gone: its function has returned */
	unsigned int next_flags; /* for the frame that was found */
};

enum outcome {
	STEP_DONE,
	STEP_OUTERMOST,
	STEP_NO_MEMORY,
	STEP_NO_WAY,
};

static uint64_t reg(const struct walker *w, unsigned int number)
{
	return w->registers.value[number];
}

static bool knows(const struct walker *w, unsigned int number)
{
	return w->registers.known & (1u << number);
}

static bool is_code(struct walker *w, taddr address)
{
	const struct mapping *mapping = snapshot_mapping(w->space->snapshot, address);

	return mapping && (mapping->perms & MAPPING_EXEC);
}

enum belief {
	BELIEF_NO,
	BELIEF_MAYBE, /* in code whose bytes are not known */
	BELIEF_YES,   /* right after a call instruction */
};

static enum belief is_return_address(struct walker *w, taddr address)
{
	uint8_t code[16];
	size_t len;

	if (address == 0 || !is_code(w, address - 1))
		return BELIEF_NO;
	len = space_read_before(w->space, address, code, w->arch->max_call_len);
	if (len < 2)
		return BELIEF_MAYBE;
	return w->arch->ends_in_call(code, len) ? BELIEF_YES : BELIEF_NO;
}

/* Sets the caller's state after a step that was not made by call frame information. */
static void leave(struct walker *w, taddr pc, taddr sp, bool keep_saved)
{
	uint32_t keep = 1u << w->arch->fp;

	if (keep_saved)
		keep |= w->arch->callee_saved;
	keep |= ~((1u << w->arch->dwarf_count) - 1);
	w->registers.known &= keep;
	w->registers.value[w->arch->pc] = pc;
	w->registers.value[w->arch->sp] = sp;
	w->registers.known |= 1u << w->arch->pc | 1u << w->arch->sp;
	w->exact = false;
}

/* What a signal handler returns to. */
static bool is_trampoline(struct walker *w, taddr address)
{
	uint8_t code[16];

	return w->arch->sigreturn_len <= sizeof(code) &&
	       space_read(w->space, address, code, w->arch->sigreturn_len) &&
	       w->arch->is_sigreturn(code, w->arch->sigreturn_len);
}

static bool step_signal(struct walker *w, struct unwind_step *step)
{
	struct registers restored = w->registers;
	taddr sp = reg(w, w->arch->sp);

	if (!is_trampoline(w, reg(w, w->arch->pc)))
		return false;
	restored.known &= ~((1u << w->arch->dwarf_count) - 1);
	for (unsigned int i = 0; i < w->arch->register_count; i++) {
		int index = w->arch->saved_index(i);
		taddr at = sp + w->arch->sigframe_saved + 8 * (taddr)index;

		if (index >= 0 && space_read(w->space, at, &restored.value[i], 8))
			restored.known |= 1u << i;
	}
	if (!(restored.known & (1u << w->arch->pc)) || !(restored.known & (1u << w->arch->sp)))
		return false;
	w->registers = restored;
	w->exact = true;
	step->signal = true;
	return true;
}

/* The return address in the word at sp + offset. */
static bool step_top(struct walker *w, size_t offset)
{
	taddr slot = reg(w, w->arch->sp) + offset, address;

	if (!space_read(w->space, slot, &address, 8) || is_return_address(w, address) != BELIEF_YES)
		return false;
	leave(w, address, slot + 8, true);
	return true;
}

static bool step_frame_pointer(struct walker *w, struct unwind_step *step)
{
	taddr fp = reg(w, w->arch->fp), sp = reg(w, w->arch->sp), frame[2];

	if (!knows(w, w->arch->fp) || fp < sp || fp - sp > FRAME_BYTES_MAX || fp % 8 != 0 ||
	    !space_read(w->space, fp, frame, sizeof(frame)) ||
	    is_return_address(w, frame[1]) == BELIEF_NO)
		return false;
	leave(w, frame[1], fp + 16, false);
	w->registers.value[w->arch->fp] = frame[0];
	step->next_flags |= FRAME_BY_FRAME_POINTER;
	return true;
}

/* The state in a caller whose return address was found in the word at `at`, as far as it can be
 * told: only the frame pointer can be checked. Where it is none, the one below the return address
 * may be. */
static void leave_found(struct walker *w, taddr address, taddr at)
{
	taddr saved;

	leave(w, address, at + 8, true);
	w->registers.known &= ~w->arch->callee_saved | 1u << w->arch->fp;
	if (knows(w, w->arch->fp) && reg(w, w->arch->fp) >= at + 8)
		return;
	w->registers.known &= ~(1u << w->arch->fp);
	if (!snapshot_read(w->space->snapshot, at - 8, &saved, 8) || saved < at + 8 ||
	    saved - at > FRAME_BYTES_MAX)
		return;
	w->registers.value[w->arch->fp] = saved;
	w->registers.known |= 1u << w->arch->fp;
}

/* One step by call frame information, and nothing else: as cfi_unwind(). */
static int step_by_information(struct walker *w)
{
	struct cfi_step cfi = { 0 };
	struct place place;
	int r;

	space_find(w->space, reg(w, w->arch->pc) - 1, &place);
	if (place.match != MODULE_FOUND)
		return -ENOENT;
	r = cfi_unwind(place.module, place.vaddr, reg(w, w->arch->pc) - 1 - place.vaddr, space_read,
		       w->space, &w->registers, &cfi);
	return r > 0 && cfi.signal ? -ENOENT : r;
}

/* Stacks that were made by hand end in zero, or in a function that nobody called. */
static bool is_handmade_end(struct walker *w, taddr address)
{
	struct place place;
	uint64_t start;

	if (address == 0)
		return true;
	space_find(w->space, address, &place);
	return place.match == MODULE_FOUND && (place.mapping->perms & MAPPING_EXEC) &&
	       module_function_start(place.module, place.vaddr, &start) && start == place.vaddr;
}

/* Old return addresses lie about on the stack. From one that is in use the way leads on, as far as
 * call frame information tells it, and to where such a function was called. */
static enum belief leads_on(const struct walker *from)
{
	struct walker w = *from;

	for (unsigned int i = 0; i < GUESS_STEPS; i++) {
		taddr pc = reg(&w, w.arch->pc), sp = reg(&w, w.arch->sp), back;

		if (step_by_information(&w) <= 0)
			return BELIEF_YES;
		back = reg(&w, w.arch->pc);
		if (reg(&w, w.arch->sp) <= sp)
			return BELIEF_NO;
		if (is_return_address(&w, back) == BELIEF_NO)
			return is_trampoline(&w, back)	   ? BELIEF_YES
			       : is_handmade_end(&w, back) ? BELIEF_MAYBE
							   : BELIEF_NO;
		if (!tails_may_lead(w.space, back, pc - 1))
			return BELIEF_NO;
	}
	return BELIEF_YES;
}

static bool step_guess(struct walker *w, struct unwind_step *step)
{
	taddr at = (reg(w, w->arch->sp) + 7) & ~UINT64_C(7), address;
	enum belief belief = BELIEF_NO;
	struct walker best = *w;
	bool any = false;

	/* Nobody's stack is at the very end of the address space, where sums would wrap around. */
	if (w->guesses >= GUESSES_MAX || at < 8 || at > UINT64_MAX - 8 * (GUESS_WORDS + 1))
		return false;
	/* The first of those that are believed most. */
	for (unsigned int i = 0; i < GUESS_WORDS && belief != BELIEF_YES; i++, at += 8) {
		struct walker found = *w;
		enum belief this;

		if (!snapshot_read(w->space->snapshot, at, &address, 8))
			break;
		if (is_return_address(w, address) != BELIEF_YES)
			continue;
		leave_found(&found, address, at);
		this = ++w->checks > CHECKS_MAX ? BELIEF_YES : leads_on(&found);
		if (any && this <= belief)
			continue;
		best = found;
		belief = this;
		any = true;
	}
	if (!any)
		return false;
	best.checks = w->checks;
	*w = best;
	w->guesses++;
	step->next_flags |= FRAME_GUESSED;
	return true;
}

/* Was what stands at pc called, by an instruction right before `back` that went where its registers
 * led? Nothing has run since, so they are what they were. */
static bool was_called_from(struct walker *w, taddr back)
{
	uint8_t code[16];
	size_t len = space_read_before(w->space, back, code, sizeof(code));
	struct registers then = w->registers;
	struct trap trap = { .code = code,
			     .code_len = len,
			     .code_address = back - len,
			     .rip = back,
			     .registers = &then };
	taddr at, target = 0;
	struct access access;

	then.value[w->arch->sp] += 8;
	if (!arch_call_before(&trap, &at) || !arch_access_at(&trap, at, &access) || !access.jumps)
		return false;
	if (access.target >= 0)
		return access.target < REGISTERS_MAX && (then.known & 1u << access.target) &&
		       then.value[access.target] == reg(w, w->arch->pc);
	return memory_operand_address(&access.memory, &then, &at) &&
	       space_read(w->space, at, &target, 8) && target == reg(w, w->arch->pc);
}

/* Do the registers have what a function that returned like this would have left in them? */
static bool restored_by(const struct walker *caller, const struct walker *now)
{
	uint32_t both = caller->registers.known & now->registers.known & now->arch->callee_saved &
			~(1u << now->arch->sp);

	for (; both != 0; both &= both - 1) {
		unsigned int number = (unsigned int)__builtin_ctz(both);

		if (reg(caller, number) != reg(now, number))
			return false;
	}
	return true;
}

/* `back` was left in the word at `at` by a call. Did the function that made it return to where
 * execution stands now? By call frame information its frame ended at the stack pointer then, and
 * what it saved is in the registers. Its frame pointer is not known: it may have none, or have it
 * right below the return address, where it belongs, or what it called has saved it. */
static bool returned_from(const struct walker *now, taddr back, taddr at, struct walker *ret)
{
	unsigned int fp = now->arch->fp;
	taddr sp = reg(now, now->arch->sp), saved;
	struct walker gone = *now;

	leave(&gone, back, at + 8, false);
	gone.registers.known &= ~(1u << fp);
	for (unsigned int i = 0; i < 3; i++) {
		struct walker caller;

		if (i == 2 && !space_read(now->space, at - 8, &saved, 8))
			return false;
		if (i > 0) {
			gone.registers.value[fp] = i == 1 ? sp - 16 : saved;
			gone.registers.known |= 1u << fp;
		}
		caller = gone;
		if (step_by_information(&caller) > 0 && reg(&caller, now->arch->sp) == sp &&
		    reg(&caller, now->arch->pc) == reg(now, now->arch->pc) &&
		    restored_by(&caller, now)) {
			*ret = gone;
			return true;
		}
	}
	return false;
}

/* Execution stands where no code is, and a return led there: the word below the stack pointer says
 * so. Zeros stand there after a call through NULL, too; but no frame ends in the middle of such a
 * call, since frames end where the stack is aligned. */
static bool step_returned(struct walker *w, struct unwind_step *step)
{
	const struct snapshot *snapshot = w->space->snapshot;
	taddr sp = reg(w, w->arch->sp), word;

	if (sp <= 8 * REST_WORDS || !space_read(w->space, sp - 8, &word, 8) ||
	    word != reg(w, w->arch->pc) ||
	    (space_read(w->space, sp, &word, 8) && was_called_from(w, word)))
		return false;
	if (snapshot->left != 0 && snapshot->left_end == sp) {
		leave(w, snapshot->left, sp, false);
		step->returned = true;
		step->next_flags |= FRAME_RETURNED | FRAME_EXACT;
		return true;
	}
	for (unsigned int i = 2; i < REST_WORDS; i++) {
		taddr at = sp - 8 * (taddr)i;
		struct walker gone;

		if (!space_read(w->space, at, &word, 8))
			return false;
		if (is_return_address(w, word) != BELIEF_YES || !returned_from(w, word, at, &gone))
			continue;
		*w = gone;
		step->returned = true;
		step->next_flags |= FRAME_RETURNED;
		return true;
	}
	return false;
}

/* Execution stands in code without unwind information: where in its function? */
static bool step_innermost(struct walker *w)
{
	uint8_t before[CODE_BYTES], at[16];
	taddr pc = reg(w, w->arch->pc);
	size_t before_len, at_len, want = sizeof(before), offset;
	struct jit_name name;

	if (w->jit && jit_names_find(w->jit, pc, &name) && pc - name.start < want)
		want = (size_t)(pc - name.start);
	before_len = space_read_before(w->space, pc, before, want);
	at_len = space_read_after(w->space, pc, at, sizeof(at));
	if (w->arch->return_slot(before, before_len, at, at_len, &offset))
		return step_top(w, offset);
	/* A function that sets up a frame pointer somewhere before this point has it now; one that
	 * does not, and has a return address on top of its stack, is a leaf without a frame. */
	if (w->arch->sets_frame_pointer(before, before_len))
		return false;
	return step_top(w, 0);
}

/* A stack that was made by hand (makecontext, fibers) returns to the beginning of a function, which
 * nobody calls. */
static bool began_by_hand(struct walker *w)
{
	taddr pc = reg(w, w->arch->pc);
	struct place place;
	uint64_t start;

	if (w->exact || is_return_address(w, pc) != BELIEF_NO)
		return false;
	space_find(w->space, pc, &place);
	return place.match == MODULE_FOUND &&
	       module_function_start(place.module, place.vaddr, &start) && start == place.vaddr;
}

/* When nothing tells where the frame ends. */
static enum outcome step_by_looking(struct walker *w, struct unwind_step *step)
{
	taddr word;

	if (step_frame_pointer(w, step) || step_guess(w, step))
		return STEP_DONE;
	return space_read(w->space, reg(w, w->arch->sp), &word, 8) ? STEP_NO_WAY : STEP_NO_MEMORY;
}

static enum outcome step_without_information(struct walker *w, struct unwind_step *step)
{
	if (step_signal(w, step))
		return STEP_DONE;
	step->began = began_by_hand(w);
	if (step->began)
		return STEP_OUTERMOST;
	if (w->exact && (!is_code(w, reg(w, w->arch->pc)) ? step_returned(w, step) || step_top(w, 0)
							  : step_innermost(w)))
		return STEP_DONE;
	return step_by_looking(w, step);
}

static bool read_noting(void *arg, taddr address, void *buf, size_t len)
{
	struct walker *w = arg;

	if (space_read(w->space, address, buf, len))
		return true;
	w->missed = address;
	return false;
}

/* Did the last rule want a part of this very stack that was not recorded? Then it simply goes on
 * there, and anything found by guessing below would be wrong. */
static bool is_cut_off(struct walker *w)
{
	const struct mapping *stack = snapshot_mapping(w->space->snapshot, reg(w, w->arch->sp));
	taddr sp = reg(w, w->arch->sp);

	/* Of an allocation or a cut only code is known to be mapped. */
	if (!stack)
		return w->missed >= sp && w->missed - sp < FRAME_BYTES_MAX;
	return w->missed >= sp && w->missed < stack->end;
}

static enum outcome step_once(struct walker *w, struct unwind_step *step)
{
	taddr pc = reg(w, w->arch->pc);
	taddr inside = w->exact ? pc : pc - 1;
	struct cfi_step cfi = { 0 };
	struct place place;
	int r = -ENOENT;

	w->missed = 0;
	space_find(w->space, inside, &place);
	if (place.match == MODULE_FOUND)
		r = cfi_unwind(place.module, place.vaddr, inside - place.vaddr, read_noting, w,
			       &w->registers, &cfi);
	if (r == 0)
		return STEP_OUTERMOST;
	if (r == -EFAULT && is_cut_off(w))
		return STEP_NO_MEMORY;
	if (r < 0)
		return step_without_information(w, step);
	step->signal = cfi.signal;
	w->exact = cfi.signal;
	return STEP_DONE;
}

/* From where a frame ended whose function has returned to who was written over: to who called that.
 * What registers a function leaves as they were is what they are. */
static enum outcome step_past_returned(struct walker *w, const struct raw_frame *now,
				       struct unwind_step *step)
{
	w->registers = now->registers;
	leave(w, now->pc, now->registers.value[w->arch->sp], true);
	*step = (struct unwind_step){ 0 };
	return step_by_looking(w, step);
}

static enum stack_end end_of(enum outcome outcome)
{
	return outcome == STEP_OUTERMOST   ? STACK_COMPLETE
	       : outcome == STEP_NO_MEMORY ? STACK_TRUNCATED
					   : STACK_LOST;
}

/* Has the walk come round, or to its end? STACK_TOO_DEEP: neither, it goes on. */
static enum stack_end end_here(struct walker *w, const struct unwind_step *step, taddr old_pc,
			       taddr old_sp)
{
	/* From the signal's stack to any other: up or down. */
	if (step->signal)
		return ++w->signals > SIGNALS_MAX || (reg(w, w->arch->pc) == old_pc &&
						      reg(w, w->arch->sp) == old_sp)
			       ? STACK_LOOP
			       : STACK_TOO_DEEP;
	/* Stacks grow down, so a caller's part is above: else it would turn for ever. */
	if (reg(w, w->arch->sp) <= old_sp)
		return STACK_LOOP;
	/* Threads and hand-made stacks often end with a zero instead of a marked frame. */
	return reg(w, w->arch->pc) == 0 ? STACK_COMPLETE : STACK_TOO_DEEP;
}

size_t unwind(struct space *space, struct jit_names *jit, struct raw_frame *ret, size_t room,
	      enum stack_end *ret_end)
{
	struct walker w = {
		.arch = arch_native(),
		.space = space,
		.jit = jit,
		.registers = space->snapshot->registers,
		.exact = true,
	};
	unsigned int flags = 0;
	size_t count = 0;

	*ret_end = STACK_TOO_DEEP;
	while (count < room) {
		taddr old_pc = reg(&w, w.arch->pc), old_sp = reg(&w, w.arch->sp);
		struct raw_frame *frame = &ret[count++], *gone = NULL;
		struct unwind_step step = { 0 };
		enum outcome outcome;

		*frame = (struct raw_frame){ .pc = old_pc,
					     .flags = flags,
					     .registers = w.registers };
		frame->flags |= w.exact ? FRAME_EXACT : 0;
		outcome = step_once(&w, &step);
		frame->flags |= step.began ? FRAME_EXACT : 0;
		if (outcome == STEP_DONE && step.returned) {
			if (count == room)
				break;
			gone = &ret[count++];
			*gone = (struct raw_frame){ .pc = reg(&w, w.arch->pc),
						    .cfa = old_sp,
						    .flags = step.next_flags,
						    .registers = w.registers };
			outcome = step_past_returned(&w, frame, &step);
		}
		if (outcome != STEP_DONE) {
			*ret_end = end_of(outcome);
			break;
		}
		flags = step.next_flags;
		frame->flags |= step.signal ? FRAME_SIGNAL : 0;
		*ret_end = end_here(&w, &step, old_pc, old_sp);
		/* Nowhere has no frame: what is between is that of who was written over. */
		if (!gone && !step.signal && *ret_end != STACK_LOOP)
			frame->cfa = reg(&w, w.arch->sp);
		if (*ret_end != STACK_TOO_DEEP)
			break;
	}
	return count;
}
