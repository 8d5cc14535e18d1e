#include "agent/process/rlimits.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <unistd.h>

#include "agent/arch/x86_64.h"
#include "agent/core/agent.h"
#include "agent/core/log.h"
#include "agent/core/memory.h"
#include "agent/core/modules.h"
#include "agent/core/real.h"

/* Ours may grow, and nobody but root raises what was once lowered. */
#define ROOM_TO_GROW (1ull << 46)
/* Identity takes some 100 MiB at least: an eighth of this. */
#define TIGHT_BYTES (800ull << 20)

static struct limit {
	const int resource;
	uint64_t (*const own)(void);
	uint32_t held; /* atomic: the target has set it */
	struct rlimit asked;
} limits[] = {
	{ .resource = RLIMIT_AS, .own = memory_own_bytes_sigsafe },
	{ .resource = RLIMIT_DATA, .own = memory_own_data_sigsafe },
};

/* The linker's own marks around us. */
extern const char __ehdr_start[] HIDDEN;
extern const char __bss_start[] HIDDEN;
extern const char _end[] HIDDEN;

#define LIMITS (sizeof(limits) / sizeof(limits[0]))

static struct limit *limit_find(int resource)
{
	unsigned i;

	for (i = 0; i < LIMITS; i++)
		if (limits[i].resource == resource)
			return &limits[i];
	return NULL;
}

static rlim_t more(rlim_t value, uint64_t by)
{
	return value > RLIM_INFINITY - by ? RLIM_INFINITY : value + by;
}

/* In force: what was asked for, and ours. 0 or a negative errno. */
static long limit_put(const struct limit *limit)
{
	struct rlimit now, put;
	uint64_t own = limit->own();

	if (raw_syscall4(SYS_prlimit64, 0, limit->resource, NULL, &now))
		return -EPERM;
	put.rlim_max = more(limit->asked.rlim_max, own + ROOM_TO_GROW);
	if (put.rlim_max > now.rlim_max)
		put.rlim_max = now.rlim_max;
	put.rlim_cur = more(limit->asked.rlim_cur, own);
	if (put.rlim_cur > put.rlim_max)
		put.rlim_cur = put.rlim_max;
	return raw_syscall4(SYS_prlimit64, 0, limit->resource, &put, NULL);
}

/* What the agent has is another amount now. _sigsafe */
static void limits_move(void)
{
	unsigned i;

	for (i = 0; i < LIMITS; i++)
		if (__atomic_load_n(&limits[i].held, __ATOMIC_ACQUIRE))
			(void)limit_put(&limits[i]);
}

/* The hard one only where exec will hardly fail: from that there is no way back. A vfork child has
 * limits of its own. */
void limits_before_exec_sigsafe(const char *path)
{
	struct rlimit now;
	unsigned i;

	for (i = 0; i < LIMITS; i++) {
		if (!limits[i].held ||
		    raw_syscall4(SYS_prlimit64, 0, limits[i].resource, NULL, &now))
			continue;
		now.rlim_cur = limits[i].asked.rlim_cur;
		if (path && !raw_syscall3(SYS_faccessat, AT_FDCWD, path, X_OK))
			now.rlim_max = limits[i].asked.rlim_max;
		(void)raw_syscall4(SYS_prlimit64, 0, limits[i].resource, &now, NULL);
	}
}

void limits_exec_failed_sigsafe(void)
{
	limits_move();
}

void limits_begin(void)
{
	uint64_t least = RLIM_INFINITY;
	struct rlimit now, raised;
	bool tight = false;
	unsigned i;

	for (i = 0; i < LIMITS; i++) {
		if (raw_syscall4(SYS_prlimit64, 0, limits[i].resource, NULL, &now) ||
		    now.rlim_cur == RLIM_INFINITY)
			continue;
		if (now.rlim_cur < least)
			least = now.rlim_cur;
		raised.rlim_cur = now.rlim_cur;
		raised.rlim_max = more(now.rlim_max, ROOM_TO_GROW);
		if (raw_syscall4(SYS_prlimit64, 0, limits[i].resource, &raised, NULL)) {
			agent.cramped = true;
			tight |= now.rlim_cur < TIGHT_BYTES;
			continue;
		}
		limits[i].asked = now;
		limits[i].held = 1;
	}
	memory_counted = limits_move;
	memory_count_sigsafe(_end - __ehdr_start, _end - __bss_start);
	agent.space_limit = least;
	agent.tight = tight && agent.plan.observer >= PLAN_OBSERVE_IDS;
}

static int limit_set(struct limit *limit, const struct rlimit *wanted)
{
	struct rlimit before, raised;
	long r;

	if (limit->held)
		before = limit->asked;
	else if (raw_syscall4(SYS_prlimit64, 0, limit->resource, NULL, &before))
		return EPERM;
	if (wanted->rlim_cur > wanted->rlim_max)
		return EINVAL;
	if (wanted->rlim_max > before.rlim_max && geteuid())
		return EPERM;
	if (wanted->rlim_max > before.rlim_max) { /* the superuser raises it */
		raised.rlim_cur = wanted->rlim_cur;
		raised.rlim_max = more(wanted->rlim_max, limit->own() + ROOM_TO_GROW);
		(void)raw_syscall4(SYS_prlimit64, 0, limit->resource, &raised, NULL);
	}
	limit->asked = *wanted;
	r = limit_put(limit);
	if (r) {
		limit->asked = before;
		return (int)-r;
	}
	__atomic_store_n(&limit->held, 1, __ATOMIC_RELEASE);
	return 0;
}

/* NULL: it is the kernel's affair. */
static struct limit *limit_ours(int pid, int resource)
{
	if ((pid && pid != (int)agent.pid) || !agent_switch.here || !memory_own_bytes_sigsafe() ||
	    !agent_owns_process_sigsafe())
		return NULL;
	return limit_find(resource);
}

/* Where no file can be opened any more, for good, a draft of the log would stay one, and what is
 * mapped where could not be asked. */
static void files_end(int pid, int resource, const struct rlimit *wanted)
{
	struct rlimit limit;
	int saved = errno;

	if (resource != RLIMIT_NOFILE || !wanted || (pid && pid != (int)agent.pid) ||
	    !agent_switch.crash || !agent_owns_process_sigsafe() ||
	    memory_read_sigsafe(&limit, (uint64_t)wanted, sizeof(limit)) != sizeof(limit) ||
	    limit.rlim_max)
		return;
	log_publish_sigsafe();
	modules_refresh_sigsafe();
	errno = saved;
}

EXPORT int prlimit(pid_t pid, enum __rlimit_resource resource, const struct rlimit *wanted,
		   struct rlimit *old)
{
	struct limit *limit = limit_ours(pid, (int)resource);
	struct rlimit before;
	int r;

	files_end(pid, (int)resource, wanted);
	if (!limit || (!limit->held && !wanted))
		return real.prlimit(pid, (int)resource, wanted, old);
	if (limit->held)
		before = limit->asked;
	else if (real.prlimit(0, (int)resource, NULL, &before))
		return -1;
	r = wanted ? limit_set(limit, wanted) : 0;
	if (r) {
		errno = r;
		return -1;
	}
	if (old)
		*old = before;
	return 0;
}

EXPORT int setrlimit(__rlimit_resource_t resource, const struct rlimit *wanted)
{
	files_end(0, (int)resource, wanted);
	if (!limit_ours(0, (int)resource))
		return real.setrlimit((int)resource, wanted);
	return prlimit(0, resource, wanted, NULL);
}

EXPORT int getrlimit(__rlimit_resource_t resource, struct rlimit *ret)
{
	struct limit *limit = limit_ours(0, (int)resource);

	if (!limit || !limit->held)
		return real.getrlimit((int)resource, ret);
	*ret = limit->asked;
	return 0;
}

/* The same on this machine. */
EXPORT int prlimit64(pid_t pid, enum __rlimit_resource resource, const struct rlimit64 *wanted,
		     struct rlimit64 *old)
{
	return prlimit(pid, resource, (const struct rlimit *)wanted, (struct rlimit *)old);
}

EXPORT int setrlimit64(__rlimit_resource_t resource, const struct rlimit64 *wanted)
{
	return setrlimit(resource, (const struct rlimit *)wanted);
}

EXPORT int getrlimit64(__rlimit_resource_t resource, struct rlimit64 *ret)
{
	return getrlimit(resource, (struct rlimit *)ret);
}
