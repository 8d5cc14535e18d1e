#pragma once

#include "base/strbuf.h"
#include "model/watch_report.h"
#include "plan/hooks/libraries.h"
#include "wire/plan.h"

/*
 * From what the user asked to watch to items of the agent's plan.
 */
enum resolve_flags {
	RESOLVE_AFTER_FREE = 1 << 0,
	RESOLVE_STOP = 1 << 1,
	RESOLVE_PAGES = 1 << 2, /* on watched pages: blocks only, as they are allocated */
};

struct resolve_request {
	const char *const *on; /* --on, in order */
	size_t count;
	const char *when; /* NULL: every hit counts */
	enum plan_watch_policy policy;
	unsigned int flags;		/* enum resolve_flags */
	struct libraries_request files; /* the command */
	/* Runs the command once, to see which programs and libraries it loads, until those are
	 * enough (loaded_modules_look()). NULL: the command must not be run. */
	int (*look)(void *look_ctx, bool (*enough)(void *ctx, const struct library_list *seen),
		    void *ctx, struct library_list *ret, struct err *err);
	void *look_ctx;
	void (*say)(const char *id); /* before that is done: of a statement without values */
};

/* Appends the items, and a target for each --on to the report. */
int resolve_plan(const struct resolve_request *request, struct strbuf *items,
		 struct watch_report *report, struct err *err);
