/*
 * minimize-sim: the minimiser in made-up worlds, beside the known methods.
 *
 *	minimize-sim [--reps N] [--seed S] [--quick]
 *
 * Runs the very code that `redhand minimize` runs, without a process in sight, prints
 * one table, and exits 1 when a bar is missed. Everything is counted: baseline,
 * search, proof; the checks of order and of other tests only where the row says so.
 * --quick makes few repetitions with wide bars, for the ordinary test suite.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "minimize_sim_known.h"
#include "minimize_sim_world.h"
#include "search/minimize/minimiser.h"

struct settings {
	size_t reps;
	uint64_t seed;
	bool quick;
};

struct row {
	const char *name;
	struct world world;
	size_t slots; /* plans outstanding at a time; reports come back in random order */
	unsigned flags;
	size_t reps_divisor; /* costly or merely informative rows: fewer repetitions */
	enum minimiser_verdict verdict;
	enum minimiser_others others;
	/* The bars; 0: no bar. */
	size_t trials_most;
	double right_least; /* share that is right, 1-minimal and has that verdict */
};

struct tally {
	size_t *trials;
	size_t reps, right, minimal, verdicts, rollbacks;
	double plan_mean_us, plan_most_us, report_most_us;
};

enum { TRIALS_LIMIT = 60000 };

static double cpu_us(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (double)now.tv_sec * 1e6 + (double)now.tv_nsec / 1e3;
}

static void *must(void *memory)
{
	if (!memory) {
		fprintf(stderr, "minimize-sim: out of memory\n");
		exit(2);
	}
	return memory;
}

struct slot {
	struct minimiser_report report;
	uint32_t *tests;
};

static void slot_start(struct slot *slot, const struct minimiser_plan *plan, struct world *w)
{
	static const enum minimiser_outcome outcomes[] = {
		[WORLD_PASS] = MINIMISER_PASS,
		[WORLD_TARGET] = MINIMISER_TARGET,
		[WORLD_OTHER] = MINIMISER_OTHER,
	};

	memcpy(slot->tests, plan->tests, plan->count * sizeof(*plan->tests));
	slot->report = (struct minimiser_report){
		.plan_id = plan->id,
		.tests = slot->tests,
		.count = plan->count,
		.outcome = outcomes[world_run(w, plan->tests, plan->count)],
	};
}

/* Every slot always busy; which one ends next is drawn by lot. */
static void drive(struct minimiser *m, struct world *w, size_t n_slots, struct tally *tally)
{
	struct slot *slots = must(calloc(n_slots, sizeof(*slots)));
	double planning = 0, before;
	struct minimiser_plan plan;
	size_t busy = 0;

	for (size_t i = 0; i < n_slots; i++)
		slots[i].tests = must(calloc(w->n + 1, sizeof(uint32_t)));
	while (w->runs < TRIALS_LIMIT) {
		struct slot ended;
		size_t which;

		while (busy < n_slots) {
			before = cpu_us();
			if (minimiser_next(m, &plan) <= 0)
				break;
			before = cpu_us() - before;
			planning += before;
			tally->plan_most_us = fmax(tally->plan_most_us, before);
			slot_start(&slots[busy++], &plan, w);
		}
		if (busy == 0 || minimiser_done(m))
			break;
		which = n_slots == 1 ? 0 : (size_t)(world_random(w) * (double)busy);
		before = cpu_us();
		if (minimiser_report(m, &slots[which].report) < 0)
			abort();
		tally->report_most_us = fmax(tally->report_most_us, cpu_us() - before);
		ended = slots[which];
		slots[which] = slots[--busy];
		slots[busy] = ended;
	}
	tally->plan_mean_us += planning / (double)(w->runs ? w->runs : 1);
	for (size_t i = 0; i < n_slots; i++)
		free(slots[i].tests);
	free(slots);
}

static void once(const struct row *row, uint64_t seed, struct tally *tally)
{
	struct minimiser_options options = {
		.n_tests = row->world.n + 1,
		.victim = row->world.n,
		.confidence = 0.99,
		.seed = seed,
		.flags = row->flags,
	};
	struct minimiser_result result;
	struct minimiser_state state;
	struct world w = row->world;
	struct minimiser *m = NULL;
	bool minimal;

	if (world_init(&w, seed) < 0 || minimiser_new(&options, &m) < 0)
		must(NULL);
	drive(m, &w, row->slots ? row->slots : 1, tally);
	minimiser_state(m, &state);
	minimiser_result(m, &result);
	tally->trials[tally->reps++] = w.runs;
	tally->rollbacks += state.rollbacks;
	tally->right += world_right(&w, result.tests, result.count);
	minimal = world_minimal(&w, result.tests, result.count);
	tally->minimal += minimal;
	/* Where there is no small set to be found, only the verdict can be right. */
	tally->verdicts += result.verdict == row->verdict &&
			   (minimal || row->verdict == MINIMISER_NEVER_FAILED ||
			    row->verdict == MINIMISER_COUNT_MATTERS) &&
			   (!row->others || result.others == row->others);
	minimiser_free(m);
	world_deinit(&w);
}

static int by_size(const void *a, const void *b)
{
	size_t x = *(const size_t *)a, y = *(const size_t *)b;

	return x < y ? -1 : x > y;
}

static double percent(size_t part, size_t whole)
{
	return whole ? 100.0 * (double)part / (double)whole : 0;
}

static size_t quantile(struct tally *tally, double share)
{
	qsort(tally->trials, tally->reps, sizeof(*tally->trials), by_size);
	return tally->trials[(size_t)(share * (double)(tally->reps - 1))];
}

static bool print_row(const struct settings *settings, const struct row *row, struct tally *tally)
{
	size_t median = quantile(tally, 0.5), trials_most = row->trials_most;
	double right = percent(tally->verdicts, tally->reps), least = 100 * row->right_least;
	bool met;

	/* Few repetitions scatter: the quick bars only catch what is plainly broken. */
	if (settings->quick) {
		trials_most += trials_most / 2;
		least = fmax(least - 25, 0);
	}
	met = (!trials_most || median <= trials_most) && right >= least;
	printf("| %-46s | %6zu | %6zu | %5.1f %% | %5.1f %% | %5.2f | ", row->name, median,
	       quantile(tally, 0.9), percent(tally->right, tally->reps), right,
	       (double)tally->rollbacks / (double)tally->reps);
	if (trials_most)
		printf("<= %zu ", trials_most);
	if (least > 0)
		printf(">= %.0f %% ", least);
	printf("%s|\n", trials_most || least > 0 ? (met ? "met " : "MISSED ") : "");
	fflush(stdout);
	return met;
}

static bool run_row(const struct settings *settings, const struct row *row, struct tally *ret)
{
	size_t reps = settings->reps / (row->reps_divisor ? row->reps_divisor : 1);
	struct tally tally = { 0 };
	bool met;

	if (reps == 0)
		reps = 1;
	tally.trials = must(calloc(reps, sizeof(*tally.trials)));
	for (size_t i = 0; i < reps; i++)
		once(row, settings->seed * 1000003 + i, &tally);
	met = print_row(settings, row, &tally);
	free(tally.trials);
	tally.trials = NULL;
	*ret = tally;
	return met;
}

static void run_known(const struct settings *settings, const char *name, const struct world *world,
		      size_t (*method)(struct world *, uint32_t *))
{
	uint32_t *list = must(calloc(world->n, sizeof(*list)));
	struct row row = { .name = name };
	struct tally tally = { .trials = must(calloc(settings->reps, sizeof(size_t))) };

	for (size_t i = 0; i < settings->reps; i++) {
		struct world w = *world;
		size_t count;

		if (world_init(&w, settings->seed * 1000003 + i) < 0)
			must(NULL);
		count = method(&w, list);
		tally.trials[tally.reps++] = w.runs;
		tally.right += world_right(&w, list, count);
		tally.verdicts += world_minimal(&w, list, count);
		world_deinit(&w);
	}
	print_row(settings, &row, &tally);
	free(tally.trials);
	free(list);
}

static bool bars(const struct settings *settings)
{
	static const struct row columns[] = {
		{ .name = "redhand, n=57 k=6 p=0.2",
		  .world = { .n = 57, .needed = 6, .rate = 0.2 },
		  .verdict = MINIMISER_MINIMAL,
		  .trials_most = 480,
		  .right_least = 0.97 },
		{ .name = "redhand, n=500 k=3 p=0.05",
		  .world = { .n = 500, .needed = 3, .rate = 0.05 },
		  .verdict = MINIMISER_MINIMAL,
		  .trials_most = 1600,
		  .right_least = 0.97 },
		{ .name = "redhand, n=57 k=1 p=0.2",
		  .world = { .n = 57, .needed = 1, .rate = 0.2 },
		  .verdict = MINIMISER_MINIMAL,
		  .trials_most = 140,
		  .right_least = 0.97 },
	};
	static const struct {
		const char *name;
		size_t (*method)(struct world *, uint32_t *);
	} known[] = {
		{ "  ddmin, repeats for 99 %", known_ddmin_repeats },
		{ "  ddmin + SPRT 1 %", known_ddmin_sprt },
		{ "  rspec style + SPRT 1 %", known_rspec_sprt },
		{ "  chunk removal, repeats for 95 %", known_chunks },
	};
	struct tally tally;
	bool met = true;

	for (size_t i = 0; i < sizeof(columns) / sizeof(columns[0]); i++) {
		met = run_row(settings, &columns[i], &tally) && met;
		for (size_t j = 0; j < sizeof(known) / sizeof(known[0]); j++)
			run_known(settings, known[j].name, &columns[i].world, known[j].method);
	}
	return met;
}

static bool hard_worlds(const struct settings *settings)
{
	static const unsigned checks = MINIMISER_CHECK_OTHERS | MINIMISER_CHECK_ORDER;
	const struct row rows[] = {
		{ .name = "look-alike in 0.5 % of runs",
		  .world = { .n = 57, .needed = 6, .rate = 0.2, .lookalike = 0.005 },
		  .verdict = MINIMISER_MINIMAL,
		  .right_least = 0.9 },
		{ .name = "rate halves as the list shrinks",
		  .world = { .n = 57, .needed = 6, .rate = 0.2, .rate_last = 0.1 },
		  .verdict = MINIMISER_MINIMAL,
		  .right_least = 0.9 },
		{ .name = "rate doubles as the list shrinks",
		  .world = { .n = 57, .needed = 6, .rate = 0.2, .rate_last = 0.4 },
		  .verdict = MINIMISER_MINIMAL,
		  .right_least = 0.9 },
		{ .name = "two alternative triggers of 3",
		  .world = { .kind = WORLD_EITHER, .n = 57, .needed = 3, .rate = 0.2 },
		  .verdict = MINIMISER_MINIMAL,
		  .right_least = 0.9 },
		{ .name = "any 6 of 10",
		  .world = { .kind = WORLD_THRESHOLD,
			     .n = 57,
			     .needed = 6,
			     .heavy = 10,
			     .rate = 0.2 },
		  .verdict = MINIMISER_MINIMAL,
		  .right_least = 0.9 },
		{ .name = "another crash in 10 % of runs, told apart",
		  .world = { .n = 57, .needed = 6, .rate = 0.2, .other = 0.1 },
		  .reps_divisor = 3,
		  .verdict = MINIMISER_MINIMAL,
		  .right_least = 0.9 },
		{ .name = "victim alone, n=57 k=0 p=0.2",
		  .world = { .n = 57, .rate = 0.2 },
		  .reps_divisor = 3,
		  .verdict = MINIMISER_MINIMAL,
		  .right_least = 0.9 },
		{ .name = "many needed, n=57 k=15 p=0.2",
		  .world = { .n = 57, .needed = 15, .rate = 0.2 },
		  .reps_divisor = 6,
		  .verdict = MINIMISER_MINIMAL,
		  .right_least = 0.85 },
		{ .name = "any 30 of 57: the number matters",
		  .world = { .kind = WORLD_THRESHOLD,
			     .n = 57,
			     .needed = 30,
			     .heavy = 57,
			     .rate = 0.2 },
		  .reps_divisor = 3,
		  .verdict = MINIMISER_COUNT_MATTERS,
		  .right_least = 0.85 },
		{ .name = "never fails",
		  .world = { .kind = WORLD_NEVER, .n = 57 },
		  .reps_divisor = 100,
		  .verdict = MINIMISER_NEVER_FAILED,
		  .right_least = 1 },
		{ .name = "k=6, 8 slots",
		  .world = { .n = 57, .needed = 6, .rate = 0.2 },
		  .slots = 8,
		  .reps_divisor = 3,
		  .verdict = MINIMISER_MINIMAL,
		  .right_least = 0.9 },
		{ .name = "k=6, with the checks of order and others",
		  .world = { .n = 57, .needed = 6, .rate = 0.2 },
		  .flags = checks,
		  .reps_divisor = 3,
		  .verdict = MINIMISER_MINIMAL,
		  .others = MINIMISER_OTHERS_NONE,
		  .right_least = 0.9 },
		{ .name = "two triggers, with the checks: others do, too",
		  .world = { .kind = WORLD_EITHER, .n = 57, .needed = 3, .rate = 0.2 },
		  .flags = checks,
		  .reps_divisor = 3,
		  .verdict = MINIMISER_MINIMAL,
		  .others = MINIMISER_OTHERS_SOME,
		  .right_least = 0.8 },
		{ .name = "any 6 of 10, with the checks: number matters",
		  .world = { .kind = WORLD_THRESHOLD,
			     .n = 57,
			     .needed = 6,
			     .heavy = 10,
			     .rate = 0.2 },
		  .flags = checks,
		  .reps_divisor = 3,
		  .verdict = MINIMISER_COUNT_MATTERS,
		  .others = MINIMISER_OTHERS_ANY,
		  .right_least = 0.8 },
	};
	struct tally tally;
	bool met = true;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		met = run_row(settings, &rows[i], &tally) && met;
	return met;
}

/* 5,000 tests: trials, time per plan, memory. */
static bool large(const struct settings *settings)
{
	static const struct row row = {
		.name = "redhand, n=5000 k=2 p=0.3",
		.world = { .n = 5000, .needed = 2, .rate = 0.3 },
		.verdict = MINIMISER_MINIMAL,
		.trials_most = 399,
		.right_least = 0.9,
	};
	struct tally tally;
	struct rusage usage;
	bool met = run_row(settings, &row, &tally), fast, small;

	getrusage(RUSAGE_SELF, &usage);
	/* A sanitizer or a busy machine slows everything: the quick bar leaves room. */
	fast = tally.plan_most_us < (settings->quick ? 20000 : 2000);
	small = usage.ru_maxrss < 64 * 1024 || settings->quick;
	printf("\nplanning one trial for 5,000 tests: mean %.0f us, longest %.0f us of CPU time "
	       "(bar 2000 us: %s); longest report %.0f us\n",
	       tally.plan_mean_us / (double)tally.reps, tally.plan_most_us, fast ? "met" : "MISSED",
	       tally.report_most_us);
	printf("largest resident set of this process: %.1f MiB (bar 64 MiB: %s)\n",
	       (double)usage.ru_maxrss / 1024, small ? "met" : "MISSED");
	return met && fast && small;
}

static bool parse(int argc, char **argv, struct settings *ret)
{
	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--quick")) {
			ret->quick = true;
			ret->reps = 12;
		} else if (!strcmp(argv[i], "--reps") && i + 1 < argc) {
			ret->reps = strtoul(argv[++i], NULL, 10);
		} else if (!strcmp(argv[i], "--seed") && i + 1 < argc) {
			ret->seed = strtoull(argv[++i], NULL, 10);
		} else {
			return false;
		}
	}
	return ret->reps > 0;
}

int main(int argc, char **argv)
{
	struct settings settings = { .reps = 300, .seed = 7 };
	bool met;

	if (!parse(argc, argv, &settings)) {
		fprintf(stderr, "usage: minimize-sim [--reps N] [--seed S] [--quick]\n");
		return 2;
	}
	printf("%zu repetitions, seed %llu; rate unknown to redhand, known to the others\n\n",
	       settings.reps, (unsigned long long)settings.seed);
	printf("| world and method | median trials | p90 | fails | right and 1-minimal | rollbacks "
	       "| bar |\n|---|---|---|---|---|---|---|\n");
	met = bars(&settings);
	met = hard_worlds(&settings) && met;
	met = large(&settings) && met;
	printf("\n%s\n", met ? "all bars met" : "some bars MISSED");
	return met ? 0 : 1;
}
