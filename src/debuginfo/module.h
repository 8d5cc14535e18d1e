#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/auto.h"
#include "base/err.h"
#include "model/frame.h"

struct stat;
struct Dwfl_Module;
struct eh_frames;
struct elf_symbols;
struct lines;

/*
 * One ELF file with its debug information, opened once.
 *
 * Nothing in here depends on where a process has it mapped: all addresses are the ones in the file
 * (`vaddr`). So one open module serves every trial, whatever address space randomisation did.
 */
struct module;

/* Opens a file, or hands out the one that is open already, if the file has not changed since; what
 * is closed stays at hand for a while. `debug_path` is where separate debug files are looked for,
 * in libdwfl's notation; NULL for the system's default. -ENOEXEC when it is no ELF file of this
 * CPU. */
int module_open(const char *path, const char *debug_path, struct module **ret, struct err *err);

/* The same from bytes in memory, which are copied. */
int module_open_memory(const char *name, const uint8_t *bytes, size_t len, struct module **ret,
		       struct err *err);

/* Looks for a file by its build-id in the debug path and, where configured, with debuginfod. */
int module_open_build_id(const uint8_t *id, size_t len, const char *debug_path, struct module **ret,
			 struct err *err);
void module_close(struct module *module);
AUTO_DEFINE(struct module, module_close)

/* Its build-id, valid while it is open; length 0 when it has none. */
size_t module_build_id(const struct module *module, const uint8_t **ret);

/* Which address in the file a mapping of `map_offset` … holds at `file_offset`. */
bool module_vaddr(const struct module *module, uint64_t map_offset, bool exec, uint64_t file_offset,
		  uint64_t *ret);

/* Where in the file's address space the build-id's bytes lie; 0 when it has none. */
uint64_t module_build_id_vaddr(const struct module *module);

/* A part of the file that is loaded. `bytes` are `len` long, and stay valid while it is open. */
struct module_segment {
	uint64_t vaddr;
	const uint8_t *bytes;
	size_t len;
	bool read, write, exec;
};

/* The segments one after another, from 0; false behind the last. */
bool module_segment(const struct module *module, size_t index, struct module_segment *ret);

/* Calls fn for every word of data that will hold an address in [low, high) when the file is loaded
 * (and perhaps for some that merely look so). */
void module_each_pointer(const struct module *module, uint64_t low, uint64_t high,
			 void (*fn)(void *ctx, uint64_t value), void *ctx);

/* The bytes of the file itself, by the address that they are loaded to. */
bool module_read(const struct module *module, uint64_t vaddr, void *buf, size_t len);

/* For the unwinder: libdwfl's handle, and handle address = vaddr + bias. */
struct Dwfl_Module *module_dwfl(const struct module *module, uint64_t *ret_bias);

/* The address in the file of a symbol. */
bool module_symbol(struct module *module, const char *name, uint64_t *ret);

/* Where the function that holds vaddr begins: by its symbol, or by its unwind information. */
bool module_function_start(struct module *module, uint64_t vaddr, uint64_t *ret);

/* The name of the global variable that holds vaddr, demangled (the caller's to free), and where in
 * it that is; NULL when none does. */
char *module_global(struct module *module, uint64_t vaddr, uint64_t *ret_offset);

/* Does one of its load segments have this address, as it is in memory? */
bool module_covers(const struct module *module, uint64_t vaddr);

/* Function, file, line and kind of each frame at vaddr, innermost first: always at least one, the
 * others (all but the last) inlined. The array and its strings belong to the module and stay
 * valid while it is open; module, offset, address, cfa and flags in them are empty. */
const struct frame *module_name(struct module *module, uint64_t vaddr, size_t *ret_count);

/* Is it the same file, unchanged? */
bool module_same_file(const struct stat *a, const struct stat *b);

struct elf_symbols *module_symbols(struct module *module);
struct lines *module_lines(struct module *module); /* NULL when there is no DWARF */
struct eh_frames *module_eh_frames(struct module *module);
