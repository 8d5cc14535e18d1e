#include "model/relation.h"

#include <string.h>

#include "base/mem.h"

static void add_site(const struct stack *stack, struct strv *ret)
{
	const struct frame *site = stack_site(stack);

	if (!site || !site->function || !frame_is_telling(site) || frame_is_runtime(site))
		return;
	if (!strv_has(ret, site->function))
		strv_add(ret, site->function);
}

static void add_functions(const struct verdict *v, struct strv *ret)
{
	add_site(&v->writer, ret);
	add_site(&v->freed_by, ret);
	if (v->victim)
		add_site(&v->victim->allocated, ret);
	VEC_FOREACH (&v->steps, step)
		add_site(&step->stack, ret);
}

void verdicts_common(const struct verdict *a, const struct verdict *b, struct strv *ret)
{
	AUTO(strv_deinit) struct strv of_a = { 0 };
	AUTO(strv_deinit) struct strv of_b = { 0 };

	if (a->victim && b->victim && key_same_stack(a->victim->key, b->victim->key))
		strv_take(ret, mem_printf("block %.*s", (int)strcspn(a->victim->key, "@#"),
					  a->victim->key));
	add_functions(a, &of_a);
	add_functions(b, &of_b);
	for (size_t i = 0; i < of_a.count; i++)
		for (size_t j = 0; j < of_b.count; j++)
			if (strcmp(of_a.items[i], of_b.items[j]) == 0)
				strv_take(ret, mem_printf("function %s", of_a.items[i]));
}
