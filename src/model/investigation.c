#include "model/investigation.h"

#include <string.h>

static void trigger_deinit(struct trigger_set *trigger)
{
	VEC_FREE(&trigger->items, item, mem_free(item->name));
	VEC_FREE(&trigger->cells, cell, mem_free(cell->name));
	mem_free(trigger->file);
}

void observer_rate_deinit(struct observer_rate *observer)
{
	mem_free(observer->name);
	VEC_DEINIT(&observer->times);
}

static void lists_deinit(struct investigation *inv)
{
	VEC_FOREACH (&inv->series, s) {
		mem_free(s->command);
		mem_free(s->observer);
		VEC_FREE(&s->arms, arm, mem_free(arm->name));
	}
	VEC_DEINIT(&inv->series);
	VEC_FREE(&inv->observers, o, observer_rate_deinit(o));
	VEC_FREE(&inv->own_hypotheses, h, ledger_entry_deinit(h));
	VEC_DEINIT(&inv->slots);
}

const char *observer_effect_name(enum observer_effect effect)
{
	static const char *const names[] = { [EFFECT_NONE] = "none",
					     [EFFECT_HIDES] = "hides",
					     [EFFECT_RARER] = "rarer",
					     [EFFECT_MORE_OFTEN] = "more-often" };

	return effect < ARRAY_SIZE(names) ? names[effect] : NULL;
}

void investigation_deinit(struct investigation *inv)
{
	MEM_FREE(inv->case_dir, inv->root, inv->sentinel, inv->report, inv->reproduce,
		 inv->prove_fix);
	strv_deinit(&inv->program);
	strv_deinit(&inv->options);
	said_list_deinit(&inv->notes);
	notebook_deinit(&inv->notebook);
	series_summary_deinit(&inv->summary);
	trigger_deinit(&inv->trigger);
	lists_deinit(inv);
	evidence_list_deinit(&inv->evidence);
	verdict_deinit(&inv->verdict);
	decision_list_deinit(&inv->decisions);
	choice_list_deinit(&inv->choices);
	block_layout_deinit(&inv->layout);
	*inv = (struct investigation){ 0 };
}

const struct crash *investigation_crash(const struct investigation *inv)
{
	const struct evidence *e = evidence_find(&inv->evidence, inv->verdict.crash);

	if (e && e->kind == EVIDENCE_CRASH)
		return e->crash;
	VEC_FOREACH (&inv->evidence.list, piece)
		if (piece->kind == EVIDENCE_CRASH && piece->failing)
			return piece->crash;
	VEC_FOREACH (&inv->summary.signatures.list, s)
		if (s->crash) /* those of every run come last */
			return s->crash;
	return NULL;
}

const struct stack *investigation_accused(const struct investigation *inv)
{
	static const char *const acts[] = { "step:bad-write",	"step:freed-again",
					    "step:freed-wrong", "step:given-back",
					    "step:over-read",	"step:first-use",
					    "step:freed-use" };
	const struct verdict *v = &inv->verdict;
	const struct crash *crash = investigation_crash(inv);

	if (v->writer.count > 0)
		return &v->writer;
	for (size_t i = 0; i < ARRAY_SIZE(acts); i++)
		VEC_FOREACH (&v->steps, step)
			if (step->what.id && strcmp(step->what.id, acts[i]) == 0)
				return &step->stack;
	if (v->steps.count > 0)
		return &v->steps.items[v->steps.count - 1].stack;
	return crash ? &crash->stack : NULL;
}

bool investigation_keys(const struct investigation *inv, uint64_t *ret_right, uint64_t *ret_tried)
{
	bool found = false;

	VEC_FOREACH (&inv->evidence.list, e)
		if (e->kind == EVIDENCE_HOP && e->hop->key_tried > 0 &&
		    (!found || e->hop->key_tried > *ret_tried)) {
			*ret_right = e->hop->key_right;
			*ret_tried = e->hop->key_tried;
			found = true;
		}
	return found;
}

const char *investigation_path(const struct investigation *inv, const char *file)
{
	size_t len = inv->root ? strlen(inv->root) : 0;

	if (len > 1 && strncmp(file, inv->root, len) == 0 && file[len] == '/' &&
	    file[len + 1] != '\0')
		return file + len + 1;
	return file;
}

const struct slot_summary *investigation_odd_slot(const struct investigation *inv)
{
	return inv->odd_slot < inv->slots.count ? &inv->slots.items[inv->odd_slot] : NULL;
}

const struct block_life *investigation_block(const struct investigation *inv)
{
	const struct evidence *e = evidence_find(&inv->evidence, inv->verdict.holder);

	return e && e->kind == EVIDENCE_HOLDER ? e->holder->holder : inv->verdict.victim;
}
