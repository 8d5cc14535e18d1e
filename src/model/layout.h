#pragma once

#include <stdint.h>

#include "base/auto.h"
#include "base/vec.h"

/* The fields of a block by their names, in the order of their offsets. Everything in it is owned by
 * it. */
struct layout_field {
	uint64_t offset, size; /* size 0: an array without an end */
	char *name;	       /* "stmt.container" */
};

struct block_layout {
	char *type; /* "struct ir_expr"; NULL: not known, and the rest is empty */
	char *by;   /* the function that says so: it gives out what it allocates */
	uint64_t size;
	VEC(struct layout_field) fields;
};

void block_layout_deinit(struct block_layout *layout);

/* The field that this byte belongs to; NULL. */
const struct layout_field *block_layout_at(const struct block_layout *layout, uint64_t offset);
