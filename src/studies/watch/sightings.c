#include "studies/watch/sightings.h"

#include <inttypes.h>

#define SIGHTINGS_MAX 64 /* of one watch: more nobody reads */

static char *note_on(const struct watch_report *report, const struct watch_writer *writer)
{
	return mem_printf("watch --on '%s': %" PRIu64 " time%s in %u of %" PRIu64
			  " trials, %u of which failed",
			  report->targets.items[writer->watch].text, writer->count,
			  writer->count == 1 ? "" : "s", writer->trials, report->trials,
			  writer->failing);
}

int sightings_store(struct case_store *cs, struct watch_report *report, struct err *err)
{
	size_t stored = 0;

	VEC_FOREACH (&report->writers, writer) {
		const struct watch_target *target = &report->targets.items[writer->watch];
		const struct write_seen *shown = watch_writer_shown(writer);
		const struct watch_moment *moment =
			shown == writer->first.write ? &writer->first : &writer->last;
		struct write_seen write;
		struct evidence e;
		int r;

		if (!shown || stored == SIGHTINGS_MAX)
			continue;
		/* Everything in it is borrowed, but for the note. */
		write = *shown;
		if (target->global && write.home.kind == HOME_ADDRESS) {
			write.home.kind = HOME_GLOBAL;
			write.home.name = target->global;
			write.home.offset = target->offset;
		}
		if (!write.home.field)
			write.home.field = target->field;
		e = (struct evidence){ .kind = EVIDENCE_SIGHTING,
				       .trial = moment->trial,
				       .failing = moment->failing,
				       .note = note_on(report, writer),
				       .write = &write };
		r = case_add_evidence(cs, &e, err);
		mem_free(e.note);
		if (r < 0)
			return r;
		writer->evidence = e.id;
		stored++;
	}
	return 0;
}
