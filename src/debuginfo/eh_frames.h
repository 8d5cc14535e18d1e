#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <libelf.h>

/*
 * What .eh_frame says about functions: where each begins and ends (in stripped files too), and
 * where exceptions land in it. Private to debuginfo/.
 */
struct eh_frames;

/* Of that section, which lies at the address `section`; `data` NULL: the file has none. Never NULL.
 */
struct eh_frames *eh_frames_new(Elf_Data *data, uint64_t section);
void eh_frames_free(struct eh_frames *frames);

struct eh_frame {
	uint64_t low, high;
	uint64_t lsda; /* language-specific data: 0 when there is none */
};

/* The piece of code that holds the address. */
bool eh_frames_find(const struct eh_frames *frames, uint64_t vaddr, struct eh_frame *ret);

/* The gap around an address that no piece holds: where the one before it ends and the one behind it
 * begins; 0 and UINT64_MAX where there is none. */
void eh_frames_gap(const struct eh_frames *frames, uint64_t vaddr, uint64_t *ret_low,
		   uint64_t *ret_high);

/* Calls fn for every place where an exception may land in this piece; `lsda` are the bytes from
 * frame->lsda on. False when the data cannot be
 * read: then there may be others. */
bool eh_frame_landings(const struct eh_frame *frame, const uint8_t *lsda, size_t len,
		       void (*fn)(void *ctx, uint64_t vaddr), void *ctx);
