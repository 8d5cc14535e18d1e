/*
 * An investigation as JSON, for `report` and for `hunt`; docs/json.md describes every field.
 */
#include "report/report_investigation.h"

#include "base/auto.h"
#include "model/beside.h"
#include "report/choices_json.h"
#include "report/json.h"
#include "report/notebook_json.h"
#include "report/signature_json.h"
#include "report/wording.h"

/* The rows of judge/considerations.c behind the doubts. */
static json_t *considerations_json(const struct said_list *doubts)
{
	json_t *array = json_array();

	VEC_FOREACH (&doubts->list, doubt)
		if (doubt->id)
			(void)json_array_append_new(array, json_text(doubt->id));
	return array;
}

static json_t *numbers(const uint64_t *items, size_t n)
{
	json_t *array = json_array();

	for (size_t i = 0; i < n; i++)
		(void)json_array_append_new(array, count(items[i]));
	return array;
}

static json_t *home_json(const struct home *home)
{
	AUTO(strbuf_deinit) struct strbuf words = { 0 };
	json_t *object;

	if (home->kind == HOME_UNKNOWN)
		return json_null();
	object = json_object();
	words_home(home, &words);
	set(object, "kind", json_text(home_kind_name(home->kind)));
	PUT(object, home, key, name, field, module, offset);
	set(object, "length", home->len > 0 ? count(home->len) : json_null());
	set(object, "words", json_text(strbuf_str(&words)));
	return object;
}

static json_t *holder_json(const struct investigation *inv)
{
	const struct evidence *e = evidence_find(&inv->evidence, inv->verdict.holder);
	const struct holder_seen *h;
	json_t *object;

	if (!e || e->kind != EVIDENCE_HOLDER)
		return inv->verdict.class == VERDICT_DANGLING_HOLDER ? home_json(&inv->verdict.home)
								     : json_null();
	h = e->holder;
	object = home_json(&h->home);
	if (json_is_null(object))
		object = json_object();
	set(object, "block", h->holder ? json_block(h->holder) : json_null());
	PUT(object, h, written_by, used);
	set(object, "frame",
	    h->frame && h->target ? json_site(&h->target->allocated) : json_null());
	return object;
}

static void add_writer(const struct verdict *v, json_t *object)
{
	PUT(object, v, writer, instruction);
	set(object, "width", v->width > 0 ? json_integer(v->width) : json_null());
	set(object, "fit", v->fit != FIT_UNKNOWN ? json_text(store_fit_name(v->fit)) : json_null());
	set(object, "old", v->values_known ? json_hex(v->old) : json_null());
	set(object, "new", v->values_known ? json_hex(v->new) : json_null());
	set(object, "thread", v->tid != 0 ? json_integer(v->tid) : json_null());
}

static json_t *steps_json(const struct verdict *v)
{
	json_t *array = json_array();

	VEC_FOREACH (&v->steps, step) {
		json_t *object = json_object();

		PUT(object, step, what);
		set(object, "trial", step->trial > 0 ? count(step->trial) : json_null());
		set(object, "evidence", step->evidence > 0 ? count(step->evidence) : json_null());
		set(object, "site", json_site(&step->stack));
		(void)json_array_append_new(array, object);
	}
	return array;
}

static json_t *alternatives_json(const struct verdict *v)
{
	json_t *array = json_array();

	VEC_FOREACH (&v->alternatives, alternative) {
		json_t *object = json_object();

		set(object, "class", json_text(verdict_class_name(alternative->class)));
		PUT(object, alternative, sentence, tell_apart);
		set(object, "evidence",
		    numbers(alternative->evidence.items, alternative->evidence.count));
		(void)json_array_append_new(array, object);
	}
	return array;
}

static json_t *keys_json(const struct investigation *inv)
{
	uint64_t right, tried;
	json_t *object;

	if (!investigation_keys(inv, &right, &tried))
		return json_null();
	object = json_object();
	set(object, "tried", count(tried));
	set(object, "right", count(right));
	return object;
}

static json_t *verdict_json(const struct investigation *inv)
{
	const struct verdict *v = &inv->verdict;
	json_t *object;

	if (!inv->judged)
		return json_null();
	object = json_object();
	set(object, "class", json_text(verdict_class_name(v->class)));
	set(object, "words", json_text(words_class(v->class)));
	PUT(object, v, firm, sentence, caught, watched, trials);
	set(object, "reidentified", keys_json(inv));
	set(object, "signature", v->signature[0] != '\0' ? json_text(v->signature) : json_null());
	add_writer(v, object);
	set(object, "home", home_json(&v->home));
	set(object, "victim", v->victim ? json_block(v->victim) : json_null());
	set(object, "offset",
	    v->home.kind != HOME_UNKNOWN ? json_integer(v->home.offset) : json_null());
	set(object, "base", v->base ? json_block(v->base) : json_null());
	set(object, "holder", holder_json(inv));
	PUT(object, v, freed_by, other);
	set(object, "evidence", numbers(v->evidence.items, v->evidence.count));
	set(object, "steps", steps_json(v));
	set(object, "alternatives", alternatives_json(v));
	PUT(object, v, doubts);
	set(object, "considerations", considerations_json(&v->doubts));
	PUT(object, v, open, next);
	return object;
}

static void add_hypothesis(json_t *array, const struct ledger_entry *h, bool built_in)
{
	json_t *object = json_object();

	PUT(object, h, id, text);
	set(object, "status", json_text(ledger_status_name(h->status)));
	json_ledger_basis(object, h);
	PUT(object, h, because);
	set(object, "evidence", numbers(h->evidence.items, h->evidence.count));
	set(object, "built_in", json_boolean(built_in));
	(void)json_array_append_new(array, object);
}

static json_t *hypotheses_json(const struct investigation *inv)
{
	json_t *array = json_array();

	VEC_FOREACH (&inv->verdict.ledger, h)
		add_hypothesis(array, h, true);
	VEC_FOREACH (&inv->own_hypotheses, h)
		add_hypothesis(array, h, false);
	return array;
}

static json_t *tests_json(const struct investigation *inv)
{
	json_t *array;

	if (!inv->trigger.known)
		return json_null();
	array = json_array();
	VEC_FOREACH (&inv->trigger.items, item)
		(void)json_array_append_new(array, json_text(item->name));
	return array;
}

static json_t *observers_json(const struct investigation *inv)
{
	json_t *array = json_array();

	VEC_FOREACH (&inv->observers, o) {
		json_t *object = json_rate(&o->rate);

		PUT(object, o, name);
		set(object, "effect", json_text(observer_effect_name(o->effect)));
		set(object, "p", o->effect == EFFECT_UNKNOWN ? json_null() : json_real(o->p));
		(void)json_array_append_new(array, object);
	}
	return array;
}

static json_t *decisions_json(const struct investigation *inv)
{
	json_t *array = json_array();

	VEC_FOREACH (&inv->decisions.list, d) {
		json_t *object = json_object();

		PUT(object, d, time_ms, stage);
		set(object, "says", json_said_ids(&d->said));
		set(object, "text", json_said(&d->said));
		(void)json_array_append_new(array, object);
	}
	return array;
}

static json_t *evidence_json(const struct evidence *e)
{
	AUTO(said_deinit) struct said said = { 0 };
	json_t *object = json_object();

	evidence_say(e, &said);
	PUT(object, e, id);
	set(object, "trial", e->trial > 0 ? count(e->trial) : json_null());
	PUT(object, e, failing);
	set(object, "kind", json_text(evidence_kind_name(e->kind)));
	set(object, "text", json_said(&said));
	return object;
}

static json_t *slots_json(const struct investigation *inv)
{
	const struct slot_summary *odd = investigation_odd_slot(inv);
	json_t *object = json_object(), *array = json_array();

	VEC_FOREACH (&inv->slots, s) {
		json_t *slot = json_rate(&s->rate);

		PUT(slot, s, slot, p);
		(void)json_array_append_new(array, slot);
	}
	set(object, "list", array);
	set(object, "counts", json_text(inv->slots_crashed ? "crashes" : "failures"));
	set(object, "odd", odd ? json_integer(odd->slot) : json_null());
	set(object, "cut_by", inv->cut_known ? json_integer(inv->cut_by) : json_null());
	set(object, "died", inv->cut_known ? json_integer(inv->cut_who) : json_null());
	return object;
}

static json_t *addresses_json(const struct series_summary *summary)
{
	json_t *array = json_array();

	VEC_FOREACH (&summary->faults, f) {
		json_t *object = json_object();

		set(object, "address", json_hex(f->address));
		set(object, "fault", json_text(fault_class_name(f->fault)));
		PUT(object, f, count);
		(void)json_array_append_new(array, object);
	}
	return array;
}

static void add_notebook(const struct notebook *notebook, json_t *object)
{
	json_t *workarounds = json_array();

	VEC_FOREACH (&notebook->workarounds, w)
		(void)json_array_append_new(workarounds, json_text(w->text));
	set(object, "status", json_text(notebook_parked(notebook) ? "parked" : "open"));
	set(object, "workarounds", workarounds);
	set(object, "attempts", attempts_json(notebook));
	set(object, "steps", user_steps_json(notebook));
	set(object, "related", relations_json(notebook));
	set(object, "surroundings", surroundings_json(notebook));
}

/* What `hunt` and `report` have in common. */
static json_t *document(const struct investigation *inv, const char *schema)
{
	json_t *object = json_object();

	set(object, "schema", json_text(schema));
	set(object, "case", json_text(inv->case_dir));
	set(object, "program", json_command(inv->program.items));
	set(object, "verdict", verdict_json(inv));
	set(object, "tests", tests_json(inv));
	set(object, "observers", observers_json(inv));
	set(object, "hypotheses", hypotheses_json(inv));
	set(object, "decisions", decisions_json(inv));
	set(object, "choices", choices_json(&inv->choices));
	PUT(object, inv, reproduce, prove_fix, sentinel, notes);
	set(object, "slots", slots_json(inv));
	set(object, "fault_addresses", addresses_json(&inv->summary));
	return object;
}

void report_hunt_json(const struct investigation *inv, FILE *out)
{
	json_t *object = document(inv, "redhand/hunt/2");

	PUT(object, inv, report, seconds, interrupted);
	json_print(object, out);
}

static json_t *trigger_json(const struct trigger_set *trigger)
{
	json_t *object, *without;

	if (!trigger->known)
		return json_null();
	object = json_object();
	without = json_array();
	PUT(object, trigger, total, proven, full, minimal);
	VEC_FOREACH (&trigger->items, item) {
		json_t *row = json_rate(&item->without);

		set(row, "test", json_text(item->name));
		PUT(row, item, victim);
		(void)json_array_append_new(without, row);
	}
	set(object, "without", without);
	PUT(object, trigger, file);
	return object;
}

static json_t *arms_json(const struct series_entry *s)
{
	json_t *array = json_array();

	VEC_FOREACH (&s->arms, arm) {
		json_t *object = json_rate(&arm->rate);

		PUT(object, arm, name);
		(void)json_array_append_new(array, object);
	}
	return array;
}

static json_t *series_json(const struct investigation *inv)
{
	json_t *array = json_array();

	VEC_FOREACH (&inv->series, s) {
		json_t *object = json_rate(&s->rate);

		PUT(object, s, command, observer, began_ms);
		set(object, "last_ms", s->last_ms > 0 ? json_integer(s->last_ms) : json_null());
		set(object, "arms", arms_json(s));
		(void)json_array_append_new(array, object);
	}
	return array;
}

static json_t *beside_run_json(const struct beside_run *run)
{
	const struct block_bytes *block = &run->piece->write->block;
	AUTO(strbuf_deinit) struct strbuf hex = { 0 };
	json_t *object = json_object();

	for (size_t i = 0; i < block->bytes.len; i++)
		strbuf_addf(&hex, "%02x", (unsigned char)block->bytes.data[i]);
	set(object, "trial", count(run->piece->trial));
	set(object, "evidence", count(run->piece->id));
	set(object, "moment", json_text(beside_moment_name(run->moment)));
	set(object, "store", count(block->nth));
	PUT(object, block, offset);
	set(object, "memory", json_text(strbuf_str(&hex)));
	return object;
}

static json_t *beside_row_json(const struct beside_row *row)
{
	json_t *object = json_object();

	PUT(object, row, offset, len, name, watched);
	set(object, "difference", json_text(beside_difference_name(row->difference)));
	return object;
}

static json_t *beside_json(const struct investigation *inv)
{
	struct beside beside;
	json_t *object;

	if (!beside_find(inv, &beside))
		return json_null();
	object = json_object();
	set(object, "failed", beside_run_json(&beside.failed));
	set(object, "passed", JSON_LIST(&beside.passed, beside_run_json));
	set(object, "rows", JSON_LIST(&beside.rows, beside_row_json));
	beside_deinit(&beside);
	return object;
}

void report_investigation_json(const struct investigation *inv, FILE *out)
{
	json_t *object = document(inv, "redhand/report/2");

	PUT(object, inv, root);
	add_notebook(&inv->notebook, object);
	set(object, "rate", inv->counted ? json_rate(&inv->summary.rate) : json_null());
	set(object, "clean_runs_for_99",
	    inv->clean_runs > 0 ? count(inv->clean_runs) : json_null());
	set(object, "signatures", JSON_LIST(&inv->summary.signatures.list, signature_json));
	set(object, "families", families_json(&inv->summary.families));
	set(object, "series", series_json(inv));
	set(object, "trigger", trigger_json(&inv->trigger));
	set(object, "evidence", JSON_LIST(&inv->evidence.list, evidence_json));
	set(object, "beside", beside_json(inv));
	json_print(object, out);
}
