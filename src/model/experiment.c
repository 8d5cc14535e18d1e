#include "model/experiment.h"

static const struct {
	const char *name, *words;
} kinds[EXPERIMENT_KINDS] = {
	[EXPERIMENT_RUN] = { "run", "plain runs" },
	[EXPERIMENT_CRASH_RECORD] = { "crash-record", "the crash's own record" },
	[EXPERIMENT_WATCH] = { "watch", "watchpoints" },
	[EXPERIMENT_GUARDS] = { "guards", "guards around blocks" },
	[EXPERIMENT_FILL_FREED] = { "fill-freed", "random contents of freed blocks" },
	[EXPERIMENT_FILL_FRESH] = { "fill-fresh", "random contents of new blocks" },
	[EXPERIMENT_RACE] = { "race", "a look at all threads" },
	[EXPERIMENT_GROWTH] = { "growth", "a count of blocks from test to test" },
	[EXPERIMENT_FENCES] = { "fences", "fences behind blocks" },
	[EXPERIMENT_MACHINE] = { "machine", "a test of the machine" },
};

const char *experiment_name(enum experiment_kind kind)
{
	return kind < EXPERIMENT_KINDS ? kinds[kind].name : "unknown";
}

const char *experiment_words(enum experiment_kind kind)
{
	return kind < EXPERIMENT_KINDS ? kinds[kind].words : "an experiment";
}
