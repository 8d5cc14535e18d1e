/* `redhand heap`: options, trials with guards or fences or growth, the report. */
#include "cmd/commands.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/progress.h"
#include "cmd/trial_options.h"
#include "report/report_growth.h"
#include "report/report_heap.h"
#include "run/observe.h"
#include "studies/growth/growth_study.h"
#include "studies/heap/heap_evidence.h"
#include "studies/heap/heap_study.h"

struct heap_options {
	struct common_options common;
	struct trial_options trial;
	bool growth;
	bool no_python_objects;
	uint64_t trials; /* 0: the default of what is looked for */
	uint64_t quarantine_mib;
	unsigned int sample; /* enum heap_sample */
	bool fence, no_fence;
	unsigned int fence_place; /* enum fence_place */
	const char *sweep;
	unsigned int sweep_at; /* less one, as in enum plan_sweep_at */
	const char *poison_chance;
	const char *seed;
};

#define GROWTH_TRIALS 3
#define HEAP_TRIALS 5
#define CHANCE_TRIALS 40 /* enough for a context among a thousand that decides alone */
#define CHANCE_TRIALS_MAX 400
#define NOT_GIVEN UINT64_MAX

enum heap_sample { SAMPLE_ADAPTIVE, SAMPLE_FULL };

enum fence_place { FENCE_ALIGNED, FENCE_EXACT, FENCE_FRONT };

static const char *const fence_place_names[] = { "aligned", "exact", "front", NULL };
static const char *const sample_names[] = { "adaptive", "full", NULL };
static const char *const sweep_at_names[] = { "free", "lines", "crash", NULL };

static const struct option heap_option_table[] = {
	OPTION(COUNT, "quarantine", "MIB", offsetof(struct heap_options, quarantine_mib),
	       "Keep so much of freed memory back, overwritten, to see who still writes to it "
	       "(default 64)",
	       .min = 0, .max = PLAN_QUARANTINE_MIB_MAX),
	OPTION(CHOICE, "sample", "HOW", offsetof(struct heap_options, sample),
	       "Which blocks have guards and go through quarantine: all of rare contexts and some "
	       "of those that make many, and all from the first trial on that fails or finds "
	       "something (adaptive, default), or all of them (full; always so with --sweep and "
	       "--poison-chance)",
	       .choices = sample_names),
	OPTION(FLAG, "fence", NULL, offsetof(struct heap_options, fence),
	       "Fences from the start: each block ends at a closed page, and a freed block's pages "
	       "are closed, so that reads are seen as well as writes; without this option only when "
	       "guards have found nothing"),
	OPTION(FLAG, "no-fence", NULL, offsetof(struct heap_options, no_fence),
	       "No trials with fences"),
	OPTION(CHOICE, "fence-place", "HOW", offsetof(struct heap_options, fence_place),
	       "Where a block with a fence lies: its end as near to the closed page as its "
	       "alignment allows (aligned, default), right at it, with which not every program "
	       "works (exact), or its start right behind a closed page, against accesses before it "
	       "(front)",
	       .choices = fence_place_names),
	OPTION(TEXT, "sweep", "WHOSE", offsetof(struct heap_options, sweep),
	       "When a block is freed, look through all memory for who still points to it: blocks "
	       "that the function WHOSE allocates, itself or further down; those of a context, by "
	       "its 16 hexadecimal digits; all; or sampled: any, as often as a tenth of the time "
	       "allows"),
	OPTION(CHOICE, "sweep-at", "WHEN", offsetof(struct heap_options, sweep_at),
	       "When to look: at each such free (free, default), before each line of output for "
	       "all that were freed since the last (lines), or only at a crash (crash)",
	       .choices = sweep_at_names),
	OPTION(TEXT, "poison-chance", "P", offsetof(struct heap_options, poison_chance),
	       "Overwrite freed blocks with probability P (0.5 is best) per context and trial, and "
	       "tell with which contexts the failure comes and goes: this finds code that only "
	       "reads freed memory, too"),
	OPTION(FLAG, "no-python-objects", NULL, offsetof(struct heap_options, no_python_objects),
	       "No guards around objects of CPython, only around what Python itself takes from "
	       "malloc: several times faster, and an object that is used after its end is not "
	       "seen"),
	OPTION(TEXT, "seed", "N", offsetof(struct heap_options, seed),
	       "Seed for the guards, for the order of trials and for --poison-chance (default: a "
	       "new one, printed at the end)"),
	OPTION(FLAG, "growth", NULL, offsetof(struct heap_options, growth),
	       "Something else: which sites allocate blocks that stay, test after test"),
	OPTION(COUNT, "trials", "N", offsetof(struct heap_options, trials),
	       "Run the program N times, and as often without guards to compare (default 5; "
	       "with --poison-chance 40, and up to 400 while too few have failed to tell; 3 "
	       "with --growth, both without a comparison)",
	       .letter = 'n', .min = 1, .max = 1000),
	OPTIONS_END,
};

static void defaults(void *ptr)
{
	struct heap_options *options = ptr;

	options->quarantine_mib = NOT_GIVEN;
	options->trial.observe = OBSERVERS; /* what the job needs */
}

static int check_growth(const struct heap_options *options, struct err *err)
{
	if (options->trial.observe != OBSERVERS && options->trial.observe != OBSERVE_IDS)
		return err_set(err, -EINVAL,
			       "--growth follows every allocation, so it needs --observe ids");
	if (options->fence)
		return err_set(err, -EINVAL, "--growth does not go together with --fence");
	if (options->sweep || options->poison_chance || options->quarantine_mib != NOT_GIVEN)
		return err_set(err, -EINVAL,
			       "--growth does not go together with --quarantine, --sweep and "
			       "--poison-chance");
	return 0;
}

/* The same for both jobs: settings, a case, and a program that can be observed. */
static int prepare(const struct invocation *inv, enum observer observer, struct trial_setup *setup,
		   struct case_store **cs, struct err *err)
{
	const struct heap_options *options = inv->options;
	struct trial_options trial = options->trial;
	int r;

	trial.observe = observer;
	r = trial_setup_init(setup, &trial, "heap", inv->program, err);
	if (r == 0 && setup->unobserved)
		r = err_set(err, -ENOTSUP, "%s: what it allocates cannot be seen",
			    setup->unobserved);
	return r == 0 ? trial_setup_open(setup, options->common.case_dir, cs, err) : r;
}

static int run_growth(const struct invocation *inv, struct err *err)
{
	const struct heap_options *options = inv->options;
	AUTO(case_closep) struct case_store *cs = NULL;
	AUTO(trial_setup_deinit) struct trial_setup setup = { 0 };
	AUTO(growth_report_deinit) struct growth_report report = { 0 };
	struct progress progress;
	struct growth_request request = {
		.trials = options->trials > 0 ? (unsigned int)options->trials : GROWTH_TRIALS,
	};
	int r = check_growth(options, err);

	if (r == 0)
		r = prepare(inv, OBSERVE_IDS, &setup, &cs, err);
	if (r < 0)
		return r;
	request.series = trial_setup_series(&setup, &options->trial, inv, &progress);
	r = growth_run(cs, &request, &report, err);
	progress_end(&progress);
	if (r < 0)
		return r;
	if (options->common.json)
		report_growth_json(&report, stdout);
	else
		report_growth_text(&report, options->common.verbose, stdout);
	return common_exit(report.interrupted, report.sites.count > 0);
}

static int parse_chance(const char *text, uint32_t *ret, struct err *err)
{
	char *end = NULL;
	double chance = text ? strtod(text, &end) : 1;

	if (text && (end == text || *end != '\0' || !(chance > 0 && chance < 1))) {
		(void)err_set(err, -EINVAL,
			      "--poison-chance wants a number between 0 and 1, not '%s'", text);
		return err_set_remedy(err, "0.5 tells most");
	}
	*ret = (uint32_t)lround(chance * 1e6);
	return 0;
}

static bool is_context(const char *text, uint64_t *ret)
{
	if (strlen(text) != 16 || strspn(text, "0123456789abcdef") != 16)
		return false;
	*ret = strtoull(text, NULL, 16);
	return true;
}

static int parse_sweep(const struct heap_options *options, struct heap_request *request,
		       struct err *err)
{
	struct plan_heap *plan = &request->plan;
	const char *sweep = options->sweep;

	plan->sweep_at = options->sweep_at + PLAN_SWEEP_AT_FREE;
	if (!sweep)
		return 0;
	if (sweep[0] == '\0')
		return err_set(err, -EINVAL, "--sweep wants a function, a context, all or sampled");
	if (strcmp(sweep, "all") == 0) {
		plan->sweep = PLAN_SWEEP_ALL;
	} else if (strcmp(sweep, "sampled") == 0) {
		plan->sweep = PLAN_SWEEP_SAMPLED;
	} else if (is_context(sweep, &plan->sweep_hashes[0])) {
		plan->sweep = PLAN_SWEEP_CONTEXTS;
		plan->sweep_count = 1;
	} else {
		request->sweep_function = sweep;
	}
	return 0;
}

static int fill_fence(const struct heap_options *options, struct heap_request *request,
		      struct err *err)
{
	static const uint16_t flags[] = { [FENCE_ALIGNED] = 0,
					  [FENCE_EXACT] = PLAN_FENCE_EXACT,
					  [FENCE_FRONT] = PLAN_FENCE_FRONT };

	if (options->fence && (options->no_fence || options->sweep || options->poison_chance))
		return err_set(err, -EINVAL,
			       "--fence does not go together with --no-fence, --sweep and "
			       "--poison-chance");
	request->fence.flags = flags[options->fence_place];
	if (options->fence)
		request->fence.when = HEAP_FENCE_INSTEAD;
	else if (!options->no_fence && !options->sweep && !options->poison_chance)
		request->fence.when = HEAP_FENCE_AFTERWARDS;
	return 0;
}

static int fill_request(const struct heap_options *options, struct heap_request *request,
			struct err *err)
{
	int r = trial_seed(options->seed, &request->seed, err);

	observe_heap_defaults(0, &request->plan);
	if (options->no_python_objects)
		request->plan.item.flags &= (uint16_t)~PLAN_HEAP_PYTHON;
	if (r == 0)
		r = parse_chance(options->poison_chance, &request->plan.poison_ppm, err);
	if (r == 0)
		r = parse_sweep(options, request, err);
	if (r < 0)
		return r;
	if (options->trial.observe != OBSERVERS && options->trial.observe != OBSERVE_HEAP)
		return err_set(err, -EINVAL, "heap is an observer itself; --observe %s is another",
			       observer_names[options->trial.observe]);
	if (options->quarantine_mib != NOT_GIVEN)
		request->plan.quarantine_mib = (uint32_t)options->quarantine_mib;
	if (options->sample == SAMPLE_ADAPTIVE && !options->poison_chance && !options->sweep)
		request->plan.item.flags |= PLAN_HEAP_SAMPLED;
	r = fill_fence(options, request, err);
	if (r < 0)
		return r;
	request->compare = !options->poison_chance;
	request->trials = options->poison_chance ? CHANCE_TRIALS : HEAP_TRIALS;
	request->trials_max = options->poison_chance ? CHANCE_TRIALS_MAX : HEAP_TRIALS;
	if (options->trials > 0)
		request->trials = request->trials_max = (unsigned int)options->trials;
	return 0;
}

/* What was asked for is part of what the series is known by. */
static void identify(struct strbuf *identity, const struct heap_options *options)
{
	strbuf_addf(
		identity,
		"quarantine %llu\nsweep %s %u\nchance %s\npython %d\nsample %u\nfence %d %d %u\n",
		(unsigned long long)options->quarantine_mib, options->sweep ? options->sweep : "",
		options->sweep_at, options->poison_chance ? options->poison_chance : "",
		!options->no_python_objects, options->sample, options->fence, options->no_fence,
		options->fence_place);
}

static bool found(const struct heap_report *report)
{
	if (report->findings.count > 0 || report->suspects.count > 0)
		return true;
	return VEC_ANY(&report->dangling, dangling, dangling->used);
}

static int run(const struct invocation *inv, struct err *err)
{
	const struct heap_options *options = inv->options;
	AUTO(case_closep) struct case_store *cs = NULL;
	AUTO(trial_setup_deinit) struct trial_setup setup = { 0 };
	AUTO(heap_report_deinit) struct heap_report report = { 0 };
	struct progress progress;
	struct heap_request request = { 0 };
	int r;

	if (options->growth)
		return run_growth(inv, err);
	r = fill_request(options, &request, err);
	if (r == 0)
		r = prepare(inv, OBSERVE_HEAP, &setup, &cs, err);
	if (r < 0)
		return r;
	identify(&setup.identity, options);
	request.series = trial_setup_series(&setup, &options->trial, inv, &progress);
	r = heap_run(cs, &request, &report, err);
	progress_end(&progress);
	if (r == 0)
		r = heap_store_evidence(cs, &report, err);
	if (r < 0)
		return r;
	if (options->common.json)
		report_heap_json(&report, stdout);
	else
		report_heap_text(&report, options->common.verbose, stdout);
	return common_exit(report.interrupted, found(&report));
}

const struct command cmd_heap = {
	.name = "heap",
	.summary =
		"Which block was overrun, written after its free, freed twice, or stays for ever",
	.usage = "[options] -- PROGRAM ARGS…",
	.description =
		"Runs the program a few times with guards around every block that it allocates, and keeps "
		"freed blocks back for a while, overwritten. Guards and freed blocks are looked at when a "
		"block is freed or resized, before each line of output, now and then, at exit and at a "
		"crash. The report says what was damaged: which block, who allocated and freed it, "
		"which bytes, and between which two lines or in which test. It also has blocks "
		"that are freed twice, from their middle, by the wrong function, or that never were one. "
		"Findings of several runs that are alike are one.\n\n"
		"Most of the time that guards cost goes into a few contexts that make millions of blocks. "
		"So of those only some blocks have guards, others in each trial; the report says how "
		"many. As soon as a trial fails or something is found, the trials that follow guard all "
		"blocks, and --sample full does so from the start.\n\n"
		"Guards see writes. Where they have found nothing, a few more trials have fences, and with "
		"--fence all have: each block ends at a page that is closed, and a freed block's pages are "
		"closed. Each read or write there is reported with its stack and let "
		"through, so that the program goes on as it would without fences. Where there are more blocks than fit, or "
		"fences would take most of the time, contexts that make many blocks take turns from trial "
		"to trial; the report says how many blocks had a fence.\n\n"
		"Guards move the blocks and quarantine delays their reuse, which may hide a failure or "
		"bring it out. So the program is run as often without, in turns, and the difference is "
		"told. The exit status is 1 when something was found.\n\n"
		"CPython is made to take its objects one by one from the guarded heap, which slows it down; "
		"those that Python itself keeps for reuse (its free lists) do not count as freed.\n\n"
		"With --growth: runs a program with many tests a few times, counts the live blocks of every "
		"allocation context after each test, and names the sites whose count keeps rising "
		"and never comes back: caches that nobody empties, objects that nobody removes. Leak "
		"checkers miss these, since all of it is still pointed to.\n\n"
		"Between which tests growth is told: lines that match --breadcrumb, if it is given; "
		"else lines that test frameworks print when a test starts or ends (googletest, pytest "
		"-v, unittest -v, Rust, Go, ctest, TAP); else every line.\n\n"
		"What fills up and then stays, is set up once at the start, or goes up and down is not "
		"named, and neither is what does not grow in every run. What rose as long as tests of "
		"one kind ran, alike but for numbers and parameters, is. A cache that is larger than "
		"the run is long cannot be told from growth: repeat the tests to be sure. At "
		"least five tests in one process are needed. Growth is measured anew each time.",
	.examples = "  redhand heap -- ./mytests\n"
		    "      which block is damaged, and by which test?\n\n"
		    "  redhand heap --fence -- ./mytests\n"
		    "      does anybody read behind a block, or after its free?\n\n"
		    "  redhand heap --sweep session_new -- ./server --self-test\n"
		    "      who still points to a session when it is freed?\n\n"
		    "  redhand heap --poison-chance 0.5 -- ./mytests\n"
		    "      it crashes now and then: whose freed blocks are read?\n\n"
		    "  redhand heap --growth -- ./mytests --gtest_repeat=5\n"
		    "      what grows from test to test?\n\n"
		    "  redhand heap --growth --breadcrumb '^request' -- ./server --self-test\n"
		    "      from request to request\n",
	TRIAL_OPTIONS(struct heap_options, "What to look for", heap_option_table),
	.program = PROGRAM_REQUIRED,
	.defaults = defaults,
	.run = run,
};
