/*
 * Trials in which what stands in blocks is left to chance, context by context
 * (engine/heap/chance.h).
 */
#include "hunt/bench.h"

#include "engine/heap/evidence.h"
#include "engine/heap/heap.h"

#define PPM 500000u
#define TRIALS 40u
#define TRIALS_MAX 160u
#define SECONDS 60.0

/* So many there is time for: a minute, and no more than a quarter of what is left. */
static unsigned int affordable(const struct chase *chase)
{
	double each = chase->guarded_s > 0 ? chase->guarded_s : chase->request->guarded_s;
	double most = SECONDS;

	if (chase->request->deadline_s > 0 &&
	    (chase->request->deadline_s - series_now_s()) / 4 < most)
		most = (chase->request->deadline_s - series_now_s()) / 4;
	if (chase_trials_left(chase) < TRIALS || each * TRIALS > most)
		return 0;
	return each * TRIALS_MAX > most ? (unsigned int)(most / each) : TRIALS_MAX;
}

bool toss_worth(struct chase *chase, const char *what, const char *command)
{
	if (!chase_may_go_on(chase))
		return false;
	if (affordable(chase) > 0)
		return true;
	chase_say(chase, "whether it goes with what stands in %s would take %u trials%s%s", what,
		  TRIALS, command ? ": " : "", command ? command : "");
	return false;
}

int toss_run(struct chase *chase, const struct toss *about, struct heap_report *report,
	     struct err *err)
{
	struct heap_request heap;
	AUTO(mem_freep) char *settings = guards_request(chase, &heap);
	AUTO(mem_freep)
	char *tossed =
		mem_printf("%s%s 0.5 %016llx\n", settings, about ? "fresh-chance" : "poison-chance",
			   about ? (unsigned long long)about->context : 0);
	uint64_t left = chase_trials_left(chase);
	unsigned int most = affordable(chase);
	struct experiment_made made;
	int r;

	heap.identity.settings = tossed;
	heap.trials = TRIALS;
	heap.give_up_clean = true; /* there are other questions to ask */
	heap.trials_max = left < most ? (unsigned int)left : most;
	heap.plan.poison_ppm = PPM;
	if (about) {
		heap.plan.item.flags |= PLAN_HEAP_FRESH;
		heap.plan.sweep_count = about->context != 0;
		heap.plan.sweep_hashes[0] = about->context;
	}
	r = heap_run(chase->runner.cs, &heap, report, err);
	if (r == 0) {
		guards_count(chase, report);
		heap_experiment(report, about ? EXPERIMENT_FILL_FRESH : EXPERIMENT_FILL_FREED,
				&made);
		evidence_add_experiment(&chase->ret->evidence, &made);
	}
	chase->tossed += report->heap.failed > 0 ? report->heap.trials : 0;
	chase->runner.interrupted |= report->interrupted;
	return r;
}
