/*
 * Watches as JSON; docs/json.md describes every field.
 */
#include "report/report_watch.h"

#include <inttypes.h>
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
	json_t *object;

	if (!moment->write)
		return json_null();
	object = json_object();
	PUT(object, moment, trial);
	set(object, "failed", json_boolean(moment->failing));
	set(object, "old", json_hex(moment->write->old));
	set(object, "new", json_hex(moment->write->new));
	set(object, "tid", json_integer(moment->write->tid));
	set(object, "registers", registers_json(moment->write->registers));
	set(object, "age", count(moment->write->age));
	set(object, "offset", json_integer(moment->write->home.offset));
	set(object, "block", block_or_null(moment->write->victim));
	return object;
}

static json_t *values_json(const struct watch_writer *writer)
{
	json_t *array = json_array();

	for (unsigned int i = 0; i < writer->value_count; i++) {
		json_t *value = json_object();

		set(value, "value", json_hex(writer->values[i].value));
		set(value, "count", count(writer->values[i].count));
		(void)json_array_append_new(array, value);
	}
	return array;
}

static json_t *writer_json(const struct watch_writer *writer)
{
	const struct write_seen *write = watch_writer_shown(writer);
	json_t *object = json_object();

	set(object, "on", json_integer(writer->watch));
	PUT(object, writer, key);
	set(object, "site", write ? json_site(&write->writer) : json_null());
	set(object, "instruction", json_text(write ? write->instruction : NULL));
	PUT(object, writer, certain, imprecise);
	set(object, "kernel", json_boolean(writer->system_call));
	set(object, "width", write && write->width > 0 ? json_integer(write->width) : json_null());
	set(object, "masked",
	    write && write->flags & (WRITE_MASKED | WRITE_AT_MOST)
		    ? json_text(write->flags & WRITE_MASKED ? "known" : "unknown")
		    : json_null());
	set(object, "fit",
	    write && write->fit != FIT_UNKNOWN ? json_text(store_fit_name(write->fit))
					       : json_null());
	PUT(object, writer, count, changed, trials);
	set(object, "failed", json_integer(writer->failing));
	set(object, "values", values_json(writer));
	set(object, "first", moment_json(&writer->first));
	set(object, "last", moment_json(&writer->last));
	set(object, "evidence", writer->evidence > 0 ? count(writer->evidence) : json_null());
	set(object, "base", write ? block_or_null(write->base) : json_null());
	return object;
}

static json_t *target_json(const struct watch_target *target)
{
	json_t *object = json_object();

	set(object, "on", json_text(target->text));
	set(object, "words", json_said(&target->what));
	PUT(object, target, objects);
	set(object, "watched", count(target->armed));
	PUT(object, target, displaced, hits, matched, unchanged, imprecise, moved, beyond);
	return object;
}

static json_t *conflation_json(const struct watch_conflation *conflation)
{
	json_t *object = json_object(), *list = json_array();

	PUT(object, conflation, trial);
	set(object, "failed", json_boolean(conflation->failing));
	set(object, "address", json_hex(conflation->address));
	PUT(object, conflation, instances);
	VEC_FOREACH (&conflation->list, instance) {
		json_t *item = json_object();

		PUT(item, instance, number, id, key);
		set(item, "first", json_hex(instance->first_value));
		set(item, "last", json_hex(instance->last_value));
		PUT(item, instance, hits);
		set(item, "end", json_text(words_watched_end(instance->end)));
		(void)json_array_append_new(list, item);
	}
	set(object, "objects", list);
	set(object, "between",
	    conflation->changed_at >= 0 ? json_integer(conflation->changed_at) : json_null());
	return object;
}

static json_t *outside_json(const struct watch_outside *outside)
{
	const struct outside_change *change = outside->change;
	json_t *object = json_object();

	PUT(object, outside, trial);
	set(object, "failed", json_boolean(outside->failing));
	set(object, "address", json_hex(change->home.address));
	set(object, "offset", json_integer(change->home.offset));
	set(object, "old", json_hex(change->old));
	set(object, "new", json_hex(change->new));
	PUT(object, change, kernel_writes);
	set(object, "block", block_or_null(change->victim));
	PUT(object, change, between);
	return object;
}

static json_t *stop_json(const struct watch_stop *stop)
{
	json_t *object;

	if (stop->pid == 0)
		return json_null();
	object = json_object();
	PUT(object, stop, trial, pid);
	set(object, "site", json_site(&stop->write->writer));
	return object;
}

void report_watch_json(const struct watch_report *report, FILE *out)
{
	json_t *object = json_object(), *targets = json_array();
	uint64_t hits = 0;

	VEC_FOREACH (&report->targets, target) {
		hits += target->hits;
		(void)json_array_append_new(targets, target_json(target));
	}
	set(object, "schema", json_text("redhand/watch/1"));
	set(object, "case", json_text(report->case_dir));
	set(object, "command", json_command(report->program));
	PUT(object, report, mode, mode_reason, kernel_writes, trials, failed, seconds, interrupted);
	set(object, "hits", count(hits));
	set(object, "on", targets);
	set(object, "writers", JSON_LIST(&report->writers, writer_json));
	set(object, "conflations", JSON_LIST(&report->conflations, conflation_json));
	set(object, "conflations_in_all", count(report->conflation_count));
	set(object, "outside", JSON_LIST(&report->outside, outside_json));
	set(object, "outside_in_all", count(report->outside_count));
	set(object, "stopped", stop_json(&report->stop));
	PUT(object, report, notes);
	json_print(object, out);
}
