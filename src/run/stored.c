#include "run/stored.h"

void readings_deinit(struct readings *readings)
{
	VEC_FREE(&readings->list, reading, reading_close(*reading));
	VEC_DEINIT(&readings->faults);
	symbols_free(readings->symbols);
	readings->symbols = NULL;
}

struct symbols *readings_symbols(struct readings *readings, const struct case_store *cs)
{
	AUTO(strv_deinit) struct strv shipped = { 0 };

	if (readings->symbols)
		return readings->symbols;
	case_shipped(cs, &shipped);
	readings->symbols = symbols_new(&(struct symbols_options){ .at_hand = &shipped });
	return readings->symbols;
}

void readings_keep(struct readings *readings, struct reading *reading)
{
	if (readings->list.count < READINGS_MAX)
		VEC_PUSH(&readings->list, reading_share(reading));
}

struct reading *readings_open(struct readings *readings, struct case_store *cs, uint64_t trial,
			      int signal)
{
	struct reading_of of = { .trials = case_trials_dir(cs), .trial = trial, .signal = signal };
	struct reading *opened;

	VEC_FOREACH (&readings->list, reading)
		if (reading_is(*reading, &of))
			return reading_share(*reading);
	of.symbols = readings_symbols(readings, cs);
	opened = reading_open(&of);
	readings_keep(readings, opened);
	return opened;
}

void readings_note_fault(struct readings *readings, struct reading *reading)
{
	const struct crash *crash = reading_crash(reading, CRASH_SITE);

	if (crash && crash->fault != FAULT_SENT && crash->fault != FAULT_ABORT)
		VEC_PUSH(&readings->faults, ((struct known_fault){ .trial = reading_trial(reading),
								   .address = crash->address,
								   .fault = crash->fault }));
}

static const struct known_fault *find_fault(const struct readings *readings, uint64_t trial)
{
	return VEC_FIND(&readings->faults, known, known->trial == trial);
}

const struct known_fault *readings_fault(struct readings *readings, struct case_store *cs,
					 uint64_t trial, int signal)
{
	AUTO(reading_closep) struct reading *reading = NULL;
	const struct known_fault *known = find_fault(readings, trial);

	if (known)
		return known;
	reading = readings_open(readings, cs, trial, signal);
	readings_note_fault(readings, reading);
	return find_fault(readings, trial);
}
