#include "model/growth.h"

void growth_holder_deinit(struct growth_holder *holder)
{
	mem_free(holder->kind);
	mem_free(holder->name);
	mem_free(holder->module);
	mem_free(holder->root);
	VEC_DEINIT(&holder->targets);
	stack_deinit(&holder->stack);
}

void growth_site_deinit(struct growth_site *site)
{
	mem_free(site->key);
	mem_free(site->program);
	strv_deinit(&site->contexts);
	stack_deinit(&site->stack);
	VEC_FOREACH (&site->by_test, test)
		mem_free(test->name);
	VEC_DEINIT(&site->by_test);
	VEC_FOREACH (&site->holders, holder)
		growth_holder_deinit(holder);
	VEC_DEINIT(&site->holders);
}

void growth_report_deinit(struct growth_report *report)
{
	VEC_FOREACH (&report->sites, site)
		growth_site_deinit(site);
	VEC_DEINIT(&report->sites);
	said_list_deinit(&report->notes);
}

const char *growth_basis_name(enum growth_basis basis)
{
	static const char *const names[] = { [GROWTH_TESTS] = "tests",
					     [GROWTH_BREADCRUMBS] = "breadcrumbs",
					     [GROWTH_LINES] = "lines" };

	return names[basis];
}
