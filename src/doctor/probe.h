#pragma once

#include <stdint.h>

#include "model/finding.h"

/*
 * The probes of `redhand doctor`.
 *
 * A probe does the thing it reports on, then says how it went. It is called in
 * an isolated process (isolate.h): it may fault, change signal handlers and
 * limits, or hang; it cleans up only what outlives the process.
 *
 * To add one: declare it here, write it in the probe_*.c of its noun, add a
 * row to probes[] in doctor.c, and describe its id in docs/json.md.
 */
struct probe {
	const char *id;
	const char *title;
	const char *lost; /* without it; used unless the probe says something nearer */
	void (*run)(struct finding *finding);
	uint64_t timeout_ns;
};

/* Sets status and what was found. */
void probe_say(struct finding *finding, enum finding_status status, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
void probe_lost(struct finding *finding, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
void probe_enable(struct finding *finding, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* A number from a file under /proc/sys; -1000 when there is no such file or number in it. */
long probe_read_sysctl(const char *path);
#define PROBE_NO_SYSCTL (-1000L)

/* probe_perf.c */
void probe_perf_store(struct finding *finding);
void probe_perf_slots(struct finding *finding);
void probe_perf_threads(struct finding *finding);
void probe_perf_kernel(struct finding *finding);
void probe_perf_paranoid(struct finding *finding);
void probe_perf_counters(struct finding *finding);

/* probe_ptrace.c */
void probe_ptrace_watch(struct finding *finding);
void probe_ptrace_scope(struct finding *finding);

/* probe_pages.c */
void probe_pages(struct finding *finding);

/* probe_pkey.c */
void probe_pkey(struct finding *finding);

/* probe_limits.c */
void probe_core_limit(struct finding *finding);
void probe_core_file(struct finding *finding);
void probe_map_count(struct finding *finding);

/* probe_tools.c */
void probe_slurm(struct finding *finding);
void probe_debuginfod(struct finding *finding);
