#include "plan/hooks/leaf_functions.h"

#include "arch/code.h"

#define FUNCTIONS_MAX 256u

struct leaf_search {
	struct module *module;
	VEC(uint64_t) entries; /* functions that are reached */
};

static bool decode(const struct leaf_search *search, uint64_t at, struct code_instruction *ret)
{
	uint8_t bytes[16];
	size_t len = sizeof(bytes);

	while (len > 0 && !module_read(search->module, at, bytes, len))
		len--;
	return len > 0 && code_decode(bytes, len, at, ret);
}

static void reach(struct leaf_search *search, uint64_t entry)
{
	VEC_FOREACH (&search->entries, known)
		if (*known == entry)
			return;
	if (search->entries.count < FUNCTIONS_MAX)
		VEC_PUSH(&search->entries, entry);
}

/* An entry of the linker's table: a jump through a word of memory. */
static bool is_linkage(const struct leaf_search *search, uint64_t at)
{
	struct code_instruction first;

	if (!decode(search, at, &first))
		return false;
	if (first.flags & CODE_ENTRY_MARK && !decode(search, at + first.length, &first))
		return false;
	return first.flow == CODE_JUMP_INDIRECT && first.flags & CODE_HAS_ADDRESS;
}

static bool is_inside(const struct function *function, uint64_t at)
{
	for (size_t i = 0; i < function->range_count; i++)
		if (at >= function->ranges[i].low && at < function->ranges[i].high)
			return true;
	return false;
}

static bool range_leaves(struct leaf_search *search, const struct function *function,
			 const struct function_range *range)
{
	struct code_instruction instruction;

	for (uint64_t at = range->low; at < range->high; at += instruction.length) {
		if (!decode(search, at, &instruction))
			return false;
		if (instruction.flow == CODE_CALL && !(instruction.flags & CODE_HAS_TARGET))
			return true;
		if (!(instruction.flags & CODE_HAS_TARGET) ||
		    is_inside(function, instruction.target))
			continue;
		if (is_linkage(search, instruction.target))
			return true;
		reach(search, instruction.target);
	}
	return false;
}

static bool leaves(struct leaf_search *search, const struct function *function)
{
	for (size_t i = 0; i < function->range_count; i++)
		if (range_leaves(search, function, &function->ranges[i]))
			return true;
	return false;
}

bool function_leaves(struct module *module, const struct function *function)
{
	struct leaf_search search = { .module = module };
	bool found = leaves(&search, function);

	for (size_t i = 0; !found && i < search.entries.count; i++) {
		struct function next = { 0 };

		if (functions_at(module, search.entries.items[i], &next))
			found = leaves(&search, &next);
		function_deinit(&next);
	}
	VEC_DEINIT(&search.entries);
	return found;
}

bool function_begins_with(struct module *module, const struct function *function,
			  struct function *ret)
{
	struct leaf_search search = { .module = module };
	struct code_instruction instruction;

	if (function->range_count == 0)
		return false;
	for (uint64_t at = function->entry; at < function->ranges[0].high;
	     at += instruction.length) {
		if (!decode(&search, at, &instruction))
			return false;
		if (instruction.flow == CODE_CALL && instruction.flags & CODE_HAS_TARGET)
			return !is_linkage(&search, instruction.target) &&
			       functions_at(module, instruction.target, ret);
		if (instruction.flow != CODE_NEXT)
			return false;
	}
	return false;
}

/* Compared with, or loaded: by its address in the instruction. */
static bool names_function(const struct leaf_search *search, uint64_t at,
			   const struct code_instruction *instruction, uint64_t entry)
{
	uint32_t last;

	if (instruction->flags & CODE_HAS_ADDRESS && instruction->address == entry)
		return true;
	return instruction->length > sizeof(last) && entry <= INT32_MAX &&
	       module_read(search->module, at + instruction->length - sizeof(last), &last,
			   sizeof(last)) &&
	       last == entry;
}

bool function_calls_instead(struct module *module, uint64_t caller, uint64_t entry,
			    struct function *ret)
{
	struct leaf_search search = { .module = module };
	struct code_instruction instruction;
	struct function around = { 0 };
	bool named = false, found = false;

	if (functions_at(module, caller, &around) && around.range_count > 0)
		for (uint64_t at = around.entry; at < around.ranges[0].high;
		     at += instruction.length) {
			if (!decode(&search, at, &instruction))
				break;
			named |= names_function(&search, at, &instruction, entry);
			if (!named || instruction.flow != CODE_CALL)
				continue;
			found = instruction.flags & CODE_HAS_TARGET &&
				instruction.target != entry &&
				!is_linkage(&search, instruction.target) &&
				functions_at(module, instruction.target, ret);
			break;
		}
	function_deinit(&around);
	return found;
}
