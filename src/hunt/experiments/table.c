/*
 * All experiments. A new one has its row here, in the order in which they are tried where nothing
 * else tells them apart (docs/howto-experiment.md).
 */
#include "hunt/inquiry.h"

extern const struct experiment_ops experiment_first_failure, experiment_rate, experiment_silent,
	experiment_rare, experiment_settings, experiment_minimize, experiment_ids,
	experiment_crash_record, experiment_guards_first, experiment_fences,
	experiment_silent_fences, experiment_who_fences, experiment_growth,
	experiment_from_evidence, experiment_look, experiment_homes, experiment_copies,
	experiment_allocator_probe, experiment_overrun_guards, experiment_guards,
	experiment_neighbours, experiment_left_frames, experiment_refcount, experiment_over_release,
	experiment_race, experiment_truncation, experiment_shut, experiment_fill_freed,
	experiment_fill_fresh, experiment_silent_fill, experiment_machine, experiment_alone,
	experiment_clash, experiment_how_often;

const struct experiment_ops *const experiments[] = {
	&experiment_first_failure,
	&experiment_rate,
	&experiment_silent,
	&experiment_silent_fences,
	&experiment_silent_fill,
	&experiment_rare,
	&experiment_clash,
	&experiment_settings,
	&experiment_minimize,
	&experiment_ids,
	&experiment_crash_record,
	&experiment_guards_first,
	&experiment_fences,
	&experiment_growth,
	&experiment_from_evidence,
	&experiment_look,
	&experiment_homes,
	&experiment_copies,
	&experiment_allocator_probe,
	&experiment_overrun_guards,
	&experiment_guards,
	&experiment_refcount,
	&experiment_over_release,
	&experiment_race,
	&experiment_truncation,
	&experiment_neighbours,
	&experiment_left_frames,
	&experiment_who_fences,
	&experiment_shut,
	&experiment_fill_freed,
	&experiment_fill_fresh,
	&experiment_machine,
	&experiment_alone,
	&experiment_how_often,
};

const size_t experiment_count = ARRAY_SIZE(experiments);
_Static_assert(ARRAY_SIZE(experiments) <= 64, "bits of strategy");
