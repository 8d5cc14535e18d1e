#include "studies/watch/sightings.h"

#define SIGHTINGS_MAX 64 /* of one watch: more nobody reads */

static void note_on(const struct watch_report *report, const struct watch_writer *writer,
		    struct said *ret)
{
	SAY(ret, "noted:watch", said_text(report->targets.items[writer->watch].text),
	    said_number(writer->count), said_number(writer->trials), said_number(report->trials),
	    said_number(writer->failing));
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
				       .write = &write };
		note_on(report, writer, &e.note);
		r = case_add_evidence(cs, &e, err);
		said_deinit(&e.note);
		if (r < 0)
			return r;
		writer->evidence = e.id;
		stored++;
	}
	return 0;
}
