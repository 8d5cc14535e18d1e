#include "model/growth_site.h"

void growth_holder_deinit(struct growth_holder *holder)
{
	MEM_FREE(holder->kind, holder->name, holder->module, holder->root);
	VEC_DEINIT(&holder->targets);
	stack_deinit(&holder->stack);
}

void growth_site_deinit(struct growth_site *site)
{
	mem_free(site->key);
	mem_free(site->program);
	strv_deinit(&site->contexts);
	stack_deinit(&site->stack);
	VEC_DEINIT(&site->levels);
	VEC_FREE(&site->by_test, test, mem_free(test->name));
	VEC_FREE(&site->holders, holder, growth_holder_deinit(holder));
}

void growth_report_deinit(struct growth_report *report)
{
	VEC_FREE(&report->sites, site, growth_site_deinit(site));
	said_list_deinit(&report->notes);
}

const char *growth_basis_name(enum growth_basis basis)
{
	static const char *const names[] = { [GROWTH_TESTS] = "tests",
					     [GROWTH_BREADCRUMBS] = "breadcrumbs",
					     [GROWTH_LINES] = "lines" };

	return names[basis];
}
