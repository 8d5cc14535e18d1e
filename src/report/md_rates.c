/*
 * How often it fails: trials that are not alike are never counted together.
 */
#include "report/md_parts.h"

#include <inttypes.h>
#include <string.h>

#include "report/markdown.h"
#include "report/text_parts.h"

static void put_effect(const struct observer_rate *o, FILE *out)
{
	static const char *const words[] = { [EFFECT_NONE] = "no sign that it changes the rate",
					     [EFFECT_HIDES] = "hides it",
					     [EFFECT_RARER] = "makes it rarer",
					     [EFFECT_MORE_OFTEN] = "brings it out more often" };

	if (o->effect == EFFECT_UNKNOWN)
		return;
	/* Guards show damage in trials that do not fail, too. */
	put(out, "%s%s (p = %.2g)", words[o->effect],
	    o->effect == EFFECT_HIDES && strcmp(o->name, "heap") != 0 ? ", so it was dropped" : "",
	    o->p);
}

static void observer_table(const struct investigation *inv, FILE *out)
{
	if (inv->observers.count < 2)
		return;
	put(out, "\n| observer | rate | effect | seconds a passing trial |\n|---|---|---|---|\n");
	VEC_FOREACH (&inv->observers, o) {
		put(out, "| ");
		md_cell_code(o->name, out);
		put(out, " | ");
		md_rate(&o->rate, out);
		put(out, " | ");
		put_effect(o, out);
		put(out, o->seconds > 0 ? " | %.3g |\n" : " | |\n", o->seconds);
	}
}

static void arm_tables(const struct investigation *inv, FILE *out)
{
	VEC_FOREACH (&inv->series, s) {
		if (s->arms.count < 2)
			continue;
		put(out, "\n| arm of `compare` | rate |\n|---|---|\n");
		VEC_FOREACH (&s->arms, arm) {
			put(out, "| ");
			md_cell_code(arm->name, out);
			put(out, " | ");
			md_rate(&arm->rate, out);
			put(out, " |\n");
		}
	}
}

/* Slots that differ in nothing are no table, unless one stands out. */
static void slot_table(const struct investigation *inv, FILE *out)
{
	if (inv->slots.count < 2 || (!inv->slots_differ && !investigation_odd_slot(inv)))
		return;
	(void)fprintf(
		out,
		"\nTrials of all commands by slot; p is of this slot against the others, compared "
		"within each command:\n\n| slot | %s | p |\n|---|---|---|\n",
		inv->slots_crashed ? "crashed" : "failed");
	VEC_FOREACH (&inv->slots, s)
		put(out, "| %u | %" PRIu64 " of %" PRIu64 " | %.2g%s |\n", s->slot, s->rate.failed,
		    s->rate.trials, s->p,
		    investigation_odd_slot(inv) != s ? ""
		    : s->rate.failed == 0	     ? ", never fails while others do"
						     : ", differs from the others");
}

void md_rates(const struct investigation *inv, FILE *out)
{
	arm_tables(inv, out);
	slot_table(inv, out);
	observer_table(inv, out);
}
