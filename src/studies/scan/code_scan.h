#pragma once

#include "base/err.h"
#include "case/case.h"
#include "model/scan_report.h"

/*
 * Which instructions could make a certain write: all code of a file, a live process or a recorded
 * trial is disassembled and searched.
 */
struct seen_list;

struct scan_request {
	struct scan_query query;
	/* Stores to this variable, "NAME", "unit.c:NAME" or "NAME.field", and other uses of it; the
	 * query's offset and width then say which part. NULL for none. */
	const char *global;
	const char *module;   /* only in files of this name or pattern, or "emitted"; NULL: all */
	const char *function; /* only there: a name or a pattern; NULL for everywhere */
	uint32_t fits;	      /* bit per enum scan_fit that is wanted; 0: all */
	size_t limit;	      /* hits kept, further ones only counted; 0: all */
	/* Marks hits that were seen to run. */
	const struct seen_code *seen;
	size_t seen_count;
	void (*progress)(void *ctx, double seconds, uint64_t done, uint64_t total);
	void *progress_ctx;
};

/* The caller deinits `ret`, whatever comes back. */
int scan_file(const char *path, const struct scan_request *request, struct scan_report *ret,
	      struct err *err);

/* Reads the process's memory while it runs and changes nothing. -EACCES, -ESRCH. */
int scan_process(int pid, const struct scan_request *request, struct scan_report *ret,
		 struct err *err);

/* The files that the trial's processes had loaded, and the emitted code that was kept. What was
 * seen to run in it is added to `seen`, which counts instead of what the request has. */
int scan_trial(struct case_store *cs, uint64_t trial, const struct scan_request *request,
	       struct seen_list *seen, struct scan_report *ret, struct err *err);

/* The bit of a register in struct scan_query, by its name; 0 when there is none. */
uint32_t scan_register(const char *name);
