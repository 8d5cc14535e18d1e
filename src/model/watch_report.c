#include "model/watch_report.h"

#include "base/mem.h"

void write_seen_free(struct write_seen *write)
{
	struct evidence evidence = { .kind = EVIDENCE_WRITE, .write = write };

	if (write)
		evidence_deinit(&evidence);
}

static void writer_deinit(struct watch_writer *writer)
{
	mem_free(writer->key);
	write_seen_free(writer->first.write);
	write_seen_free(writer->last.write);
}

static void conflation_deinit(struct watch_conflation *conflation)
{
	VEC_FREE(&conflation->list, instance, mem_free(instance->key));
}

static void outside_deinit(struct watch_outside *outside)
{
	struct evidence evidence = { .kind = EVIDENCE_OUTSIDE, .outside = outside->change };

	if (outside->change)
		evidence_deinit(&evidence);
}

static bool has_python(const struct write_seen *write)
{
	for (size_t i = 0; i < write->writer.count; i++)
		if (write->writer.frames[i].kind == FRAME_PYTHON)
			return true;
	return false;
}

const struct write_seen *watch_writer_shown(const struct watch_writer *writer)
{
	const struct write_seen *first = writer->first.write, *last = writer->last.write;

	if (!last || !first)
		return last ? last : first;
	return has_python(first) && !has_python(last) ? first : last;
}

void watch_report_deinit(struct watch_report *report)
{
	mem_free(report->mode_reason);
	VEC_FOREACH (&report->targets, target) {
		mem_free(target->text);
		said_deinit(&target->what);
		mem_free(target->global);
		mem_free(target->field);
	}
	VEC_DEINIT(&report->targets);
	VEC_FREE(&report->writers, writer, writer_deinit(writer));
	VEC_FREE(&report->conflations, conflation, conflation_deinit(conflation));
	VEC_FREE(&report->outside, outside, outside_deinit(outside));
	write_seen_free(report->stop.write);
	said_list_deinit(&report->notes);
}
