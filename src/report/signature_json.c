#include "report/signature_json.h"

static json_t *window_json(const struct window *window)
{
	json_t *object = json_object();

	PUT(object, window, last, next, count, trial);
	return object;
}

json_t *signature_json(const struct signature_summary *s)
{
	const struct signature *signature = &s->signature;
	json_t *object = json_object(), *breadcrumb = json_object();

	PUT(object, signature, id);
	set(object, "count", count(s->rate.failed));
	set(object, "rate", json_number(s->rate.rate));
	set(object, "low", json_number(s->rate.low));
	set(object, "high", json_number(s->rate.high));
	PUT(object, s, always);
	set(object, "kind", json_text(failure_kind_name(signature->kind)));
	set(object, "signal",
	    signature->signal != 0 ? json_text(signal_name(signature->signal)) : json_null());
	set(object, "exit",
	    signature->exit_status >= 0 ? json_integer(signature->exit_status) : json_null());
	set(object, "child", json_boolean(signature->stray));
	PUT(object, signature, test, summary);
	PUT(object, s, trial);
	PUT(object, signature, site);
	set(object, "fault", s->crash ? json_fault(s->crash) : json_null());
	set(object, "stack", s->crash ? json_stack(&s->crash->stack) : json_array());
	set(breadcrumb, "last", json_text(s->windows.count > 0 ? s->windows.items[0].last : NULL));
	set(breadcrumb, "next", json_text(s->windows.count > 0 ? s->windows.items[0].next : NULL));
	set(object, "breadcrumb", breadcrumb);
	set(object, "windows", JSON_LIST(&s->windows, window_json));
	PUT(object, s, places);
	set(object, "moves", json_boolean(s->places > 1));
	return object;
}

json_t *signatures_json(const struct signature_summaries *signatures)
{
	return JSON_LIST(&signatures->list, signature_json);
}

json_t *families_json(const struct failure_families *families)
{
	json_t *array = json_array();

	VEC_FOREACH (&families->list, family) {
		json_t *object = json_object(), *members = json_array();
		const struct signature *first = &family->members.items[0];

		PUT(object, first, id, summary);
		json_add_rate(object, &family->rate);
		PUT(object, family, trial);
		VEC_FOREACH (&family->members, member)
			(void)json_array_append_new(members, json_text(member->id));
		set(object, "members", members);
		(void)json_array_append_new(array, object);
	}
	return array;
}
