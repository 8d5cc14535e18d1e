#include "agent/core/memory.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>

#include "agent/arch/x86_64.h"
#include "agent/core/agent.h"
#include "agent/core/thread.h"

#define HUGE (2u << 20)

/* The linker's: the end of the agent's own globals. */
extern char _end[] __attribute__((visibility("hidden")));

/* rt_sigprocmask copies the new mask in before it looks at `how`: EFAULT tells that 8 bytes cannot
 * be read, EINVAL that they can (kernel/signal.c). It needs no descriptor and no privilege, and
 * works where a sandbox forbids process_vm_readv. */
static bool word_readable(uint64_t address)
{
	return raw_syscall4(SYS_rt_sigprocmask, ~0L, address, 0, 8) == -EINVAL;
}

size_t memory_readable_sigsafe(uint64_t address, size_t len)
{
	uint64_t at = address, end;

	if (__builtin_add_overflow(address, len, &end))
		end = ~(uint64_t)0 & ~(uint64_t)(PAGE - 1);
	while (at < end) {
		/* The probe reads 8 bytes: take them inside the page. */
		if (!word_readable(at & ~(uint64_t)7))
			break;
		at = (at & ~(uint64_t)(PAGE - 1)) + PAGE;
	}
	return (size_t)((at < end ? at : end) - address);
}

size_t memory_read_sigsafe(void *to, uint64_t from, size_t len)
{
	struct iovec local = { to, len }, remote = { (void *)from, len };
	long r =
		raw_syscall6(SYS_process_vm_readv, agent.pid, (long)&local, 1, (long)&remote, 1, 0);

	if (r == (long)len)
		return len;
	/* Partial reads stop at whole iovecs' pages on some kernels, and sandboxes refuse the call:
	 * probe, then copy. Another thread could unmap in between; a crash is being recorded, and
	 * the window is a few nanoseconds. */
	len = memory_readable_sigsafe(from, len);
	if (len) {
		remote.iov_len = len;
		r = raw_syscall6(SYS_process_vm_readv, agent.pid, (long)&local, 1, (long)&remote, 1,
				 0);
		if (r != (long)len)
			memcpy(to, (const void *)from, len);
	}
	return len;
}

bool memory_reads_by_kernel(void)
{
	uint64_t from = 1, to = 0;
	struct iovec local = { &to, sizeof(to) }, remote = { &from, sizeof(from) };

	return raw_syscall6(SYS_process_vm_readv, agent.pid, (long)&local, 1, (long)&remote, 1,
			    0) == (long)sizeof(to) &&
	       to == from;
}

#define OWN_MAX 512u

static uint64_t own_bytes, own_data; /* atomic */
void (*memory_counted)(void);
struct memory_view memory_view;

uint64_t memory_own_bytes_sigsafe(void)
{
	return __atomic_load_n(&own_bytes, __ATOMIC_RELAXED);
}

uint64_t memory_own_data_sigsafe(void)
{
	return __atomic_load_n(&own_data, __ATOMIC_RELAXED);
}

/* Before more is mapped and after less is: the target's limits are moved along. */
void memory_count_sigsafe(int64_t bytes, int64_t data)
{
	__atomic_fetch_add(&own_bytes, (uint64_t)bytes, __ATOMIC_RELAXED);
	__atomic_fetch_add(&own_data, (uint64_t)data, __ATOMIC_RELAXED);
	if (memory_counted)
		memory_counted();
}

static struct {
	struct {
		uint64_t low, high; /* low is written last; 0: none */
	} ranges[OWN_MAX];
	uint32_t used; /* atomic */
} own;

static void own_add(uint64_t low, uint64_t bytes)
{
	uint32_t at = __atomic_fetch_add(&own.used, 1, __ATOMIC_RELAXED);

	if (at >= OWN_MAX)
		return;
	own.ranges[at].high = low + bytes;
	__atomic_store_n(&own.ranges[at].low, low, __ATOMIC_RELEASE);
}

bool memory_next_own_sigsafe(uint64_t address, uint64_t *ret_low, uint64_t *ret_high)
{
	uint32_t used = __atomic_load_n(&own.used, __ATOMIC_ACQUIRE), i;
	bool found = false;

	for (i = 0; i < used && i < OWN_MAX; i++) {
		uint64_t low = __atomic_load_n(&own.ranges[i].low, __ATOMIC_ACQUIRE);

		if (!low || own.ranges[i].high <= address || (found && low >= *ret_low))
			continue;
		*ret_low = low;
		*ret_high = own.ranges[i].high;
		found = true;
	}
	return found;
}

bool memory_next_foreign_sigsafe(uint64_t *at, uint64_t high, uint64_t *ret_low)
{
	uint64_t ours = ((uint64_t)_end + PAGE - 1) & ~(uint64_t)(PAGE - 1), low, end;

	while (*at < high) {
		if (*at >= agent.text_low && *at < ours) {
			*at = ours;
			continue;
		}
		*ret_low = *at;
		*at = high;
		if (!memory_next_own_sigsafe(*ret_low, &low, &end))
			return true;
		if (*ret_low < low) {
			*at = low < high ? low : high;
			return true;
		}
		*at = end;
	}
	return false;
}

uint64_t memory_place_sigsafe(size_t bytes)
{
	static uint64_t next = MEMORY_REST_AT; /* atomic */

	/* A page between two of ours that nobody can write over. */
	return __atomic_fetch_add(&next, (bytes + 2 * PAGE - 1) & ~(uint64_t)(PAGE - 1),
				  __ATOMIC_RELAXED);
}

/* A hint and no more: whoever has the place already keeps it. */
static void *map(uint64_t at, size_t bytes, int protection, int64_t data)
{
	int64_t counted = (int64_t)((bytes + PAGE - 1) & ~(uint64_t)(PAGE - 1));
	long r;

	memory_count_sigsafe(counted, data);
	r = raw_syscall6(SYS_mmap, (long)at, (long)bytes, protection,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (r < 0 && r > -4096) {
		memory_count_sigsafe(-counted, -data);
		return NULL;
	}
	if (bytes >= HUGE)
		(void)raw_syscall3(SYS_madvise, r, bytes, MADV_NOHUGEPAGE);
	/* A core file would be longer by all that is reserved here. */
	(void)raw_syscall3(SYS_madvise, r, bytes, MADV_DONTDUMP);
	own_add((uint64_t)r, bytes);
	return (void *)r;
}

void *memory_map_at_sigsafe(uint64_t at, size_t bytes)
{
	return map(at, bytes, PROT_READ | PROT_WRITE,
		   (int64_t)((bytes + PAGE - 1) & ~(uint64_t)(PAGE - 1)));
}

void *memory_map_sigsafe(size_t bytes)
{
	return memory_map_at_sigsafe(memory_place_sigsafe(bytes), bytes);
}

void *memory_reserve_sigsafe(uint64_t at, size_t bytes)
{
	return map(at, bytes, PROT_NONE, 0);
}

bool memory_attempt_sigsafe(void (*look)(void *), void *ctx)
{
	uint32_t armed = thread_self->signals.recovery_armed;
	volatile bool whole = false;
	uint64_t outer[5];

	memcpy(outer, thread_self->signals.recovery, sizeof(outer));
	if (!__builtin_setjmp((void **)thread_self->signals.recovery)) {
		thread_self->signals.recovery_armed = 1;
		__atomic_signal_fence(__ATOMIC_SEQ_CST);
		look(ctx);
		__atomic_signal_fence(__ATOMIC_SEQ_CST);
		whole = true;
	}
	memcpy(thread_self->signals.recovery, outer, sizeof(outer));
	thread_self->signals.recovery_armed = armed;
	return whole;
}

bool memory_allow_sigsafe(void *at, size_t bytes)
{
	memory_count_sigsafe(0, (int64_t)bytes);
	if (!raw_syscall3(SYS_mprotect, at, bytes, PROT_READ | PROT_WRITE))
		return true;
	memory_count_sigsafe(0, -(int64_t)bytes);
	return false;
}

void memory_unmap_sigsafe(void *at, size_t bytes)
{
	uint32_t used = __atomic_load_n(&own.used, __ATOMIC_ACQUIRE), i;

	for (i = 0; i < used && i < OWN_MAX; i++)
		if (own.ranges[i].low == (uint64_t)at)
			__atomic_store_n(&own.ranges[i].low, 0, __ATOMIC_RELEASE);
	(void)raw_syscall2(SYS_munmap, at, bytes);
	bytes = (bytes + PAGE - 1) & ~(uint64_t)(PAGE - 1);
	memory_count_sigsafe(-(int64_t)bytes, -(int64_t)bytes);
}
