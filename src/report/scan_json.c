/*
 * A scan as JSON; docs/json.md describes every field.
 */
#include "report/report_scan.h"

#include <inttypes.h>

#include "report/json.h"

/* Addresses and constants have 64 bits, JSON's numbers do not. */
static json_t *hex(uint64_t value)
{
	char text[24];

	(void)snprintf(text, sizeof(text), "0x%" PRIx64, value);
	return json_string(text);
}

static json_t *bytes_json(const struct scan_hit *hit)
{
	char text[SCAN_CODE_BYTES * 2 + 1] = "";

	for (unsigned int i = 0; i < hit->length && i < SCAN_CODE_BYTES; i++)
		(void)snprintf(text + 2 * i, 3, "%02x", hit->bytes[i]);
	return json_string(text);
}

static json_t *hit_json(const struct scan_report *report, const struct scan_hit *hit)
{
	bool store = hit->match == SCAN_STORE;
	json_t *object = json_object();

	set(object, "match", json_text(scan_match_name(hit->match)));
	set(object, "fit", store ? json_text(scan_fit_name(hit->fit)) : json_null());
	set(object, "kind", json_text(hit->kind));
	set(object, "width", store && hit->width > 0 ? count(hit->width) : json_null());
	set(object, "base", json_text(hit->base));
	set(object, "displacement", store ? json_integer(hit->displacement) : json_null());
	set(object, "instruction", json_text(hit->instruction));
	set(object, "bytes", bytes_json(hit));
	set(object, "address", hex(hit->address));
	set(object, "executed", report->seen_known ? json_boolean(hit->executed) : json_null());
	set(object, "stack", json_stack(&hit->frames));
	return object;
}

static json_t *region_json(const struct scan_region *region)
{
	json_t *object = json_object();

	set(object, "name", json_text(region->name));
	set(object, "bytes", count(region->bytes));
	set(object, "unread", count(region->unread));
	set(object, "hits", count(region->hits));
	return object;
}

static json_t *query_json(const struct scan_report *report)
{
	const struct scan_query *query = &report->query;
	json_t *object = json_object();

	set(object, "offset", query->store ? json_integer(query->offset) : json_null());
	set(object, "width", query->store && query->width > 0 ? count(query->width) : json_null());
	set(object, "value", query->has_value ? hex(query->value) : json_null());
	set(object, "address", query->low < query->high ? hex(query->low) : json_null());
	set(object, "global", json_text(report->global));
	return object;
}

void report_scan_json(const struct scan_report *report, FILE *out)
{
	json_t *object = json_object(), *hits = json_array(), *regions = json_array();

	set(object, "schema", json_text("redhand/scan/1"));
	set(object, "subject", json_text(report->subject));
	set(object, "query", query_json(report));
	set(object, "seconds", json_number(report->seconds));
	set(object, "bytes", count(report->bytes));
	set(object, "instructions", count(report->instructions));
	set(object, "undecoded", count(report->undecoded));
	set(object, "stack_left_out", count(report->stack_left_out));
	set(object, "limited", count(report->limited));
	VEC_FOREACH (&report->regions, region)
		(void)json_array_append_new(regions, region_json(region));
	set(object, "regions", regions);
	VEC_FOREACH (&report->hits, hit)
		(void)json_array_append_new(hits, hit_json(report, hit));
	set(object, "hits", hits);
	set(object, "notes", json_said_list(&report->notes));
	json_print(object, out);
}
