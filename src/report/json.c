#include "report/json.h"

#include <math.h>
#include <stdbool.h>

#include "base/auto.h"
#include "base/strbuf.h"
#include "model/known_secrets.h"
#include "model/verdict.h"
#include "report/report_error.h"
#include "report/text_parts.h"
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

static json_t *json_strings(char *const *items)
{
	json_t *array = json_array();

	for (; *items; items++)
		(void)json_array_append_new(array, json_text(*items));
	return array;
}

json_t *json_one(json_t *value)
{
	json_t *array = json_array();

	(void)json_array_append_new(array, value);
	return array;
}

json_t *json_strv(struct strv list)
{
	return list.count > 0 ? json_strings(list.items) : json_array();
}

json_t *json_said(struct said said)
{
	AUTO(mem_freep) char *text = words_of(&said);

	return json_text(text);
}

json_t *json_rows(const struct json_row *rows)
{
	json_t *object = json_object();

	for (; rows->key || rows->value; rows++)
		if (rows->key) {
			(void)json_object_set_new(object, rows->key, rows->value);
		} else {
			(void)json_object_update(object, rows->value); /* null has no keys */
			json_decref(rows->value);
		}
	return object;
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

json_t *json_said_list(struct said_list list)
{
	return EACH(&list.list, said, *said);
}

json_t *json_command(char *const *words)
{
	AUTO(strv_deinit) struct strv open = { 0 };

	secret_words(words, &open);
	return open.count > 0 ? json_strings(open.items) : json_array();
}

json_t *json_rate(struct rate rate)
{
	return OBJECT(RATE(&rate));
}

json_t *json_bytes(const uint8_t *bytes, size_t len)
{
	AUTO(strbuf_deinit) struct strbuf sb = { 0 };

	for (size_t i = 0; i < len; i++)
		strbuf_addf(&sb, "%02x", bytes[i]);
	return json_string(strbuf_str(&sb));
}

static bool printed;

void json_print(json_t *document, FILE *out)
{
	printed = true;
	(void)json_dumpf(document, out,
			 JSON_INDENT(2) | JSON_ENSURE_ASCII | JSON_REAL_PRECISION(12));
	put(out, "\n");
	json_decref(document);
}

void report_error_json(const struct err *err, FILE *out)
{
	if (printed || err->code == 0)
		return;
	json_print(OBJECT(KEY("schema", "redhand/error/1"), KEY("error", err->message),
			  KEY("try", OR_NULL(err->remedy[0] != '\0', err->remedy))),
		   out);
}

json_t *json_ledger_basis(const struct ledger_entry *entry)
{
	bool by = entry->by != EXPERIMENT_KINDS, out = entry->status == LEDGER_EXCLUDED;

	return OBJECT(KEY("by", OR_NULL(by, experiment_name(entry->by))),
		      KEY("failing_trials", OR_NULL(by, entry->telling)),
		      KEY("missed", OR_NULL(by && out, entry->missed)));
}
