/*
 * What a verdict is made of: its bytes in the case and back, its end. See archive.h.
 */
#include "model/verdict.h"

#include <errno.h>

#include "model/archive.h"

#define VERDICT_VERSION 4

/* clang-format off */
static const struct model_field step_list[] = {
	FIELD_SINCE(4, SAID, verdict_step, what), FIELD(U64, verdict_step, trial),
	FIELD(U64, verdict_step, evidence), FIELD(STACK, verdict_step, stack), { 0 },
};
static const struct model_fields step_fields = FIELDS(verdict_step, step_list);

static const struct model_field alternative_list[] = {
	FIELD_UPTO(CHOICE, verdict_alternative, class, VERDICT_CLASSES),
	FIELD_SINCE(4, SAID, verdict_alternative, sentence),
	FIELD_SINCE(4, SAID, verdict_alternative, tell_apart),
	FIELD(NUMBERS, verdict_alternative, evidence), { 0 },
};
static const struct model_fields alternative_fields = FIELDS(verdict_alternative, alternative_list);

/* Before version 3 an explanation was open, falsified or confirmed, and nothing tied it to what had
 * been tested: what was falsified then counts as open. */
static void old_status(struct archive *a, void *object)
{
	struct ledger_entry *entry = object;

	entry->status = archive_choice(a, 0, 3) == 2 ? LEDGER_CONFIRMED : LEDGER_OPEN;
	entry->by = EXPERIMENT_KINDS;
}

static const struct model_field ledger_list[] = {
	FIELD(TEXT, ledger_entry, id), FIELD_SINCE(4, SAID, ledger_entry, text),
	FIELD_BEFORE(3, old_status),
	FIELD_UPTO_SINCE(3, CHOICE, ledger_entry, status, LEDGER_STATUSES),
	FIELD_SINCE(4, SAID, ledger_entry, because), FIELD(NUMBERS, ledger_entry, evidence),
	FIELD_UPTO_SINCE(3, CHOICE, ledger_entry, by, EXPERIMENT_KINDS + 1),
	FIELD_SINCE(3, U64, ledger_entry, telling), FIELD_SINCE(3, REAL, ledger_entry, missed),
	{ 0 },
};
static const struct model_fields ledger_fields = FIELDS(ledger_entry, ledger_list);

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

static const struct model_field verdict_list[] = {
	FIELD_UPTO(CHOICE, verdict, class, VERDICT_CLASSES), FIELD(BOOL, verdict, firm),
	FIELD_SINCE(4, SAID, verdict, sentence), FIELD(U64, verdict, caught),
	FIELD(U64, verdict, watched), FIELD(U64, verdict, trials),
	FIELD_UPTO(CHARS, verdict, signature, sizeof(((struct verdict *)0)->signature)),
	FIELD(STACK, verdict, writer), FIELD(TEXT, verdict, instruction),
	FIELD(UINT, verdict, width), FIELD_UPTO(CHOICE, verdict, fit, FIT_KINDS),
	FIELD(BOOL, verdict, values_known), FIELD(U64, verdict, old), FIELD(U64, verdict, new),
	FIELD_UPTO(CHOICE, verdict, value_len, sizeof(uint64_t) + 1), FIELD(INT, verdict, tid),
	FIELD_OF(STRUCT, verdict, home, home_fields), FIELD_OF(PART, verdict, victim, block_fields),
	FIELD_OF(PART, verdict, base, block_fields), FIELD(STACK, verdict, freed_by),
	FIELD(STACK, verdict, other), FIELD(U64, verdict, crash), FIELD(U64, verdict, holder),
	FIELD(NUMBERS, verdict, evidence), FIELD_OF(LIST, verdict, steps, step_fields),
	FIELD_OF(LIST, verdict, alternatives, alternative_fields),
	FIELD_OF(LIST, verdict, ledger, ledger_fields), FIELD_SINCE(4, SAID_LIST, verdict, doubts),
	FIELD_SINCE(4, SAID_LIST, verdict, open), FIELD_SINCE(4, SAID, verdict, next),
	FIELD_BEFORE(4, old_names), { 0 },
};
static const struct model_fields verdict_fields = FIELDS(verdict, verdict_list);
/* clang-format on */

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
