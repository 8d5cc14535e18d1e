/*
 * System calls on fenced memory. The kernel uses no closed page: it says EFAULT, or does a part of
 * what it was asked for. So a call whose buffers reach into closed pages is made with those open,
 * and told like the access of an instruction.
 *
 * Of buffers whose length is known from the arguments that is known before. Of all other pointers
 * (names, structures) only when the kernel has said EFAULT; then the call is made again.
 *
 * Calls that have to be made where the target makes them (they change its mask, wait under it, or
 * do not come back) leave us no moment to close a page behind them: what they need stays open.
 */
#include <errno.h>
#include <string.h>
#include <sys/uio.h>

#include "agent/arch/x86_64.h"
#include "agent/calls/call.h"
#include "agent/core/memory.h"
#include "agent/fence/fence_inside.h"

#define PAGES_MOST 32u
#define LIST_MOST 64u
#define TEXT_MOST (128u << 10) /* the kernel takes no longer ones: MAX_ARG_STRLEN */
#define TEXTS_MOST 65536u

/* Argument `buffer` points to as many bytes as argument `length` says. */
static const struct {
	uint16_t number;
	uint8_t buffer, length;
	bool writes; /* the kernel does, there */
} buffers[] = {
	{ SYS_read, 1, 2, true },      { SYS_write, 1, 2, false },
	{ SYS_pread64, 1, 2, true },   { SYS_pwrite64, 1, 2, false },
	{ SYS_sendto, 1, 2, false },   { SYS_recvfrom, 1, 2, true },
	{ SYS_getrandom, 0, 1, true }, { SYS_getdents64, 1, 2, true },
	{ SYS_readlink, 1, 2, true },  { SYS_readlinkat, 2, 3, true },
	{ SYS_getcwd, 0, 1, true },
};

/* Argument 1 is a list of buffers, argument 2 its length. */
static const struct {
	uint16_t number;
	bool writes;
} lists[] = {
	{ SYS_readv, true },	{ SYS_writev, false }, { SYS_preadv, true },
	{ SYS_pwritev, false }, { SYS_preadv2, true }, { SYS_pwritev2, false },
};

enum shape {
	SHAPE_BYTES, /* as many as the row says */
	SHAPE_EACH,  /* so many for each that the next argument counts */
	SHAPE_BITS,  /* one for each that the first argument counts, in words */
	SHAPE_MASK,  /* a pointer to a mask, and its length */
	SHAPE_TEXT,
	SHAPE_TEXTS, /* a list of pointers to text; NULL ends it */
};

/* What the calls that are made elsewhere read and write. Sizes are those of the kernel's structs.
 */
static const struct left {
	uint16_t number;
	uint8_t argument, shape, bytes;
	bool writes;
} left[] = {
	{ SYS_rt_sigprocmask, 1, SHAPE_BYTES, 8, false },
	{ SYS_rt_sigprocmask, 2, SHAPE_BYTES, 8, true },
	{ SYS_rt_sigaction, 1, SHAPE_BYTES, 32, false },
	{ SYS_rt_sigaction, 2, SHAPE_BYTES, 32, true },
	{ SYS_rt_sigsuspend, 0, SHAPE_BYTES, 8, false },
	{ SYS_sigaltstack, 0, SHAPE_BYTES, 24, false },
	{ SYS_sigaltstack, 1, SHAPE_BYTES, 24, true },
	{ SYS_ppoll, 0, SHAPE_EACH, 8, true },
	{ SYS_ppoll, 2, SHAPE_BYTES, 16, true },
	{ SYS_ppoll, 3, SHAPE_BYTES, 8, false },
	{ SYS_epoll_pwait, 1, SHAPE_EACH, 12, true },
	{ SYS_epoll_pwait, 4, SHAPE_BYTES, 8, false },
#ifdef SYS_epoll_pwait2
	{ SYS_epoll_pwait2, 1, SHAPE_EACH, 12, true },
	{ SYS_epoll_pwait2, 3, SHAPE_BYTES, 16, false },
	{ SYS_epoll_pwait2, 4, SHAPE_BYTES, 8, false },
#endif
	{ SYS_pselect6, 1, SHAPE_BITS, 0, true },
	{ SYS_pselect6, 2, SHAPE_BITS, 0, true },
	{ SYS_pselect6, 3, SHAPE_BITS, 0, true },
	{ SYS_pselect6, 4, SHAPE_BYTES, 16, true },
	{ SYS_pselect6, 5, SHAPE_MASK, 16, false },
	{ SYS_futex, 0, SHAPE_BYTES, 4, false },
	{ SYS_futex, 3, SHAPE_BYTES, 16, false }, /* or a number, which is no place of ours */
	{ SYS_futex, 4, SHAPE_BYTES, 4, true },
	{ SYS_clone3, 0, SHAPE_BYTES, 64, false },
	{ SYS_execve, 0, SHAPE_TEXT, 0, false },
	{ SYS_execve, 1, SHAPE_TEXTS, 0, false },
	{ SYS_execve, 2, SHAPE_TEXTS, 0, false },
	{ SYS_execveat, 1, SHAPE_TEXT, 0, false },
	{ SYS_execveat, 2, SHAPE_TEXTS, 0, false },
	{ SYS_execveat, 3, SHAPE_TEXTS, 0, false },
};

struct borrowing {
	struct call *call;
	uint64_t pages[PAGES_MOST];
	uint32_t count;
	bool written;
	bool for_good; /* what is opened stays open */
};

/* Opens what is closed in [low, low + bytes). */
static void borrow(struct borrowing *b, uint64_t low, uint64_t bytes, bool writes)
{
	uint64_t high = low + bytes, page;
	struct fence_seen seen = { 0 };
	bool told = false;

	if (high < low || !fence_holds((const void *)low))
		return;
	for (page = low & ~(uint64_t)(FENCE_PAGE - 1); page < high && b->count < PAGES_MOST;
	     page += FENCE_PAGE) {
		struct fence_slot *slot = slot_at_sigsafe(page);
		uint64_t at = page > low ? page : low;

		if (!slot || !access_closed_sigsafe(slot, page) || !access_about_sigsafe(at, &seen))
			continue;
		seen.flags = LOG_FENCE_KERNEL | (writes ? LOG_FENCE_WRITE : 0);
		seen.call = (uint32_t)b->call->number;
		seen.length = high - at;
		if (!told)
			access_tell_sigsafe(&seen, b->call->context);
		told = true;
		if (b->for_good)
			page_leave_sigsafe(slot, page, writes);
		else if (page_borrow_sigsafe(slot, page))
			b->pages[b->count++] = page;
	}
	b->written |= writes;
}

static void borrow_list(struct borrowing *b, uint64_t list, uint64_t count, bool writes)
{
	struct iovec item;
	uint64_t i;

	for (i = 0; i < count && i < LIST_MOST; i++)
		if (memory_read_sigsafe(&item, list + i * sizeof(item), sizeof(item)) ==
		    sizeof(item))
			borrow(b, (uint64_t)item.iov_base, item.iov_len, writes);
}

static void borrow_text(struct borrowing *b, uint64_t at)
{
	char piece[64];
	size_t bytes;
	uint32_t i;

	for (i = 0; i < TEXT_MOST / sizeof(piece) && fence_holds((const void *)at); i++) {
		bytes = sizeof(piece) - at % sizeof(piece);
		borrow(b, at, 1, false);
		if (memory_read_sigsafe(piece, at, bytes) != bytes || memchr(piece, 0, bytes))
			return;
		at += bytes;
	}
}

static void borrow_texts(struct borrowing *b, uint64_t list)
{
	uint64_t text, i;

	for (i = 0; list && i < TEXTS_MOST; i++) {
		borrow(b, list + i * sizeof(text), sizeof(text), false);
		if (memory_read_sigsafe(&text, list + i * sizeof(text), sizeof(text)) !=
			    sizeof(text) ||
		    !text)
			return;
		borrow_text(b, text);
	}
}

static void borrow_mask(struct borrowing *b, uint64_t pair)
{
	uint64_t mask;

	if (memory_read_sigsafe(&mask, pair, sizeof(mask)) == sizeof(mask))
		borrow(b, mask, 8, false);
}

/* What a call that is made elsewhere needs. */
static void call_leave_open(struct call *call)
{
	struct borrowing b = { .call = call, .for_good = true };
	const struct left *row;

	for (row = left; row < left + sizeof(left) / sizeof(left[0]); row++) {
		uint64_t at, bytes = row->bytes;

		if (row->number != call->number)
			continue;
		at = (uint64_t)call->given[row->argument];
		if (row->shape == SHAPE_TEXT) {
			borrow_text(&b, at);
			continue;
		}
		if (row->shape == SHAPE_TEXTS) {
			borrow_texts(&b, at);
			continue;
		}
		if (row->shape == SHAPE_EACH)
			bytes *= (uint32_t)call->given[row->argument + 1];
		if (row->shape == SHAPE_BITS)
			bytes = ((uint32_t)call->given[0] + 63ull) / 64 * 8;
		borrow(&b, at, bytes, row->writes);
		if (row->shape == SHAPE_MASK && at)
			borrow_mask(&b, at);
	}
}

/* Would the kernel say EFAULT without us? NULL is an answer that some calls take. */
static bool leads_nowhere(uint64_t pointer)
{
	struct fence_seen seen;
	uint64_t low, end;

	if (pointer < FENCE_PAGE || access_about_sigsafe(pointer, &seen))
		return false;
	return (memory_next_own_sigsafe(pointer, &low, &end) && pointer >= low) ||
	       !memory_readable_sigsafe(pointer, 1);
}

static void tell_nowhere(const struct call *call, uint64_t pointer)
{
	siginfo_t info = { .si_signo = SIGSYS, .si_code = 1 };

	info.si_call_addr = (void *)pointer;
	info.si_syscall = (int)call->number;
	access_record_sigsafe(SIGSYS, &info, call->context);
}

static bool borrow_known(struct borrowing *b)
{
	const long *given = b->call->given;
	unsigned i;

	for (i = 0; i < sizeof(buffers) / sizeof(buffers[0]); i++)
		if (buffers[i].number == b->call->number) {
			uint64_t length = (uint64_t)given[buffers[i].length];

			if (length && leads_nowhere((uint64_t)given[buffers[i].buffer]))
				tell_nowhere(b->call, (uint64_t)given[buffers[i].buffer]);
			borrow(b, (uint64_t)given[buffers[i].buffer], length, buffers[i].writes);
			return true;
		}
	for (i = 0; i < sizeof(lists) / sizeof(lists[0]); i++)
		if (lists[i].number == b->call->number) {
			borrow_list(b, (uint64_t)given[1], (uint64_t)given[2], lists[i].writes);
			return true;
		}
	return false;
}

/* Of each pointer, the page it points to and the next one. */
static void borrow_unknown(struct borrowing *b)
{
	unsigned i;

	for (i = 0; i < 6; i++)
		borrow(b, (uint64_t)b->call->given[i],
		       FENCE_PAGE - (uint64_t)b->call->given[i] % FENCE_PAGE + 1, true);
}

static void give_back(const struct borrowing *b)
{
	uint32_t i;

	for (i = 0; i < b->count; i++)
		page_return_sigsafe(b->pages[i], b->written);
}

static bool call_on_fences(struct call *call)
{
	struct borrowing b = { .call = call };
	bool points = false, known;
	unsigned i;
	long result;

	for (i = 0; i < 6; i++)
		points |= fence_holds((const void *)call->given[i]);
	known = borrow_known(&b);
	if (known ? !b.count : !points)
		return false;
	result = call_wait(call, NULL);
	if (!known && result == -EFAULT) {
		borrow_unknown(&b);
		if (b.count)
			result = call_wait(call, NULL);
	}
	give_back(&b);
	call_answer(call, result);
	return true;
}

/* Made where the target makes them, and without memory of its own. */
static const uint16_t elsewhere[] = {
	SYS_fork,   SYS_vfork,	  SYS_clone,   SYS_rt_sigreturn,    SYS_mmap, SYS_munmap,
	SYS_mremap, SYS_mprotect, SYS_madvise, SYS_set_robust_list, SYS_exit, SYS_exit_group,
};

static bool is_elsewhere(long number)
{
	unsigned i;

	for (i = 0; i < sizeof(elsewhere) / sizeof(elsewhere[0]); i++)
		if (elsewhere[i] == number)
			return true;
	for (i = 0; i < sizeof(left) / sizeof(left[0]); i++)
		if (left[i].number == number)
			return true;
	return false;
}

/* One with buffers in fenced memory that is no affair of ours otherwise. */
bool fence_call_sigsafe(struct call *call)
{
	if (!fence.bytes)
		return false;
	if (!is_elsewhere(call->number))
		return call_on_fences(call);
	call_leave_open(call);
	return false;
}
