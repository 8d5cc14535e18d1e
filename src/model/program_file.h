#pragma once

#include <limits.h>
#include <stdbool.h>

/*
 * What is known about a program file without running it.
 *
 * Plain bytes, no pointers: it is filled in by a process that may crash on a
 * damaged file, and copied out of shared memory. Every text is what stood in
 * the file: escape it before showing it.
 */
enum program_kind {
	PROGRAM_ELF,
	PROGRAM_SCRIPT, /* only when its interpreter could not be followed */
	PROGRAM_OTHER,
};

enum program_libc {
	PROGRAM_LIBC_UNKNOWN,
	PROGRAM_LIBC_GLIBC,
	PROGRAM_LIBC_MUSL,
	PROGRAM_LIBC_STATIC, /* whatever was linked in */
};

struct program_facts {
	enum program_kind kind;
	char path[PATH_MAX];   /* what the facts are about: for a script, its interpreter */
	char script[PATH_MAX]; /* the script that led there; empty when the program is none */
	char trouble[256];     /* why the rest could not be read; empty when it could */

	char machine[32];
	bool native;	 /* built for the CPU that redhand supports */
	bool executable; /* an ELF program, not an object file or a core */
	bool dynamic;	 /* has a program interpreter, so LD_PRELOAD reaches it */
	bool pie;
	bool privileged;       /* setuid, setgid or file capabilities: LD_PRELOAD is ignored */
	char loader[PATH_MAX]; /* PT_INTERP; empty when static */
	enum program_libc libc;

	bool symbols; /* has a .symtab */
	bool lines;   /* DWARF line tables in the file itself, and they could be read */
	bool units;   /* has .debug_info, with or without usable lines */
	char build_id[2 * 64 + 1]; /* hexadecimal; empty when it has none */
	char debug_link[256];	   /* .gnu_debuglink; empty when it has none */
	char debug_file[PATH_MAX]; /* a separate debug file that belongs to it; empty when none */
	bool debug_file_lines;	   /* …and it has readable line tables */

	char allocator[64];    /* its own malloc, by symbol or library; empty when libc's is used */
	bool allocator_inside; /* …defined in the program file, where no preload gets in front */
	bool malloc_inside; /* its `malloc` is in the program file: no call of its own leaves it */
	bool malloc_hidden; /* …where other files do not see it: libraries use another */
	bool sanitized;	    /* carries AddressSanitizer */
};
