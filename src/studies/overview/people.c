/*
 * What people wrote into the case: it stands beside what redhand found out.
 */
#include "studies/overview/case_investigation.h"

#include <inttypes.h>
#include <string.h>

#include "base/when.h"
#include "case/stored_notebook.h"
#include "studies/overview/case_overview.h"

/* In a report each of them is a row or an item of a list: one line. */
static void add_text(struct strbuf *sb, const char *text)
{
	while (*text != '\0') {
		size_t len = strcspn(text, "\n");

		strbuf_add_printable(sb, text, len);
		text += len + strspn(text + len, "\n");
		strbuf_adds(sb, *text != '\0' && len > 0 ? " " : "");
	}
}

static char *one_line(const char *text)
{
	struct strbuf sb = { 0 };

	add_text(&sb, text);
	return strbuf_take(&sb);
}

/* The observation that decided it. */
static void decided_by(const struct hypothesis_change *change, struct said *ret)
{
	SAY(ret, "decided-by", said_count(change->seen.trial), said_count(change->seen.evidence),
	    change->because ? said_take(one_line(change->because)) : said_none());
}

/* What a person decided, in the ledger's words. */
static const enum ledger_status statuses[HYPOTHESIS_STATUSES] = {
	[HYPOTHESIS_OPEN] = LEDGER_OPEN,
	[HYPOTHESIS_FALSIFIED] = LEDGER_EXCLUDED,
	[HYPOTHESIS_CONFIRMED] = LEDGER_CONFIRMED,
};

static void add_hypothesis(struct investigation *inv, const struct hypothesis *h)
{
	struct ledger_entry own = { .id = mem_printf("H%" PRIu64, h->id),
				    .text = { .text = one_line(h->text) },
				    .status = statuses[h->status],
				    .by = EXPERIMENT_KINDS };
	const struct hypothesis_change *last =
		h->changes.count > 0 ? &h->changes.items[h->changes.count - 1] : NULL;

	if (last && h->status != HYPOTHESIS_OPEN)
		decided_by(last, &own.because);
	if (last && h->status != HYPOTHESIS_OPEN && last->seen.evidence != 0)
		VEC_PUSH(&own.evidence, last->seen.evidence);
	VEC_PUSH(&inv->own_hypotheses, own);
}

static void add_notes(struct investigation *inv, const struct notebook *notebook)
{
	const struct parking *parking = notebook_parked(notebook);
	char when[WHEN_MAX];

	VEC_FOREACH (&notebook->workarounds, w)
		SAY_TOO(&inv->notes, "note:workaround", said_text(when_text(w->made_ms, when)),
			said_take(one_line(w->text)));
	if (parking)
		SAY_TOO(&inv->notes, "note:parked", said_text(when_text(parking->made_ms, when)),
			said_take(one_line(parking->because)), said_take(one_line(parking->until)));
	VEC_FOREACH (&notebook->notes, note)
		said_new(&inv->notes)->text = one_line(note->text);
}

/* What a case of an older redhand does not hold. */
static void add_lack(struct investigation *inv)
{
	bool evidence = false;

	VEC_FOREACH (&inv->evidence.list, e) {
		if (e->kind == EVIDENCE_EXPERIMENT || e->kind == EVIDENCE_FAILURE)
			return;
		evidence |= e->kind != EVIDENCE_SIGHTING;
	}
	if (evidence && inv->judged)
		SAY_TOO(&inv->notes, "note:experiments-unknown");
}

int people_read(struct case_store *cs, struct investigation *inv, struct err *err)
{
	int r = case_notebook(cs, &inv->notebook, err);

	if (r == 0)
		r = attempts_count(cs, &inv->notebook, err);
	if (r < 0)
		return r;
	VEC_FOREACH (&inv->notebook.hypotheses, h)
		add_hypothesis(inv, h);
	add_notes(inv, &inv->notebook);
	add_lack(inv);
	return 0;
}
