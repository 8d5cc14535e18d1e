/*
 * All experiments. A new one has its word here, in the order in which they are tried where nothing
 * else tells them apart (docs/howto-experiment.md).
 */
#include "hunt/inquiry.h"

/* By question. */
/* clang-format off */
#define ALL_EXPERIMENTS(X) \
	X(first_failure) X(rate) X(silent) X(silent_fences) X(silent_fill) X(rare) X(clash) \
	X(settings) X(minimize) X(ids) X(crash_record) \
	X(guards_first) X(fences) X(growth) \
	X(from_evidence) X(look) X(homes) X(copies) X(allocator_probe) X(overrun_guards) \
	X(guards) X(refcount) X(over_release) X(race) X(truncation) \
	X(neighbours) X(left_frames) X(who_fences) X(shut) \
	X(fill_freed) X(fill_fresh) \
	X(machine) X(alone) X(how_often)

#define DECLARED(name) extern const struct experiment_ops experiment_##name;
#define ROW(name) &experiment_##name,

ALL_EXPERIMENTS(DECLARED)
/* clang-format on */

const struct experiment_ops *const experiments[] = { ALL_EXPERIMENTS(ROW) };
const size_t experiment_count = ARRAY_SIZE(experiments);
_Static_assert(ARRAY_SIZE(experiments) <= 64, "bits of strategy");
