/*
 * Line by line: a headline begins a report, lines with a frame go to the stack that the line before
 * them announced, and some lines tell about the block. A report ends where the next one begins.
 */
#include "read/sanitizer_report.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/cstr.h"
#include "base/mem.h"
#include "base/strbuf.h"

#define LINE_MAX_BYTES 4096u
#define FRAMES_MAX 64u
#define REPORTS_MAX 256u

struct report {
	struct reported seen;
	struct stack *into; /* where frames go; NULL: they are nobody's */
	bool begun;
};

static void report_drop(struct report *report)
{
	reported_deinit(&report->seen);
	*report = (struct report){ 0 };
}

static const char *after(const char *line, const char *words)
{
	const char *at = strstr(line, words);

	return at ? at + strlen(words) : NULL;
}

static bool begins(const char *text, const char *with)
{
	return strncmp(text, with, strlen(with)) == 0;
}

static uint64_t number(const char *text, int base)
{
	return text ? strtoull(text, NULL, base) : 0;
}

struct named {
	const char *what;
	enum reported_kind kind, written; /* of a read, and of a write */
};

/* As the sanitizers call them; what is not here is told, and nobody judges by it. */
static const struct named names[] = {
	{ "heap-use-after-free", REPORTED_FREED_USE, REPORTED_FREED_WRITE },
	{ "stack-use-after-return", REPORTED_FREED_USE, REPORTED_FREED_WRITE },
	{ "stack-use-after-scope", REPORTED_FREED_USE, REPORTED_FREED_WRITE },
	{ "heap-buffer-overflow", REPORTED_OVER_READ, REPORTED_OVERFLOW },
	{ "stack-buffer-overflow", REPORTED_OVER_READ, REPORTED_OVERFLOW },
	{ "global-buffer-overflow", REPORTED_OVER_READ, REPORTED_OVERFLOW },
	{ "dynamic-stack-buffer-overflow", REPORTED_OVER_READ, REPORTED_OVERFLOW },
	{ "container-overflow", REPORTED_OVER_READ, REPORTED_OVERFLOW },
	{ "stack-buffer-underflow", REPORTED_OVER_READ, REPORTED_UNDERFLOW },
	{ "double-free", REPORTED_DOUBLE_FREE, REPORTED_DOUBLE_FREE },
	{ "bad-free", REPORTED_INVALID_FREE, REPORTED_INVALID_FREE },
	{ "alloc-dealloc-mismatch", REPORTED_INVALID_FREE, REPORTED_INVALID_FREE },
	{ "use-of-uninitialized-value", REPORTED_UNINITIALISED, REPORTED_UNINITIALISED },
	{ "data race", REPORTED_RACE, REPORTED_RACE },
	{ "stack-overflow", REPORTED_STACK, REPORTED_STACK },
	{ "FPE", REPORTED_DIVISION, REPORTED_DIVISION },
};

static enum reported_kind kind_of(const char *what, bool write)
{
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (begins(what, names[i].what))
			return write ? names[i].written : names[i].kind;
	return REPORTED_OTHER;
}

static void begin(struct report *report, const char *tool, char *what)
{
	report_drop(report);
	report->begun = true;
	report->seen.tool = mem_strdup(tool);
	report->seen.kind = kind_of(what, false);
	report->seen.what = what;
	report->into = &report->seen.user;
}

/* Without the addresses and numbers of this run. */
static char *asan_what(const char *rest)
{
	static const char *const ends[] = { " on ", " (", ": ", " 0x" };
	size_t len = strlen(rest);

	if (begins(rest, "attempting double-free"))
		return mem_strdup("double-free");
	if (begins(rest, "attempting free on address"))
		return mem_strdup("bad-free");
	for (size_t i = 0; i < ARRAY_SIZE(ends); i++) {
		const char *end = strstr(rest, ends[i]);

		if (end && end < rest + len)
			len = (size_t)(end - rest);
	}
	return mem_strndup(rest, len);
}

static bool sanitizer_headline(struct report *report, const char *line)
{
	static const char *const tools[] = { "AddressSanitizer", "MemorySanitizer",
					     "ThreadSanitizer",	 "HWAddressSanitizer",
					     "LeakSanitizer",	 "UndefinedBehaviorSanitizer" };

	if (!strstr(line, "Sanitizer: ") || begins(line, "SUMMARY: "))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(tools); i++) {
		AUTO(mem_freep) char *error = mem_printf("ERROR: %s: ", tools[i]);
		AUTO(mem_freep) char *warning = mem_printf("WARNING: %s: ", tools[i]);
		const char *rest = after(line, error);

		if (!rest)
			rest = after(line, warning);
		if (!rest || *rest == '\0')
			continue;
		begin(report, tools[i], asan_what(rest));
		return true;
	}
	return false;
}

/* file.c:20:40: runtime error: signed integer overflow: … */
static bool undefined_headline(struct report *report, const char *line)
{
	const char *rest = after(line, ": runtime error: "), *colon = strchr(line, ':');
	struct frame frame = { .kind = FRAME_NATIVE };
	AUTO(mem_freep) char *file = NULL;

	if (!rest || *rest == '\0' || !colon || !isdigit((unsigned char)colon[1]))
		return false;
	begin(report, "UndefinedBehaviorSanitizer", mem_strdup(rest));
	file = mem_strndup(line, (size_t)(colon - line));
	frame.file = file;
	frame.function = file;
	frame.line = (uint32_t)number(colon + 1, 10);
	(void)stack_push(&report->seen.user, &frame);
	report->into = NULL;
	return true;
}

/* Of Memcheck, without its "==PID== ". */
static bool valgrind_headline(struct report *report, const char *line)
{
	const char *size = after(line, " of size ");
	bool write = begins(line, "Invalid write");

	if (begins(line, "Invalid read") || write) {
		begin(report, "Valgrind", mem_strdup(write ? "invalid write" : "invalid read"));
		report->seen.write = write;
		report->seen.width = number(size, 10);
	} else if (begins(line, "Invalid free()")) {
		begin(report, "Valgrind", mem_strdup("invalid free"));
		report->seen.kind = REPORTED_INVALID_FREE;
	} else if (begins(line, "Conditional jump or move depends on uninitialised") ||
		   begins(line, "Use of uninitialised value")) {
		begin(report, "Valgrind", mem_strdup("uninitialised value"));
		report->seen.kind = REPORTED_UNINITIALISED;
	} else if (begins(line, "Mismatched free()")) {
		begin(report, "Valgrind", mem_strdup("mismatched free"));
		report->seen.kind = REPORTED_INVALID_FREE;
	} else {
		return false;
	}
	return true;
}

/* What stands between the program and the tool that watches it. */
static bool is_tools_own(const struct frame *frame)
{
	static const char *const functions[] = { "__interceptor_", "__asan_",	   "__msan_",
						 "__tsan_",	   "__sanitizer_", "operator new",
						 "operator delete" };

	/* clang's have the names of what they replace, and no lines. */
	static const char *const replaced[] = { "malloc",	 "calloc",   "realloc",
						"free",		 "memalign", "posix_memalign",
						"aligned_alloc", "strdup" };

	for (size_t i = 0; frame->function && i < ARRAY_SIZE(functions); i++)
		if (begins(frame->function, functions[i]))
			return true;
	if (!frame->file && cstr_among(frame->function, replaced, ARRAY_SIZE(replaced)))
		return true;
	return (frame->file &&
		(strstr(frame->file, "/libsanitizer/") || strstr(frame->file, "/compiler-rt/"))) ||
	       (frame->module &&
		(strstr(frame->module, "vgpreload") || strstr(frame->module, "/libasan.")));
}

static void push(struct report *report, const struct frame *frame)
{
	struct stack *stack = report->into;

	/* At the inner end they say nothing; further out they are called by the program. */
	if (!stack || stack->count >= FRAMES_MAX || (stack->count == 0 && is_tools_own(frame)))
		return;
	(void)stack_push(stack, frame);
}

/* FILE:LINE[:COLUMN] at the end of a text: the file's length; 0: it is none. */
static size_t file_length(const char *place, size_t len, uint32_t *ret_line)
{
	size_t ends[2] = { 0 }, found = 0, at = len;

	while (found < 2 && at > 0) {
		size_t digits = 0;

		while (at - digits > 0 && isdigit((unsigned char)place[at - digits - 1]))
			digits++;
		if (digits == 0 || digits > 9 || at == digits || place[at - digits - 1] != ':')
			break;
		ends[found++] = at - digits - 1;
		at -= digits + 1;
	}
	if (found == 0 || ends[found - 1] == 0)
		return 0;
	*ret_line = (uint32_t)number(place + ends[found - 1] + 1, 10);
	return ends[found - 1];
}

/* Where " (MODULE+0xOFFSET)" begins; NULL: nowhere. Names of functions have parentheses, too. */
static const char *module_in(const char *text)
{
	for (const char *at = text; (at = strstr(at, " (")) != NULL; at += 2) {
		const char *plus = strstr(at, "+0x");

		if (plus && plus < at + strcspn(at, ")"))
			return at;
	}
	return NULL;
}

/* "FUNCTION FILE:LINE", "FUNCTION (MODULE+0xOFFSET)", with a build-id or a module behind it. */
static void push_place(struct report *report, const char *text, uint64_t address)
{
	struct frame frame = { .kind = FRAME_NATIVE, .address = address };
	AUTO(mem_freep) char *function = NULL, *file = NULL, *module = NULL;
	const char *open = module_in(text);
	size_t len = open ? (size_t)(open - text) : strlen(text), name = len, length;
	const char *space = memrchr(text, ' ', len);

	length = space ? file_length(space + 1, (size_t)(text + len - space - 1), &frame.line) : 0;
	if (length > 0) {
		file = mem_strndup(space + 1, length);
		name = (size_t)(space - text);
	}
	function = mem_strndup(text, name);
	if (open) {
		const char *plus = strstr(open, "+0x");

		module = mem_strndup(open + 2, (size_t)(plus - open - 2));
		frame.offset = number(plus + 1, 16);
	}
	frame.function = name > 0 ? function : NULL;
	frame.file = file;
	frame.module = module;
	push(report, &frame);
}

/* "    #0 0x55… in FUNCTION FILE:LINE", or ThreadSanitizer's "    #0 FUNCTION FILE:LINE (…)". */
static bool sanitizer_frame(struct report *report, const char *line)
{
	const char *at = line + strspn(line, " ");
	uint64_t address = 0;

	if (*at != '#' || !isdigit((unsigned char)at[1]))
		return false;
	at += 1 + strspn(at + 1, "0123456789");
	at += strspn(at, " ");
	if (begins(at, "0x")) {
		address = number(at, 16);
		at += strcspn(at, " ");
		at += strspn(at, " ");
	}
	if (begins(at, "in "))
		at += 3;
	/* " (MODULE+0xOFFSET)": it has no name. */
	if (*at == '(')
		at--;
	if (*at != '\0')
		push_place(report, at, address);
	return true;
}

/* "   at 0x1091AE: FUNCTION (FILE:LINE)" or "(in MODULE)". */
static bool valgrind_frame(struct report *report, const char *line)
{
	const char *at = line + strspn(line, " ");
	const char *colon = strstr(at, ": "), *open;
	struct frame frame = { .kind = FRAME_NATIVE };
	AUTO(mem_freep) char *function = NULL, *place = NULL;
	size_t len, length;

	if ((!begins(at, "at 0x") && !begins(at, "by 0x")) || !colon)
		return false;
	frame.address = number(at + 3, 16);
	at = colon + 2;
	open = strrchr(at, '(');
	len = open && open > at ? (size_t)(open - at - 1) : strlen(at);
	function = mem_strndup(at, len);
	frame.function = strcmp(function, "???") == 0 ? NULL : function;
	if (open) {
		length = strcspn(open + 1, ")");
		if (begins(open + 1, "in ") && length > 3) {
			place = mem_strndup(open + 4, length - 3);
			frame.module = place;
		} else {
			length = file_length(open + 1, length, &frame.line);
			place = mem_strndup(open + 1, length);
			frame.file = length > 0 ? place : NULL;
		}
	}
	push(report, &frame);
	return true;
}

static struct block_life *block_of(struct reported *seen)
{
	if (!seen->block) {
		seen->block = mem_alloc(sizeof(*seen->block));
		*seen->block =
			(struct block_life){ .via = mem_strdup("the address"), .telling = true };
	}
	return seen->block;
}

/* Which side of the block it is on, and how far: "3 bytes inside", "0 bytes after", "to the right
 * of". */
static void place(struct reported *seen, uint64_t bytes, const char *where)
{
	struct block_life *block = block_of(seen);

	if (strstr(where, "inside"))
		seen->offset = (int64_t)bytes;
	else if (strstr(where, "before ") || strstr(where, "to the left"))
		seen->offset = -(int64_t)bytes;
	else
		seen->offset = (int64_t)(block->size + bytes);
	block->value = block->start + (uint64_t)seen->offset;
	if (seen->offset < 0 && seen->kind == REPORTED_OVERFLOW)
		seen->kind = REPORTED_UNDERFLOW;
}

/* "0x… is located 3 bytes inside of 32-byte region [0x603000000040,0x603000000060)" */
static bool asan_region(struct report *report, const char *line)
{
	const char *located = after(line, " is located "), *region, *bracket;
	struct block_life *block;

	if (!located)
		return false;
	/* Of a variable the function's own frame follows: it is no caller of whoever came here. */
	report->into = begins(located, "in stack of ") ? &block_of(&report->seen)->allocated : NULL;
	region = strstr(located, "-byte region [");
	if (region) {
		const char *size = region;

		while (size > located && isdigit((unsigned char)size[-1]))
			size--;
		bracket = strchr(region, '[');
		block = block_of(&report->seen);
		block->size = number(size, 10);
		block->start = number(bracket + 1, 16);
		place(&report->seen, number(located, 10), located);
		return true;
	}
	/* A global's red zone lies behind it: of two neighbours it is the one before. */
	region = after(located, "global variable '");
	if (region && !(report->seen.block && report->seen.offset >= 0)) {
		block = block_of(&report->seen);
		mem_free(block->key);
		block->key = mem_strndup(region, strcspn(region, "'"));
		block->size = number(after(region, " of size "), 10);
		block->start = number(after(region, "' (0x"), 16);
		place(&report->seen, number(located, 10), located);
	}
	return true;
}

/* "    [32, 40) 'buf' (line 8) <== Memory access at offset 40 overflows this variable" */
static bool asan_variable(struct report *report, const char *line)
{
	const char *at = line + strspn(line, " "), *name, *offset;
	uint64_t from, to;
	struct block_life *block;

	offset = after(line, "<== Memory access at offset ");
	name = strchr(at, '\'');
	if (*at != '[' || !offset || !name || !strchr(at, ','))
		return false;
	from = number(at + 1, 10);
	to = number(strchr(at, ',') + 1, 10);
	block = block_of(&report->seen);
	block->size = to > from ? to - from : 0;
	mem_free(block->key);
	block->key = mem_strndup(name + 1, strcspn(name + 1, "'"));
	report->seen.offset = (int64_t)(number(offset, 10) - from);
	return true;
}

static bool begins_any(const char *text, const char *const *with)
{
	for (; *with; with++)
		if (begins(text, *with))
			return true;
	return false;
}

static bool tells_allocation(const char *at)
{
	return begins(at, "previously allocated by") || begins(at, "allocated by thread") ||
	       begins(at, "Uninitialized value was created by");
}

static bool sanitizer_detail(struct report *report, const char *line)
{
	static const char *const accesses[] = { "READ ", "WRITE ", "Read ", "Write ", NULL };
	static const char *const rest[] = { "SUMMARY: ",   "Shadow bytes",	 "Thread T",
					    "Location is", "As if synchronized", NULL };
	struct reported *seen = &report->seen;
	const char *at = line + strspn(line, " ");
	const char *size = after(at, " of size ");
	bool previous = begins(at, "Previous ");

	if (asan_region(report, line) || asan_variable(report, line))
		return true;
	if (strstr(at, "zero page") && begins(seen->what, "SEGV"))
		seen->kind = REPORTED_NULL;
	if (begins(at, "SUMMARY: ") && seen->kind == REPORTED_OTHER)
		report->into = NULL;
	seen->write |= strstr(at, "a WRITE memory") != NULL;
	if (size && previous) {
		report->into = &seen->other;
		return true;
	}
	if (size && begins_any(at, accesses)) {
		seen->write = begins(at, "WRITE") || begins(at, "Write");
		seen->width = number(size, 10);
		seen->kind = kind_of(seen->what, seen->write);
		report->into = &seen->user;
		return true;
	}
	if (begins(at, "freed by thread")) {
		block_of(seen)->state = BLOCK_FREED;
		report->into = &block_of(seen)->freed;
	} else if (tells_allocation(at)) {
		report->into = &block_of(seen)->allocated;
	} else if (begins_any(at, rest)) {
		report->into = NULL;
	} else {
		return false;
	}
	return true;
}

/* " Address 0x4a42043 is 3 bytes inside a block of size 32 free'd" */
static bool valgrind_detail(struct report *report, const char *line)
{
	struct reported *seen = &report->seen;
	const char *at = line + strspn(line, " ");
	const char *is = after(at, " is "), *size = after(at, " a block of size ");

	if (begins(at, "Block was alloc'd at")) {
		report->into = &block_of(seen)->allocated;
		return true;
	}
	if (!begins(at, "Address 0x"))
		return false;
	report->into = NULL;
	if (!is || !size)
		return true;
	block_of(seen)->size = number(size, 10);
	block_of(seen)->start = number(at + strlen("Address "), 16);
	place(seen, number(is, 10), is);
	block_of(seen)->start -= (uint64_t)seen->offset;
	block_of(seen)->value = block_of(seen)->start + (uint64_t)seen->offset;
	if (strstr(size, "free'd")) {
		block_of(seen)->state = BLOCK_FREED;
		report->into = &block_of(seen)->freed;
	} else {
		report->into = &block_of(seen)->allocated;
	}
	if (seen->kind == REPORTED_INVALID_FREE)
		seen->kind = block_of(seen)->state == BLOCK_FREED && seen->offset == 0
				     ? REPORTED_DOUBLE_FREE
				     : REPORTED_INVALID_FREE;
	else if (block_of(seen)->state == BLOCK_FREED)
		seen->kind = seen->write ? REPORTED_FREED_WRITE : REPORTED_FREED_USE;
	else if (seen->offset < 0)
		seen->kind = seen->write ? REPORTED_UNDERFLOW : REPORTED_OVER_READ;
	else if (seen->offset >= (int64_t)block_of(seen)->size)
		seen->kind = seen->write ? REPORTED_OVERFLOW : REPORTED_OVER_READ;
	return true;
}

/* "==1234== " in front of what Valgrind says; NULL: it is none of its lines. */
static const char *valgrind_line(const char *line)
{
	const char *at = line;

	if (!begins(at, "=="))
		return NULL;
	at += 2 + strspn(at + 2, "0123456789");
	return at > line + 2 && begins(at, "== ") ? at + 3 : NULL;
}

/* Keeps the report if it is better than what there is. */
static void settle(struct report *report, struct report *best)
{
	bool judged = report->seen.kind != REPORTED_OTHER;

	if (report->begun && (!best->begun || (judged && best->seen.kind == REPORTED_OTHER))) {
		report_drop(best);
		*best = *report;
		best->into = NULL;
		*report = (struct report){ 0 };
	}
	report_drop(report);
}

static bool is_headline(const char *line)
{
	struct report scratch = { 0 };
	const char *valgrind = valgrind_line(line);
	bool found = sanitizer_headline(&scratch, line) || undefined_headline(&scratch, line) ||
		     (valgrind && valgrind_headline(&scratch, valgrind));

	report_drop(&scratch);
	return found;
}

static void take_line(struct report *report, const char *line)
{
	const char *valgrind = valgrind_line(line);

	if (valgrind && valgrind_headline(report, valgrind))
		return;
	if (sanitizer_headline(report, line) || undefined_headline(report, line) || !report->begun)
		return;
	if (valgrind) {
		(void)(valgrind_frame(report, valgrind) || valgrind_detail(report, valgrind));
		return;
	}
	(void)(sanitizer_frame(report, line) || sanitizer_detail(report, line));
}

bool sanitizer_report_read(const char *text, size_t len, struct reported *ret)
{
	struct report report = { 0 }, best = { 0 };
	unsigned int reports = 0;

	while (len > 0 && reports < REPORTS_MAX) {
		const char *end = memchr(text, '\n', len);
		size_t whole = end ? (size_t)(end - text) : len;
		AUTO(strbuf_deinit) struct strbuf line = { 0 };

		/* Bytes that are no text, and what a terminal obeys, are made harmless. */
		strbuf_add_printable(&line, text, whole < LINE_MAX_BYTES ? whole : LINE_MAX_BYTES);
		if (is_headline(strbuf_str(&line))) {
			settle(&report, &best);
			reports++;
		}
		take_line(&report, strbuf_str(&line));
		text += whole + (end != NULL);
		len -= whole + (end != NULL);
	}
	settle(&report, &best);
	if (!best.begun)
		return false;
	*ret = best.seen;
	return true;
}
