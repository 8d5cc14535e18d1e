/*
 * Watched pages and what the kernel writes of its own accord.
 *
 * io_uring and aio are given buffers now and fill them later, from threads of the kernel's that
 * know of one view only: the target would get EFAULT where it had none. Who sets one of them up
 * gets its pages opened for good. Watching ends there, and that is said; nothing that was told
 * before is lost.
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

#define PAGE 4096u

void pages_open_views_sigsafe(void)
{
	uint64_t at, end;

	for (at = pages.base + PAGE; at < pages.top; at = end) {
		bool denied = pages_denied_sigsafe(at);

		for (end = at; end < pages.top && pages_denied_sigsafe(end) == denied;)
			end += PAGE;
		if (!denied)
			(void)raw_syscall3(SYS_mprotect, at, end - at, PROT_READ | PROT_WRITE);
	}
}

void pages_yield_sigsafe(void)
{
	if (!pages.bytes || __atomic_exchange_n(&pages.yielded, 1, __ATOMIC_ACQ_REL))
		return;
	watch_state.area->rows[0].yielded = LOG_YIELDED_TO_KERNEL;
	pages_objects_yield_sigsafe();
	pages_open_views_sigsafe();
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
		pages_open_views_sigsafe();
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
