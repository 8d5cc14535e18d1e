#pragma once

#include "model/heap.h"

/*
 * Blocks that were freed while somebody still pointed to them, of all trials.
 */

/* Those that were used first; what is only a leftover goes. */
void dangling_sort(struct heap_report *report);
