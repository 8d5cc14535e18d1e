#include "model/crash.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/cstr.h"
#include "wire/ids.h"

#define RECURS 4u /* a function that is so often in a stack calls itself */

static const char *const fault_names[FAULT_CLASSES] = {
	[FAULT_UNKNOWN] = "unknown",
	[FAULT_NULL] = "null",
	[FAULT_FREED] = "freed-block",
	[FAULT_RECYCLED] = "recycled-block",
	[FAULT_BEYOND] = "beyond-block",
	[FAULT_NON_CANONICAL] = "non-canonical",
	[FAULT_MISALIGNED] = "misaligned",
	[FAULT_EXECUTE] = "execute-data",
	[FAULT_STACK_OVERFLOW] = "stack-overflow",
	[FAULT_MAPPING_SHRANK] = "mapping-shrank",
	[FAULT_READ_ONLY] = "read-only",
	[FAULT_UNMAPPED] = "unmapped",
	[FAULT_OWN] = "redhand-guard",
	[FAULT_ABORT] = "abort",
	[FAULT_ARITHMETIC] = "arithmetic",
	[FAULT_ILLEGAL] = "illegal-instruction",
	[FAULT_TRAP] = "trap",
	[FAULT_SYSCALL] = "forbidden-syscall",
	[FAULT_SENT] = "sent",
};

const char *fault_class_name(enum fault_class fault)
{
	return fault < FAULT_CLASSES ? fault_names[fault] : "unknown";
}

const char *block_name(uint64_t id, char buf[BLOCK_NAME_BYTES])
{
	uint64_t context = (id & ~ALLOC_ID_PAIR) >> 32;

	if (id & ALLOC_ID_PAIR)
		(void)snprintf(buf, BLOCK_NAME_BYTES, "#%" PRIu64 ".%" PRIu32, context,
			       (uint32_t)id);
	else
		(void)snprintf(buf, BLOCK_NAME_BYTES, "#%" PRIu64, id);
	return buf;
}

void crash_report_deinit(struct crash_report *report)
{
	VEC_FREE(&report->crashes, crash, crash_deinit(crash));
	said_list_deinit(&report->notes);
}

bool frame_is_runtime(const struct frame *frame)
{
	static const char *const names[] = { "libc.so",		 "libc-",
					     "ld-linux",	 "libpthread",
					     "libredhand-agent", "ld-2",
					     "linux-vdso",	 "[vdso]" };
	const char *slash = frame->module ? strrchr(frame->module, '/') : NULL;
	const char *base = slash ? slash + 1 : frame->module;

	for (size_t i = 0; base && i < ARRAY_SIZE(names); i++)
		if (strncmp(base, names[i], strlen(names[i])) == 0)
			return true;
	return false;
}

/* CPython's routines that make objects, count their references and take them back, for whoever
 * calls them. Some are inlined from its headers. */
static bool is_service(const struct frame *frame)
{
	static const char *const names[] = {
		"PyMem_Malloc",	       "PyMem_Calloc",	      "PyMem_Realloc",
		"PyMem_Free",	       "PyObject_Malloc",     "PyObject_Calloc",
		"PyObject_Realloc",    "PyObject_Free",	      "PyObject_GC_Del",
		"PyObject_Init",       "PyObject_InitVar",    "_PyObject_New",
		"_PyObject_NewVar",    "_PyObject_GC_New",    "_PyObject_GC_NewVar",
		"_PyObject_GC_Malloc", "PyType_GenericAlloc", "_PyType_AllocNoTrack",
		"Py_INCREF",	       "Py_XINCREF",	      "Py_DECREF",
		"Py_XDECREF",	       "Py_IncRef",	      "Py_DecRef",
		"Py_NewRef",	       "Py_XNewRef",	      "_Py_NewRef",
		"_Py_XNewRef",	       "_Py_Dealloc",
	};

	return cstr_among(frame->function, names, ARRAY_SIZE(names));
}

/* Headers that the compiler brings along: those of the C++ library, a function for each vector
 * instruction, and libc's, whose functions check the length and call the real one. */
static bool is_compilers(const char *file)
{
	static const char *const libcs[] = { "/usr/include/stdlib.h", "/usr/include/ctype.h",
					     "/usr/include/stdio.h",  "/usr/include/string.h",
					     "/usr/include/wchar.h",  "/usr/include/math.h" };

	if (cstr_among(file, libcs, ARRAY_SIZE(libcs)))
		return true;
	return strstr(file, "/include/") &&
	       (strstr(file, "/c++/") || strstr(file, "/lib/gcc/") || strstr(file, "/lib/clang/") ||
		(strstr(file, "/usr/include/") && strstr(file, "/bits/")));
}

/* Rust's own libraries are compiled into every program; their sources are where it was built, or
 * where they were installed. */
static bool is_rusts(const char *file)
{
	const char *library = strstr(file, "/library/");

	return library && strstr(library, "/src/") &&
	       (strstr(file, "/rustc") || strstr(file, "/rustlib/"));
}

/* Without debug information a name has to do. */
static bool is_named_container(const char *function)
{
	static const char *const names[] = { "std::",	"core::",   "alloc::",	 "<std::",
					     "<core::", "<alloc::", "__rustc::", "__rust_" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (strncmp(function, names[i], strlen(names[i])) == 0)
			return true;
	return false;
}

/* A container's own code does what it is told: the libraries of C++ and Rust, what unwinds for
 * them, and what of them was compiled into the program. */
static bool is_container(const struct frame *frame)
{
	static const char *const names[] = { "/libstdc++", "/libc++", "/libgcc_s" };
	const char *slash = frame->module ? strrchr(frame->module, '/') : NULL;

	for (size_t i = 0; slash && i < ARRAY_SIZE(names); i++)
		if (strncmp(slash, names[i], strlen(names[i])) == 0)
			return true;
	if (frame->file)
		return is_compilers(frame->file) || is_rusts(frame->file);
	return frame->function && is_named_container(frame->function);
}

/* It says where it is, and is not the C library's. */
static bool is_outside_libc(const struct frame *frame)
{
	return (frame->function || frame->module) && !frame_is_runtime(frame) &&
	       !(frame->flags & FRAME_SIGNAL);
}

bool frame_is_telling(const struct frame *frame)
{
	return is_outside_libc(frame) && !(frame->flags & FRAME_WRAPPER) && !is_container(frame) &&
	       !is_service(frame);
}

/* The first telling frame; where none is, the first outside of libc. */
static const struct frame *first_telling(const struct stack *stack, size_t from)
{
	const struct frame *service = NULL;

	for (size_t i = from; i < stack->count; i++) {
		const struct frame *frame = &stack->frames[i];

		if (frame_is_telling(frame))
			return frame;
		if (!service && is_outside_libc(frame))
			service = frame;
	}
	return service;
}

static size_t times_in(const struct stack *stack, const struct frame *frame)
{
	size_t count = 0;

	for (size_t i = 0; i < stack->count; i++)
		count += stack->frames[i].function &&
			 strcmp(stack->frames[i].function, frame->function) == 0;
	return count;
}

/* Of functions that call each other until the stack is full, which of them met its end is chance.
 * Those that are there about as often as any take part in it; of these the first by name, so that
 * it is the same in every run. NULL: nothing recurs. */
static const struct frame *recursion_site(const struct stack *stack)
{
	const struct frame *site = NULL;
	size_t most = RECURS - 1;

	for (size_t i = 0; i < stack->count; i++)
		if (stack->frames[i].function && frame_is_telling(&stack->frames[i]) &&
		    times_in(stack, &stack->frames[i]) > most)
			most = times_in(stack, &stack->frames[i]);
	for (size_t i = 0; most >= RECURS && i < stack->count; i++) {
		const struct frame *frame = &stack->frames[i];

		if (frame->function && frame_is_telling(frame) &&
		    times_in(stack, frame) * 5 >= most * 4 &&
		    (!site || strcmp(frame->function, site->function) < 0))
			site = frame;
	}
	return site;
}

/* Programs have functions of their own to stop themselves with: why is known by the caller. Only
 * the end of a name says what it does: test_error_path() may abort for a reason of its own. */
static bool is_panic(const struct frame *frame)
{
	static const char *const ends[] = { "panic",   "fatal", "abort", "assert", "terminate",
					    "die",     "bug",	"fail",	 "failed", "oops",
					    "failure", "error", "crash" };
	size_t len = strcspn(frame->function, "("); /* C++ names have their arguments */

	if (strcasestr(frame->function, "test"))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(ends); i++) {
		size_t end = strlen(ends[i]);
		const char *at = frame->function + len - end;

		if (len < end || strncasecmp(at, ends[i], end) != 0)
			continue;
		if (at == frame->function || !islower((unsigned char)at[-1]) ||
		    isupper((unsigned char)at[0]))
			return true;
	}
	return false;
}

static const struct frame *behind_panics(const struct stack *stack, const struct frame *site)
{
	const struct frame *end = stack->frames + stack->count, *at = site;

	for (; at && at < end && at->function && frame_is_telling(at); at++)
		if (!is_panic(at))
			/* All that a program does is called by main(). */
			return strcmp(at->function, "main") == 0 ? site : at;
	return site;
}

const struct frame *crash_site(const struct crash *crash)
{
	const struct frame *recursion =
		crash->fault == FAULT_STACK_OVERFLOW ? recursion_site(&crash->stack) : NULL;
	const struct frame *site;

	if (recursion)
		return recursion;
	/* Who jumped to nowhere is the caller; nowhere has no name. */
	site = first_telling(&crash->stack, crash->fault == FAULT_EXECUTE);
	return crash->fault == FAULT_ABORT ? behind_panics(&crash->stack, site) : site;
}

bool frame_is_interpreter(const struct frame *frame)
{
	static const char *const names[] = { "libpython", "libffi.", "_ctypes." };
	const char *slash = frame->module ? strrchr(frame->module, '/') : NULL;
	const char *base = slash ? slash + 1 : "";

	if (frame->kind == FRAME_PYTHON)
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (strncmp(base, names[i], strlen(names[i])) == 0)
			return true;
	/* python, python3, python3.12 */
	if (strncmp(base, "python", 6) == 0 && strspn(base + 6, "0123456789.") == strlen(base + 6))
		return true;
	return frame->module && (strstr(frame->module, "-packages/numpy/") != NULL ||
				 strstr(frame->module, "/lib-dynload/") != NULL);
}

const struct frame *stack_site(const struct stack *stack)
{
	const struct frame *first = first_telling(stack, 0);

	if (!first || !frame_is_interpreter(first))
		return first;
	for (const struct frame *frame = first; frame < stack->frames + stack->count; frame++)
		if (frame_is_telling(frame) && !frame_is_interpreter(frame))
			return frame;
	return first;
}

const struct frame *stack_site_or_top(const struct stack *stack)
{
	const struct frame *site = stack_site(stack);

	return site ? site : stack->count > 0 ? &stack->frames[0] : NULL;
}

void crash_place(const struct crash *crash, struct strbuf *sb)
{
	const struct frame *site = crash_site(crash);

	strbuf_addf(sb, "%s in %s", fault_class_name(crash->fault),
		    site && site->function ? site->function
		    : site && site->module ? site->module
					   : "?");
}

bool stack_in_allocator(const struct stack *stack)
{
	static const char *const names[] = { "malloc", "calloc",   "realloc",	    "free",
					     "_int_",  "memalign", "aligned_alloc", "sysmalloc",
					     "unlink", "tcache" };

	for (size_t i = 0; i < stack->count && frame_is_runtime(&stack->frames[i]); i++)
		for (size_t k = 0; stack->frames[i].function && k < ARRAY_SIZE(names); k++)
			if (strstr(stack->frames[i].function, names[k]))
				return true;
	return false;
}

#define NULL_REACH 0x10000u /* as far as a table of functions goes */

bool crash_is_null_call(const struct crash *crash)
{
	return crash->fault == FAULT_EXECUTE && crash->address < NULL_REACH;
}

bool crash_is_plain(const struct crash *crash)
{
	return crash->fault == FAULT_NULL || crash->fault == FAULT_ARITHMETIC ||
	       crash->fault == FAULT_STACK_OVERFLOW || crash->fault == FAULT_ILLEGAL ||
	       crash->fault == FAULT_TRAP || crash_is_null_call(crash);
}
