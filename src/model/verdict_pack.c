/*
 * A verdict as bytes, and back.
 */
#include "model/verdict.h"

#include <errno.h>

#include "model/archive.h"

#define VERDICT_VERSION 3

static void steps(struct archive *a, struct verdict *v)
{
	uint64_t count = archive_count(a, v->steps.count);

	for (uint64_t i = 0; i < count && !a->in.broken; i++) {
		struct verdict_step *step;

		if (!a->out)
			VEC_PUSH(&v->steps, (struct verdict_step){ 0 });
		step = &v->steps.items[i];
		archive_text(a, &step->what);
		archive_u64(a, &step->trial);
		archive_u64(a, &step->evidence);
		archive_stack(a, &step->stack);
	}
}

static void alternatives(struct archive *a, struct verdict *v)
{
	uint64_t count = archive_count(a, v->alternatives.count);

	for (uint64_t i = 0; i < count && !a->in.broken; i++) {
		struct verdict_alternative *alternative;

		if (!a->out)
			VEC_PUSH(&v->alternatives, (struct verdict_alternative){ 0 });
		alternative = &v->alternatives.items[i];
		ARCHIVE_CHOICE(a, &alternative->class, VERDICT_CLASSES);
		archive_text(a, &alternative->sentence);
		archive_text(a, &alternative->tell_apart);
		ARCHIVE_NUMBERS(a, &alternative->evidence);
	}
}

/* Before version 3 an explanation was open, falsified or confirmed, and nothing tied it to what had
 * been tested: what was falsified then counts as open. */
static void old_status(struct archive *a, struct ledger_entry *entry)
{
	entry->status = archive_choice(a, 0, 3) == 2 ? LEDGER_CONFIRMED : LEDGER_OPEN;
	entry->by = EXPERIMENT_KINDS;
}

static void ledger(struct archive *a, struct verdict *v)
{
	uint64_t count = archive_count(a, v->ledger.count);

	for (uint64_t i = 0; i < count && !a->in.broken; i++) {
		struct ledger_entry *entry;

		if (!a->out)
			VEC_PUSH(&v->ledger, (struct ledger_entry){ 0 });
		entry = &v->ledger.items[i];
		archive_text(a, &entry->id);
		archive_text(a, &entry->text);
		if (a->version < 3)
			old_status(a, entry);
		else
			ARCHIVE_CHOICE(a, &entry->status, LEDGER_STATUSES);
		archive_text(a, &entry->because);
		ARCHIVE_NUMBERS(a, &entry->evidence);
		if (a->version < 3)
			continue;
		ARCHIVE_CHOICE(a, &entry->by, EXPERIMENT_KINDS + 1);
		archive_u64(a, &entry->telling);
		archive_double(a, &entry->missed);
	}
}

static void walk(struct archive *a, struct verdict *v)
{
	ARCHIVE_CHOICE(a, &v->class, VERDICT_CLASSES);
	archive_bool(a, &v->firm);
	archive_text(a, &v->sentence);
	archive_u64(a, &v->caught);
	archive_u64(a, &v->watched);
	archive_u64(a, &v->trials);
	archive_chars(a, v->signature, sizeof(v->signature));
	archive_stack(a, &v->writer);
	archive_text(a, &v->instruction);
	archive_uint(a, &v->width);
	ARCHIVE_CHOICE(a, &v->fit, FIT_KINDS);
	archive_bool(a, &v->values_known);
	archive_u64(a, &v->old);
	archive_u64(a, &v->new);
	v->value_len = archive_choice(a, v->value_len, sizeof(v->new) + 1);
	archive_int(a, &v->tid);
	archive_home(a, &v->home);
	archive_block_or_null(a, &v->victim);
	archive_block_or_null(a, &v->base);
	archive_stack(a, &v->freed_by);
	archive_stack(a, &v->other);
	archive_u64(a, &v->crash);
	archive_u64(a, &v->holder);
	ARCHIVE_NUMBERS(a, &v->evidence);
	steps(a, v);
	alternatives(a, v);
	ledger(a, v);
	archive_strv(a, &v->doubts);
	archive_strv(a, &v->open);
	archive_text(a, &v->next);
	if (a->version >= 3)
		archive_strv(a, &v->considered);
}

void verdict_pack(const struct verdict *verdict, struct strbuf *sb)
{
	struct archive a = { .out = sb, .version = VERDICT_VERSION };
	struct verdict v = *verdict; /* a walk takes what it could change */

	pack_u64(sb, VERDICT_VERSION);
	walk(&a, &v);
}

int verdict_unpack(const void *bytes, size_t len, struct verdict *ret, struct err *err)
{
	struct archive a = { .in = { .at = bytes, .left = len } };
	struct verdict v = { 0 };
	int r = archive_begin(&a, VERDICT_VERSION);

	if (r == -EPROTO)
		return err_set(err, r, "a newer redhand wrote this verdict");
	if (r == 0)
		walk(&a, &v);
	if (r < 0 || a.in.broken || a.in.left > 0) {
		verdict_deinit(&v);
		return err_set(err, -EBADMSG, "this verdict is damaged");
	}
	*ret = v;
	return 0;
}
