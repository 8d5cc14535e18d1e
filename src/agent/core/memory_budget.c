#include "agent/core/memory_budget.h"

#include <string.h>

#include "agent/arch/x86_64.h"
#include "agent/core/agent.h"
#include "agent/core/maps.h"
#include "agent/core/memory.h"
#include "agent/core/spin.h"
#include "agent/core/text.h"

#define PATH_ROOM 1024u
#define TEXT_ROOM 4096u
#define LOOKS 16u /* asked so often for one look */
#define NO_LIMIT UINT64_MAX
/* cgroup v1 says this when there is none: the largest multiple of a page. */
#define V1_NO_LIMIT (1ull << 62)

static struct {
	uint64_t cgroup_limit, space_limit;
	char stat[PATH_ROOM]; /* of the cgroup */
	bool v2;
	uint32_t asked, lock; /* atomic */
	uint32_t state;	      /* atomic; enum budget_state, only ever rises */
	char text[TEXT_ROOM]; /* under the lock */
} budget = { .cgroup_limit = NO_LIMIT, .space_limit = NO_LIMIT };

/* Into budget.text, as much as there is room for. False: it cannot be read. */
static bool file_read(const char *path)
{
	return maps_text_sigsafe(path, budget.text, TEXT_ROOM);
}

/* The number behind a name that begins a line; `missing` where there is none. */
static uint64_t line_number(const char *name, uint64_t missing)
{
	const char *at = budget.text, *rest;

	while (at && *at) {
		rest = text_after(at, name);
		if (rest && *rest >= '0' && *rest <= '9')
			return text_number(&rest, budget.text + TEXT_ROOM, 10);
		at = strchr(at, '\n');
		at += at != NULL;
	}
	return missing;
}

static void path_make(char *to, const char *folder, const char *name)
{
	struct text text;

	text_begin(&text, to, PATH_ROOM);
	text_add(&text, folder);
	text_add(&text, name);
}

/* Inside a container the folder may be another one's view: then the top is ours. */
static void v1_find(const char *group)
{
	char folder[PATH_ROOM];

	path_make(folder, "/sys/fs/cgroup/memory", group);
	path_make(budget.stat, folder, "/memory.stat");
	if (!file_read(budget.stat)) {
		path_make(budget.stat, "/sys/fs/cgroup/memory", "/memory.stat");
		if (!file_read(budget.stat))
			return;
	}
	budget.cgroup_limit = line_number("hierarchical_memory_limit ", NO_LIMIT);
	if (budget.cgroup_limit >= V1_NO_LIMIT)
		budget.cgroup_limit = NO_LIMIT;
}

/* The least of its own and of all above it; what is used is that of the one that has it. */
static void v2_find(const char *group)
{
	char folder[PATH_ROOM], path[PATH_ROOM];
	uint64_t limit;
	char *slash;

	budget.v2 = true;
	path_make(folder, "/sys/fs/cgroup", group);
	while (strlen(folder) >= strlen("/sys/fs/cgroup")) {
		path_make(path, folder, "/memory.max");
		limit = file_read(path) ? line_number("", NO_LIMIT) : NO_LIMIT; /* or "max" */
		if (limit < budget.cgroup_limit) {
			budget.cgroup_limit = limit;
			path_make(budget.stat, folder, "/memory.stat");
		}
		slash = strrchr(folder, '/');
		*slash = 0;
	}
}

/* /proc/self/cgroup: number:controllers:/path, v2 with neither (cgroups(7)). */
static void cgroup_find(void)
{
	char group[PATH_ROOM];
	char *line, *end, *at;
	struct text text;
	bool v1;

	if (!file_read("/proc/self/cgroup"))
		return;
	line = strstr(budget.text, ":memory:");
	v1 = line != NULL;
	if (!line)
		line = strstr(budget.text, "0::");
	at = line ? strchr(line, '/') : NULL;
	if (!at)
		return;
	end = strchr(at, '\n');
	if (end)
		*end = 0;
	text_begin(&text, group, sizeof(group));
	text_add(&text, at[1] ? at : "");
	if (text.cut)
		return;
	if (v1)
		v1_find(group);
	else
		v2_find(group);
}

uint64_t budget_init(void)
{
	cgroup_find();
	budget.space_limit = agent.space_limit;
	return budget.cgroup_limit < budget.space_limit ? budget.cgroup_limit : budget.space_limit;
}

/* What cannot be given back by the kernel alone: not the cache of files. */
static uint64_t cgroup_used(void)
{
	if (!file_read(budget.stat))
		return 0;
	return budget.v2 ? line_number("anon ", 0) + line_number("shmem ", 0)
			 : line_number("total_rss ", 0) + line_number("total_shmem ", 0);
}

static uint64_t space_used(void)
{
	uint64_t own = memory_own_bytes_sigsafe(), all;

	if (!file_read("/proc/self/statm"))
		return 0;
	all = line_number("", 0) * PAGE;
	return all > own ? all - own : 0;
}

static uint32_t state_of(uint64_t used, uint64_t limit)
{
	if (used > limit / 2)
		return BUDGET_EXHAUSTED;
	return used > limit / 4 ? BUDGET_TIGHT : BUDGET_ENOUGH;
}

enum budget_state budget_look_sigsafe(void)
{
	uint32_t now = BUDGET_ENOUGH, also = BUDGET_ENOUGH;

	if (budget.cgroup_limit == NO_LIMIT && budget.space_limit == NO_LIMIT)
		return BUDGET_ENOUGH;
	if (__atomic_fetch_add(&budget.asked, 1, __ATOMIC_RELAXED) % LOOKS ||
	    !spin_take_sigsafe(&budget.lock, 1))
		return __atomic_load_n(&budget.state, __ATOMIC_RELAXED);
	if (budget.cgroup_limit != NO_LIMIT)
		now = state_of(cgroup_used(), budget.cgroup_limit);
	if (budget.space_limit != NO_LIMIT)
		also = state_of(space_used(), budget.space_limit);
	now = also > now ? also : now;
	if (now > budget.state)
		__atomic_store_n(&budget.state, now, __ATOMIC_RELAXED);
	spin_give_sigsafe(&budget.lock);
	return budget.state;
}
