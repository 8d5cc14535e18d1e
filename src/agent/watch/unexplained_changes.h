/*
 * What is known when watched memory changed and nobody was caught: system calls that filled it,
 * where the kernel's writes cannot be caught; the mapping that it lies in; who else has that
 * mapped.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/core/agent.h"
#include "wire/log_format.h"

/* Calls are worth a note: something is watched, and the kernel's writes to it are not caught. */
extern HIDDEN bool unexplained_notes_calls;

/* A call has filled `bytes` at `buffer`. Leaves errno alone. _sigsafe */
void unexplained_note_sigsafe(uint32_t number, int fd, const void *buffer, size_t bytes,
			      const void *caller);

/* Fills in what is known since the object's hit number `hits`. _sigsafe */
void unexplained_look_sigsafe(uint64_t hits, struct log_watch_changed *changed);
