#include "debuginfo/functions.h"

#include <string.h>

#include "base/command.h"
#include "base/cstr.h"
#include "debuginfo/demangle.h"
#include "debuginfo/eh_frames.h"
#include "debuginfo/elf_symbols.h"
#include "debuginfo/lines.h"
#include "debuginfo/module.h"

#define NEAR_MAX 200000 /* names that are compared with a mistyped one */

void function_deinit(struct function *function)
{
	mem_free(function->name);
	mem_free(function->symbol);
}

void functions_deinit(struct functions *functions)
{
	VEC_FREE(&functions->list, function, function_deinit(function));
}

/* The '(' that opens the parameters of a demangled name, or its end. */
static size_t parameters_at(const char *name)
{
	size_t end = strlen(name), at;
	int depth = 0;

	while (end > 0 && name[end - 1] != ')')
		end--;
	for (at = end; at > 0; at--) {
		if (name[at - 1] == ')')
			depth++;
		else if (name[at - 1] == '(' && --depth == 0)
			/* "operator()" has parentheses of its own before the parameters. */
			return at - 1;
	}
	return strlen(name);
}

/* Templates have their result's type before the name: "void ns::f<int>(int)". */
static size_t name_at(const char *name, size_t end)
{
	size_t start = 0;
	int depth = 0;

	for (size_t i = 0; i < end; i++) {
		if (strncmp(name + i, "operator", 8) == 0)
			break;
		if (name[i] == '<' || name[i] == '(')
			depth++;
		else if (name[i] == '>' || name[i] == ')')
			depth--;
		else if (name[i] == ' ' && depth == 0)
			start = i + 1;
	}
	return start;
}

static bool is_wanted(const char *demangled, const char *wanted)
{
	size_t end = parameters_at(demangled), start = name_at(demangled, end);
	size_t len = strlen(wanted);

	if (strcmp(demangled, wanted) == 0 || strcmp(demangled + start, wanted) == 0)
		return true;
	return len == end - start && strncmp(demangled + start, wanted, len) == 0;
}

/* The last word of a name, which stands in a mangled symbol as it is: demangling every symbol of a
 * large library takes long. */
static char *last_word(const char *name)
{
	size_t end = strcspn(name, "(<"), start;

	if (end == 0)
		end = strlen(name);
	for (start = end; start > 0 && (name[start - 1] == '_' || name[start - 1] == '$' ||
					(name[start - 1] >= '0' && name[start - 1] <= '9') ||
					(name[start - 1] >= 'A' && name[start - 1] <= 'Z') ||
					(name[start - 1] >= 'a' && name[start - 1] <= 'z'));)
		start--;
	return mem_strndup(name + start, end - start);
}

static bool is_cold(const char *symbol)
{
	return strstr(symbol, ".cold") != NULL;
}

static enum function_kind kind_of(const char *symbol)
{
	if (strstr(symbol, ".part."))
		return FUNCTION_PART;
	if (strstr(symbol, ".constprop.") || strstr(symbol, ".isra."))
		return FUNCTION_COPY;
	return FUNCTION_PLAIN;
}

static void add_range(struct function *function, uint64_t low, uint64_t high)
{
	if (low >= high || function->range_count == FUNCTION_RANGES_MAX)
		return;
	for (size_t i = 0; i < function->range_count; i++)
		if (low < function->ranges[i].high && function->ranges[i].low < high)
			return;
	function->ranges[function->range_count++] = (struct function_range){ low, high };
}

/* The ranges of DWARF, of the symbol, or of the unwind information: whoever knows. */
static void set_ranges(struct module *module, struct function *function, uint64_t symbol_end)
{
	struct line_range ranges[FUNCTION_RANGES_MAX];
	struct lines *lines = module_lines(module);
	struct eh_frame frame;
	uint64_t bias;
	size_t count;

	(void)module_dwfl(module, &bias);
	count = lines ? lines_ranges(lines, function->entry + bias, ranges, FUNCTION_RANGES_MAX)
		      : 0;
	for (size_t i = 0; i < count; i++)
		if (function->entry + bias == ranges[i].low)
			add_range(function, ranges[i].low - bias, ranges[i].high - bias);
	if (function->range_count == 0 && symbol_end > function->entry)
		add_range(function, function->entry, symbol_end);
	if (function->range_count == 0 &&
	    eh_frames_find(module_eh_frames(module), function->entry, &frame) &&
	    frame.low == function->entry)
		add_range(function, frame.low, frame.high);
	for (size_t i = 0; i < count; i++)
		if (function->range_count > 0)
			add_range(function, ranges[i].low - bias, ranges[i].high - bias);
	if (lines)
		function->arguments_in_registers =
			lines_arguments_in_registers(lines, function->entry + bias);
}

struct functions_walk {
	struct module *module;
	struct functions *ret;
	const char *wanted;
	const char *word;
	bool scoped; /* its scope may be longer than the user wrote */
	uint64_t bias;
	VEC(struct elf_symbol) cold;
};

static void look_at(void *ctx, const struct elf_symbol *symbol)
{
	struct functions_walk *search = ctx;
	struct function function = { .entry = symbol->start - search->bias };
	AUTO(mem_freep) char *name = NULL;

	if (!strstr(symbol->name, search->word))
		return;
	name = demangle(symbol->name);
	if (search->scoped
		    ? !demangled_matches(name, search->wanted)
		    : !is_wanted(name, search->wanted) && strcmp(symbol->name, search->wanted) != 0)
		return;
	if (is_cold(symbol->name)) {
		VEC_PUSH(&search->cold, *symbol);
		return;
	}
	if (search->ret->list.count > 0) { /* an alias? */
		struct function *last = &search->ret->list.items[search->ret->list.count - 1];

		last->global |= symbol->global && last->entry == function.entry;
		if (last->entry == function.entry)
			return;
	}
	function.name = TAKE(name);
	function.symbol = mem_strdup(symbol->name);
	function.global = symbol->global;
	function.kind = symbol->ifunc ? FUNCTION_IFUNC : kind_of(symbol->name);
	set_ranges(search->module, &function,
		   symbol->sized ? symbol->end - search->bias : function.entry);
	VEC_PUSH(&search->ret->list, function);
}

/* "f.cold" belongs to "f"; where there are several of both, to the one that it is called after. */
static void add_cold(struct functions_walk *search)
{
	VEC_FOREACH (&search->cold, cold) {
		size_t len = (size_t)(strstr(cold->name, ".cold") - cold->name);

		VEC_FOREACH (&search->ret->list, function)
			if (strncmp(function->symbol, cold->name, len) == 0 &&
			    function->symbol[len] == '\0' && function->range_count > 0)
				add_range(function, cold->start - search->bias,
					  cold->end - search->bias);
	}
}

static void find(struct module *module, const char *name, bool scoped, struct functions *ret)
{
	AUTO(mem_freep) char *word = last_word(name);
	struct functions_walk search = {
		.module = module, .ret = ret, .wanted = name, .word = word, .scoped = scoped
	};

	(void)module_dwfl(module, &search.bias);
	elf_symbols_each(module_symbols(module), look_at, &search);
	add_cold(&search);
	VEC_DEINIT(&search.cold);
}

void functions_find(struct module *module, const char *name, struct functions *ret)
{
	find(module, name, false, ret);
}

void functions_find_scoped(struct module *module, const char *name, struct functions *ret)
{
	find(module, name, true, ret);
}

size_t functions_inlined(struct module *module, const char *name, bool *ret_any)
{
	AUTO(mem_freep) char *word = last_word(name);
	struct lines *lines = module_lines(module);

	*ret_any = false;
	return lines ? lines_inlined(lines, word, ret_any) : 0;
}

bool functions_at(struct module *module, uint64_t vaddr, struct function *ret)
{
	struct eh_frame frame;
	uint64_t bias, start = 0;
	const char *symbol;

	(void)module_dwfl(module, &bias);
	*ret = (struct function){ .entry = vaddr };
	symbol = elf_symbols_find(module_symbols(module), vaddr + bias, &start);
	if (symbol)
		ret->name = demangle(symbol);
	if (symbol && start == vaddr + bias) {
		struct functions found = { 0 };

		functions_find(module, symbol, &found);
		VEC_FOREACH (&found.list, function)
			if (function->entry == vaddr) {
				mem_free(ret->name);
				*ret = *function;
				function->name = function->symbol = NULL;
			}
		functions_deinit(&found);
		return true;
	}
	if (!eh_frames_find(module_eh_frames(module), vaddr, &frame) || frame.low != vaddr)
		return false;
	mem_free(ret->name);
	ret->name = mem_printf("0x%llx", (unsigned long long)vaddr);
	set_ranges(module, ret, vaddr);
	return true;
}

struct near {
	VEC(char *) names;
};

static void note_name(void *ctx, const struct elf_symbol *symbol)
{
	struct near *near = ctx;
	AUTO(mem_freep) char *name = NULL;
	size_t end, start;

	if (!symbol->function || near->names.count >= NEAR_MAX)
		return;
	name = demangle(symbol->name);
	end = parameters_at(name);
	start = name_at(name, end);
	VEC_PUSH(&near->names, mem_strndup(name + start, end - start));
}

char *functions_near(struct module *module, const char *name)
{
	struct near near = { 0 };
	const char *found;
	char *ret;

	elf_symbols_each(module_symbols(module), note_name, &near);
	found = near.names.count > 0 ? nearest_name(name, (const char *const *)near.names.items,
						    near.names.count)
				     : NULL;
	ret = cstr_dup(found);
	VEC_FREE(&near.names, text, mem_free(*text));
	return ret;
}

struct entries {
	uint64_t low, high, bias;
	void (*fn)(void *ctx, uint64_t vaddr);
	void *ctx;
};

static void tell_entry(void *ctx, uint64_t vaddr)
{
	struct entries *entries = ctx;

	if (vaddr >= entries->low && vaddr < entries->high)
		entries->fn(entries->ctx, vaddr);
}

static void tell_symbol(void *ctx, const struct elf_symbol *symbol)
{
	struct entries *entries = ctx;

	tell_entry(entries, symbol->start - entries->bias);
}

#define LSDA_MAX (1u << 20)

static bool tell_landings(const struct module *module, const struct eh_frame *frame, void *entries)
{
	AUTO(mem_freep) uint8_t *bytes = NULL;
	size_t len = LSDA_MAX;

	if (frame->lsda == 0)
		return true;
	bytes = mem_alloc(len);
	/* How long it is stands in it; read up to the end of its segment. */
	while (len > 0 && !module_read(module, frame->lsda, bytes, len))
		len /= 2;
	return eh_frame_landings(frame, bytes, len, tell_entry, entries);
}

bool functions_entries(struct module *module, uint64_t low, uint64_t high,
		       void (*fn)(void *ctx, uint64_t vaddr), void *ctx)
{
	struct entries entries = { .low = low, .high = high, .fn = fn, .ctx = ctx };
	struct eh_frame frame;
	bool known = true;

	(void)module_dwfl(module, &entries.bias);
	elf_symbols_each(module_symbols(module), tell_symbol, &entries);
	if (eh_frames_find(module_eh_frames(module), low, &frame)) {
		tell_entry(&entries, frame.low);
		known = tell_landings(module, &frame, &entries);
	}
	return known;
}

struct next {
	uint64_t from, bias, found;
};

static void look_for_next(void *ctx, const struct elf_symbol *symbol)
{
	struct next *next = ctx;
	uint64_t start = symbol->start - next->bias;

	if (start >= next->from && start < next->found)
		next->found = start;
}

uint64_t functions_next(struct module *module, uint64_t vaddr)
{
	struct next next = { .from = vaddr, .found = UINT64_MAX };
	struct eh_frame frame;

	(void)module_dwfl(module, &next.bias);
	elf_symbols_each(module_symbols(module), look_for_next, &next);
	for (uint64_t at = vaddr; at < vaddr + 32; at++)
		if (eh_frames_find(module_eh_frames(module), at, &frame)) {
			if (at < next.found)
				next.found = at;
			break;
		}
	return next.found;
}

bool functions_known_piece(struct module *module, uint64_t vaddr, struct function_range *ret)
{
	struct eh_frame frame;

	if (!eh_frames_find(module_eh_frames(module), vaddr, &frame))
		return false;
	*ret = (struct function_range){ frame.low, frame.high };
	return true;
}

bool functions_piece(struct module *module, uint64_t vaddr, struct function_range *ret)
{
	struct module_segment segment;

	if (functions_known_piece(module, vaddr, ret))
		return true;
	for (size_t i = 0; module_segment(module, i, &segment); i++) {
		if (!segment.exec || vaddr < segment.vaddr || vaddr - segment.vaddr >= segment.len)
			continue;
		eh_frames_gap(module_eh_frames(module), vaddr, &ret->low, &ret->high);
		if (ret->low < segment.vaddr)
			ret->low = segment.vaddr;
		if (ret->high > segment.vaddr + segment.len)
			ret->high = segment.vaddr + segment.len;
		return true;
	}
	return false;
}
