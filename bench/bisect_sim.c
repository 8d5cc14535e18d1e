/*
 * The bisection against made-up histories, beside what `git bisect` needs in the same ones.
 *
 *	bisect-sim [REPETITIONS [SEED [PART OF THE NAME]]]
 *
 * Prints a table: trials (mean, median, 90th percentile), how often the answer was right, builds.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "search/bisection/bisection.h"
#include "search/stats/rate.h"
#include "search/stats/rng.h"

enum { TRIALS_MOST = 20000, TREES = 4 };

struct world {
	const char *name;
	size_t commits; /* GOOD not counted */
	double rate, stated, noise;
	uint64_t seen_trials, seen_failed;
	bool careful;
	bool made;	 /* commits have to be built, not only checked out */
	size_t branches; /* side branches that were merged */
	unsigned int slots;
	double broken; /* share of commits that do not build */
};

struct score {
	size_t *trials;
	size_t repetitions, right, total, builds;
};

/* Every branch takes a stretch of commits out of the line; its last is merged by the next. */
static struct lineage *make_history(const struct world *w)
{
	struct lineage_parents *parents = mem_alloc((w->commits + 1) * sizeof(parents[0]));
	uint32_t *numbers = mem_alloc(2 * (w->commits + 1) * sizeof(numbers[0]));
	size_t stretch = w->branches ? w->commits / (2 * w->branches + 1) : 0;
	struct lineage *lineage;
	size_t fork = 0;

	for (size_t c = 1; c <= w->commits; c++) {
		size_t part = stretch ? c / stretch : 0, place = stretch ? c % stretch : 1;

		numbers[2 * c] = (uint32_t)(c - 1);
		parents[c] = (struct lineage_parents){ .items = numbers + 2 * c, .count = 1 };
		if (place != 0 || part == 0 || part > 2 * w->branches)
			continue;
		if (part % 2 == 1) {
			/* The side branch begins where the line is one stretch older. */
			fork = c - stretch / 2;
			numbers[2 * c] = (uint32_t)fork;
			numbers[2 * c + 1] = (uint32_t)(c - 1);
		} else {
			numbers[2 * c + 1] = (uint32_t)(c - stretch - 1);
			parents[c].count = 2;
		}
	}
	lineage = lineage_new(parents, w->commits + 1);
	mem_free(parents);
	mem_free(numbers);
	return lineage;
}

struct bench {
	const struct world *world;
	const struct lineage *lineage;
	struct rng rng;
	size_t culprit;
	uint64_t seed;
};

static bool fails(struct bench *x, size_t commit)
{
	double luck = rng_unit(&x->rng);

	return luck <
	       (lineage_has(x->lineage, commit, x->culprit) ? x->world->rate : x->world->noise);
}

static bool builds(const struct bench *x, size_t commit)
{
	struct rng rng;

	rng_init(&rng, x->seed ^ commit * 0x9e3779b97f4a7c15u);
	return commit == x->world->commits || commit == 0 || rng_unit(&rng) >= x->world->broken;
}

/* One worktree per recently built commit, the one unused for longest gives way. */
struct trees {
	size_t commits[TREES];
	size_t count, builds;
};

static void visit(struct trees *t, struct bisection *b, size_t commit)
{
	size_t at = 0;

	while (at < t->count && t->commits[at] != commit)
		at++;
	if (at == t->count) {
		t->builds++;
		if (t->count < TREES)
			t->count++;
		else
			bisection_set_ready(b, t->commits[TREES - 1], false);
		at = t->count - 1;
	}
	for (; at > 0; at--)
		t->commits[at] = t->commits[at - 1];
	t->commits[0] = commit;
	bisection_set_ready(b, commit, true);
}

static size_t redhand(struct bench *x, struct score *score)
{
	AUTO(bisection_freep)
	struct bisection *b =
		bisection_new(&(struct bisection_options){ .lineage = x->lineage,
							   .rate = x->world->stated,
							   .seen_trials = x->world->seen_trials,
							   .seen_failed = x->world->seen_failed,
							   .careful = x->world->careful,
							   .builds = x->world->made });
	struct trees trees = { 0 };
	size_t flying[64], flights = 0, used = 0, commit;
	struct bisection_state state;

	while (used < TRIALS_MOST) {
		while (flights < x->world->slots && bisection_next(b, &commit) > 0) {
			if (!builds(x, commit)) {
				bisection_skip(b, commit);
				continue;
			}
			visit(&trees, b, commit);
			bisection_start(b, commit);
			flying[flights++] = commit;
		}
		if (flights == 0)
			break;
		commit = flying[0];
		flights--;
		for (size_t i = 0; i < flights; i++)
			flying[i] = flying[i + 1];
		bisection_end(b, commit);
		bisection_report(b, commit, fails(x, commit));
		used++;
	}
	bisection_state(b, &state);
	if (state.verdict == BISECTION_FOUND)
		score->right += state.commit == x->culprit;
	else if (state.verdict == BISECTION_RANGE)
		score->right += bisection_in_range(b, x->culprit);
	score->builds += trees.builds;
	return used;
}

/* `git bisect run` with a script that repeats; every commit in a straight line. */
static size_t git(struct bench *x, struct score *score, uint64_t repeats, bool stop_early)
{
	size_t good = 0, bad = x->world->commits, used = 0;

	while (bad - good > 1) {
		size_t middle = good + (bad - good) / 2;
		bool failed = false;

		for (uint64_t i = 0; i < repeats && !(failed && stop_early); i++, used++)
			failed = fails(x, middle) || failed;
		if (failed)
			bad = middle;
		else
			good = middle;
		score->builds++;
	}
	score->right += bad == x->culprit;
	return used;
}

static int by_size(const void *a, const void *b)
{
	size_t x = *(const size_t *)a, y = *(const size_t *)b;

	return (x > y) - (x < y);
}

static void print_score(const char *name, struct score *s)
{
	qsort(s->trials, s->repetitions, sizeof(s->trials[0]), by_size);
	(void)printf("| %-58s | %6.1f | %5zu | %5zu | %6.2f %% | %5.1f |\n", name,
		     (double)s->total / (double)s->repetitions, s->trials[s->repetitions / 2],
		     s->trials[s->repetitions * 9 / 10],
		     100.0 * (double)s->right / (double)s->repetitions,
		     (double)s->builds / (double)s->repetitions);
	(void)fflush(stdout);
}

enum method { REDHAND, GIT_WHOLE, GIT_EARLY };

static void run_world(const struct world *w, enum method method, size_t repetitions, uint64_t seed)
{
	AUTO(lineage_freep) struct lineage *lineage = make_history(w);
	uint64_t repeats = rate_clean_runs(w->rate, 0.99);
	struct score score = { .trials = mem_alloc(repetitions * sizeof(size_t)),
			       .repetitions = repetitions };
	struct bench x = { .world = w, .lineage = lineage };

	for (size_t i = 0; i < repetitions; i++) {
		x.seed = seed + i;
		rng_init(&x.rng, x.seed);
		x.culprit = 1 + rng_below(&x.rng, w->commits);
		score.trials[i] = method == REDHAND ? redhand(&x, &score)
						    : git(&x, &score, repeats, method == GIT_EARLY);
		score.total += score.trials[i];
	}
	print_score(w->name, &score);
	mem_free(score.trials);
}

static const struct {
	struct world world;
	enum method method;
} rows[] = {
	{ { .name = "64 commits, 20 %: redhand, told --rate 20%", 64, 0.2, 0.2 }, REDHAND },
	{ { .name = "64 commits, 20 %: redhand, told --rate 20%, with builds",
	    64,
	    0.2,
	    0.2,
	    .made = true },
	  REDHAND },
	{ { .name = "64 commits, 20 %: redhand, told --rate 10/50",
	    64,
	    0.2,
	    .seen_trials = 50,
	    .seen_failed = 10 },
	  REDHAND },
	{ { .name = "64 commits, 20 %: redhand, rate unknown", 64, 0.2 }, REDHAND },
	{ { .name = "64 commits, 20 %: redhand, rate unknown, with builds", 64, 0.2, .made = true },
	  REDHAND },
	{ { .name = "64 commits, 20 %: redhand, rate unknown, --careful",
	    64,
	    0.2,
	    .careful = true },
	  REDHAND },
	{ { .name = "64 commits, 20 %: git bisect, 21 repeats", 64, 0.2 }, GIT_WHOLE },
	{ { .name = "64 commits, 20 %: git bisect, up to 21 repeats", 64, 0.2 }, GIT_EARLY },
	{ { .name = "64 commits, 20 %: redhand, --rate, 2 slots", 64, 0.2, 0.2, .slots = 2 },
	  REDHAND },
	{ { .name = "64 commits, 20 %: redhand, --rate, 4 slots", 64, 0.2, 0.2, .slots = 4 },
	  REDHAND },
	{ { .name = "64 commits, 20 %: redhand, rate unknown, 2 slots", 64, 0.2, .slots = 2 },
	  REDHAND },
	{ { .name = "64 commits, 20 %: redhand, --rate 30% (wrong)", 64, 0.2, 0.3 }, REDHAND },
	{ { .name = "64 commits, 20 %: redhand, --rate 50% (very wrong)", 64, 0.2, 0.5 }, REDHAND },
	{ { .name = "64 commits, 20 %, 1 % look-alikes: redhand, --rate", 64, 0.2, 0.2, 0.01 },
	  REDHAND },
	{ { .name = "64 commits, 20 %, 1 % look-alikes: redhand, unknown", 64, 0.2, 0, 0.01 },
	  REDHAND },
	{ { .name = "64 commits, 20 %, 1 % look-alikes: git bisect, 21", 64, 0.2, 0, 0.01 },
	  GIT_WHOLE },
	{ { .name = "64 commits, 20 %, 30 % do not build: redhand, --rate",
	    64,
	    0.2,
	    0.2,
	    .broken = 0.3 },
	  REDHAND },
	{ { .name = "64 commits, 20 %, 3 branches: redhand, --rate", 64, 0.2, 0.2, .branches = 3 },
	  REDHAND },
	{ { .name = "64 commits, 5 %: redhand, rate unknown", 64, 0.05 }, REDHAND },
	{ { .name = "64 commits, 5 %: redhand, rate unknown, --careful",
	    64,
	    0.05,
	    .careful = true },
	  REDHAND },
	{ { .name = "64 commits, 5 %: redhand, --rate 5%", 64, 0.05, 0.05 }, REDHAND },
	{ { .name = "64 commits, 5 %: git bisect, 90 repeats", 64, 0.05 }, GIT_WHOLE },
	{ { .name = "64 commits, 10 %: redhand, rate unknown", 64, 0.1 }, REDHAND },
	{ { .name = "64 commits, 10 %: redhand, rate unknown, --careful",
	    64,
	    0.1,
	    .careful = true },
	  REDHAND },
	{ { .name = "64 commits, 50 %: redhand, rate unknown", 64, 0.5 }, REDHAND },
	{ { .name = "64 commits, 50 %: redhand, rate unknown, --careful",
	    64,
	    0.5,
	    .careful = true },
	  REDHAND },
	{ { .name = "64 commits, 90 %: redhand, rate unknown", 64, 0.9 }, REDHAND },
	{ { .name = "64 commits, 90 %: git bisect, 2 repeats", 64, 0.9 }, GIT_WHOLE },
	{ { .name = "64 commits, 100 %: redhand, rate unknown", 64, 1 }, REDHAND },
	{ { .name = "64 commits, 100 %: redhand, rate unknown, --careful", 64, 1, .careful = true },
	  REDHAND },
	{ { .name = "8 commits, 5 %: redhand, rate unknown", 8, 0.05 }, REDHAND },
	{ { .name = "8 commits, 10 %: redhand, rate unknown", 8, 0.1 }, REDHAND },
	{ { .name = "8 commits, 20 %: redhand, rate unknown", 8, 0.2 }, REDHAND },
	{ { .name = "8 commits, 50 %: redhand, rate unknown", 8, 0.5 }, REDHAND },
	{ { .name = "8 commits, 100 %: redhand, rate unknown", 8, 1 }, REDHAND },
	{ { .name = "1000 commits, 5 %: redhand, rate unknown", 1000, 0.05 }, REDHAND },
	{ { .name = "1000 commits, 10 %: redhand, rate unknown", 1000, 0.1 }, REDHAND },
	{ { .name = "1000 commits, 20 %: redhand, rate unknown", 1000, 0.2 }, REDHAND },
	{ { .name = "1000 commits, 50 %: redhand, rate unknown", 1000, 0.5 }, REDHAND },
	{ { .name = "1000 commits, 100 %: redhand, rate unknown", 1000, 1 }, REDHAND },
	{ { .name = "1000 commits, 20 %: redhand, --rate", 1000, 0.2, 0.2 }, REDHAND },
	{ { .name = "1000 commits, 20 %: git bisect, 21 repeats", 1000, 0.2 }, GIT_WHOLE },
};

int main(int argc, char **argv)
{
	size_t repetitions = argc > 1 ? strtoul(argv[1], NULL, 10) : 1000;
	uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
	const char *part = argc > 3 ? argv[3] : "";

	(void)printf(
		"| %-58s | trials | median | 90 %% | right | builds |\n|---|---|---|---|---|---|\n",
		"history and method");
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct world world = rows[i].world;

		if (!strstr(world.name, part))
			continue;
		world.slots = world.slots ? world.slots : 1;
		/* Long ones less often: they vary less, too. */
		run_world(&world, rows[i].method,
			  world.commits > 64 || world.rate < 0.1 ? (repetitions + 9) / 10
								 : repetitions,
			  seed);
	}
	return 0;
}
