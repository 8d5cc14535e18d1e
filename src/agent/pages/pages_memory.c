/*
 * The memory behind watched pages: mapped twice, once for the target, which faults there when it
 * writes, and once for us. From the start through fork to the end.
 *
 * It is no file: there may be no descriptor left for one, and a limit on files' sizes ends whoever
 * makes one. A third place as large is kept free, where a child's copy is made without asking for
 * address space.
 */
#include "agent/pages/pages.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "agent/arch/x86_64.h"
#include "agent/core/memory.h"
#include "agent/core/signals.h"
#include "agent/core/told.h"
#include "agent/pages/pages_inside.h"

#define BYTES_MOST (16ull << 30)
#define BYTES_LEAST (64ull << 20)
/* Beside the agent's tables: what the target maps lies as it would without us. */
#define PLACE_AT (8l << 40)

struct pages pages;

static uint32_t owner;	     /* the process that has this memory to itself */
static uint32_t spare_taken; /* atomic: a copy is being made there */

static long map_anonymous(uint64_t at, uint64_t bytes, int rights, int flags)
{
	return raw_syscall6(SYS_mmap, (long)at, (long)bytes, rights,
			    MAP_ANONYMOUS | MAP_NORESERVE | flags, -1, 0);
}

static bool failed(long address)
{
	return address < 0 && address > -4096;
}

/* A limit on address space holds for all three places. */
static uint64_t bytes_wish(void)
{
	struct rlimit space = { RLIM_INFINITY, RLIM_INFINITY };
	uint64_t wish = BYTES_MOST;

	(void)raw_syscall4(SYS_prlimit64, 0, RLIMIT_AS, 0, &space);
	while (wish >= BYTES_LEAST && wish > space.rlim_cur / 8)
		wish /= 2;
	return wish;
}

static uint64_t spare_place(void)
{
	return pages.base + 2 * pages.distance;
}

/* Memory for both views, seen at one place; -errno. The spare place, unless another thread forks,
 * too. */
static long memory_make(void)
{
	bool taken = __atomic_exchange_n(&spare_taken, 1, __ATOMIC_ACQUIRE);

	return map_anonymous(taken ? 0 : spare_place(), pages.bytes, PROT_READ | PROT_WRITE,
			     MAP_SHARED | (taken ? 0 : MAP_FIXED));
}

void pages_copied_sigsafe(long memory)
{
	if ((uint64_t)memory != spare_place()) {
		(void)raw_syscall2(SYS_munmap, memory, pages.bytes);
		return;
	}
	(void)map_anonymous((uint64_t)memory, pages.bytes, PROT_NONE, MAP_PRIVATE | MAP_FIXED);
	__atomic_store_n(&spare_taken, 0, __ATOMIC_RELEASE);
}

/* Of what is shared, mremap() makes a second view where the old size is 0 (mremap(2)). */
static bool view_at(uint64_t place, long memory)
{
	return raw_syscall6(SYS_mremap, memory, 0, (long)pages.bytes, MREMAP_MAYMOVE | MREMAP_FIXED,
			    (long)place, 0) == (long)place;
}

static bool views_take(long memory)
{
	uint64_t behind = pages.base + pages.distance;
	bool good = view_at(behind, memory) && view_at(pages.base, memory);

	(void)raw_syscall3(SYS_madvise, behind, pages.bytes, MADV_DONTDUMP);
	pages_copied_sigsafe(memory);
	owner = (uint32_t)raw_syscall0(SYS_getpid);
	return good;
}

/* The first page stays shut, as does the last: no store reaches in from outside. */
static int views_map(uint64_t bytes)
{
	long at = map_anonymous(PLACE_AT, bytes * 3, PROT_NONE, MAP_PRIVATE), memory;

	if (failed(at))
		return (int)-at;
	pages.bytes = pages.distance = bytes;
	pages.top = (uint64_t)at + PAGE;
	pages.base = (uint64_t)at;
	memory = memory_make();
	if (failed(memory) || !views_take(memory)) {
		(void)raw_syscall2(SYS_munmap, at, bytes * 3);
		return ENOMEM;
	}
	(void)raw_syscall3(SYS_mprotect, at, bytes, PROT_NONE);
	memory_count_sigsafe((int64_t)bytes * 3, 0);
	return 0;
}

/* For fences it is there once, and a child's is its own. */
static int fences_map(uint64_t bytes)
{
	long at = map_anonymous(PLACE_AT, bytes, PROT_NONE, MAP_PRIVATE);

	if (failed(at))
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

static int rights_of(uint64_t page, bool open)
{
	uint8_t wish = pages.rights ? pages.rights[(page - pages.base) / PAGE] : 0;
	int rights = wish ? wish - 1 : PROT_READ | PROT_WRITE;

	if (!open && (rights & PROT_WRITE) && !pages_left_sigsafe(page))
		rights = (rights & ~PROT_WRITE) | PROT_READ;
	return rights;
}

bool pages_denied_sigsafe(uint64_t address)
{
	return !(rights_of(address, true) & PROT_WRITE);
}

bool pages_rights_sigsafe(uint64_t low, uint64_t high, bool open)
{
	uint64_t at, end;
	bool good = true;

	for (at = low; at < high; at = end) {
		for (end = pages.uneven ? at + PAGE : high;
		     end < high && rights_of(end, open) == rights_of(at, open);)
			end += PAGE;
		good &= !raw_syscall3(SYS_mprotect, at, end - at, rights_of(at, open));
	}
	return good;
}

void pages_rights_all_sigsafe(bool open)
{
	(void)pages_rights_sigsafe(pages.base + PAGE, pages.top, open);
}

bool pages_yielded(void)
{
	return pages.yielded;
}

bool pages_holds(uint64_t address)
{
	return pages_hold(address);
}

static bool is_empty(const uint64_t *words)
{
	unsigned i;

	for (i = 0; i < PAGE / sizeof(*words); i++)
		if (words[i])
			return false;
	return true;
}

/* What was never written to is not there in the copy either. */
long pages_copy_sigsafe(void)
{
	uint64_t at, used = pages_slots_used_sigsafe(), from = pages.base + pages.distance;
	long memory = memory_make();

	for (at = 0; at < used && !failed(memory); at += PAGE)
		if (!is_empty((const uint64_t *)(from + at)))
			memcpy((void *)((uint64_t)memory + at), (const void *)(from + at), PAGE);
	return memory;
}

bool pages_adopt_sigsafe(long copy)
{
	uint64_t shut = pages.base + pages.bytes - pages.top;
	bool good = views_take(copy);

	/* Another thread may have been at a copy, too. */
	pages_copied_sigsafe((long)spare_place());
	(void)raw_syscall3(SYS_mprotect, pages.base, PAGE, PROT_NONE);
	(void)raw_syscall3(SYS_mprotect, pages.top, shut, PROT_NONE);
	pages_slots_unlock_all_sigsafe();
	pages_objects_unlock_sigsafe();
	pages_rights_all_sigsafe(pages.yielded);
	return good;
}

/* Where no block had been placed before the fork, nobody made a copy. */
int pages_after_fork(void)
{
	uint32_t i;
	long memory;

	if (!pages.bytes || watch_fences())
		return pages.trouble;
	for (i = 0; i < pages.objects_used; i++)
		pages.objects[i].calls = 0;
	if (owner != (uint32_t)raw_syscall0(SYS_getpid)) {
		memory = memory_make();
		if (failed(memory) || !pages_adopt_sigsafe(memory))
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
