#include "agent/crash/jit_code.h"

#include <string.h>

#include "agent/core/agent.h"
#include "agent/core/log.h"
#include "agent/core/maps.h"
#include "agent/core/memory.h"

/* Looked at, zeros or not: some 20 ms at most. */
#define PAGES_MAX 32768u

static struct {
	uint32_t taken; /* atomic; a second thread that crashes meanwhile goes without */
	struct maps_buffer walk;
	uint64_t page[PAGE / 8];
	uint32_t looked, kept; /* pages */
} scratch;

static bool is_emitted(const struct maps_line *line)
{
	static const char memfd[] = "/memfd:";

	if (!line->executable || !line->readable)
		return false;
	/* [vdso] and [vsyscall] are the kernel's; "[anon:…]" has a name and is still nobody's. */
	if (!line->inode)
		return line->path[0] != '[' || !memcmp(line->path, "[anon", 5);
	return !memcmp(line->path, memfd, sizeof(memfd) - 1);
}

static bool is_ours(const struct maps_line *line)
{
	uint64_t low, high;

	return memory_next_own_sigsafe(line->low, &low, &high) && low < line->high;
}

static bool is_zero(size_t bytes)
{
	uint64_t any = 0;
	size_t i;

	for (i = 0; i < bytes / 8; i++)
		any |= scratch.page[i];
	return !any;
}

static void pages_write(struct log_writer *writer, uint64_t low, uint64_t high)
{
	struct log_blob blob = { .kind = LOG_BLOB_JIT, .bytes = PAGE, .total = PAGE };

	for (; low < high; low += PAGE) {
		if (scratch.looked++ >= PAGES_MAX || scratch.kept >= JIT_CODE_BYTES / PAGE)
			return;
		if (memory_read_sigsafe(scratch.page, low, PAGE) != PAGE || is_zero(PAGE))
			continue;
		blob.index = (uint16_t)scratch.kept++;
		blob.address = low;
		if (!log_append_sigsafe(writer, LOG_BLOB, &blob, sizeof(blob), scratch.page, PAGE))
			return;
	}
}

void jit_code_write_sigsafe(uint64_t owner)
{
	struct log_writer writer;
	struct maps_walk walk;
	struct maps_line line;
	uint32_t none = 0;

	if (!(agent.plan.flags & PLAN_JIT_CODE) || !owner ||
	    !__atomic_compare_exchange_n(&scratch.taken, &none, 1, false, __ATOMIC_ACQUIRE,
					 __ATOMIC_RELAXED))
		return;
	scratch.looked = scratch.kept = 0;
	log_writer_init_sigsafe(&writer, LOG_TO_EVENTS);
	writer.owner = owner;
	if (maps_begin_sigsafe(&walk, &scratch.walk)) {
		while (maps_next_sigsafe(&walk, &line))
			if (is_emitted(&line) && !is_ours(&line))
				pages_write(&writer, line.low, line.high);
		maps_end_sigsafe(&walk);
	}
	__atomic_store_n(&scratch.taken, 0, __ATOMIC_RELEASE);
}
