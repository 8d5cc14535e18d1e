/*
 * A program that was built with a sanitizer, or that runs under Valgrind, says itself what is
 * wrong. Nothing that could be put into it would see more: what it said becomes evidence, and the
 * questions about memory are not asked.
 */
#include "hunt/inquiry.h"

#include "judge/judge.h"
#include "run/stored.h"

#define REPORTS_MAX 8u

struct report_gathering {
	struct inquiry *inq;
	unsigned int count;
};

static void gather(void *ctx, const struct run_row *row)
{
	struct report_gathering *gathering = ctx;
	struct inquiry *inq = gathering->inq;
	AUTO(reading_closep) struct reading *reading = NULL;
	const struct reported *reported;
	bool shown = false;

	if (row->signatures[0] == '\0' || !row->kept || gathering->count == REPORTS_MAX ||
	    target_shown(&inq->known.match, inq->cs, row->signatures, &shown, NULL) < 0 || !shown)
		return;
	reading = readings_open(inq->how.plain.settings->shared.readings, inq->cs, row->trial,
				row->signal);
	reported = reading_reported(reading);
	if (reported) {
		struct evidence e = evidence_new(EVIDENCE_REPORTED, row->trial, true);

		reported_copy(e.reported, reported);
		VEC_PUSH(&inq->evidence.list, e);
		gathering->count++;
	}
}

int reported_look(struct inquiry *inq)
{
	struct report_gathering gathering = { .inq = inq };
	struct series_found plain = { 0 };
	AUTO(verdict_deinit) struct verdict verdict = { 0 };
	const struct reported *first;
	int r;

	if (!inq->known.target)
		return 0;
	r = case_series(inq->cs, &inq->how.plain.identity, 0, &plain, inq->err);
	if (r == 0)
		r = case_runs(inq->cs, plain.id, gather, &gathering, inq->err);
	if (r < 0 || gathering.count == 0)
		return r;
	judge_evidence(&inq->evidence, &verdict);
	inq->known.reported = verdict.firm;
	first = inq->evidence.list.items[inq->evidence.list.count - 1].reported;
	return DECIDE(inq, "rate:reported", said_number(gathering.count), said_text(first->tool),
		      said_text(first->what));
}
