/*
 * A scan as JSON; docs/json.md describes every field.
 */
#include "report/report_scan.h"

#include "report/json.h"

static json_t *hit_json(const struct scan_report *report, const struct scan_hit *hit)
{
	bool store = hit->match == SCAN_STORE;
	size_t length = hit->length < SCAN_CODE_BYTES ? hit->length : SCAN_CODE_BYTES;

	return OBJECT(KEY("match", scan_match_name(hit->match)),
		      KEY("fit", OR_NULL(store, scan_fit_name(hit->fit))), MEMBERS(hit, kind),
		      KEY("width", OR_NULL(store && hit->width > 0, hit->width)),
		      MEMBERS(hit, base), KEY("displacement", OR_NULL(store, hit->displacement)),
		      MEMBERS(hit, instruction), KEY("bytes", json_bytes(hit->bytes, length)),
		      KEY("address", json_hex(hit->address)),
		      KEY("executed", OR_NULL(report->seen_known, hit->executed)),
		      KEY("stack", json_stack(&hit->frames)));
}

static json_t *query_json(const struct scan_report *report)
{
	const struct scan_query *q = &report->query;

	return OBJECT(KEY("offset", OR_NULL(q->store, q->offset)),
		      KEY("width", OR_NULL(q->store && q->width > 0, q->width)),
		      KEY("value", OR_NULL(q->has_value, json_hex(q->value))),
		      KEY("address", OR_NULL(q->low < q->high, json_hex(q->low))),
		      MEMBERS(report, global));
}

void report_scan_json(const struct scan_report *report, FILE *out)
{
	json_print(OBJECT(KEY("schema", "redhand/scan/1"), MEMBERS(report, subject),
			  KEY("query", query_json(report)),
			  MEMBERS(report, seconds, bytes, instructions, undecoded, stack_left_out,
				  limited),
			  KEY("regions", EACH(&report->regions, region,
					      OBJECT(MEMBERS(region, name, bytes, unread, hits)))),
			  KEY("hits", EACH(&report->hits, hit, hit_json(report, hit))),
			  MEMBERS(report, notes)),
		   out);
}
