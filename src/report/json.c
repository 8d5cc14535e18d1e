#include "report/json.h"

#include <math.h>
#include <stdbool.h>

#include "base/auto.h"
#include "base/strbuf.h"
#include "model/secret.h"
#include "model/verdict.h"
#include "report/report_error.h"
#include "report/text.h"
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

json_t *json_strv(const struct strv *list)
{
	return list->count > 0 ? json_strings(list->items) : json_array();
}

json_t *json_said(const struct said *said)
{
	AUTO(mem_freep) char *text = words_of(said);

	return json_text(text);
}

json_t *json_of(enum json_kind kind, const void *at)
{
	switch (kind) {
	case JSON_OF_JSON:
		return *(json_t *const *)at;
	case JSON_OF_TEXT:
		return json_text(*(char *const *)at);
	case JSON_OF_ID:
		return json_text(at);
	case JSON_OF_UINT:
		return json_integer(*(const unsigned int *)at);
	case JSON_OF_INT:
		return json_integer(*(const int *)at);
	case JSON_OF_U64:
		return json_integer((json_int_t) * (const uint64_t *)at);
	case JSON_OF_I64:
		return json_integer(*(const int64_t *)at);
	case JSON_OF_BOOL:
		return json_boolean(*(const bool *)at);
	case JSON_OF_REAL:
		return json_number(*(const double *)at);
	case JSON_OF_STRV:
		return json_strv(at);
	case JSON_OF_SAID:
		return json_said(at);
	case JSON_OF_SAID_LIST:
		return json_said_list(at);
	case JSON_OF_RATE:
		return json_rate(at);
	case JSON_OF_STACK:
		return json_site(at);
	}
	return json_null();
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

json_t *json_said_list(const struct said_list *list)
{
	return JSON_LIST(&list->list, json_said);
}

json_t *json_command(char *const *words)
{
	AUTO(strv_deinit) struct strv open = { 0 };

	secret_words(words, &open);
	return open.count > 0 ? json_strings(open.items) : json_array();
}

json_t *json_rate(const struct rate *rate)
{
	return OBJECT(RATE(rate));
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
