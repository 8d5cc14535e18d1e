/*
 * Vector and mask registers, out of a signal's frame.
 */
#pragma once

#include <stdbool.h>
#include <sys/ucontext.h>

#include "wire/log_format.h"

/* Once, before the first trap: it asks the CPU, which takes its time in a virtual machine. */
void arch_vectors_init(void);

/* The masks that a store can have had: k0 to k7 and ymm0 to ymm15. False: the frame has none.
 * _sigsafe */
bool arch_vectors_sigsafe(const ucontext_t *context, struct log_hit_vectors *ret);
