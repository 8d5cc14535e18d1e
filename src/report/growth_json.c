/*
 * Growth as JSON; docs/json.md describes every field.
 */
#include "report/report_growth.h"

#include "report/json.h"

static json_t *first_last(uint64_t first, uint64_t last)
{
	return OBJECT(KEY("first", first), KEY("last", last));
}

static json_t *site_json(const struct growth_site *site)
{
	return OBJECT(
		MEMBERS(site, key, program), KEY("stack", json_stack(&site->stack)),
		KEY("shared_frames", site->shared), MEMBERS(site, contexts, context_count),
		KEY("blocks", first_last(site->blocks_first, site->blocks_last)),
		KEY("bytes", first_last(site->bytes_first, site->bytes_last)),
		MEMBERS(site, blocks_per_test, bytes_per_test, rises), KEY("of_tests", site->tests),
		MEMBERS(site, p, framework),
		KEY("tests",
		    EACH(&site->by_test, test,
			 OBJECT(KEY("test", test->name), MEMBERS(test, times, blocks, bytes)))),
		MEMBERS(site, looked_for),
		KEY("holders",
		    EACH(&site->holders, h,
			 OBJECT(MEMBERS(h, kind, name, module),
				KEY("module_offset",
				    OR_NULL(h->module, json_hex(h->module_offset))),
				KEY("size", UNLESS_0(h->size)),
				KEY("offset", OR_NULL(h->size > 0, h->offset)),
				MEMBERS(h, pointers, root), KEY("stack", json_stack(&h->stack))))));
}

void report_growth_json(const struct growth_report *report, FILE *out)
{
	json_print(
		OBJECT(DOCUMENT("redhand/heap/1", report), MEMBERS(report, trials, usable, failed),
		       KEY("basis", growth_basis_name(report->basis)),
		       MEMBERS(report, tests, contexts),
		       KEY("growth", JSON_LIST(&report->sites, site_json)), MEMBERS(report, notes)),
		out);
}
