/*
 * Looking for words in a range, as fast as memory is read. _sigsafe
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* The first of words[from..count) with low <= word < high; `count` when there is none. */
size_t words_find(const uint64_t *words, size_t from, size_t count, uint64_t low, uint64_t high);
