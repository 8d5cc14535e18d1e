#include "run/observe.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/tmpdir.h"
#include "debuginfo/program.h"
#include "run/chaos_draw.h"
#include "wire/checksum.h"

#define AGENT_NAME "libredhand-agent.so"
#define AGENT_CRASH_NAME "libredhand-agent-crash.so"

static const char *env_value(const struct strv *env, const char *name)
{
	size_t len = strlen(name);

	for (size_t i = 0; i < env->count; i++)
		if (strncmp(env->items[i], name, len) == 0 && env->items[i][len] == '=')
			return env->items[i] + len + 1;
	return NULL;
}

int observe_find_agent(char **ret_dir, struct err *err)
{
	char exe[PATH_MAX];
	ssize_t len = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
	/* In the build tree, then where `make install` puts it, wherever that tree was moved to. */
	static const char *const places[] = { "agent", REDHAND_AGENT_FROM_BIN };
	const char *dir;

	exe[len > 0 ? len : 0] = '\0';
	dir = dirname(exe);
	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		AUTO(mem_freep) char *path = mem_printf("%s/%s", dir, places[i]);
		AUTO(mem_freep) char *agent = mem_printf("%s/" AGENT_NAME, path);

		*ret_dir = access(agent, R_OK) == 0 ? realpath(path, NULL) : NULL;
		if (*ret_dir)
			return 0;
	}
	(void)err_set(err, -ENOENT, "the observer's library " AGENT_NAME " is not installed");
	return err_set_remedy(err, "make install, or --observe none");
}

static const char *obstacle_of(const struct program_facts *facts)
{
	if (facts->kind != PROGRAM_ELF)
		return NULL;
	if (!facts->native)
		return "obstacle:foreign";
	if (!facts->dynamic)
		return "obstacle:static";
	if (facts->libc == PROGRAM_LIBC_MUSL)
		return "obstacle:musl";
	if (facts->privileged)
		return "obstacle:privileged";
	return facts->sanitized ? "obstacle:sanitized" : NULL;
}

bool observe_obstacle(const char *path, struct said *ret)
{
	AUTO(mem_freep) struct program_facts *facts = mem_alloc(sizeof(*facts));
	/* What cannot be read is tried: the kernel has the last word. */
	const char *id = program_read(path, facts, NULL) < 0 ? NULL : obstacle_of(facts);

	if (id && ret)
		SAY(ret, id, said_text(facts->path), said_text(facts->machine));
	return id != NULL;
}

enum observe_malloc observe_malloc_of(const char *path, char **ret_name)
{
	AUTO(mem_freep) struct program_facts *facts = mem_alloc(sizeof(*facts));

	*ret_name = NULL;
	if (program_read(path, facts, NULL) < 0 || facts->kind != PROGRAM_ELF || facts->sanitized)
		return OBSERVE_MALLOC_OUTSIDE;
	if (facts->malloc_inside)
		return facts->malloc_hidden ? OBSERVE_MALLOC_HIDDEN : OBSERVE_MALLOC_INSIDE;
	if (!facts->dynamic || !facts->allocator_inside)
		return OBSERVE_MALLOC_OUTSIDE;
	*ret_name = mem_strdup(facts->allocator);
	return OBSERVE_MALLOC_BESIDE;
}

/* An error that Memcheck saw makes the trial fail, whatever becomes of the program. */
void observe_command(const struct trial_job *job, struct strv *ret)
{
	static const char *const memcheck[] = { "valgrind", "-q", "--error-exitcode=97",
						"--trace-children=yes", "--vgdb=no" };

	for (size_t i = 0; job->observer == OBSERVE_VALGRIND && i < ARRAY_SIZE(memcheck); i++)
		strv_add(ret, memcheck[i]);
	for (size_t i = 0; i < job->argv.count; i++)
		strv_add(ret, job->argv.items[i]);
}

/* The agent reads what to do from a plan; without one it observes crashes. */
static bool needs_plan(const struct trial_job *job)
{
	AUTO(strbuf_deinit) struct strbuf items = { 0 };

	chaos_plan_item(&job->chaos, &items);
	return job->observer >= OBSERVE_IDS || (job->observer >= OBSERVE_CRASH && items.len > 0);
}

void observe_environment(const struct trial_settings *settings, const struct trial_job *job,
			 struct strv *env)
{
	const char *preload = env_value(env, "LD_PRELOAD");
	const char *asan = env_value(env, "ASAN_OPTIONS");
	AUTO(mem_freep) char *libraries = NULL;
	AUTO(mem_freep) char *trial = NULL;
	AUTO(mem_freep) char *options = NULL;

	if (job->observer < OBSERVE_CRASH || !settings->agent_dir)
		return;
	libraries = mem_printf("%s/%s%s%s", settings->agent_dir,
			       needs_plan(job) ? AGENT_NAME : AGENT_CRASH_NAME,
			       preload && preload[0] != '\0' ? ":" : "", preload ? preload : "");
	trial = mem_printf("%s/%llu", settings->trials.path, (unsigned long long)job->number.value);
	/* A program built with AddressSanitizer refuses to start behind any preloaded library. */
	options = mem_printf("%s%sverify_asan_link_order=0", asan ? asan : "",
			     asan && asan[0] != '\0' ? ":" : "");
	strv_setenv(env, "LD_PRELOAD", libraries);
	strv_setenv(env, WIRE_TRIAL_VARIABLE, trial);
	strv_setenv(env, "ASAN_OPTIONS", options);
}

void observe_heap_defaults(uint64_t seed, struct plan_heap *ret)
{
	*ret = (struct plan_heap){
		.item = { .type = PLAN_ITEM_CANARY,
			  .flags = PLAN_HEAP_PYTHON,
			  .bytes = sizeof(*ret) },
		.seed = checksum_mix(seed, CHECKSUM_SEED),
		.quarantine_mib = OBSERVE_QUARANTINE_MIB,
		.poison_ppm = 1000000,
		.timer_ms = 20,
		.sweep_at = PLAN_SWEEP_AT_FREE,
	};
}

void observe_fence_defaults(uint32_t turn, struct plan_fence *ret)
{
	*ret = (struct plan_fence){ .item = { .type = PLAN_ITEM_FENCE, .bytes = sizeof(*ret) },
				    .turn = turn,
				    .time_percent = OBSERVE_FENCE_PERCENT };
}

/* The items are ours: they are well formed. */
static bool find_item(const struct strbuf *items, enum plan_item_type type, struct plan_item *ret)
{
	for (size_t at = 0; items->len - at >= sizeof(*ret); at += ret->bytes) {
		memcpy(ret, items->data + at, sizeof(*ret));
		if (ret->type == type)
			return true;
	}
	return false;
}

static bool has_item(const struct strbuf *items, enum plan_item_type type)
{
	struct plan_item item;

	return find_item(items, type, &item);
}

/* What the observer needs and nobody has said otherwise. */
static void add_heap_items(const struct trial_job *job, struct strbuf *items)
{
	struct plan_fence fence;
	struct plan_heap heap;

	observe_heap_defaults(job->number.value, &heap);
	/* Whoever reads a freed block is to find there what he would have found. */
	if (job->observer == OBSERVE_FENCE)
		heap.poison_ppm = 0;
	if (job->observer >= OBSERVE_HEAP && !has_item(items, PLAN_ITEM_CANARY))
		strbuf_add(items, &heap, sizeof(heap));
	observe_fence_defaults((uint32_t)job->number.value, &fence);
	if (job->observer == OBSERVE_FENCE && !has_item(items, PLAN_ITEM_FENCE))
		strbuf_add(items, &fence, sizeof(fence));
}

bool observe_watches(const struct trial_settings *settings, const struct trial_job *job)
{
	return job->observer >= OBSERVE_IDS && (has_item(&settings->plan_items, PLAN_ITEM_WATCH) ||
						has_item(&job->plan_items, PLAN_ITEM_WATCH));
}

static bool guards_python(const struct trial_settings *settings, const struct trial_job *job)
{
	struct plan_item item;

	if (find_item(&settings->plan_items, PLAN_ITEM_CANARY, &item) ||
	    find_item(&job->plan_items, PLAN_ITEM_CANARY, &item))
		return item.flags & PLAN_HEAP_PYTHON;
	return job->observer == OBSERVE_HEAP;
}

/* Most objects of Python have nothing to do with what is looked for, and following them all makes
 * an interpreter half as slow again. Guards, growth and watches are about single objects. */
static bool follows_python(const struct trial_settings *settings, const struct trial_job *job)
{
	return job->python || settings->flags & TRIAL_PYTHON || job->growth ||
	       job->observer == OBSERVE_WATCH || guards_python(settings, job) ||
	       observe_watches(settings, job);
}

static void set_flags(const struct trial_settings *settings, const struct trial_job *job,
		      struct plan_header *plan)
{
	bool ids = job->observer >= OBSERVE_IDS;

	plan->flags |= ids ? PLAN_JIT_CODE : 0;
	plan->flags |= ids && follows_python(settings, job) ? PLAN_PYTHON : 0;
	plan->flags |=
		(settings->flags & TRIAL_PAGES || job->pages) && observe_watches(settings, job)
			? PLAN_PAGES
			: 0;
	/* The first crash is all that some hunts have to begin with. */
	plan->flags |= job->wild || job->observer == OBSERVE_IDS ? PLAN_WILD_VALUES : 0;
	plan->flags |= job->without_ids ? PLAN_NO_BLOCKS : 0;
	if (ids && job->growth) {
		plan->flags |= PLAN_GROWTH;
		plan->context_rows = PLAN_CONTEXT_ROWS_PYTHON;
	}
}

static void add_holders(const struct trial_job *job, struct strbuf *items)
{
	struct plan_holders holders = { .item = { .type = PLAN_ITEM_HOLDERS,
						  .bytes = sizeof(holders) },
					.after_lines = (uint32_t)job->held_after_lines };

	for (size_t i = 0; i < job->held.count && i < PLAN_HOLDERS_MAX; i++)
		holders.stack_hashes[holders.count++] = strtoull(job->held.items[i], NULL, 16);
	if (holders.count > 0)
		strbuf_add(items, &holders, sizeof(holders));
}

int observe_write_plan(const struct trial_settings *settings, const struct trial_job *job,
		       int trials, const char *name, pid_t tracer, struct err *err)
{
	AUTO(fd_closep) int dir = -1;
	AUTO(strbuf_deinit) struct strbuf items = { 0 };
	AUTO(mem_freep) unsigned char *bytes = NULL;
	bool ids = job->observer >= OBSERVE_IDS;
	struct plan_header plan;
	size_t len;

	dir = openat(trials, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (dir < 0)
		return err_set_errno(err, -errno, "cannot open trials/%s", name);
	if (!needs_plan(job)) /* nor that of the trial before */
		return unlinkat(dir, WIRE_PLAN_NAME, 0) < 0 && errno != ENOENT
			       ? err_set_errno(err, -errno,
					       "cannot remove trials/%s/" WIRE_PLAN_NAME, name)
			       : 0;
	chaos_plan_item(&job->chaos, &items);
	plan_init(&plan, ids ? PLAN_OBSERVE_IDS : PLAN_OBSERVE_CRASH);
	plan.tracer = (uint32_t)tracer;
	set_flags(settings, job, &plan);
	if (ids) {
		add_holders(job, &items);
		strbuf_add(&items, settings->plan_items.data, settings->plan_items.len);
		strbuf_add(&items, job->plan_items.data, job->plan_items.len);
	}
	add_heap_items(job, &items);
	bytes = mem_alloc(sizeof(plan) + items.len);
	len = plan_seal(&plan, items.data, items.len, bytes, sizeof(plan) + items.len);
	if (len == 0)
		return err_set(err, -E2BIG, "the plan for the agent is malformed or too long");
	/* The trial before may have had the same. */
	if (file_holds_at(dir, WIRE_PLAN_NAME, bytes, len))
		return 0;
	return file_write_at(dir, WIRE_PLAN_NAME, bytes, len, err);
}

void observe_alias_agent(char **agent_dir, char **ret_link_dir)
{
	AUTO(mem_freep) char *dir = NULL;
	AUTO(mem_freep) char *alias = NULL;

	if ((*agent_dir)[strcspn(*agent_dir, " \t\n:")] == '\0' ||
	    tmpdir_make("/tmp", "agent-", &dir, NULL) < 0)
		return;
	alias = mem_printf("%s/a", dir);
	if (symlink(*agent_dir, alias) < 0) {
		tmpdir_remove(dir);
		return;
	}
	mem_free(*agent_dir);
	*agent_dir = TAKE(alias);
	*ret_link_dir = TAKE(dir);
}
