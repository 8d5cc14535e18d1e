/*
 * Growth as JSON; docs/json.md describes every field.
 */
#include "report/report_growth.h"

#include "report/json.h"

static json_t *first_last(uint64_t first, uint64_t last)
{
	json_t *object = json_object();

	set(object, "first", count(first));
	set(object, "last", count(last));
	return object;
}

static json_t *test_json(const struct growth_test *test)
{
	json_t *object = json_object();

	set(object, "test", json_text(test->name));
	PUT(object, test, times, blocks, bytes);
	return object;
}

static json_t *holder_json(const struct growth_holder *holder)
{
	json_t *object = json_object();

	PUT(object, holder, kind, name, module);
	set(object, "module_offset",
	    holder->module ? json_hex(holder->module_offset) : json_null());
	set(object, "size", holder->size > 0 ? count(holder->size) : json_null());
	set(object, "offset", holder->size > 0 ? count(holder->offset) : json_null());
	PUT(object, holder, pointers, root);
	set(object, "stack", json_stack(&holder->stack));
	return object;
}

static json_t *site_json(const struct growth_site *site)
{
	json_t *object = json_object();

	PUT(object, site, key, program);
	set(object, "stack", json_stack(&site->stack));
	set(object, "shared_frames", count(site->shared));
	PUT(object, site, contexts, context_count);
	set(object, "blocks", first_last(site->blocks_first, site->blocks_last));
	set(object, "bytes", first_last(site->bytes_first, site->bytes_last));
	PUT(object, site, blocks_per_test, bytes_per_test, rises);
	set(object, "of_tests", count(site->tests));
	PUT(object, site, p, framework);
	set(object, "tests", JSON_LIST(&site->by_test, test_json));
	PUT(object, site, looked_for);
	set(object, "holders", JSON_LIST(&site->holders, holder_json));
	return object;
}

void report_growth_json(const struct growth_report *report, FILE *out)
{
	json_t *object = json_document("redhand/heap/1", report->case_dir, report->program,
				       report->seconds, report->interrupted);

	PUT(object, report, trials, usable, failed);
	set(object, "basis", json_text(growth_basis_name(report->basis)));
	PUT(object, report, tests, contexts);
	set(object, "growth", JSON_LIST(&report->sites, site_json));
	PUT(object, report, notes);
	json_print(object, out);
}
