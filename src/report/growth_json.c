/*
 * Growth as JSON; docs/json.md describes every field.
 */
#include "report/report_growth.h"

#include <inttypes.h>

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
	set(object, "times", count(test->times));
	set(object, "blocks", json_integer(test->blocks));
	set(object, "bytes", json_integer(test->bytes));
	return object;
}

static json_t *holder_json(const struct growth_holder *holder)
{
	json_t *object = json_object();
	char text[24];

	set(object, "kind", json_text(holder->kind));
	set(object, "name", json_text(holder->name));
	set(object, "module", json_text(holder->module));
	(void)snprintf(text, sizeof(text), "0x%" PRIx64, holder->module_offset);
	set(object, "module_offset", holder->module ? json_string(text) : json_null());
	set(object, "size", holder->size > 0 ? count(holder->size) : json_null());
	set(object, "offset", holder->size > 0 ? count(holder->offset) : json_null());
	set(object, "pointers", count(holder->pointers));
	set(object, "root", json_text(holder->root));
	set(object, "stack", json_stack(&holder->stack));
	return object;
}

static json_t *site_json(const struct growth_site *site)
{
	json_t *object = json_object(), *tests = json_array(), *holders = json_array();
	json_t *contexts = json_array();

	set(object, "key", json_text(site->key));
	set(object, "program", json_text(site->program));
	set(object, "stack", json_stack(&site->stack));
	set(object, "shared_frames", count(site->shared));
	for (size_t i = 0; i < site->contexts.count; i++)
		(void)json_array_append_new(contexts, json_text(site->contexts.items[i]));
	set(object, "contexts", contexts);
	set(object, "context_count", count(site->context_count));
	set(object, "blocks", first_last(site->blocks_first, site->blocks_last));
	set(object, "bytes", first_last(site->bytes_first, site->bytes_last));
	set(object, "blocks_per_test", json_number(site->blocks_per_test));
	set(object, "bytes_per_test", json_number(site->bytes_per_test));
	set(object, "rises", count(site->rises));
	set(object, "of_tests", count(site->tests));
	set(object, "p", json_number(site->p));
	set(object, "framework", json_boolean(site->framework));
	VEC_FOREACH (&site->by_test, test)
		(void)json_array_append_new(tests, test_json(test));
	set(object, "tests", tests);
	set(object, "looked_for", count(site->looked_for));
	VEC_FOREACH (&site->holders, holder)
		(void)json_array_append_new(holders, holder_json(holder));
	set(object, "holders", holders);
	return object;
}

void report_growth_json(const struct growth_report *report, FILE *out)
{
	json_t *object = json_object(), *growth = json_array();

	set(object, "schema", json_text("redhand/heap/1"));
	set(object, "case", json_text(report->case_dir));
	set(object, "program", json_command(report->program));
	set(object, "seconds", json_number(report->seconds));
	set(object, "interrupted", json_boolean(report->interrupted));
	set(object, "trials", count(report->trials));
	set(object, "usable", count(report->usable));
	set(object, "failed", count(report->failed));
	set(object, "basis", json_text(growth_basis_name(report->basis)));
	set(object, "tests", count(report->tests));
	set(object, "contexts", count(report->contexts));
	VEC_FOREACH (&report->sites, site)
		(void)json_array_append_new(growth, site_json(site));
	set(object, "growth", growth);
	set(object, "notes", json_said_list(&report->notes));
	json_print(object, out);
}
