/*
 * Closed pages. By guard markers in the page table where the kernel has them: no mapping is split,
 * so any number of pages can be closed, at half the price. Otherwise each closed page is part of a
 * mapping that nobody may touch.
 */
#include <errno.h>
#include <sys/mman.h>

#include "agent/arch/x86_64.h"
#include "agent/core/memory.h"
#include "agent/fence/fence_inside.h"

#ifndef MADV_GUARD_INSTALL
#define MADV_GUARD_INSTALL 102 /* Linux 6.13 */
#define MADV_GUARD_REMOVE 103
#endif
#define SELF (-10000l) /* PIDFD_SELF, Linux 6.15 */

static bool vectored; /* process_madvise() takes ourselves */

static bool advise(uint64_t at, uint64_t bytes, int how)
{
	return !raw_syscall3(SYS_madvise, at, bytes, how);
}

static bool advise_all(const struct shutter_range *ranges, uint32_t count, int how)
{
	uint64_t bytes = 0;
	uint32_t i;

	for (i = 0; i < count; i++)
		bytes += ranges[i].bytes;
	/* struct iovec is the same two words. */
	if (vectored && count > 1 &&
	    raw_syscall6(SYS_process_madvise, SELF, (long)ranges, count, how, 0, 0) == (long)bytes)
		return true;
	for (i = 0; i < count; i++)
		if (!advise(ranges[i].at, ranges[i].bytes, how))
			return false;
	return true;
}

/* Does this kernel have them? */
static bool markers_work(uint64_t at)
{
	struct shutter_range range = { at, FENCE_PAGE };

	if (!advise(at, FENCE_PAGE, MADV_GUARD_INSTALL))
		return false;
	vectored = raw_syscall6(SYS_process_madvise, SELF, (long)&range, 1, MADV_GUARD_REMOVE, 0,
				0) == FENCE_PAGE;
	return vectored || advise(at, FENCE_PAGE, MADV_GUARD_REMOVE);
}

int shutter_map(uint64_t bytes)
{
	bool markers = !(fence.plan.item.flags & PLAN_FENCE_MAPPINGS);
	long at = raw_syscall6(SYS_mmap, (long)memory_place_sigsafe(bytes), (long)bytes,
			       markers ? PROT_READ | PROT_WRITE : PROT_NONE,
			       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (at < 0 && at > -4096)
		return (int)-at;
	fence.mode = LOG_FENCE_MARKERS;
	if (!markers || !markers_work((uint64_t)at)) {
		fence.mode = LOG_FENCE_MAPPINGS;
		if (raw_syscall3(SYS_mprotect, at, bytes, PROT_NONE)) {
			(void)raw_syscall2(SYS_munmap, at, bytes);
			return ENOMEM;
		}
	}
	/* Not where pages are mappings: advice keeps them from becoming one again. */
	if (fence.mode == LOG_FENCE_MARKERS)
		(void)advise((uint64_t)at, bytes, MADV_NOHUGEPAGE);
	memory_count_sigsafe((int64_t)bytes, markers ? (int64_t)bytes : 0);
	fence.base = (uint64_t)at;
	fence.bytes = bytes;
	return 0;
}

bool shutter_cut(const struct shutter_range *data, uint32_t count)
{
	struct shutter_range closed[SHUTTER_BATCH] = { 0 };
	uint32_t i;

	if (fence.mode == LOG_FENCE_MAPPINGS)
		return shutter_open(data, count);
	for (i = 0; i < count; i++)
		closed[i] = (struct shutter_range){ data[i].at + data[i].bytes, FENCE_PAGE };
	if (!advise_all(closed, count, MADV_GUARD_INSTALL))
		return false;
	/* Page faults one by one cost more than all at once. */
	if (count > 1)
		(void)advise_all(data, count, MADV_POPULATE_WRITE);
	return true;
}

bool shutter_open(const struct shutter_range *ranges, uint32_t count)
{
	uint32_t i;

	if (fence.mode == LOG_FENCE_MARKERS) {
		if (!advise_all(ranges, count, MADV_GUARD_REMOVE))
			return false;
		if (count > 1)
			(void)advise_all(ranges, count, MADV_POPULATE_WRITE);
		return true;
	}
	for (i = 0; i < count; i++)
		if (raw_syscall3(SYS_mprotect, ranges[i].at, ranges[i].bytes,
				 PROT_READ | PROT_WRITE))
			return false;
	return true;
}

bool shutter_close(uint64_t at, uint64_t bytes)
{
	if (fence.mode == LOG_FENCE_MARKERS)
		return advise(at, bytes, MADV_GUARD_INSTALL);
	/* In place of what is there: its memory goes, and it becomes one with its neighbours. */
	return raw_syscall6(SYS_mmap, (long)at, (long)bytes, PROT_NONE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1,
			    0) == (long)at;
}

void shutter_leave(void)
{
	if (fence.mode == LOG_FENCE_MARKERS)
		(void)advise(fence.base, fence.bytes, MADV_GUARD_REMOVE);
	else
		(void)raw_syscall3(SYS_mprotect, fence.base, fence.bytes, PROT_READ | PROT_WRITE);
}

uint32_t shutter_mappings(void)
{
	return fence.mode == LOG_FENCE_MARKERS ? 0 : 2;
}
