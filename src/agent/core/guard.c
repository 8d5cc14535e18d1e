#include "agent/core/guard.h"

#include "agent/core/lanes.h"
#include "agent/core/log.h"

struct thread *guard_enter_slow(void)
{
	struct thread *self = thread_self;

	if (!agent_switch.crash)
		return NULL;
	if (!self)
		self = thread_adopt_sigsafe();
	if (!self || self->fast.busy) {
		log_drop_sigsafe(LOG_DROP_GUARD);
		return NULL;
	}
	return self;
}
