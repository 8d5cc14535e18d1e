/*
 * Where code lies: the executable mappings of files, from /proc/self/maps.
 *
 * Not from the loader: dl_iterate_phdr takes its lock, and hooking dlopen would change whose
 * RUNPATH it sees. The table is rebuilt when a caller's return address is in no known module (at
 * most once per unknown mapping), and after dlclose.
 *
 * Two tables take turns. A reader that sleeps through two rebuilds may see a torn table: it gets a
 * wrong hash for one context. A library that is unmapped while its tables are read is met by the
 * thread's recovery (guard.h).
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct loaded_module {
	uint64_t low, high; /* executable mapping */
	uint64_t base;	    /* of the file's first mapping: offsets in hashes count from here */
	uint64_t identity;  /* 0: code without a file (JIT) */
	uint64_t bias;	    /* runtime address - ELF address */
	uint64_t eh_header; /* .eh_frame_hdr as mapped; 0: none */
};

/* Reads the maps and records MODULE for each file not seen before. */
void modules_refresh_sigsafe(void);

/* dlclose was called: the next look rebuilds. */
void modules_stale_sigsafe(void);

/* After a fork: everything is to be recorded again, in the child's log. */
void modules_forget(void);

/* Changes whenever the table is rebuilt. */
uint32_t modules_generation_sigsafe(void);

/* NULL when the address is not in executable memory that we know. */
const struct loaded_module *module_find_sigsafe(uint64_t address);

/* As above, but an unknown address makes the table be rebuilt once. */
const struct loaded_module *module_find_caller_sigsafe(uint64_t address);

/* Has the loader taken in a library since the table was built? One cheap question: dlopen itself
 * looks at who calls it, so nothing of ours can run after it (but see deepbind.c). */
bool modules_grown_sigsafe(void);

/* Where an address of a module's file is now; 0 when the module is not loaded. */
uint64_t module_place_sigsafe(uint64_t identity, uint64_t elf_address);
