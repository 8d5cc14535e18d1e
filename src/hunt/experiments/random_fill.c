/*
 * Trials in which what stands in blocks is left to chance, context by context
 * (studies/heap/chance.h).
 */
#include "hunt/inquiry.h"

#include <math.h>

#include "base/now.h"
#include "studies/heap/heap_evidence.h"
#include "studies/heap/heap_study.h"

#define PPM 500000u
#define TRIALS 40u
#define TRIALS_MAX 160u
#define FAILURES 12.0 /* that it takes, about, to tell a context from the others */
#define SECONDS 60.0

/* So many there is time for: a minute, and no more than a quarter of what is left. */
static unsigned int affordable(const struct bench *bench)
{
	double each =
		bench->guards.trial_s > 0 ? bench->guards.trial_s : bench->request->start.guarded_s;
	double most = SECONDS;

	if (bench->request->limits.deadline_s > 0 &&
	    (bench->request->limits.deadline_s - clock_s()) / 4 < most)
		most = (bench->request->limits.deadline_s - clock_s()) / 4;
	if (bench_trials_left(bench) < TRIALS || each * TRIALS > most)
		return 0;
	return each * TRIALS_MAX > most ? (unsigned int)(most / each) : TRIALS_MAX;
}

bool random_fill_worth(struct bench *bench, bool fresh)
{
	if (!bench_may_go_on(bench))
		return false;
	if (affordable(bench) > 0)
		return true;
	BENCH_SAY(bench, "fill:price", said_flag(fresh), said_number(TRIALS),
		  fresh ? said_none() : said_text("redhand heap --poison-chance 0.5"));
	return false;
}

char *random_fill_request(struct heap_request *ret, const char *settings, bool fresh)
{
	char *tossed = mem_printf("%s%s 0.5\n", settings, fresh ? "fresh-chance" : "poison-chance");

	ret->series.identity.settings = tossed;
	ret->found_enough = 0;	   /* the coins are asked, whatever else is found */
	ret->give_up_clean = true; /* there are other questions to ask */
	ret->plan.poison_ppm = PPM;
	if (fresh)
		ret->plan.item.flags |= PLAN_HEAP_FRESH;
	return tossed;
}

int random_fill_run(struct bench *bench, bool fresh, struct heap_report *report, struct err *err)
{
	struct heap_request heap;
	AUTO(mem_freep) char *settings = guards_request(bench, &heap);
	AUTO(mem_freep)
	char *tossed = random_fill_request(&heap, settings, fresh);
	AUTO(strbuf_deinit) struct strbuf place = { 0 };
	uint64_t left = bench_trials_left(bench);
	unsigned int most = affordable(bench);
	struct experiment_made made;
	int r;

	bench_first_place(bench, &place);
	if (bench_plain_fault(bench))
		heap.unlike = strbuf_str(&place);

	heap.trials = TRIALS;
	heap.suspect_p = TOSS_P;
	heap.trials_max = left < most ? (unsigned int)left : most;
	r = heap_run(bench->runner.cs, &heap, report, err);
	if (r == 0) {
		heap_experiment(report, fresh ? EXPERIMENT_FILL_FRESH : EXPERIMENT_FILL_FREED,
				&made);
		r = guards_count(bench, &heap.series.identity, report, &made, err);
		/* Guards are on here, too: what they find damaged is no less so. */
		if (r == 0)
			r = guards_take(bench, &heap.series.identity, report, err);
	}
	bench->filled += report->heap.failed > 0 ? report->heap.trials : 0;
	bench->runner.interrupted |= report->interrupted;
	return r;
}

void fill_price(const struct inquiry *inq, struct price *ret)
{
	uint64_t trials, failed;
	double wanted = TRIALS;

	/* Nobody is told apart from the others before so many have failed. */
	bench_rate(inq->bench, &trials, &failed);
	if (failed > 0)
		wanted = fmax(wanted, FAILURES * (double)trials / (double)failed);
	price_of_trials(inq, fmin(wanted, TRIALS_MAX), 2, ret);
}
