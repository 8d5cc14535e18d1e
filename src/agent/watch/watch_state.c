#include "agent/watch/watch_state.h"

#include <string.h>

#include "agent/arch/x86_64.h"
#include "agent/core/memory.h"
#include "agent/core/thread.h"

struct watch_state watch_state;

/* Not inlined: without a call the compiler sees no way back to __builtin_setjmp. Our own
 * instruction: recovery is for faults in our code only. */
static __attribute__((noinline)) void copy_out(void *to, uint64_t from, uint32_t bytes)
{
	arch_copy(to, (const void *)from, bytes);
}

static __attribute__((noinline)) bool read_guarded(struct thread *self, void *to, uint64_t from,
						   uint32_t bytes)
{
	uint64_t outer[5];
	uint32_t was = self->recovery_armed;

	memcpy(outer, self->recovery, sizeof(outer));
	if (__builtin_setjmp((void **)self->recovery)) {
		self = thread_self;
		memcpy(self->recovery, outer, sizeof(outer));
		self->recovery_armed = was;
		return false;
	}
	self->recovery_armed = 1;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	copy_out(to, from, bytes);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	self->recovery_armed = was;
	memcpy(self->recovery, outer, sizeof(outer));
	return true;
}

bool watch_read_sigsafe(void *to, uint64_t from, uint32_t bytes)
{
	struct thread *self = thread_self;

	/* Where reads trap, our own may not be one: the kernel's goes by another address. */
	if (self && !watch_state.reads)
		return read_guarded(self, to, from, bytes);
	return memory_read_sigsafe(to, from, bytes) == bytes;
}
