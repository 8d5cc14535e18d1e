/*
 * Names of experiments, as JSON and the case have them.
 */
#include "model/experiment_made.h"

static const char *const names[EXPERIMENT_KINDS] = {
	[EXPERIMENT_RUN] = "run",
	[EXPERIMENT_CRASH_RECORD] = "crash-record",
	[EXPERIMENT_WATCH] = "watch",
	[EXPERIMENT_GUARDS] = "guards",
	[EXPERIMENT_FILL_FREED] = "fill-freed",
	[EXPERIMENT_FILL_FRESH] = "fill-fresh",
	[EXPERIMENT_RACE] = "race",
	[EXPERIMENT_GROWTH] = "growth",
	[EXPERIMENT_FENCES] = "fences",
	[EXPERIMENT_MACHINE] = "machine",
};

const char *experiment_name(enum experiment_kind kind)
{
	return kind < EXPERIMENT_KINDS ? names[kind] : "unknown";
}
