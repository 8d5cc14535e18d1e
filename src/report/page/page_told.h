#pragma once

#include "report/page/page.h"

/*
 * The one trial that the pictures of a block are of: addresses and ids mean something within a
 * trial only. Private to report/.
 */

/* 0: the verdict rests on no single trial. */
uint64_t told_trial(const struct investigation *inv);

/* What the verdict rests on, of this kind, else the first piece of it; NULL. */
const struct evidence *told_piece(const struct investigation *inv, enum evidence_kind kind);

/* The holder that the verdict names; NULL. */
const struct holder_seen *told_holder(const struct investigation *inv);

/* Is it a block that both know by the same id or, of another trial, by the same context? */
bool same_block(const struct block_life *a, const struct block_life *b);
