#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/python_layout.h"

/*
 * Which memory of a process must be kept so that python_frames_read() can name one thread's Python
 * frames afterwards. It is the recorder's half: no allocation, no locks, no libc beyond memcpy and
 * memcmp, bounded in time and bytes, so that it can run in a signal handler of a dying process. It
 * therefore depends on nothing but python_layout.h.
 *
 * What is kept, in this order (a layout's names):
 *   - the word _PyRuntime.interpreters_head;
 *   - per interpreter up to the thread's own: the words `next` and `threads_head`;
 *   - per thread state up to the thread's own: its start, up to the last field of the layout;
 *   - up to 3.12, per entry into the interpreter's loop: the cframe's two words;
 *   - per frame: the _PyInterpreterFrame without its locals; and of its code object: everything
 *     before the instructions, the strings co_filename and co_qualname, the bytes co_linetable.
 */
struct python_recorder {
	/* Reads own memory; false, not a fault, when it is not readable. */
	bool (*read)(void *arg, uint64_t address, void *buf, size_t len);
	/* Keeps a piece of memory; it was readable a moment ago. */
	void (*keep)(void *arg, uint64_t address, size_t len);
	void *arg;
	size_t budget; /* bytes that may be kept */
};

/* `runtime` is the address of _PyRuntime; the thread is known by pthread_self() (the thread
 * pointer) or its kernel id, 0 for unknown. Returns how many Python frames were kept. */
unsigned int python_record_sigsafe(const struct python_layout *layout, uint64_t runtime,
				   uint64_t pthread, uint64_t kernel_tid,
				   struct python_recorder *recorder);

/* The same of one code object. */
void python_record_code_sigsafe(const struct python_layout *layout, uint64_t object,
				struct python_recorder *recorder);
