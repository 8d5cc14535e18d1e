#pragma once

#include "base/strbuf.h"
#include "base/vec.h"
#include "engine/hooks/lookout.h"
#include "model/watch.h"
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
	/* How to run it once, to see which programs and libraries it loads, when they must be known
	 * (engine/hooks/lookout.h); only the settings, program and slot_env. No program: not to be
	 * run. */
	struct lookout_request look;
	void (*say)(const char *text); /* before that is done */
};

/* Appends the items, and a target for each --on to the report. */
int aim_plan(const struct aim_request *request, struct strbuf *items, struct watch_report *report,
	     struct err *err);
