#include "plan/hooks/own_malloc.h"

#include <errno.h>
#include <string.h>

#include "wire/plan.h"

/* Functions of one address are one function: the first name decides what it is taken for. */
enum own_traits {
	ENDS = 1 << 0, /* ends blocks: without it others would be told as alive for ever */
	RARE = 1 << 1, /* may be replaced by a breakpoint, which costs some microseconds a time */
};

static const struct {
	const char *symbol;
	uint32_t number;
	unsigned int traits;
} functions[] = {
	{ "malloc", PLAN_OWN_MALLOC, ENDS },
	{ "free", PLAN_OWN_FREE, ENDS },
	{ "calloc", PLAN_OWN_CALLOC, 0 },
	{ "realloc", PLAN_OWN_REALLOC, ENDS },
	{ "reallocarray", PLAN_OWN_REALLOCARRAY, ENDS | RARE },
	{ "memalign", PLAN_OWN_MEMALIGN, RARE },
	{ "aligned_alloc", PLAN_OWN_ALIGNED_ALLOC, RARE },
	{ "posix_memalign", PLAN_OWN_POSIX_MEMALIGN, RARE },
	{ "valloc", PLAN_OWN_VALLOC, RARE },
	{ "pvalloc", PLAN_OWN_PVALLOC, RARE },
	{ "rallocx", PLAN_OWN_RALLOCX, ENDS | RARE },
	{ "mallocx", PLAN_OWN_MALLOCX, RARE },
	{ "_Znwm", PLAN_OWN_NEW, 0 },
	{ "_ZnwmRKSt9nothrow_t", PLAN_OWN_NEW + 1, RARE },
	{ "_ZnwmSt11align_val_t", PLAN_OWN_NEW + 2, RARE },
	{ "_ZnwmSt11align_val_tRKSt9nothrow_t", PLAN_OWN_NEW + 3, RARE },
	{ "_Znam", PLAN_OWN_NEW_ARRAY, 0 },
	{ "_ZnamRKSt9nothrow_t", PLAN_OWN_NEW_ARRAY + 1, RARE },
	{ "_ZnamSt11align_val_t", PLAN_OWN_NEW_ARRAY + 2, RARE },
	{ "_ZnamSt11align_val_tRKSt9nothrow_t", PLAN_OWN_NEW_ARRAY + 3, RARE },
	{ "_ZdlPv", PLAN_OWN_GIVE, ENDS },
	{ "_ZdaPv", PLAN_OWN_GIVE + 1, ENDS },
	{ "_ZdlPvm", PLAN_OWN_GIVE + 2, ENDS },
	{ "_ZdaPvm", PLAN_OWN_GIVE + 3, ENDS },
	{ "_ZdlPvRKSt9nothrow_t", PLAN_OWN_GIVE + 4, ENDS | RARE },
	{ "_ZdaPvRKSt9nothrow_t", PLAN_OWN_GIVE + 5, ENDS | RARE },
	{ "_ZdlPvSt11align_val_t", PLAN_OWN_GIVE + 6, ENDS | RARE },
	{ "_ZdaPvSt11align_val_t", PLAN_OWN_GIVE + 7, ENDS | RARE },
	{ "_ZdlPvmSt11align_val_t", PLAN_OWN_GIVE + 8, ENDS | RARE },
	{ "_ZdaPvmSt11align_val_t", PLAN_OWN_GIVE + 9, ENDS | RARE },
	{ "_ZdlPvSt11align_val_tRKSt9nothrow_t", PLAN_OWN_GIVE + 10, ENDS | RARE },
	{ "_ZdaPvSt11align_val_tRKSt9nothrow_t", PLAN_OWN_GIVE + 11, ENDS | RARE },
	{ "cfree", PLAN_OWN_GIVE + 12, ENDS | RARE },
	{ "dallocx", PLAN_OWN_GIVE + 13, ENDS | RARE },
	{ "sdallocx", PLAN_OWN_GIVE + 14, ENDS | RARE },
	{ "free_sized", PLAN_OWN_GIVE + 15, ENDS | RARE },
	{ "free_aligned_sized", PLAN_OWN_GIVE + 16, ENDS | RARE },
};

_Static_assert(sizeof(functions) / sizeof(functions[0]) == PLAN_OWN_FUNCTIONS, "one name");

/* The items are ours: they are well formed. */
static bool next_action(const struct strbuf *items, size_t *at, struct plan_action *ret)
{
	struct plan_item item;

	while (items->len - *at >= sizeof(item)) {
		size_t here = *at;

		memcpy(&item, items->data + here, sizeof(item));
		*at += item.bytes;
		if (item.type == PLAN_ITEM_ACTION) {
			memcpy(ret, items->data + here, sizeof(*ret));
			return true;
		}
	}
	return false;
}

static bool meet(const struct strbuf *ours, const struct strbuf *theirs)
{
	struct plan_action a, b;

	for (size_t i = 0; next_action(ours, &i, &a);)
		for (size_t j = 0; next_action(theirs, &j, &b);)
			if (a.key == b.key)
				return true;
	return false;
}

int own_malloc_plan(struct hook_planner *planner, const char *program, struct strbuf *items,
		    struct strbuf *ret_unseen, struct err *err)
{
	AUTO(strbuf_deinit) struct strbuf planned = { 0 }, unseen = { 0 };

	for (size_t i = 0; i < ARRAY_SIZE(functions); i++) {
		struct err why = { 0 };
		int r = hook_plan_replace(planner, program, functions[i].symbol,
					  functions[i].number, functions[i].traits & RARE, &planned,
					  &why);

		if (r == -ENOENT && functions[i].number > PLAN_OWN_FREE)
			continue;
		if (r < 0 && functions[i].traits & ENDS) {
			if (err)
				*err = why;
			return r == -ENOENT ? -ENOTSUP : r;
		}
		if (r < 0)
			strbuf_addf(&unseen, "%s%s", unseen.len > 0 ? ", " : "",
				    functions[i].symbol);
	}
	if (meet(&planned, items))
		return -EBUSY;
	strbuf_add(items, planned.data, planned.len);
	strbuf_add(ret_unseen, unseen.data, unseen.len);
	return 0;
}
