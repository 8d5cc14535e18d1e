#pragma once

#include "base/err.h"
#include "plan/hooks/libraries.h"
#include "run/job.h"

/*
 * Which programs and libraries a command really loads: it is run once, with the agent in it, and
 * looked on.
 *
 * Names that somebody wants hooked or watched are looked up before anything is run. For `env X=1
 * ./prog`, `sh -c`, a wrapper script, `make test` or an extension module of Python the program that
 * the command line names is not the one that has them.
 */
struct lookout_request {
	const struct trial_settings *settings; /* of the trials to come */
	char *const *program;
	const struct strv *slot_env;
	/* Asked now and then while a long command runs: is what has been seen enough? */
	bool (*enough)(void *ctx, const struct library_list *seen);
	void *ctx;
};

/* Files in the order in which they were first seen, each once, `late` all of them; the caller's to
 * deinit. Nothing is left of the run. */
int lookout_run(const struct lookout_request *request, struct library_list *ret, struct err *err);

/* The same for plan/watch/resolve.h: `request` is a struct lookout_request without `enough`. */
int loaded_modules_look(void *request, bool (*enough)(void *ctx, const struct library_list *seen),
			void *ctx, struct library_list *ret, struct err *err);
