#include "agent/watch/watch_state.h"

#include "agent/arch/x86_64.h"
#include "agent/core/memory.h"
#include "agent/core/thread.h"

struct watch_state watch_state;

struct copy {
	void *to;
	uint64_t from;
	uint32_t bytes;
};

/* Our own instruction: libc's copying would not be let off. */
static void copy_out(void *ctx)
{
	const struct copy *copy = ctx;

	arch_copy(copy->to, (const void *)copy->from, copy->bytes);
}

bool watch_read_sigsafe(void *to, uint64_t from, uint32_t bytes)
{
	struct copy copy = { to, from, bytes };

	/* Where reads trap, our own may not be one: the kernel's goes by another address. */
	if (thread_self && !watch_state.reads)
		return memory_attempt_sigsafe(copy_out, &copy);
	return memory_read_sigsafe(to, from, bytes) == bytes;
}
