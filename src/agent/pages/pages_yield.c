/*
 * Watched pages and what the kernel writes of its own accord.
 *
 * io_uring and aio are given buffers now and fill them later, from threads of the kernel's that
 * know of one view only: the target would get EFAULT where it had none. Who sets one of them up
 * gets its pages opened for good. Watching ends there, and that is said; nothing that was told
 * before is lost.
 *
 * A stack is written to by the kernel, too, when a signal comes, and cannot be told of it. So a
 * block that turns out to be one is let go of, with those that lie on the same pages.
 *
 * Who forbids itself the system calls that the watching takes gets memory of the usual kind in
 * their place.
 */
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "agent/core/maps.h"
#include "agent/core/memory.h"
#include "agent/core/told.h"
#include "agent/pages/pages_inside.h"

void pages_yield_sigsafe(void)
{
	if (!pages.bytes || __atomic_exchange_n(&pages.yielded, 1, __ATOMIC_ACQ_REL))
		return;
	watch_state.area->rows[0].yielded = LOG_YIELDED_TO_KERNEL;
	pages_objects_yield_sigsafe();
	pages_rights_all_sigsafe(true);
}

bool pages_let_go_sigsafe(uint64_t address)
{
	uint64_t low, high, at;

	if (watch_fences() || pages.yielded || !pages_span_leave_sigsafe(address, &low, &high))
		return false;
	for (at = low; at < high; at = pages_slot_end_sigsafe(at)) {
		struct pages_slot *slot = pages_slot_sigsafe(at);

		if (!slot || !slot->bytes)
			continue;
		pages_disarm(slot->start, pages_slot_bytes(slot), LOG_WATCHED_YIELDED);
		__atomic_fetch_add(&watch_state.area->rows[0].let_go, 1, __ATOMIC_RELAXED);
	}
	return pages_rights_sigsafe(low, high, false);
}

/* The copy takes the place of what the target sees, under all locks: whoever is about to store
 * there for the target waits, and then finds that both views are one. */
static void pages_make_private_sigsafe(void)
{
	uint64_t bytes = pages.top - pages.base - PAGE, from = pages.base + PAGE;
	struct pages_locks locks = { ~0ull };
	long at;

	if (!bytes)
		return;
	at = raw_syscall6(SYS_mmap, 0, (long)bytes, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (at < 0 && at > -4096) {
		pages_rights_all_sigsafe(true);
		return;
	}
	pages_lock_all_sigsafe();
	memcpy((void *)at, (const void *)(from + pages.distance), bytes);
	if (raw_syscall6(SYS_mremap, at, (long)bytes, (long)bytes, MREMAP_MAYMOVE | MREMAP_FIXED,
			 (long)from, 0) == (long)from)
		pages.distance = 0;
	pages_unlock_sigsafe(locks);
}

bool pages_leave_sigsafe(void)
{
	uint64_t mask;

	if (!pages.bytes)
		return false;
	if (watch_fences())
		return true;
	if (!__atomic_exchange_n(&pages.yielded, 1, __ATOMIC_ACQ_REL))
		pages_objects_yield_sigsafe();
	mask = pages_signals_block();
	pages_make_private_sigsafe();
	pages_signals_restore(mask);
	told_stop_sigsafe();
	return true;
}

static bool kernel_writes(void)
{
	static struct maps_buffer buffer; /* once, under the lock of slots */
	struct maps_walk walk;
	struct maps_line line;
	bool found = false;

	if (!maps_begin_sigsafe(&walk, &buffer))
		return false;
	while (!found && maps_next_sigsafe(&walk, &line))
		found = strstr(line.path, "[io_uring]") || strstr(line.path, "[aio]");
	maps_end_sigsafe(&walk);
	return found;
}

void pages_yield_once_written(void)
{
	static bool looked;

	if (!looked && kernel_writes())
		pages_yield_sigsafe();
	looked = true;
}
