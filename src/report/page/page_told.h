#pragma once

#include "report/page/page.h"

/*
 * The one trial that the pictures of a block are of: addresses and ids mean something within a
 * trial only. Private to report/.
 */

/* 0: the verdict rests on no single trial. */
uint64_t told_trial(const struct investigation *inv);

/* The holder that the verdict names; NULL. */
const struct holder_seen *told_holder(const struct investigation *inv);

/* Is it a block that both know by the same id or, of another trial, by the same context? */
bool same_block(const struct block_life *a, const struct block_life *b);
