#include "doctor/doctor.h"

#include <assert.h>
#include <stdbool.h>
#include <string.h>

#include "base/auto.h"
#include "base/mem.h"
#include "base/strbuf.h"
#include "base/talk.h"
#include "doctor/isolate.h"
#include "doctor/probe.h"
#include "doctor/program_check.h"

#define SECONDS(n) ((n)*1000000000ull)

static const struct probe probes[] = {
	{ "watch-perf", "hardware watchpoints by perf",
	  "no writer can be caught at native speed; redhand falls back to ptrace watchpoints, then "
	  "to canaries",
	  probe_perf_store, SECONDS(5) },
	{ "watch-perf-slots", "number of watchpoints",
	  "fewer places can be watched in one run, so it takes more runs", probe_perf_slots,
	  SECONDS(5) },
	{ "watch-perf-threads", "watchpoints reach threads started later",
	  "a write by another thread goes unseen", probe_perf_threads, SECONDS(5) },
	{ "watch-perf-kernel", "watchpoints see writes by the kernel",
	  "a read(), recv() or similar call that writes the watched memory is missed; only the "
	  "program's own stores are caught",
	  probe_perf_kernel, SECONDS(5) },
	{ "watch-ptrace", "hardware watchpoints by ptrace",
	  "no fallback where perf is forbidden, and none for static programs", probe_ptrace_watch,
	  SECONDS(5) },
	{ "watch-pages", "watched pages",
	  "not more objects can be watched at once than there are watchpoints", probe_pages,
	  SECONDS(5) },
	{ "protection-keys", "memory protection keys", "nothing: watched pages do without them",
	  probe_pkey, SECONDS(5) },
	{ "perf-event-paranoid", "kernel.perf_event_paranoid",
	  "writes that the kernel makes for the program cannot be watched", probe_perf_paranoid,
	  SECONDS(5) },
	{ "ptrace-scope", "attaching to running processes",
	  "redhand cannot look into another process at all", probe_ptrace_scope, SECONDS(5) },
	{ "core-limit", "limit on core files",
	  "a crash leaves no core file; redhand keeps its own record of each crash and does not "
	  "need one",
	  probe_core_limit, SECONDS(5) },
	{ "core-file", "core files are written",
	  "a crash leaves no core file; redhand keeps its own record of each crash and does not "
	  "need one",
	  probe_core_file, SECONDS(10) },
	{ "max-map-count", "vm.max_map_count",
	  "guard pages and watched pages run out early in programs with many mappings",
	  probe_map_count, SECONDS(20) },
	{ "debuginfod", "debug information from a server (debuginfod)",
	  "functions of system libraries are named without source lines, unless their debug "
	  "packages are installed",
	  probe_debuginfod, SECONDS(10) },
	{ "slurm", "Slurm client", "trials run on this machine only, not on a cluster", probe_slurm,
	  SECONDS(15) },
	{ "performance-counters", "performance counters",
	  "rr does not run here; redhand does not need them", probe_perf_counters, SECONDS(5) },
};

/* A process that only calls the row's probe: what isolate_run() wants is one pointer. */
struct probe_run {
	const struct probe *probe;
	struct finding finding;
};

static void probe_in_child(void *data)
{
	struct probe_run *run = data;

	run->probe->run(&run->finding);
}

static void probe_run(const struct probe *probe, struct finding *ret)
{
	struct probe_run run = { .probe = probe };
	struct isolate_outcome outcome = { 0 };
	struct err err = { 0 };

	log_debug("trying %s", probe->id);
	run.finding.status = FINDING_NO;
	if (isolate_run(probe_in_child, &run, sizeof(run), probe->timeout_ns, &outcome, &err) < 0)
		probe_say(&run.finding, FINDING_NO, "could not be tried: %s", err.message);
	else if (outcome.end == ISOLATE_TIMEOUT)
		probe_say(&run.finding, FINDING_NO, "the try did not end within %llu seconds",
			  (unsigned long long)(probe->timeout_ns / SECONDS(1)));
	else if (outcome.end == ISOLATE_DIED && outcome.signal != 0)
		probe_say(&run.finding, FINDING_NO, "the try died from SIG%s",
			  sigabbrev_np(outcome.signal) ? sigabbrev_np(outcome.signal) : "?");
	else if (outcome.end == ISOLATE_DIED)
		probe_say(&run.finding, FINDING_NO, "the try ended early");
	run.finding.id = probe->id;
	run.finding.title = probe->title;
	if (run.finding.status != FINDING_OK && run.finding.lost[0] == '\0')
		probe_lost(&run.finding, "%s", probe->lost);
	*ret = run.finding;
}

void doctor_try(const char *id, struct finding *ret)
{
	for (size_t i = 0; i < ARRAY_SIZE(probes); i++)
		if (strcmp(probes[i].id, id) == 0) {
			probe_run(&probes[i], ret);
			return;
		}
	assert(!"no such probe");
}

static bool works(const struct finding_list *list, const char *id)
{
	for (size_t i = 0; i < list->count; i++)
		if (strcmp(list->items[i].id, id) == 0)
			return list->items[i].status != FINDING_NO;
	return false;
}

/* The ways to catch a write, best first, that really worked. */
static char *name_watchers(const struct finding_list *machine)
{
	static const struct {
		const char *id, *name;
	} ways[] = {
		{ "watch-perf", "perf watchpoints" },
		{ "watch-ptrace", "ptrace watchpoints" },
		{ "watch-pages", "watched pages" },
	};
	struct strbuf names = { 0 };

	for (size_t i = 0; i < ARRAY_SIZE(ways); i++)
		if (works(machine, ways[i].id))
			strbuf_addf(&names, "%s%s", names.len > 0 ? ", " : "", ways[i].name);
	strbuf_adds(&names, "");
	return strbuf_take(&names);
}

int doctor_examine(const char *program, struct diagnosis *ret, struct err *err)
{
	struct diagnosis diagnosis = { 0 };
	int r;

	if (program) {
		r = program_check(program, &diagnosis, err);
		if (r < 0)
			return r;
	}
	diagnosis.machine.items = mem_alloc(ARRAY_SIZE(probes) * sizeof(struct finding));
	diagnosis.machine.count = ARRAY_SIZE(probes);
	for (size_t i = 0; i < ARRAY_SIZE(probes); i++)
		probe_run(&probes[i], &diagnosis.machine.items[i]);
	diagnosis.watchers = name_watchers(&diagnosis.machine);
	diagnosis.usable = diagnosis.watchers[0] != '\0' &&
			   (!program || works(&diagnosis.program, "program-format"));
	*ret = diagnosis;
	return 0;
}

void doctor_deinit(struct diagnosis *diagnosis)
{
	MEM_FREE(diagnosis->machine.items, diagnosis->program.items, diagnosis->facts,
		 diagnosis->watchers);
	*diagnosis = (struct diagnosis){ 0 };
}
