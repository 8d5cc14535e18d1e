#include "debuginfo/tails.h"

#include <string.h>

#include "arch/code.h"
#include "debuginfo/module.h"

#define FUNCTION_BYTES_MAX 8192u
#define CHAIN_MAX 4u /* functions that jumped on, one to the other */

/* Where a function leaves by a jump. */
struct leap {
	taddr behind;	 /* the address behind the jump */
	uint64_t target; /* 0: not known, or several */
	bool several;	 /* it was one of several: the line is not known */
};

/* The start of the function at an address, if it is in a file that is still the same. */
static taddr start_of(struct space *space, taddr inside)
{
	struct place place;
	uint64_t start;

	space_find(space, inside, &place);
	if (place.match != MODULE_FOUND ||
	    !module_function_start(place.module, place.vaddr, &start))
		return 0;
	return inside - (place.vaddr - start);
}

/* What a direct call that ends at the return address goes to; 0: no such call. */
static taddr called_before(struct space *space, taddr back)
{
	struct code_instruction instruction;
	uint8_t bytes[CODE_JUMP_BYTES];

	if (space_read_before(space, back, bytes, sizeof(bytes)) != sizeof(bytes) ||
	    !code_decode(bytes, sizeof(bytes), back - sizeof(bytes), &instruction) ||
	    instruction.flow != CODE_CALL || !(instruction.flags & CODE_HAS_TARGET) ||
	    instruction.length != sizeof(bytes))
		return 0;
	return instruction.target;
}

static bool jumps_out(struct space *space, const struct code_instruction *i, taddr start)
{
	return (i->flow == CODE_JUMP || i->flow == CODE_BRANCH) && i->flags & CODE_HAS_TARGET &&
	       start_of(space, i->target) != start;
}

/* The jump out of the function by which it went on to the one at `stands`; where none or several
 * lead there directly, the last of all. False when there is none. */
static bool find_leap(struct space *space, taddr start, taddr stands, struct leap *ret)
{
	unsigned int found = 0, there = 0;
	struct leap there_by = { 0 };
	uint8_t bytes[16];
	bool inside = true;
	taddr at = start;

	*ret = (struct leap){ 0 };
	while (at - start < FUNCTION_BYTES_MAX && (inside || start_of(space, at) == start)) {
		struct code_instruction i;
		size_t got = space_read_after(space, at, bytes, sizeof(bytes));
		bool direct;

		if (!code_decode(bytes, got, at, &i))
			break;
		direct = jumps_out(space, &i, start);
		at += i.length;
		/* A function ends where control does. */
		inside = (i.flow == CODE_NEXT && !(i.flags & CODE_NOP)) || i.flow == CODE_BRANCH;
		if (!direct && i.flow != CODE_JUMP_INDIRECT)
			continue;
		ret->target = found == 0 && direct ? i.target : 0;
		ret->behind = at;
		found++;
		if (direct && stands != 0 && i.target == stands) {
			there_by = (struct leap){ .behind = at, .target = stands };
			there++;
		}
	}
	ret->several = found > 1;
	if (there == 1)
		*ret = there_by;
	return found > 0;
}

/* Does it do nothing but jump to where a word says? The stubs through which other libraries are
 * called do, and nobody wrote them. */
static bool is_stub(struct space *space, taddr at)
{
	struct code_instruction i;
	uint8_t bytes[16];

	for (unsigned int n = 0; n < 2; n++) {
		size_t got = space_read_after(space, at, bytes, sizeof(bytes));

		if (!code_decode(bytes, got, at, &i))
			return true;
		if (i.flow == CODE_JUMP_INDIRECT)
			return true;
		if (!(i.flags & (CODE_NOP | CODE_ENTRY_MARK)))
			return false;
		at += i.length;
	}
	return false;
}

bool tails_may_lead(struct space *space, taddr back, taddr inside)
{
	taddr called = called_before(space, back), stands = start_of(space, inside);
	struct leap leap;

	if (called == 0 || stands == 0 || called == stands || start_of(space, called) != called)
		return true;
	/* Of a long one not all is looked at. */
	return is_stub(space, called) || find_leap(space, called, stands, &leap) ||
	       start_of(space, called + FUNCTION_BYTES_MAX) == called;
}

static const char *name_of(struct space *space, taddr at, struct place *ret)
{
	const struct frame *named;
	size_t count;

	space_find(space, at, ret);
	if (ret->match != MODULE_FOUND)
		return NULL;
	named = module_name(ret->module, ret->vaddr, &count);
	return named[count - 1].function;
}

/* "f" and "f.cold": parts of one function jump to each other. */
static bool same_function(const char *a, const char *b)
{
	size_t len = strcspn(a, ".");

	return len == strcspn(b, ".") && strncmp(a, b, len) == 0;
}

static void insert(struct space *space, struct stack *stack, size_t at, const struct leap *leap,
		   taddr cfa)
{
	struct place place;
	struct frame frame;
	const struct frame *named;
	size_t count;

	space_find(space, leap->behind - 1, &place);
	named = module_name(place.module, place.vaddr, &count);
	/* What was inlined where it jumps is put back as well. */
	for (size_t i = 0; i < count; i++) {
		frame = named[i];
		frame.module = (char *)place.mapping->path; /* copied by stack_insert() */
		frame.offset = place.vaddr + 1;
		frame.address = leap->behind;
		frame.cfa = cfa;
		frame.flags = FRAME_TAIL;
		if (leap->several) {
			/* That it was this function is certain, not where in it. */
			frame = (struct frame){ .function = named[count - 1].function,
						.module = frame.module,
						.offset = frame.offset,
						.address = frame.address,
						.cfa = cfa,
						.flags = FRAME_TAIL };
			(void)stack_insert(stack, at, &frame);
			return;
		}
		(void)stack_insert(stack, at + i, &frame);
	}
}

/* Does the stack begin in this very function, because a hook stands at its start? */
static bool was_entered(const struct snapshot *snapshot, taddr function)
{
	for (size_t i = 0; i < snapshot->entered_count; i++)
		if (snapshot->entered[i] == function)
			return true;
	return false;
}

/* Could the function have been left by a jump, with nothing of it on the stack? */
static bool may_have_left(struct space *space, const struct frame *inner, taddr called)
{
	struct place place;
	const char *name = name_of(space, called, &place);

	if (place.match != MODULE_FOUND || place.kernel || (!name && is_stub(space, called)))
		return false;
	if (!inner)
		return !was_entered(space->snapshot, called);
	return !inner->function || !name || !same_function(inner->function, name);
}

/* The functions between the frame before `at` and the one at it, whose call names the first. */
static void insert_chain(struct space *space, struct stack *stack, size_t at, taddr called)
{
	const struct frame *inner = at > 0 ? &stack->frames[at - 1] : NULL;
	taddr stands = inner ? start_of(space, inner->address - !(inner->flags & FRAME_EXACT)) : 0;
	taddr cfa = stack->frames[at].cfa;

	for (unsigned int i = 0; i < CHAIN_MAX && called != 0 && called != stands; i++) {
		struct leap leap;

		if (start_of(space, called) != called)
			return;
		inner = at > 0 ? &stack->frames[at - 1] : NULL;
		if (!may_have_left(space, inner, called) ||
		    !find_leap(space, called, stands, &leap))
			return;
		insert(space, stack, at, &leap, cfa);
		called = leap.target;
	}
}

void tails_insert(struct space *space, struct stack *stack)
{
	/* From the outside in: what is inserted does not move what is still to be looked at. */
	for (size_t i = stack->count; i-- > 0;) {
		const struct frame *frame = &stack->frames[i];
		bool first = i == 0 || stack->frames[i - 1].address != frame->address;
		/* Who called what has returned was written over, and was not left by a jump. */
		bool gap = i > 0 && (stack->frames[i - 1].flags & FRAME_RETURNED);

		if (first && !gap &&
		    !(frame->flags &
		      (FRAME_EXACT | FRAME_SIGNAL | FRAME_GUESSED | FRAME_RETURNED)) &&
		    (frame->kind == FRAME_NATIVE || frame->kind == FRAME_INLINE))
			insert_chain(space, stack, i, called_before(space, frame->address));
	}
}
