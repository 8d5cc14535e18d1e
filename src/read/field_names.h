#pragma once

#include "model/evidence.h"
#include "model/layout.h"

/*
 * Gives the fields of blocks in the evidence the names that the source has for them, where debug
 * information of the code that allocated the block tells its type: "struct ir_expr.stmt.container".
 * What has a name keeps it; what cannot be told stays a block and an offset.
 */
void field_names_tell(struct evidence_list *evidence);

/* All fields of such a block. False: its type cannot be told. */
bool block_layout_read(const struct block_life *block, struct block_layout *ret);
