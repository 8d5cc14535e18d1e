/*
 * Runs a program under the heap observer and judges what was found, for tests of the verdicts:
 *
 *	judge_heap CASE AGENTS TRIALS PROGRAM [ARGS…]
 *
 * Prints a line `class CLASS`, `writer FUNCTION`, `allocator FUNCTION` and so on, as the victims
 * tell the truth, for what the verdict names, then the sentence.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "judge/judge.h"
#include "run/observe.h"
#include "says.h"
#include "studies/heap/heap_evidence.h"
#include "studies/heap/heap_study.h"

#define TIMEOUT_NS 60000000000ull

static struct err err;

static void check(int r)
{
	if (r < 0) {
		(void)fprintf(stderr, "judge_heap: %s\n", err.message);
		exit(1);
	}
}

static void site(const char *role, const struct stack *stack)
{
	const struct frame *frame = stack_site(stack);

	if (frame && frame->function)
		(void)printf("%s %s\n", role, frame->function);
}

static void print(const struct verdict *verdict)
{
	(void)printf("class %s\nfirm %d\ncaught %llu\n", verdict_class_name(verdict->class),
		     verdict->firm, (unsigned long long)verdict->caught);
	site("writer", &verdict->writer);
	site("freer", &verdict->freed_by);
	if (verdict->victim)
		site("allocator", &verdict->victim->allocated);
	if (verdict->holder != 0 && verdict->home.name)
		(void)printf("holder %s\n", verdict->home.name);
	(void)printf("sentence %s\n", sentence_of(&verdict->sentence));
	VEC_FOREACH (&verdict->alternatives, other)
		(void)printf("or %s\n", verdict_class_name(other->class));
}

static void run(struct case_store *cs, const struct trial_settings *settings, unsigned int trials,
		char **program, struct heap_report *ret)
{
	AUTO(strv_deinit) struct strv env = { 0 };
	struct heap_request request = {
		.series = { .identity = { .command = "heap",
					  .settings = program[0],
					  .program = "" },
			    .settings = settings,
			    .program = program,
			    .slot_env = &env,
			    .jobs = 1 },
		.trials = trials,
		.seed = 4711,
	};

	strv_add(&env, "VICTIM=1");
	observe_heap_defaults(0, &request.plan);
	check(heap_run(cs, &request, ret, &err));
}

int main(int argc, char **argv)
{
	AUTO(case_closep) struct case_store *cs = NULL;
	AUTO(heap_report_deinit) struct heap_report report = { 0 };
	AUTO(evidence_list_deinit) struct evidence_list evidence = { 0 };
	AUTO(verdict_deinit) struct verdict verdict = { 0 };
	AUTO(trial_settings_deinit)
	struct trial_settings settings = { .keep = KEEP_FAILED,
					   .flags = TRIAL_SHARE_TMP,
					   .timeout_ns = TIMEOUT_NS,
					   .output_limit = 1 << 20 };
	AUTO(mem_freep) char *trials = NULL;

	if (argc < 5)
		return 2;
	check(case_open(argv[1], CASE_WRITE, &cs, &err));
	trials = mem_printf("%s/trials", argv[1]);
	settings.trials.path = realpath(trials, NULL);
	settings.stdin_path = mem_strdup("/dev/null");
	settings.agent_dir = mem_strdup(argv[2]);
	(void)sigprocmask(SIG_BLOCK, NULL, &settings.signal_mask);
	run(cs, &settings, (unsigned int)strtoul(argv[3], NULL, 10), argv + 4, &report);
	heap_evidence(&report, &evidence);
	for (size_t i = 0; i < evidence.list.count; i++)
		evidence.list.items[i].id = i + 1;
	VEC_FOREACH (&evidence.list, e) {
		AUTO(strbuf_deinit) struct strbuf words = { 0 };

		words_evidence(e, &words);
		(void)printf("%s trial %llu%s: %s\n",
			     evidence_observed(e) ? "observed" : "evidence",
			     (unsigned long long)e->trial, e->failing ? "" : " (passed)",
			     strbuf_str(&words));
	}
	judge_evidence(&evidence, &verdict);
	print(&verdict);
	return 0;
}
