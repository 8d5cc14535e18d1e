/*
 * Wild values: where else in memory stands the value of a register that points nowhere?
 *
 * A crash goes through a pointer that leads to nothing. Often the code before it tells which field
 * it was loaded from; in a loop that has already moved on it does not. But the field still holds
 * the value, and such a value is rarely there twice.
 */
#pragma once

#include "agent/core/log.h"

/* Adds VALUE records to a crash. One thread at a time. _sigsafe */
void value_search_write_sigsafe(struct log_writer *writer, const struct log_crash *crash);
