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

static json_t *home_json(const struct home *home)
{
	AUTO(strbuf_deinit) struct strbuf words = { 0 };

	if (home->kind == HOME_UNKNOWN)
		return json_null();
	words_home(home, &words);
	return OBJECT(KEY("kind", home_kind_name(home->kind)),
		      MEMBERS(home, key, name, field, module, offset),
		      KEY("length", UNLESS_0(home->len)), KEY("words", strbuf_str(&words)));
}

static json_t *holder_json(const struct investigation *inv)
{
	const struct evidence *e = evidence_find(&inv->evidence, inv->verdict.holder);
	const struct holder_seen *h = e && e->kind == EVIDENCE_HOLDER ? e->holder : NULL;

	if (!h)
		return OR_NULL(inv->verdict.class == VERDICT_DANGLING_HOLDER,
			       home_json(&inv->verdict.home));
	return OBJECT(ALL_OF(home_json(&h->home)),
		      KEY("block", OR_NULL(h->holder, json_block(h->holder))),
		      MEMBERS(h, written_by, used),
		      KEY("frame", OR_NULL(h->frame && h->target, h->target->allocated)));
}

static json_t *writer_json(const struct verdict *v)
{
	return OBJECT(MEMBERS(v, writer, instruction), KEY("width", UNLESS_0(v->width)),
		      KEY("fit", OR_NULL(v->fit != FIT_UNKNOWN, store_fit_name(v->fit))),
		      KEY("old", OR_NULL(v->values_known, json_hex(v->old))),
		      KEY("new", OR_NULL(v->values_known, json_hex(v->new))),
		      KEY("thread", UNLESS_0(v->tid)));
}

static json_t *keys_json(const struct investigation *inv)
{
	uint64_t right, tried;

	if (!investigation_keys(inv, &right, &tried))
		return json_null();
	return OBJECT(KEY("tried", tried), KEY("right", right));
}

/* Considerations are rows of judge/considerations.c behind the doubts. */
static json_t *verdict_json(const struct investigation *inv)
{
	const struct verdict *v = &inv->verdict;

	return OBJECT(
		KEY("class", verdict_class_name(v->class)), KEY("words", words_verdict_of(v)),
		MEMBERS(v, firm, sentence, caught, watched, trials),
		KEY("reidentified", keys_json(inv)),
		KEY("signature", OR_NULL(v->signature[0] != '\0', v->signature)),
		ALL_OF(writer_json(v)), KEY("home", home_json(&v->home)),
		KEY("victim", OR_NULL(v->victim, json_block(v->victim))),
		KEY("offset", OR_NULL(v->home.kind != HOME_UNKNOWN, v->home.offset)),
		KEY("base", OR_NULL(v->base, json_block(v->base))), KEY("holder", holder_json(inv)),
		MEMBERS(v, freed_by, other), KEY("evidence", EACH(&v->evidence, id, *id)),
		KEY("steps", EACH(&v->steps, step,
				  OBJECT(MEMBERS(step, what), KEY("trial", UNLESS_0(step->trial)),
					 KEY("evidence", UNLESS_0(step->evidence)),
					 KEY("site", step->stack)))),
		KEY("alternatives",
		    EACH(&v->alternatives, alternative,
			 OBJECT(KEY("class", verdict_class_name(alternative->class)),
				MEMBERS(alternative, sentence, tell_apart),
				KEY("evidence", EACH(&alternative->evidence, id, *id))))),
		MEMBERS(v, doubts),
		KEY("considerations", EACH_IF(&v->doubts.list, doubt, doubt->id, doubt->id)),
		MEMBERS(v, open, next));
}

static json_t *hypothesis_json(const struct ledger_entry *h, bool built_in)
{
	return OBJECT(MEMBERS(h, id, text), KEY("status", ledger_status_name(h->status)),
		      ALL_OF(json_ledger_basis(h)), MEMBERS(h, because),
		      KEY("evidence", EACH(&h->evidence, id, *id)), KEY("built_in", built_in));
}

static json_t *hypotheses_json(const struct investigation *inv)
{
	json_t *all = EACH(&inv->verdict.ledger, h, hypothesis_json(h, true));
	json_t *own = EACH(&inv->own_hypotheses, h, hypothesis_json(h, false));

	(void)json_array_extend(all, own);
	json_decref(own);
	return all;
}

static json_t *evidence_json(const struct evidence *e)
{
	AUTO(said_deinit) struct said said = { 0 };

	evidence_say(e, &said);
	return OBJECT(MEMBERS(e, id), KEY("trial", UNLESS_0(e->trial)), MEMBERS(e, failing),
		      KEY("kind", evidence_kind_name(e->kind)), KEY("text", said));
}

static json_t *slots_json(const struct investigation *inv)
{
	const struct slot_summary *odd = investigation_odd_slot(inv);

	return OBJECT(KEY("list",
			  EACH(&inv->slots, s, OBJECT(RATE(&s->rate), MEMBERS(s, slot, p)))),
		      KEY("counts", inv->slots_crashed ? "crashes" : "failures"),
		      KEY("odd", OR_NULL(odd, odd->slot)),
		      KEY("cut_by", OR_NULL(inv->cut_known, inv->cut_by)),
		      KEY("died", OR_NULL(inv->cut_known, inv->cut_who)));
}

/* What `hunt` and `report` have in common. */
static json_t *common_json(const struct investigation *inv, const char *schema)
{
	return OBJECT(
		KEY("schema", schema), KEY("case", inv->case_dir),
		KEY("program", json_command(inv->program.items)),
		KEY("verdict", OR_NULL(inv->judged, verdict_json(inv))),
		KEY("tests",
		    OR_NULL(inv->trigger.known, EACH(&inv->trigger.items, item, item->name))),
		KEY("observers", EACH(&inv->observers, o,
				      OBJECT(RATE(&o->rate), MEMBERS(o, name),
					     KEY("effect", observer_effect_name(o->effect)),
					     KEY("p", OR_NULL(o->effect != EFFECT_UNKNOWN, o->p)),
					     KEY("seconds", OR_NULL(o->seconds > 0, o->seconds))))),
		KEY("hypotheses", hypotheses_json(inv)),
		KEY("decisions",
		    EACH(&inv->decisions.list, d,
			 OBJECT(MEMBERS(d, time_ms, stage), KEY("says", json_said_ids(&d->said)),
				KEY("text", d->said)))),
		KEY("choices", choices_json(&inv->choices)),
		MEMBERS(inv, reproduce, prove_fix, sentinel, notes), KEY("slots", slots_json(inv)),
		KEY("fault_addresses",
		    EACH(&inv->summary.faults, f,
			 OBJECT(KEY("address", json_hex(f->address)),
				KEY("fault", fault_class_name(f->fault)), MEMBERS(f, count)))));
}

void report_hunt_json(const struct investigation *inv, FILE *out)
{
	json_print(OBJECT(ALL_OF(common_json(inv, "redhand/hunt/2")),
			  MEMBERS(inv, report, seconds, interrupted)),
		   out);
}

static json_t *trigger_json(const struct trigger_set *trigger)
{
	return OBJECT(MEMBERS(trigger, total, proven, full, minimal),
		      KEY("without", EACH(&trigger->items, item,
					  OBJECT(RATE(&item->without), KEY("test", item->name),
						 MEMBERS(item, victim)))),
		      MEMBERS(trigger, file));
}

static json_t *beside_run_json(const struct beside_run *run)
{
	const struct block_bytes *block = &run->piece->write->block;

	return OBJECT(KEY("trial", run->piece->trial), KEY("evidence", run->piece->id),
		      KEY("moment", beside_moment_name(run->moment)), KEY("store", block->nth),
		      MEMBERS(block, offset),
		      KEY("memory",
			  json_bytes((const uint8_t *)block->bytes.data, block->bytes.len)));
}

static json_t *beside_json(const struct investigation *inv)
{
	AUTO(beside_deinit) struct beside beside = { 0 };

	if (!beside_find(inv, &beside))
		return json_null();
	return OBJECT(KEY("failed", beside_run_json(&beside.failed)),
		      KEY("passed", JSON_LIST(&beside.passed, beside_run_json)),
		      KEY("rows", EACH(&beside.rows, row,
				       OBJECT(MEMBERS(row, offset, len, name, watched),
					      KEY("difference",
						  beside_difference_name(row->difference))))));
}

void report_investigation_json(const struct investigation *inv, FILE *out)
{
	const struct series_summary *summary = &inv->summary;
	const struct notebook *notebook = &inv->notebook;

	json_print(OBJECT(ALL_OF(common_json(inv, "redhand/report/2")), MEMBERS(inv, root),
			  KEY("status", notebook_parked(notebook) ? "parked" : "open"),
			  KEY("workarounds", EACH(&notebook->workarounds, w, w->text)),
			  ALL_OF(notebook_json(notebook)),
			  KEY("rate", OR_NULL(inv->counted, summary->rate)),
			  KEY("clean_runs_for_99", UNLESS_0(inv->clean_runs)),
			  KEY("signatures", signatures_json(&summary->signatures)),
			  KEY("families", families_json(&summary->families)),
			  KEY("series",
			      EACH(&inv->series, s,
				   OBJECT(RATE(&s->rate), MEMBERS(s, command, observer, began_ms),
					  KEY("last_ms", OR_NULL(s->last_ms > 0, s->last_ms)),
					  KEY("arms", EACH(&s->arms, arm,
							   OBJECT(RATE(&arm->rate),
								  MEMBERS(arm, name))))))),
			  KEY("trigger", OR_NULL(inv->trigger.known, trigger_json(&inv->trigger))),
			  KEY("evidence", JSON_LIST(&inv->evidence.list, evidence_json)),
			  KEY("beside", beside_json(inv))),
		   out);
}
