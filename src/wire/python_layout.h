#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Where CPython 3.11 to 3.14 (release builds, x86-64) keep what is needed to walk a thread's
 * Python frames. Plain numbers, all of them offsets in bytes within the struct that the group is
 * named after.
 *
 * From 3.13 on the offsets that the interpreter publishes itself (_Py_DebugOffsets, at the start of
 * _PyRuntime) replace those of the table.
 */
struct python_layout {
	uint16_t version; /* 0x030b … 0x030e */
	struct {
		uint32_t interpreters_head;
	} runtime;
	struct {
		uint32_t next, threads_head;
	} interpreter;
	struct {
		uint32_t next, thread_id, native_thread_id;
		uint32_t frame; /* since 3.13: the innermost frame; before: the struct cframe */
	} thread;
	struct {
		uint32_t size, previous, code, instruction, owner;
		uint32_t is_entry; /* 3.11 only; 0 for none */
	} frame;
	struct {
		uint32_t current_frame, previous; /* both 0: there is no cframe (since 3.13) */
	} cframe;
	struct {
		uint32_t size; /* up to and without the instructions */
		uint32_t first_line, filename, qualname, linetable, first_traceable;
	} code;
	struct {
		uint32_t length, state, ascii_size, compact_size;
	} unicode;
	struct {
		uint32_t length, data;
	} bytes;
};

/* _PyInterpreterFrame.owner: from here on it is no Python code's frame, but one that lies on the
 * native stack. 3.14 tells two kinds of them apart: the loop's own, and the C API's. */
#define PYTHON_OWNED_BY_C_STACK 3

#define PYTHON_OWNED_BY_GENERATOR 1

/* The code object of a frame. 3.14 keeps a mark in the lowest bit of the pointer; objects are
 * aligned. */
static inline uint64_t python_code_object(uint64_t word)
{
	return word & ~(uint64_t)7;
}

/* The table's row for a Py_Version value; false for versions that are not known. */
bool python_layout_find(uint64_t py_version, struct python_layout *ret);

/* How much of _PyRuntime's start python_layout_refine() wants. */
#define PYTHON_OFFSETS_BYTES 640

/* Takes over the offsets that 3.13 and later ones publish. `runtime` are the first bytes of
 * _PyRuntime. False, with the layout untouched, when they do not make sense; true when nothing is
 * to be done. */
bool python_layout_refine(struct python_layout *layout, const uint8_t *runtime, size_t len);
