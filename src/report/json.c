#include "report/json.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "base/auto.h"
#include "base/strbuf.h"
#include "model/secret.h"
#include "model/verdict.h"
#include "report/report_error.h"
#include "report/wording.h"

json_t *json_text(const char *text)
{
	AUTO(strbuf_deinit) struct strbuf sb = { 0 };
	AUTO(strbuf_deinit) struct strbuf shown = { 0 };
	json_t *value;

	if (!text)
		return json_null();
	strbuf_adds(&sb, text);
	if (sb.len > 0)
		secret_hide(sb.data, sb.len);
	value = json_string(strbuf_str(&sb));
	if (value)
		return value;
	strbuf_add_printable(&shown, strbuf_str(&sb), sb.len);
	return json_string(strbuf_str(&shown));
}

json_t *json_number(double value)
{
	return isfinite(value) ? json_real(value) : json_null();
}

json_t *json_strings(char *const *items)
{
	json_t *array = json_array();

	for (; *items; items++)
		(void)json_array_append_new(array, json_text(*items));
	return array;
}

json_t *json_strv(const struct strv *list)
{
	return list->count > 0 ? json_strings(list->items) : json_array();
}

json_t *json_said(const struct said *said)
{
	AUTO(mem_freep) char *text = words_of(said);

	return json_text(text);
}

static void add_ids(const struct said *said, json_t *array)
{
	if (said->id)
		(void)json_array_append_new(array, json_text(said->id));
	VEC_FOREACH (&said->values, value)
		if (value->kind == SAID_PART)
			add_ids(value->part, array);
}

json_t *json_said_ids(const struct said *said)
{
	json_t *array = json_array();

	add_ids(said, array);
	return array;
}

json_t *json_said_list(const struct said_list *list)
{
	json_t *array = json_array();

	VEC_FOREACH (&list->list, said)
		(void)json_array_append_new(array, json_said(said));
	return array;
}

json_t *json_command(char *const *words)
{
	AUTO(strv_deinit) struct strv open = { 0 };

	secret_words(words, &open);
	return open.count > 0 ? json_strings(open.items) : json_array();
}

void json_add_rate(json_t *object, const struct rate *rate)
{
	(void)json_object_set_new(object, "trials", json_integer((json_int_t)rate->trials));
	(void)json_object_set_new(object, "failed", json_integer((json_int_t)rate->failed));
	(void)json_object_set_new(object, "rate", json_number(rate->rate));
	(void)json_object_set_new(object, "low", json_number(rate->low));
	(void)json_object_set_new(object, "high", json_number(rate->high));
}

json_t *json_rate(const struct rate *rate)
{
	json_t *object = json_object();

	json_add_rate(object, rate);
	return object;
}

static bool printed;

void json_print(json_t *document, FILE *out)
{
	printed = true;
	(void)json_dumpf(document, out, JSON_INDENT(2) | JSON_REAL_PRECISION(12));
	(void)fputc('\n', out);
	json_decref(document);
}

void report_error_json(const struct err *err, FILE *out)
{
	if (printed || err->code == 0)
		return;
	json_print(json_pack("{s:s, s:o, s:o}", "schema", "redhand/error/1", "error",
			     json_text(err->message), "try",
			     err->remedy[0] != '\0' ? json_text(err->remedy) : json_null()),
		   out);
}

void json_ledger_basis(json_t *object, const struct ledger_entry *entry)
{
	bool by = entry->by != EXPERIMENT_KINDS;

	set(object, "by", by ? json_text(experiment_name(entry->by)) : json_null());
	set(object, "failing_trials", by ? count(entry->telling) : json_null());
	set(object, "missed",
	    by && entry->status == LEDGER_EXCLUDED ? json_real(entry->missed) : json_null());
}
