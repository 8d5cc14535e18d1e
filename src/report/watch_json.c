/*
 * Watches as JSON; docs/json.md describes every field.
 */
#include "report/report_watch.h"

#include <string.h>

#include "report/json.h"
#include "report/wording.h"

static json_t *block_or_null(const struct block_life *block)
{
	return block ? json_block(block) : json_null();
}

static json_t *registers_json(const char *text)
{
	json_t *object = json_object();

	while (text && *text != '\0') {
		size_t len = strcspn(text, " "), name = strcspn(text, "=");

		(void)json_object_setn_new(object, text, name,
					   json_stringn(text + name + 1, len - name - 1));
		text += len + (text[len] == ' ');
	}
	return object;
}

static json_t *moment_json(const struct watch_moment *moment)
{
	const struct write_seen *write = moment->write;

	return OBJECT(MEMBERS(moment, trial), KEY("failed", moment->failing),
		      KEY("old", json_hex(write->old)), KEY("new", json_hex(write->new)),
		      MEMBERS(write, tid), KEY("registers", registers_json(write->registers)),
		      MEMBERS(write, age), KEY("offset", write->home.offset),
		      KEY("block", block_or_null(write->victim)));
}

static json_t *values_json(const struct watch_writer *writer)
{
	json_t *array = json_array();

	for (const struct watch_value *v = writer->values; v < writer->values + writer->value_count;
	     v++)
		(void)json_array_append_new(array, OBJECT(KEY("value", json_hex(v->value)),
							  MEMBERS(v, count)));
	return array;
}

static json_t *writer_json(const struct watch_writer *writer)
{
	const struct write_seen *write = watch_writer_shown(writer), none = { 0 };
	const struct write_seen *w = write ? write : &none;
	const char *mask = w->flags & WRITE_MASKED ? "known" : "unknown";

	return OBJECT(KEY("on", writer->watch), MEMBERS(writer, key), KEY("site", w->writer),
		      MEMBERS(w, instruction), MEMBERS(writer, certain, imprecise),
		      KEY("kernel", writer->system_call), KEY("width", UNLESS_0(w->width)),
		      KEY("masked", OR_NULL(w->flags & (WRITE_MASKED | WRITE_AT_MOST), mask)),
		      KEY("fit", OR_NULL(w->fit != FIT_UNKNOWN, store_fit_name(w->fit))),
		      MEMBERS(writer, count, changed, trials), KEY("failed", writer->failing),
		      KEY("values", values_json(writer)),
		      KEY("first", OR_NULL(writer->first.write, moment_json(&writer->first))),
		      KEY("last", OR_NULL(writer->last.write, moment_json(&writer->last))),
		      KEY("evidence", UNLESS_0(writer->evidence)),
		      KEY("base", block_or_null(w->base)));
}

static json_t *conflation_json(const struct watch_conflation *c)
{
	return OBJECT(MEMBERS(c, trial), KEY("failed", c->failing),
		      KEY("address", json_hex(c->address)), MEMBERS(c, instances),
		      KEY("objects", EACH(&c->list, instance,
					  OBJECT(MEMBERS(instance, number, id, key),
						 KEY("first", json_hex(instance->first_value)),
						 KEY("last", json_hex(instance->last_value)),
						 MEMBERS(instance, hits),
						 KEY("end", words_watched_end(instance->end))))),
		      KEY("between", OR_NULL(c->changed_at >= 0, c->changed_at)));
}

static json_t *outside_json(const struct watch_outside *outside)
{
	const struct outside_change *change = outside->change;

	return OBJECT(MEMBERS(outside, trial), KEY("failed", outside->failing),
		      KEY("address", json_hex(change->home.address)),
		      KEY("offset", change->home.offset), KEY("old", json_hex(change->old)),
		      KEY("new", json_hex(change->new)), MEMBERS(change, kernel_writes),
		      KEY("block", block_or_null(change->victim)), MEMBERS(change, between));
}

static json_t *stop_json(const struct watch_stop *stop)
{
	return OBJECT(MEMBERS(stop, trial, pid), KEY("site", stop->write->writer));
}

void report_watch_json(const struct watch_report *report, FILE *out)
{
	uint64_t hits = 0;

	VEC_FOREACH (&report->targets, target)
		hits += target->hits;
	json_print(OBJECT(KEY("schema", "redhand/watch/1"), KEY("case", report->case_dir),
			  KEY("command", json_command(report->program)),
			  MEMBERS(report, mode, mode_reason, kernel_writes, trials, failed, seconds,
				  interrupted),
			  KEY("hits", hits),
			  KEY("on",
			      EACH(&report->targets, target,
				   OBJECT(KEY("on", target->text), KEY("words", target->what),
					  MEMBERS(target, objects), KEY("watched", target->armed),
					  MEMBERS(target, displaced, hits, matched, unchanged,
						  imprecise, moved, beyond)))),
			  KEY("writers", JSON_LIST(&report->writers, writer_json)),
			  KEY("conflations", JSON_LIST(&report->conflations, conflation_json)),
			  KEY("conflations_in_all", report->conflation_count),
			  KEY("outside", JSON_LIST(&report->outside, outside_json)),
			  KEY("outside_in_all", report->outside_count),
			  KEY("stopped", OR_NULL(report->stop.pid != 0, stop_json(&report->stop))),
			  MEMBERS(report, notes)),
		   out);
}
