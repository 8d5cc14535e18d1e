#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"

struct module;

/* Which parts of a file or mapping are code, and where functions begin in it. */
struct code_range {
	uint64_t low, high;
};

struct code_layout {
	VEC(struct code_range) ranges; /* ascending, apart from each other */
	VEC(uint64_t) starts;	       /* ascending, each once */
};

void code_layout_deinit(struct code_layout *layout);

/* Of an ELF file, by its own addresses: its executable sections (or segments, where the section
 * table is gone), and the starts that its symbols and unwind information tell. */
void code_layout_of_module(struct module *module, struct code_layout *ret);

/* Sorts the starts and drops doubles; for whoever adds some. */
void code_layout_sort(struct code_layout *layout);
