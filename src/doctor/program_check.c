/*
 * From the facts about a program file to what they mean for a hunt in it.
 *
 * The texts name remedies for the user; the facts come from debuginfo/.
 */
#include "doctor/program_check.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/mem.h"
#include "base/which.h"
#include "debuginfo/program.h"
#include "doctor/isolate.h"
#include "doctor/probe.h"

/* A program with gigabytes of debug information takes seconds, a malicious one for ever. */
#define READ_TIMEOUT_NS (30ull * 1000000000ull)

/* Compressed sections can claim any size; stop before the machine runs out of memory. */
#define READ_MEMORY_BYTES (8ull << 30)

struct checked_program {
	const char *id;
	const char *title;
	void (*judge)(const struct program_facts *facts, struct finding *finding);
};

static void judge_format(const struct program_facts *facts, struct finding *finding)
{
	const char *script = facts->script[0] != '\0' ? "a script; what follows is about its "
							"interpreter: "
						      : "";

	if (facts->kind == PROGRAM_ELF && facts->executable) {
		probe_say(finding, FINDING_OK, "%san ELF program", script);
		return;
	}
	probe_say(finding, FINDING_NO, "not a program that can be started%s%s",
		  facts->trouble[0] != '\0' ? ": " : "", facts->trouble);
	probe_lost(finding, "there is nothing to hunt in");
	probe_enable(finding,
		     "name the program itself, and for a script start it with '#!' and the "
		     "path of its interpreter");
}

static void judge_machine(const struct program_facts *facts, struct finding *finding)
{
	if (facts->native) {
		probe_say(finding, FINDING_OK, "built for %s", facts->machine);
		return;
	}
	probe_say(finding, FINDING_NO, "built for %s, not for x86-64",
		  facts->machine[0] != '\0' ? facts->machine : "an unknown machine");
	probe_lost(finding, "redhand counts its failures, but sees no write and no block in it");
	probe_enable(finding, "build it for x86-64");
}

static const char *libc_name(enum program_libc libc)
{
	switch (libc) {
	case PROGRAM_LIBC_GLIBC:
		return "glibc";
	case PROGRAM_LIBC_MUSL:
		return "musl";
	case PROGRAM_LIBC_STATIC:
		return "its own";
	case PROGRAM_LIBC_UNKNOWN:
		break;
	}
	return "unknown";
}

static void judge_linkage(const struct program_facts *facts, struct finding *finding)
{
	const char *place = facts->pie ? "position-independent" : "at a fixed address";

	if (!facts->dynamic) {
		probe_say(finding, FINDING_NO, "statically linked, %s", place);
		probe_lost(finding, "LD_PRELOAD does not reach it, so the agent cannot follow its "
				    "blocks; only ptrace watchpoints on known addresses are left");
		probe_enable(finding, "link it dynamically: without -static");
	} else if (access(facts->loader, X_OK) < 0) {
		probe_say(finding, FINDING_NO, "its loader '%s' does not exist here",
			  facts->loader);
		probe_lost(finding, "it cannot be started on this machine");
		probe_enable(finding, "install the C library it was built for, or build it here");
	} else if (facts->libc == PROGRAM_LIBC_GLIBC) {
		probe_say(finding, FINDING_OK, "dynamically linked, glibc, %s", place);
	} else {
		probe_say(finding, FINDING_LIMITED,
			  "dynamically linked, C library %s (loader %s), %s",
			  libc_name(facts->libc), facts->loader, place);
		probe_lost(finding, "the agent is built for glibc and may not load into it");
		probe_enable(finding, "build redhand's agent with that C library, or the program "
				      "with glibc");
	}
}

static void judge_privileges(const struct program_facts *facts, struct finding *finding)
{
	if (!facts->privileged) {
		probe_say(finding, FINDING_OK, "runs with the rights of its user");
		return;
	}
	probe_say(finding, FINDING_NO, "has set-user-id, set-group-id or file capabilities");
	probe_lost(finding, "the loader ignores LD_PRELOAD for it and ptrace is refused: the agent "
			    "does not get in");
	probe_enable(finding,
		     "hunt in a copy of it (cp drops these rights), started as the user it "
		     "would become");
}

static void judge_symbols(const struct program_facts *facts, struct finding *finding)
{
	if (facts->symbols) {
		probe_say(finding, FINDING_OK, "has its symbol table");
	} else if (facts->debug_file[0] != '\0') {
		probe_say(finding, FINDING_OK, "stripped, but its debug file has been found");
	} else {
		probe_say(finding, FINDING_LIMITED, "stripped: only exported functions have names");
		probe_lost(finding, "writers inside it show as addresses, not as functions");
		probe_enable(finding, "use the build before 'strip', or install its debug package "
				      "(Debian: PACKAGE-dbgsym)");
	}
}

static void judge_lines(const struct program_facts *facts, struct finding *finding)
{
	if (facts->lines) {
		probe_say(finding, FINDING_OK, "has DWARF line tables, and they can be read");
		return;
	}
	if (facts->debug_file_lines) {
		probe_say(finding, FINDING_OK, "line tables come from its debug file");
		return;
	}
	if (facts->units)
		probe_say(finding, FINDING_LIMITED,
			  "has debug information without usable line "
			  "tables (split into .dwo files, or damaged)");
	else
		probe_say(finding, FINDING_NO, "has no debug information");
	probe_lost(finding, "a writer is named by function and offset, without file and line, and "
			    "fields have no names");
	probe_enable(finding, "rebuild it with -g (optimisation may stay on), or install its debug "
			      "package (Debian: PACKAGE-dbgsym)");
}

static void judge_build_id(const struct program_facts *facts, struct finding *finding)
{
	if (facts->build_id[0] != '\0') {
		probe_say(finding, FINDING_OK, "%s", facts->build_id);
		return;
	}
	probe_say(finding, FINDING_LIMITED, "has none");
	probe_lost(finding, "debug files can only be found by name, and two builds cannot be told "
			    "apart");
	probe_enable(finding, "link it with -Wl,--build-id");
}

static void judge_debug_file(const struct program_facts *facts, struct finding *finding)
{
	if (facts->debug_file[0] != '\0') {
		probe_say(finding, FINDING_OK, "%s", facts->debug_file);
	} else if (facts->lines) {
		probe_say(finding, FINDING_OK, "none, and none is needed");
	} else {
		probe_say(finding, FINDING_NO, "none found, neither by build-id nor by name%s%s",
			  facts->debug_link[0] != '\0' ? ", which would be " : "",
			  facts->debug_link);
		probe_lost(finding,
			   "source lines have to come from the program itself, which has none");
		probe_enable(finding, "install its debug package (Debian: PACKAGE-dbgsym), or set "
				      "DEBUGINFOD_URLS");
	}
}

static void judge_allocator(const struct program_facts *facts, struct finding *finding)
{
	if (facts->sanitized) {
		probe_say(finding, FINDING_LIMITED,
			  "carries AddressSanitizer, which brings its own "
			  "malloc");
		probe_lost(finding, "redhand takes the sanitizer's reports and does not follow "
				    "blocks itself");
		probe_enable(finding, "for block tracking use a build without -fsanitize=address");
	} else if (facts->allocator[0] == '\0') {
		probe_say(finding, FINDING_OK, "uses malloc of its C library");
	} else if (!facts->allocator_inside) {
		probe_say(finding, FINDING_OK, "uses %s; the agent stands in front of it",
			  facts->allocator);
	} else if (facts->malloc_inside && !facts->malloc_hidden) {
		probe_say(finding, FINDING_LIMITED, "has a malloc of its own inside");
		probe_lost(finding,
			   "its blocks are followed, but have no guards and cannot be put on "
			   "watched pages");
		probe_enable(finding, "link the allocator as a shared library");
	} else {
		probe_say(finding, FINDING_LIMITED, "brings its own allocator: it defines %s",
			  facts->allocator);
		probe_lost(finding, "calls inside the program do not pass the agent, so its blocks "
				    "have no identity");
		probe_enable(finding, "link the allocator as a shared library, or tell redhand its "
				      "functions: --allocator 'alloc=FN(size@0) free=FN(ptr@0)'");
	}
}

static const struct checked_program checks[] = {
	{ "program-format", "file format", judge_format },
	{ "program-machine", "architecture", judge_machine },
	{ "program-linkage", "linkage", judge_linkage },
	{ "program-privileges", "privileges", judge_privileges },
	{ "program-symbols", "symbols", judge_symbols },
	{ "program-lines", "source lines", judge_lines },
	{ "program-build-id", "build-id", judge_build_id },
	{ "program-debug-file", "separate debug file", judge_debug_file },
	{ "program-allocator", "allocator", judge_allocator },
};

/* What goes into the reading process and comes back. */
struct program_walk {
	char path[PATH_MAX];
	int result;
	struct program_facts facts;
	struct err err;
};

static void read_in_child(void *data)
{
	struct program_walk *reading = data;
#ifndef __SANITIZE_ADDRESS__ /* whose shadow memory is far larger than the limit */
	struct rlimit limit = { .rlim_cur = READ_MEMORY_BYTES, .rlim_max = RLIM_INFINITY };

	if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur > READ_MEMORY_BYTES) {
		limit.rlim_cur = READ_MEMORY_BYTES;
		(void)setrlimit(RLIMIT_AS, &limit);
	}
#endif
	reading->result = program_read(reading->path, &reading->facts, &reading->err);
}

/* Reads the program. A crash of the reader is an answer about the file. */
static int read_facts(const char *path, struct program_facts *ret, struct err *err)
{
	AUTO(mem_freep) struct program_walk *reading = mem_alloc(sizeof(*reading));
	struct isolate_outcome outcome = { 0 };
	int r;

	if (strlen(path) >= sizeof(reading->path))
		return err_set(err, -ENAMETOOLONG, "the path of the program is too long");
	(void)snprintf(reading->path, sizeof(reading->path), "%s", path);
	r = isolate_run(read_in_child, reading, sizeof(*reading), READ_TIMEOUT_NS, &outcome, err);
	if (r < 0)
		return r;
	if (outcome.end == ISOLATE_RETURNED && reading->result < 0) {
		*err = reading->err;
		return reading->result;
	}
	if (outcome.end != ISOLATE_RETURNED) {
		memset(&reading->facts, 0, sizeof(reading->facts));
		reading->facts.kind = PROGRAM_OTHER;
		(void)snprintf(reading->facts.path, sizeof(reading->facts.path), "%s", path);
		(void)snprintf(reading->facts.trouble, sizeof(reading->facts.trouble), "%s",
			       outcome.end == ISOLATE_TIMEOUT
				       ? "reading it took too long, it is probably damaged"
				       : "reading it failed, it is probably damaged");
	}
	*ret = reading->facts;
	return 0;
}

int program_check(const char *name, struct diagnosis *ret, struct err *err)
{
	AUTO(mem_freep) char *path = NULL;
	AUTO(mem_freep) struct program_facts *facts = mem_alloc(sizeof(*facts));
	size_t count = ARRAY_SIZE(checks);
	int r;

	r = which(name, NULL, &path, err);
	if (r < 0)
		return r;
	r = read_facts(path, facts, err);
	if (r < 0)
		return r;
	/* What is not a program has no further properties. */
	if (facts->kind != PROGRAM_ELF || !facts->executable)
		count = 1;
	ret->program.items = mem_alloc(count * sizeof(struct finding));
	ret->program.count = count;
	for (size_t i = 0; i < count; i++) {
		ret->program.items[i].id = checks[i].id;
		ret->program.items[i].title = checks[i].title;
		checks[i].judge(facts, &ret->program.items[i]);
	}
	ret->facts = TAKE(facts);
	return 0;
}
