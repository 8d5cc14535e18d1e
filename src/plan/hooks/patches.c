#include "plan/hooks/patches.h"

#include <errno.h>

#define COVERED_MAX 32

void patches_deinit(struct patches *patches)
{
	VEC_DEINIT(&patches->list);
}

static int move(const struct shape *shape, const struct code_instruction *instruction,
		struct code_moved *moved, struct err *why)
{
	const char *unmovable;
	uint8_t bytes[16];

	if (!module_read(shape->module, instruction->at, bytes, instruction->length))
		return err_set(why, -ENOTSUP, "it is not in the file");
	unmovable = code_move(moved, bytes, instruction->length, instruction->at);
	return unmovable ? err_set(why, -ENOTSUP, "%s", unmovable) : 0;
}

/* Bytes from `at` on that fill the space between functions, or between a jump and what is aligned
 * behind it, and that nobody comes to. At most `wanted`. */
static size_t padding(const struct shape *shape, uint64_t at, size_t wanted)
{
	uint64_t next = 0;
	size_t have = 0;

	while (have < wanted) {
		const struct code_instruction *inside = shape_instruction(shape, at + have);
		struct code_instruction outside;
		uint8_t bytes[16];
		size_t len = sizeof(bytes);

		if (shape_has_target(shape, at + have, at + have + 1))
			break;
		if (inside) {
			if (!(inside->flags & (CODE_NOP | CODE_BREAKPOINT)))
				break;
			have += inside->length;
			continue;
		}
		if (next == 0)
			next = functions_next(shape->module, at + have);
		while (len > 0 && !module_read(shape->module, at + have, bytes, len))
			len--;
		if (len == 0 || at + have >= next)
			break;
		if (bytes[0] == 0) { /* some linkers fill with zeros */
			have++;
			continue;
		}
		if (!code_decode(bytes, len, at + have, &outside) ||
		    !(outside.flags & (CODE_NOP | CODE_BREAKPOINT)) ||
		    at + have + outside.length > next)
			break;
		have += outside.length;
	}
	return have;
}

static bool is_exit(const struct shape *shape, uint64_t at)
{
	return VEC_ANY(&shape->exits, exit, exit->at == at);
}

/* A jump at `at`: whole instructions are moved until it fits. */
static int jump_at_entry(const struct shape *shape, uint64_t at, struct patch *ret, struct err *why)
{
	struct patch patch = { .kind = PATCH_ENTRY, .at = at };
	int r;

	if (shape->unfollowed)
		return err_set(why, -ENOTSUP, "a table of jumps in it cannot be followed");
	while (patch.covered < CODE_JUMP_BYTES) {
		const struct code_instruction *instruction =
			shape_instruction(shape, at + patch.covered);

		if (patch.moved.ended) {
			patch.covered +=
				padding(shape, at + patch.covered, CODE_JUMP_BYTES - patch.covered);
			if (patch.covered < CODE_JUMP_BYTES)
				return err_set(why, -ENOTSUP, "it is too short");
			break;
		}
		if (!instruction)
			return err_set(why, -ENOTSUP, "it is too short");
		if (is_exit(shape, instruction->at) && instruction->at != at)
			return err_set(why, -ENOTSUP, "it returns within its first bytes");
		r = move(shape, instruction, &patch.moved, why);
		if (r < 0)
			return r;
		patch.covered += instruction->length;
	}
	if (patch.covered > COVERED_MAX)
		return err_set(why, -ENOTSUP, "its first instruction is too long");
	if (shape_has_target(shape, at + 1, at + patch.covered))
		return err_set(why, -ENOTSUP, "something branches into its first bytes");
	if (!patch.moved.ended && !code_move_jump(&patch.moved, at + patch.covered))
		return err_set(why, -ENOTSUP, "it does not fit");
	*ret = patch;
	return 0;
}

/* One byte is replaced, one instruction is moved. */
static int trap_at(const struct shape *shape, uint64_t at, enum patch_kind kind, struct patch *ret,
		   struct err *why)
{
	const struct code_instruction *instruction = shape_instruction(shape, at);
	struct patch patch = { .kind = kind, .at = at, .trap = true };
	int r;

	if (!instruction)
		return err_set(why, -ENOTSUP, "it is no instruction");
	r = move(shape, instruction, &patch.moved, why);
	if (r < 0)
		return r;
	patch.covered = instruction->length;
	if (!patch.moved.ended && !code_move_jump(&patch.moved, at + patch.covered))
		return err_set(why, -ENOTSUP, "it does not fit");
	*ret = patch;
	return 0;
}

static int plan_entry(const struct shape *shape, struct patches *ret, struct err *err)
{
	const struct code_instruction *first = shape_instruction(shape, shape->function.entry);
	uint64_t at = shape->function.entry;
	struct err why = { 0 };
	struct patch patch;

	if (first && (first->flags & CODE_ENTRY_MARK))
		at += PATCHES_ENTRY_MARK;
	/* Nothing but a return or a jump to another function: no exit is left to hook. */
	if (is_exit(shape, at))
		(void)err_set(&ret->no_exits, -ENOTSUP,
			      "it does nothing but return or go on elsewhere");
	if (jump_at_entry(shape, at, &patch, &why) < 0 &&
	    trap_at(shape, at, PATCH_ENTRY, &patch, &why) < 0)
		return err_set(err, -ENOTSUP, "'%s' cannot be hooked: %s", shape->function.name,
			       why.message);
	VEC_PUSH(&ret->list, patch);
	return 0;
}

static bool overlaps(const struct patches *patches, uint64_t low, uint64_t high)
{
	return VEC_ANY(&patches->list, patch, low < patch->at + patch->covered && patch->at < high);
}

/* The instruction that ends where `at` begins, if control can only come through it. */
static const struct code_instruction *before(const struct shape *shape, uint64_t at)
{
	for (uint64_t back = 1; back <= 15; back++) {
		const struct code_instruction *instruction = shape_instruction(shape, at - back);

		if (instruction)
			return instruction->length == back && instruction->flow == CODE_NEXT
				       ? instruction
				       : NULL;
	}
	return NULL;
}

/* A jump that replaces the exit and as many instructions before it, or as much padding behind it,
 * as it takes. */
static int jump_at_exit(const struct shape *shape, const struct patches *patches,
			const struct code_instruction *exit, enum patch_kind kind,
			struct patch *ret, struct err *why)
{
	const struct code_instruction *moved[CODE_JUMP_BYTES];
	uint64_t low = exit->at, end = exit->at + exit->length;
	struct patch patch = { .kind = kind };
	size_t count = 0, behind;
	int r = 0;

	if (shape->unfollowed)
		return err_set(why, -ENOTSUP, "a table of jumps in it cannot be followed");
	behind = end - low < CODE_JUMP_BYTES ? padding(shape, end, CODE_JUMP_BYTES - (end - low))
					     : 0;
	while (end + behind - low < CODE_JUMP_BYTES) {
		const struct code_instruction *earlier =
			shape_has_target(shape, low, low + 1) ? NULL : before(shape, low);

		if (!earlier)
			return err_set(why, -ENOTSUP, "there is no room at it");
		moved[count++] = earlier;
		low = earlier->at;
	}
	if (end + behind - low > COVERED_MAX || shape_has_target(shape, low + 1, end + behind))
		return err_set(why, -ENOTSUP, "something branches into it");
	if (overlaps(patches, low, end + behind))
		return err_set(why, -ENOTSUP, "it lies too near to another");
	while (r == 0 && count > 0)
		r = move(shape, moved[--count], &patch.moved, why);
	patch.before = patch.moved.len;
	if (r == 0)
		r = move(shape, exit, &patch.moved, why);
	if (r < 0)
		return r;
	patch.at = low;
	patch.covered = end + behind - low;
	*ret = patch;
	return 0;
}

static void plan_return(const struct shape *shape, struct patches *ret,
			const struct code_instruction *exit)
{
	struct err why = { 0 };
	struct patch patch;
	int r = jump_at_exit(shape, ret, exit, PATCH_RETURN, &patch, &why);

	if (r < 0 && !overlaps(ret, exit->at, exit->at + 1))
		r = trap_at(shape, exit->at, PATCH_RETURN, &patch, &why);
	if (r < 0)
		(void)err_set(&ret->no_exits, r, "one of its returns cannot be hooked: %s",
			      why.message);
	else
		VEC_PUSH(&ret->list, patch);
}

static char *name_at(const struct shape *shape, uint64_t target)
{
	struct function function;
	char *name = NULL;

	if (target != 0 && functions_at(shape->module, target, &function))
		name = mem_strdup(function.name);
	if (target != 0)
		function_deinit(&function);
	return name;
}

/* The other function's return is not seen here, unless it is called instead of jumped to; and that
 * moves what it may take from the stack. If nothing of ours came that way, nothing of its can: the
 * place for it would be our own. */
static void plan_tail(const struct shape *shape, struct patches *ret,
		      const struct code_instruction *exit, uint64_t target)
{
	AUTO(mem_freep) char *name = name_at(shape, target);
	struct err why = { 0 };
	struct patch patch;
	int r;

	if (!shape->function.arguments_in_registers)
		r = err_set(&why, -ENOTSUP,
			    "it is not known whether that one takes arguments from the stack");
	else if (exit->flow != CODE_JUMP)
		r = err_set(&why, -ENOTSUP, "the jump is conditional or goes through a pointer");
	else
		r = jump_at_exit(shape, ret, exit, PATCH_TAIL, &patch, &why);
	if (r == 0) {
		patch.tail_target = target;
		VEC_PUSH(&ret->list, patch);
		return;
	}
	(void)err_set(
		&ret->no_exits, r,
		"it ends in a jump to %s%s%s (a tail call), which returns in its stead, and %s",
		name ? "'" : "", name ? name : "another function", name ? "'" : "", why.message);
}

static bool has_unseen(const struct patches *patches)
{
	return patches->no_exits.code != 0;
}

int patches_plan(const struct shape *shape, struct patches *ret, struct err *err)
{
	int r = plan_entry(shape, ret, err);

	if (r < 0)
		return r;
	VEC_FOREACH (&shape->exits, exit) {
		const struct code_instruction *instruction = shape_instruction(shape, exit->at);

		if (has_unseen(ret) || !instruction)
			break;
		if (exit->tail)
			plan_tail(shape, ret, instruction, exit->target);
		else
			plan_return(shape, ret, instruction);
	}
	if (!has_unseen(ret) && shape->exits.count == 0)
		(void)err_set(&ret->no_exits, -ENOTSUP, "it never returns");
	VEC_FOREACH (&ret->list, patch)
		ret->traps += patch->trap;
	return 0;
}
