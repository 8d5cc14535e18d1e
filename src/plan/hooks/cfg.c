#include "plan/hooks/cfg.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define RANGE_MAX (1u << 20)
#define TABLE_MAX 4096 /* entries of one table of jumps */
#define ABSORB_MAX 8   /* pieces that are jumped to */
#define LOOK_BACK 12   /* instructions before an indirect jump that may compute its target */
#define SHORT_BRANCH_REACH 130

void shape_deinit(struct shape *shape)
{
	VEC_DEINIT(&shape->code);
	VEC_DEINIT(&shape->targets);
	VEC_DEINIT(&shape->exits);
}

static bool in_ranges(const struct shape *shape, uint64_t at)
{
	for (size_t i = 0; i < shape->function.range_count; i++)
		if (at >= shape->function.ranges[i].low && at < shape->function.ranges[i].high)
			return true;
	return false;
}

static void add_target(struct shape *shape, uint64_t at)
{
	if (in_ranges(shape, at))
		VEC_PUSH(&shape->targets, at);
}

static void add_entry(void *ctx, uint64_t vaddr)
{
	add_target(ctx, vaddr);
}

static int by_at(const void *a, const void *b)
{
	const struct code_instruction *x = a, *y = b;

	return x->at < y->at ? -1 : x->at > y->at;
}

const struct code_instruction *shape_instruction(const struct shape *shape, uint64_t at)
{
	struct code_instruction key = { .at = at };

	if (shape->code.count == 0)
		return NULL;
	return bsearch(&key, shape->code.items, shape->code.count, sizeof(key), by_at);
}

bool shape_has_target(const struct shape *shape, uint64_t low, uint64_t high)
{
	size_t from = VEC_HOLDS_FOR(&shape->targets, target, *target < low);

	return from < shape->targets.count && shape->targets.items[from] < high;
}

static int decode_range(struct shape *shape, const struct function_range *range, struct err *err)
{
	size_t len = range->high - range->low, at = 0;
	AUTO(mem_freep) uint8_t *bytes = NULL;

	if (range->high - range->low > RANGE_MAX)
		return err_set(err, -EFBIG, "'%s' is longer than 1 MiB", shape->function.name);
	bytes = mem_alloc(len + 1);
	if (!module_read(shape->module, range->low, bytes, len))
		return err_set(err, -ENOEXEC, "the code of '%s' is not in the file",
			       shape->function.name);
	while (at < len) {
		struct code_instruction instruction;

		if (!code_decode(bytes + at, len - at, range->low + at, &instruction))
			return err_set(
				err, -ENOEXEC, "'%s' has bytes at +0x%llx that are no instruction",
				shape->function.name,
				(unsigned long long)(range->low + at - shape->function.entry));
		VEC_PUSH(&shape->code, instruction);
		at += instruction.length;
	}
	return 0;
}

static bool in_code(const struct module *module, uint64_t vaddr)
{
	struct module_segment segment;

	for (size_t i = 0; module_segment(module, i, &segment); i++)
		if (segment.exec && vaddr >= segment.vaddr && vaddr - segment.vaddr < segment.len)
			return true;
	return false;
}

/* Distances of four bytes from the table's own start, as compilers lay out a switch. Returns how
 * many lead into the function. */
static size_t follow_table(struct shape *shape, uint64_t table)
{
	size_t count = 0;
	int32_t distance;

	if (table % 4 != 0 || in_code(shape->module, table))
		return 0;
	while (count < TABLE_MAX &&
	       module_read(shape->module, table + 4 * count, &distance, sizeof(distance)) &&
	       in_ranges(shape, table + (uint64_t)(int64_t)distance)) {
		add_target(shape, table + (uint64_t)(int64_t)distance);
		count++;
	}
	return count;
}

struct labels {
	struct shape *shape;
	size_t count; /* behind its entry */
};

static void add_label(void *ctx, uint64_t value)
{
	struct labels *labels = ctx;

	add_target(labels->shape, value);
	labels->count += value != labels->shape->function.entry;
}

/* Labels whose address is taken, tables of addresses. Returns how many lie behind the entry. */
static size_t follow_words(struct shape *shape)
{
	struct labels labels = { .shape = shape };

	for (size_t i = 0; i < shape->function.range_count; i++)
		module_each_pointer(shape->module, shape->function.ranges[i].low,
				    shape->function.ranges[i].high, add_label, &labels);
	return labels.count;
}

struct reference {
	uint64_t from, to;
	bool call;
};

/* Calls fn for everything in the module's code that reads as a branch with a distance of four bytes
 * to within [low, high), wherever an instruction may begin. */
static void each_reference(const struct module *module, uint64_t low, uint64_t high,
			   void (*fn)(void *ctx, const struct reference *reference), void *ctx)
{
	struct module_segment segment;

	for (size_t i = 0; module_segment(module, i, &segment); i++)
		for (size_t at = 0; segment.exec && at + 5 <= segment.len; at++) {
			const uint8_t *code = segment.bytes + at;
			struct reference reference = { .from = segment.vaddr + at };
			size_t opcode = code[0] == 0x0f && (code[1] & 0xf0) == 0x80 ? 2 : 1;
			int32_t distance;

			if (opcode == 1 && code[0] != 0xe8 && code[0] != 0xe9)
				continue;
			if (at + opcode + 4 > segment.len)
				continue;
			memcpy(&distance, code + opcode, sizeof(distance));
			reference.to = reference.from + opcode + 4 + (uint64_t)(int64_t)distance;
			reference.call = code[0] == 0xe8;
			if (reference.to >= low && reference.to < high)
				fn(ctx, &reference);
		}
}

/* Is it a branch, or do some bytes only read as one? Decoded from where an instruction is known to
 * begin; true when it cannot be told. */
static bool is_branch(const struct shape *shape, const struct reference *reference)
{
	struct function_range piece;
	uint64_t at;

	if (!functions_piece(shape->module, reference->from, &piece) ||
	    reference->from - piece.low > RANGE_MAX)
		return true;
	for (at = piece.low; at <= reference->from;) {
		struct code_instruction instruction;
		uint8_t bytes[16] = { 0 };
		size_t len = sizeof(bytes);

		while (len > 0 && !module_read(shape->module, at, bytes, len))
			len--;
		if (!code_decode(bytes, len, at, &instruction))
			return true;
		at += instruction.length;
		if (at > reference->from)
			return (instruction.flags & CODE_HAS_TARGET) &&
			       instruction.target == reference->to;
	}
	return true;
}

static void add_reference(void *ctx, const struct reference *reference)
{
	struct shape *shape = ctx;

	/* Its own branches were decoded; what merely looks like one in there is not. */
	if (!in_ranges(shape, reference->from) && is_branch(shape, reference))
		add_target(shape, reference->to);
}

/* What a neighbour branches to; false when it cannot be decoded. */
static bool add_neighbour(struct shape *shape, const struct function_range *range)
{
	size_t len = range->high - range->low, at = 0;
	AUTO(mem_freep) uint8_t *bytes = NULL;

	if (len > RANGE_MAX)
		return false;
	bytes = mem_alloc(len + 1);
	if (!module_read(shape->module, range->low, bytes, len))
		return false;
	while (at < len) {
		struct code_instruction instruction;

		if (!code_decode(bytes + at, len - at, range->low + at, &instruction))
			return false;
		if (instruction.flags & CODE_HAS_TARGET)
			add_target(shape, instruction.target);
		at += instruction.length;
	}
	return true;
}

/* Branches with a distance of one byte, out of neighbours: from what is known to be one function,
 * its instructions; from all else, whatever reads as a branch. */
static void add_short_references(struct shape *shape, const struct function_range *range)
{
	uint64_t at = range->low > SHORT_BRANCH_REACH ? range->low - SHORT_BRANCH_REACH : 0;

	while (at < range->high + SHORT_BRANCH_REACH) {
		struct function_range piece;
		uint8_t code[2];

		if (in_ranges(shape, at)) {
			at++;
			continue;
		}
		if (functions_piece(shape->module, at, &piece) && !in_ranges(shape, piece.low) &&
		    add_neighbour(shape, &piece)) {
			at = piece.high;
			continue;
		}
		if (module_read(shape->module, at, code, sizeof(code)) &&
		    (code[0] == 0xeb || (code[0] & 0xf0) == 0x70 || (code[0] & 0xfc) == 0xe0))
			add_target(shape, at + 2 + (uint64_t)(int64_t)(int8_t)code[1]);
		at++;
	}
}

struct callers {
	const struct shape *shape;
	struct function_range piece;
	bool others;
};

static void note_pointer(void *ctx, uint64_t value)
{
	struct callers *callers = ctx;

	(void)value;
	callers->others = true;
}

static void look_for_others(void *ctx, const struct reference *reference)
{
	struct callers *callers = ctx;
	bool inside =
		reference->from >= callers->piece.low && reference->from < callers->piece.high;

	if (inside || (!reference->call && in_ranges(callers->shape, reference->from)))
		return;
	if (is_branch(callers->shape, reference))
		callers->others = true;
}

/* Can nobody but this function get to a piece of code, and only by jumps? Then it is a part of the
 * function, whatever it is called: what the compiler moved out of the way, or split off. */
static bool only_ours(const struct shape *shape, const struct function_range *piece)
{
	struct callers callers = { .shape = shape, .piece = *piece };
	struct function named;
	bool global;

	(void)functions_at(shape->module, piece->low, &named);
	global = named.global || named.kind == FUNCTION_IFUNC;
	function_deinit(&named);
	if (global)
		return false;
	module_each_pointer(shape->module, piece->low, piece->high, note_pointer, &callers);
	if (!callers.others)
		each_reference(shape->module, piece->low, piece->high, look_for_others, &callers);
	return !callers.others;
}

/* Takes in the code at `target` if it is reached from here alone. */
static int absorb(struct shape *shape, uint64_t target, bool *ret_more, struct err *err)
{
	struct function_range piece;

	if (shape->function.range_count == FUNCTION_RANGES_MAX ||
	    !functions_known_piece(shape->module, target, &piece) || in_ranges(shape, piece.low) ||
	    !only_ours(shape, &piece))
		return 0;
	shape->function.ranges[shape->function.range_count++] = piece;
	*ret_more = true;
	return decode_range(shape, &piece, err);
}

static bool leaves(const struct shape *shape, const struct code_instruction *instruction)
{
	return (instruction->flow == CODE_JUMP || instruction->flow == CODE_BRANCH) &&
	       !in_ranges(shape, instruction->target);
}

static int absorb_pieces(struct shape *shape, struct err *err)
{
	bool more = true;

	for (unsigned int round = 0; more && round < ABSORB_MAX; round++) {
		more = false;
		for (size_t i = 0; i < shape->code.count; i++) {
			struct code_instruction instruction = shape->code.items[i];
			int r = leaves(shape, &instruction)
					? absorb(shape, instruction.target, &more, err)
					: 0;

			if (r < 0)
				return r;
		}
	}
	return 0;
}

/* Is the target of an indirect jump computed from a distance? */
static bool computes_target(const struct shape *shape, size_t jump)
{
	for (size_t i = jump; i-- > 0 && jump - i <= LOOK_BACK;) {
		if (shape->code.items[i].flags & CODE_ADDS)
			return true;
		if (shape->code.items[i].flow == CODE_JUMP ||
		    shape->code.items[i].flow == CODE_RETURN)
			return false;
	}
	return false;
}

static void collect_targets(struct shape *shape, bool *ret_tables, bool *ret_labels)
{
	size_t tables = 0, labels = follow_words(shape);

	VEC_FOREACH (&shape->code, instruction) {
		if (instruction->flags & CODE_HAS_TARGET)
			add_target(shape, instruction->target);
		if (instruction->flow == CODE_CALL)
			add_target(shape, instruction->at + instruction->length);
		if (!(instruction->flags & CODE_HAS_ADDRESS))
			continue;
		if (in_ranges(shape, instruction->address)) {
			add_target(shape, instruction->address);
			labels += instruction->address != shape->function.entry;
		} else {
			tables += follow_table(shape, instruction->address);
		}
	}
	*ret_tables = tables > 0;
	*ret_labels = labels > 0;
}

static void collect_exits(struct shape *shape, bool tables, bool labels)
{
	for (size_t i = 0; i < shape->code.count; i++) {
		const struct code_instruction *instruction = &shape->code.items[i];
		struct shape_exit exit = { .at = instruction->at };

		if (instruction->flow == CODE_JUMP_INDIRECT) {
			bool computed = computes_target(shape, i);

			shape->unfollowed |= computed && !tables && !labels;
			if (computed || labels)
				continue;
			exit.tail = true;
		} else if (leaves(shape, instruction)) {
			exit.tail = true;
			exit.target = instruction->target;
		} else if (instruction->flow != CODE_RETURN) {
			continue;
		}
		VEC_PUSH(&shape->exits, exit);
	}
}

static int check_end(const struct shape *shape, struct err *err)
{
	for (size_t i = 0; i < shape->function.range_count; i++) {
		const struct function_range *range = &shape->function.ranges[i];
		const struct code_instruction *first = shape_instruction(shape, range->low);

		if (!first)
			return err_set(err, -ENOEXEC, "the pieces of '%s' overlap",
				       shape->function.name);
	}
	return 0;
}

int shape_read(struct module *module, const struct function *function, struct shape *ret,
	       struct err *err)
{
	bool tables, labels;
	int r = 0;

	*ret = (struct shape){ .module = module, .function = *function };
	if (function->range_count == 0)
		return err_set(err, -ENOEXEC,
			       "it is not known where '%s' ends: it has neither a size in the "
			       "symbol table nor unwind information",
			       function->name);
	for (size_t i = 0; r == 0 && i < function->range_count; i++)
		r = decode_range(ret, &function->ranges[i], err);
	if (r == 0)
		r = absorb_pieces(ret, err);
	if (r < 0)
		return r;
	VEC_SORT(&ret->code, by_at);
	r = check_end(ret, err);
	if (r < 0)
		return r;
	collect_targets(ret, &tables, &labels);
	for (size_t i = 0; i < ret->function.range_count; i++) {
		const struct function_range *range = &ret->function.ranges[i];

		if (!functions_entries(module, range->low, range->high, add_entry, ret))
			return err_set(err, -ENOEXEC,
				       "where exceptions land in '%s' cannot be read",
				       function->name);
		each_reference(module, range->low, range->high, add_reference, ret);
		add_short_references(ret, range);
	}
	numbers_sort(ret->targets.items, ret->targets.count);
	VEC_FOREACH (&ret->code, instruction)
		ret->loops_to_entry |=
			(instruction->flow == CODE_JUMP || instruction->flow == CODE_BRANCH) &&
			instruction->target == function->entry;
	collect_exits(ret, tables, labels);
	return 0;
}
