#include "report/signature_json.h"

json_t *signature_json(const struct signature_summary *s)
{
	const struct signature *signature = &s->signature;
	const struct window none = { 0 }, *window = s->windows.count > 0 ? s->windows.items : &none;

	return OBJECT(
		MEMBERS(signature, id), KEY("count", s->rate.failed),
		MEMBERS(&s->rate, rate, low, high), MEMBERS(s, always),
		KEY("kind", failure_kind_name(signature->kind)),
		KEY("signal", OR_NULL(signature->signal != 0, signal_name(signature->signal))),
		KEY("exit", OR_NULL(signature->exit_status >= 0, signature->exit_status)),
		KEY("child", signature->stray), MEMBERS(signature, test, summary),
		MEMBERS(s, trial), MEMBERS(signature, site),
		KEY("fault", OR_NULL(s->crash, json_fault(s->crash))),
		KEY("stack", s->crash ? json_stack(&s->crash->stack) : json_array()),
		KEY("breadcrumb", OBJECT(MEMBERS(window, last, next))),
		KEY("windows", EACH(&s->windows, w, OBJECT(MEMBERS(w, last, next, count, trial)))),
		MEMBERS(s, places), KEY("moves", json_boolean(s->places > 1)));
}

json_t *signatures_json(const struct signature_summaries *signatures)
{
	return JSON_LIST(&signatures->list, signature_json);
}

static json_t *family_json(const struct failure_family *family)
{
	const struct signature *first = &family->members.items[0];

	return OBJECT(MEMBERS(first, id, summary), RATE(&family->rate), MEMBERS(family, trial),
		      KEY("members", EACH(&family->members, member, member->id)));
}

json_t *families_json(const struct failure_families *families)
{
	return JSON_LIST(&families->list, family_json);
}
