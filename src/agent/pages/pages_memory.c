/*
 * The memory behind watched pages: mapped twice, once for the target, which faults there when it
 * writes, and once for us. From the start through fork to the end.
 */
#include "agent/pages/pages.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "agent/arch/x86_64.h"
#include "agent/core/memory.h"
#include "agent/core/signals.h"
#include "agent/core/told.h"
#include "agent/pages/pages_inside.h"

#ifndef MFD_CLOEXEC
#define MFD_CLOEXEC 1u
#endif

#define PAGE 4096u
#define BYTES_MOST (16ull << 30)
#define BYTES_LEAST (64ull << 20)
/* Beside the agent's tables: what the target maps lies as it would without us. */
#define PLACE_AT (8l << 40)
#define COPY_BYTES (1ull << 20)

struct pages pages;

static uint32_t owner; /* the process that has this memory to itself */

static long memory_file(uint64_t bytes)
{
	long fd = raw_syscall2(SYS_memfd_create, "redhand-watched", MFD_CLOEXEC), r;

	if (fd < 0)
		return fd;
	r = raw_syscall2(SYS_ftruncate, fd, bytes);
	if (r < 0) {
		(void)raw_syscall1(SYS_close, fd);
		return r;
	}
	return fd;
}

static bool map_at(uint64_t address, uint64_t bytes, int rights, long fd, int flags)
{
	return raw_syscall6(SYS_mmap, (long)address, (long)bytes, rights,
			    MAP_SHARED | MAP_NORESERVE | flags, fd, 0) == (long)address;
}

/* A limit on files' sizes would end the process with a signal; one on address space holds for both
 * views. */
static uint64_t bytes_wish(void)
{
	struct rlimit files = { RLIM_INFINITY, RLIM_INFINITY }, space = files;
	uint64_t wish = BYTES_MOST;

	(void)raw_syscall4(SYS_prlimit64, 0, RLIMIT_FSIZE, 0, &files);
	(void)raw_syscall4(SYS_prlimit64, 0, RLIMIT_AS, 0, &space);
	while (wish >= BYTES_LEAST && (wish > files.rlim_cur || wish > space.rlim_cur / 8))
		wish /= 2;
	return wish;
}

/* The first page stays shut, as does the last: no store reaches in from outside. */
static int views_map(uint64_t bytes)
{
	long fd = memory_file(bytes), at;

	if (fd < 0)
		return (int)-fd;
	at = raw_syscall6(SYS_mmap, PLACE_AT, (long)bytes * 2, PROT_NONE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (at < 0 && at > -4096) {
		(void)raw_syscall1(SYS_close, fd);
		return (int)-at;
	}
	if (!map_at((uint64_t)at, bytes, PROT_NONE, fd, MAP_FIXED) ||
	    !map_at((uint64_t)at + bytes, bytes, PROT_READ | PROT_WRITE, fd, MAP_FIXED)) {
		(void)raw_syscall2(SYS_munmap, at, bytes * 2);
		(void)raw_syscall1(SYS_close, fd);
		return ENOMEM;
	}
	(void)raw_syscall1(SYS_close, fd);
	(void)raw_syscall3(SYS_madvise, at + (long)bytes, bytes, MADV_DONTDUMP);
	memory_count_sigsafe((int64_t)bytes * 2, 0);
	owner = (uint32_t)raw_syscall0(SYS_getpid);
	pages.distance = bytes;
	pages.top = (uint64_t)at + PAGE;
	pages.base = (uint64_t)at;
	pages.bytes = bytes;
	return 0;
}

/* For fences it is there once, and a child's is its own. */
static int fences_map(uint64_t bytes)
{
	long at = raw_syscall6(SYS_mmap, PLACE_AT, (long)bytes, PROT_NONE,
			       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (at < 0 && at > -4096)
		return (int)-at;
	memory_count_sigsafe((int64_t)bytes, 0);
	pages.top = (uint64_t)at + PAGE;
	pages.base = (uint64_t)at;
	pages.bytes = bytes;
	return 0;
}

/* Others are to know of it: where faults are ours, and what the target sees elsewhere. */
static void known(uint64_t bytes)
{
	pages.bytes = bytes;
	agent.faults = (agent.faults & ~AGENT_FAULTS_PAGES) | (bytes ? AGENT_FAULTS_PAGES : 0);
	memory_view = (struct memory_view){ pages.base, bytes, pages.distance };
}

int pages_init(void)
{
	uint64_t bytes = bytes_wish();
	int r = ENOMEM;

	for (; bytes >= BYTES_LEAST && r; bytes /= 2)
		r = watch_fences() ? fences_map(bytes) : views_map(bytes);
	if (!r && !(pages_slots_init() && pages_objects_init()))
		r = ENOMEM;
	if (!r && !watch_fences()) {
		pages.rights = memory_map_sigsafe(pages.bytes / PAGE);
		r = pages.rights ? told_init() : ENOMEM;
	}
	known(r ? 0 : pages.bytes);
	if (!r && !watch_fences())
		signals_pages_sigsafe();
	pages.trouble = r;
	return r;
}

bool pages_denied_sigsafe(uint64_t address)
{
	uint8_t wish = pages.rights ? pages.rights[(address - pages.base) / PAGE] : 0;

	return wish && !((wish - 1) & PROT_WRITE);
}

bool pages_yielded(void)
{
	return pages.yielded;
}

bool pages_holds(uint64_t address)
{
	return pages_hold(address);
}

int pages_copy_sigsafe(void)
{
	long fd, r = 0;
	uint64_t at, used = pages_slots_used_sigsafe();

	if (!pages.bytes)
		return -ENOENT;
	fd = memory_file(pages.bytes);
	if (fd < 0)
		return (int)fd;
	/* Written, not mapped: what was never touched is not there in the copy either. */
	for (at = 0; at < used && r >= 0; at += r > 0 ? (uint64_t)r : PAGE) {
		uint64_t piece = used - at < COPY_BYTES ? used - at : COPY_BYTES;

		r = raw_syscall4(SYS_pwrite64, fd, pages.base + pages.distance + at, piece, at);
	}
	if (r < 0) {
		(void)raw_syscall1(SYS_close, fd);
		return (int)r;
	}
	return (int)fd;
}

bool pages_adopt_sigsafe(int fd)
{
	uint64_t shut = pages.base + pages.bytes - pages.top;
	bool good = map_at(pages.base + pages.distance, pages.bytes, PROT_READ | PROT_WRITE, fd,
			   MAP_FIXED) &&
		    map_at(pages.base, pages.bytes, PROT_READ, fd, MAP_FIXED);

	(void)raw_syscall1(SYS_close, fd);
	(void)raw_syscall3(SYS_mprotect, pages.base, PAGE, PROT_NONE);
	(void)raw_syscall3(SYS_mprotect, pages.top, shut, PROT_NONE);
	(void)raw_syscall3(SYS_madvise, pages.base + pages.distance, pages.bytes, MADV_DONTDUMP);
	pages_slots_unlock_all_sigsafe();
	pages_objects_unlock_sigsafe();
	owner = (uint32_t)raw_syscall0(SYS_getpid);
	if (pages.yielded)
		pages_open_views_sigsafe();
	return good;
}

/* Where no block had been placed before the fork, nobody made a copy. */
int pages_after_fork(void)
{
	uint32_t i;
	long fd;

	if (!pages.bytes || watch_fences())
		return pages.trouble;
	for (i = 0; i < pages.objects_used; i++)
		pages.objects[i].calls = 0;
	if (owner != (uint32_t)raw_syscall0(SYS_getpid)) {
		fd = memory_file(pages.bytes);
		if (fd < 0 || !pages_adopt_sigsafe((int)fd))
			known(0);
	}
	told_after_fork();
	return pages.trouble;
}

void pages_each(void (*visit)(struct watch_armed *armed))
{
	uint32_t i;

	for (i = 0; i < pages.objects_used; i++)
		visit(&pages.objects[i].armed);
}
