/*
 * Watched pages and what the kernel writes of its own accord.
 *
 * io_uring and aio are given buffers now and fill them later, from threads of the kernel's that
 * know of one view only: the target would get EFAULT where it had none. Who sets one of them up
 * gets its pages opened for good. Watching ends there, and that is said; nothing that was told
 * before is lost.
 */
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include "agent/calls.h"
#include "agent/maps.h"
#include "agent/memory.h"
#include "agent/pages.h"

#define PAGE 4096u

static void objects_end(void)
{
	uint32_t count = __atomic_load_n(&pages.objects_used, __ATOMIC_ACQUIRE), i;

	for (i = 0; i < count; i++) {
		struct pages_armed *object = &pages.objects[i];
		struct pages_locks locks;

		if (!__atomic_load_n(&object->armed.number, __ATOMIC_ACQUIRE))
			continue;
		locks = pages_lock_sigsafe(object->armed.address, object->armed.address + 1);
		if (object->calls) /* it may be written to just now: no change that nobody made */
			(void)watch_read_sigsafe(object->armed.last, object->armed.address,
						 object->armed.bytes);
		watch_end(&object->armed, LOG_WATCHED_YIELDED);
		pages_unlock_sigsafe(locks);
	}
}

void pages_open_views_sigsafe(void)
{
	uint64_t at, end;

	for (at = pages.base + PAGE; at < pages.top; at = end) {
		bool denied = calls_denied_sigsafe(at);

		for (end = at; end < pages.top && calls_denied_sigsafe(end) == denied;)
			end += PAGE;
		if (!denied)
			(void)raw_syscall3(SYS_mprotect, at, end - at, PROT_READ | PROT_WRITE);
	}
}

void pages_yield_sigsafe(void)
{
	uint64_t mask;

	if (!pages.bytes || __atomic_exchange_n(&pages.yielded, 1, __ATOMIC_ACQ_REL))
		return;
	watch_state.area->rows[0].yielded = LOG_YIELDED_TO_KERNEL;
	mask = pages_signals_block();
	objects_end();
	pages_signals_restore(mask);
	pages_open_views_sigsafe();
}

bool pages_kernel_writes(void)
{
	static struct maps_buffer buffer; /* once, under the lock of who asks */
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
