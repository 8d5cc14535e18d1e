/*
 * A scan as JSON; docs/json.md describes every field.
 */
#include "report/report_scan.h"

#include "report/json.h"

static json_t *hit_json(const struct scan_report *report, const struct scan_hit *hit)
{
	bool store = hit->match == SCAN_STORE;
	json_t *object = json_object();

	set(object, "match", json_text(scan_match_name(hit->match)));
	set(object, "fit", store ? json_text(scan_fit_name(hit->fit)) : json_null());
	PUT(object, hit, kind);
	set(object, "width", store && hit->width > 0 ? count(hit->width) : json_null());
	PUT(object, hit, base);
	set(object, "displacement", store ? json_integer(hit->displacement) : json_null());
	PUT(object, hit, instruction);
	set(object, "bytes",
	    json_bytes(hit->bytes, hit->length < SCAN_CODE_BYTES ? hit->length : SCAN_CODE_BYTES));
	set(object, "address", json_hex(hit->address));
	set(object, "executed", report->seen_known ? json_boolean(hit->executed) : json_null());
	set(object, "stack", json_stack(&hit->frames));
	return object;
}

static json_t *region_json(const struct scan_region *region)
{
	json_t *object = json_object();

	PUT(object, region, name, bytes, unread, hits);
	return object;
}

static json_t *query_json(const struct scan_report *report)
{
	const struct scan_query *query = &report->query;
	json_t *object = json_object();

	set(object, "offset", query->store ? json_integer(query->offset) : json_null());
	set(object, "width", query->store && query->width > 0 ? count(query->width) : json_null());
	set(object, "value", query->has_value ? json_hex(query->value) : json_null());
	set(object, "address", query->low < query->high ? json_hex(query->low) : json_null());
	PUT(object, report, global);
	return object;
}

void report_scan_json(const struct scan_report *report, FILE *out)
{
	json_t *object = json_object(), *hits = json_array();

	set(object, "schema", json_text("redhand/scan/1"));
	PUT(object, report, subject);
	set(object, "query", query_json(report));
	PUT(object, report, seconds, bytes, instructions, undecoded, stack_left_out, limited);
	set(object, "regions", JSON_LIST(&report->regions, region_json));
	VEC_FOREACH (&report->hits, hit)
		(void)json_array_append_new(hits, hit_json(report, hit));
	set(object, "hits", hits);
	PUT(object, report, notes);
	json_print(object, out);
}
