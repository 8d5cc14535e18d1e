#pragma once

#include "base/err.h"
#include "model/said.h"
#include "run/job.h"
#include "wire/plan.h"

/*
 * Putting an observer into the target: a preloaded library that finds the
 * trial's directory through the environment and leaves its log there.
 */

/* The directory of the agent's libraries, next to redhand's own program or where they were
 * installed. The result is the caller's. */
int observe_find_agent(char **ret_dir, struct err *err);

/* The loader takes LD_PRELOAD apart at spaces and colons (ld.so(8)): where the agent's folder has
 * some, programs are led there by a link. The temporary directory that it lies in is for the caller
 * to remove; NULL: none was needed, or could be made. */
void observe_alias_agent(char **agent_dir, char **ret_link_dir);

/* Whether something keeps a preloaded library from the program in this file. `ret` may be NULL. */
bool observe_obstacle(const char *path, struct said *ret);

/* Whose malloc the program calls; none that a library can stand in front of, but for the first. */
enum observe_malloc {
	OBSERVE_MALLOC_OUTSIDE,
	OBSERVE_MALLOC_INSIDE,
	OBSERVE_MALLOC_HIDDEN, /* inside, and only the program itself sees it */
	OBSERVE_MALLOC_BESIDE, /* one outside, and inside another one under a name of its own */
};

/* ret_name: of OBSERVE_MALLOC_BESIDE, the caller's to free; else NULL. */
enum observe_malloc observe_malloc_of(const char *path, char **ret_name);

#define OBSERVE_QUARANTINE_MIB 64
#define OBSERVE_FENCE_PERCENT 60 /* of the run time that fences may take */

/* The plan of the heap observer as it is unless somebody asks for more. */
void observe_heap_defaults(uint64_t seed, struct plan_heap *ret);

/* The same for fences, which come with that of heap. turn: which contexts have them, where not all
 * can (wire/fence_turn.h). */
void observe_fence_defaults(uint32_t turn, struct plan_fence *ret);

/* The command as it is started: as it was given, or as what another tool runs. */
void observe_command(const struct trial_job *job, struct strv *ret);

/* Adds what the observer needs to the command's environment. */
void observe_environment(const struct trial_settings *settings, const struct trial_job *job,
			 struct strv *env);

/* Is memory watched in this trial? */
bool observe_watches(const struct trial_settings *settings, const struct trial_job *job);

/* Writes the plan into the trial's directory; nothing when the observer needs none. tracer: 0 when
 * there is none. */
int observe_write_plan(const struct trial_settings *settings, const struct trial_job *job,
		       int trials, const char *name, pid_t tracer, struct err *err);
