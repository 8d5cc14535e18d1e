#pragma once

#include "base/strbuf.h"
#include "base/vec.h"
#include "model/watch.h"
#include "plan/hooks/libraries.h"
#include "wire/plan.h"

/*
 * From what the user asked to watch to items of the agent's plan.
 */
enum aim_flags {
	AIM_AFTER_FREE = 1 << 0,
	AIM_STOP = 1 << 1,
	AIM_PAGES = 1 << 2, /* on watched pages: blocks only, as they are allocated */
};

struct aim_request {
	const char *const *on; /* --on, in order */
	size_t count;
	const char *when; /* NULL: every hit counts */
	enum plan_watch_policy policy;
	unsigned int flags;		/* enum aim_flags */
	struct libraries_request files; /* the command */
	/* Runs the command once, to see which programs and libraries it loads, until those are
	 * enough (loaded_modules_look()). NULL: the command must not be run. */
	int (*look)(void *look_ctx, bool (*enough)(void *ctx, const struct library_list *seen),
		    void *ctx, struct library_list *ret, struct err *err);
	void *look_ctx;
	void (*say)(const char *text); /* before that is done */
};

/* Appends the items, and a target for each --on to the report. */
int aim_plan(const struct aim_request *request, struct strbuf *items, struct watch_report *report,
	     struct err *err);
