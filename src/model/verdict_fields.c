/*
 * What a verdict is made of: its bytes in the case and back, its end. See archive.h.
 */
#include "model/verdict.h"

#include <errno.h>

#include "model/archive.h"

#define VERDICT_VERSION 4

static MODEL_FIELDS(step_fields, verdict_step, FIELD_SINCE(4, verdict_step, what),
		    FIELD(verdict_step, trial, evidence, stack));

static MODEL_FIELDS(alternative_fields, verdict_alternative,
		    FIELD_CHOICE(verdict_alternative, class, VERDICT_CLASSES),
		    FIELD_SINCE(4, verdict_alternative, sentence, tell_apart),
		    FIELD_NUMBERS(verdict_alternative, evidence));

/* Before version 3 an explanation was open, falsified or confirmed, and nothing tied it to what had
 * been tested: what was falsified then counts as open. */
static void old_status(struct archive *a, void *object)
{
	struct ledger_entry *entry = object;

	entry->status = archive_choice(a, 0, 3) == 2 ? LEDGER_CONFIRMED : LEDGER_OPEN;
	entry->by = EXPERIMENT_KINDS;
}

static MODEL_FIELDS(ledger_fields, ledger_entry, FIELD(ledger_entry, id),
		    FIELD_SINCE(4, ledger_entry, text), FIELD_BEFORE(3, old_status),
		    FIELD_CHOICE_SINCE(3, ledger_entry, status, LEDGER_STATUSES),
		    FIELD_SINCE(4, ledger_entry, because), FIELD_NUMBERS(ledger_entry, evidence),
		    FIELD_CHOICE_SINCE(3, ledger_entry, by, EXPERIMENT_KINDS + 1),
		    FIELD_SINCE(3, ledger_entry, telling, missed));

/* In version 3 names of considerations stood beside the doubts. */
static void old_names(struct archive *a, void *object)
{
	struct verdict *v = object;
	AUTO(strv_deinit) struct strv names = { 0 };

	if (a->version == 3)
		archive_strv(a, &names);
	for (size_t i = 0; i < names.count && i < v->doubts.list.count; i++)
		v->doubts.list.items[i].id = mem_strdup(names.items[i]);
}

static MODEL_FIELDS(verdict_fields, verdict, FIELD_CHOICE(verdict, class, VERDICT_CLASSES),
		    FIELD(verdict, firm), FIELD_SINCE(4, verdict, sentence),
		    FIELD(verdict, caught, watched, trials, signature, writer, instruction, width),
		    FIELD_CHOICE(verdict, fit, FIT_KINDS), FIELD(verdict, values_known, old, new),
		    FIELD_CHOICE(verdict, value_len, sizeof(uint64_t) + 1), FIELD(verdict, tid),
		    FIELD_STRUCT(home_fields, verdict, home),
		    FIELD_PART(block_fields, verdict, victim, base),
		    FIELD(verdict, freed_by, other, crash, holder),
		    FIELD_NUMBERS(verdict, evidence), FIELD_LIST(step_fields, verdict, steps),
		    FIELD_LIST(alternative_fields, verdict, alternatives),
		    FIELD_LIST(ledger_fields, verdict, ledger),
		    FIELD_SINCE(4, verdict, doubts, open, next), FIELD_BEFORE(4, old_names));

void ledger_entry_deinit(struct ledger_entry *entry)
{
	fields_free(&ledger_fields, entry);
}

void verdict_deinit(struct verdict *verdict)
{
	fields_free(&verdict_fields, verdict);
}

void verdict_pack(const struct verdict *verdict, struct strbuf *sb)
{
	struct archive a = { .out = sb, .version = VERDICT_VERSION };
	struct verdict v = *verdict; /* a walk takes what it could change */

	pack_u64(sb, VERDICT_VERSION);
	fields_walk(&a, &verdict_fields, &v);
}

int verdict_unpack(const void *bytes, size_t len, struct verdict *ret, struct err *err)
{
	struct archive a = { .in = { .at = bytes, .left = len } };
	struct verdict v = { 0 };
	int r = archive_begin(&a, VERDICT_VERSION);

	if (r == -EPROTO)
		return err_set(err, r, "a newer redhand wrote this verdict");
	if (r == 0)
		fields_walk(&a, &verdict_fields, &v);
	if (r < 0 || a.in.broken || a.in.left > 0) {
		verdict_deinit(&v);
		return err_set(err, -EBADMSG, "this verdict is damaged");
	}
	*ret = v;
	return 0;
}
