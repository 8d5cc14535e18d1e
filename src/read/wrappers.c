#include "read/wrappers.h"

#include <string.h>

#include "arch/arch.h"
#include "arch/code.h"
#include "arch/store.h"
#include "base/vec.h"
#include "model/crash.h"

#define DEPTH_MAX 3u	  /* wrappers around wrappers */
#define CALL_BYTES_MIN 5u /* direct; through memory it is one more */

/* What is known of the places that were looked at. */
struct wrappers {
	VEC(struct {
		uint64_t address;
		bool passes_on;
	})
	known;
};

struct wrappers *wrappers_new(void)
{
	struct wrappers *wrappers = mem_alloc(sizeof(*wrappers));

	*wrappers = (struct wrappers){ 0 };
	return wrappers;
}

void wrappers_free(struct wrappers *wrappers)
{
	if (wrappers)
		VEC_DEINIT(&wrappers->known);
	mem_free(wrappers);
}

/* The call, or the jump, that ends at the frame's pc. */
static bool leaves_at(const struct machine_frame *frame, uint64_t *ret)
{
	for (uint64_t bytes = CALL_BYTES_MIN; bytes <= CALL_BYTES_MIN + 1; bytes++) {
		uint64_t at = frame->pc - bytes;
		struct code_instruction i;

		if (at < frame->code_address || frame->pc > frame->code_address + frame->code_len ||
		    !code_decode(frame->code + (at - frame->code_address), bytes, at, &i) ||
		    i.length != bytes)
			continue;
		if (i.flow == CODE_CALL || i.flow == CODE_JUMP || i.flow == CODE_JUMP_INDIRECT) {
			*ret = at;
			return true;
		}
	}
	return false;
}

static bool was_given(const struct trap *trap, uint64_t at, const char *reg, struct origin *ret)
{
	arch_value_origin(trap, at, arch_register_find(arch_native(), reg), ret);
	return ret->kind == ORIGIN_ENTRY && !ret->changed;
}

/* malloc(n), calloc(n, m) and realloc(p, n) with what was given; calloc(1, n). */
static bool passes_on(const struct machine_frame *frame)
{
	struct trap trap = { .code = frame->code,
			     .code_len = frame->code_len,
			     .code_address = frame->code_address,
			     .rip = frame->pc,
			     .start_hint = frame->start };
	struct origin first, second;
	uint64_t at;

	if (frame->start == 0 || !leaves_at(frame, &at))
		return false;
	if (was_given(&trap, at, "rdi", &first))
		return true;
	return first.kind == ORIGIN_IMMEDIATE && first.immediate == 1 &&
	       was_given(&trap, at, "rsi", &second);
}

static bool is_wrapper(struct wrappers *wrappers, struct symbols *symbols,
		       const struct snapshot *snapshot, uint64_t address)
{
	struct machine_frame frame;
	bool found;

	VEC_FOREACH (&wrappers->known, known)
		if (known->address == address)
			return known->passes_on;
	symbols_machine_frame(symbols, snapshot, address, &frame);
	found = passes_on(&frame);
	machine_frames_free(&frame, 1);
	{
		__typeof__(wrappers->known.items[0]) entry = { address, found };

		VEC_PUSH(&wrappers->known, entry);
	}
	return found;
}

static bool has_one_of(const char *function, const char *const *names)
{
	for (; function && *names; names++)
		if (strcasestr(function, *names))
			return true;
	return false;
}

/* Inlined, it has no code of its own that could show it: only those that are called after what they
 * pass on to. */
static bool is_inlined_wrapper(const struct frame *frame)
{
	static const char *const names[] = { "malloc", "calloc", "realloc", "zalloc", NULL };

	return frame->kind == FRAME_INLINE && has_one_of(frame->function, names);
}

/* Called as such functions are, and the code shows it; xstrdup() works out the size by itself. */
static bool hands_on(struct wrappers *wrappers, struct symbols *symbols,
		     const struct snapshot *snapshot, bool frees, const struct frame *frame)
{
	static const char *const copies[] = { "strdup", "strndup", "memdup", NULL };
	static const char *const allocates[] = { "alloc", NULL };
	/* Destructors are no wrappers: an object ends there, and its fields with it. */
	static const char *const gives_back[] = { "free", "release", "unref", "decref", NULL };

	if (frame->kind > FRAME_INLINE)
		return false;
	return (!frees && has_one_of(frame->function, copies)) ||
	       (has_one_of(frame->function, frees ? gives_back : allocates) &&
		is_wrapper(wrappers, symbols, snapshot, frame->address));
}

void wrappers_mark(struct wrappers *wrappers, struct symbols *symbols,
		   const struct snapshot *snapshot, bool frees, struct stack *stack)
{
	size_t i = 0;

	while (!frees && i < DEPTH_MAX && i + 1 < stack->count &&
	       is_inlined_wrapper(&stack->frames[i]))
		stack->frames[i++].flags |= FRAME_WRAPPER;
	for (unsigned int depth = 0; depth < DEPTH_MAX && i < stack->count; depth++) {
		size_t to = i;

		while (to < stack->count && stack->frames[to].address == stack->frames[i].address)
			to++;
		/* Somebody must be left to be named. */
		if (to == stack->count || frame_is_runtime(&stack->frames[to]) ||
		    !hands_on(wrappers, symbols, snapshot, frees, &stack->frames[to - 1]))
			return;
		for (; i < to; i++)
			stack->frames[i].flags |= FRAME_WRAPPER;
	}
}
