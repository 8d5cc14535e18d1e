/*
 * Settings that are tried against each other, in turns: `compare` inside of a hunt.
 */
#include "engine/hunt/inside.h"

#include <string.h>

#include "engine/series/settings.h"

#define ARMS_MAX 4

static void identify(const struct trying *trying, const char *settings, struct strbuf *sb)
{
	strbuf_adds(sb, settings);
	/* Of another program than the settings', its words are what the arms run. */
	if (trying->list)
		strbuf_addf(sb, "list %s\n", trying->list);
	for (unsigned int i = 0; i < trying->count; i++)
		strbuf_addf(sb, "arm %zu:%s\n", strlen(trying->arms[i]), trying->arms[i]);
	strbuf_addf(sb, "trials %llu\n", (unsigned long long)trying->trials);
}

static uint64_t failed_in_all(const struct compare_result *result, uint64_t *ret_trials)
{
	uint64_t failed = 0;

	*ret_trials = 0;
	VEC_FOREACH (&result->arms, arm) {
		*ret_trials += arm->rate.trials;
		failed += arm->rate.failed;
	}
	return failed;
}

int hunt_try(struct hunt *hunt, const struct trying *trying, struct compare_result *ret,
	     struct series_found *ret_series)
{
	const struct hunt_request *request = hunt->request;
	AUTO(strbuf_deinit) struct strbuf identity = { 0 };
	AUTO(mem_freep)
	char *settings = series_settings_with(hunt->plain_settings, "command", "command 7:compare\n");
	struct arm arms[ARMS_MAX] = { 0 };
	struct compare_request compare = { .settings = hunt->plain.settings,
					   .observer = hunt->plain.observer,
					   .program = trying->program,
					   .slot_env = trying->env,
					   .jobs = hunt->jobs,
					   .arms = arms,
					   .arm_count = trying->count,
					   .trials = trying->trials,
					   .seed = request->seed,
					   .stop_early = trying->stop_early,
					   .enough = trying->enough,
					   .fresh = request->fresh,
					   .progress = request->show.progress,
					   .progress_ctx = request->show.ctx };
	uint64_t trials, failed;
	int r = 0;

	identify(trying, settings, &identity);
	compare.identity = (struct series_identity){ .command = "compare",
						     .settings = strbuf_str(&identity),
						     .program = hunt->plain.identity.program };
	for (unsigned int i = 0; i < trying->count && r == 0; i++)
		r = arm_parse(trying->arms[i], &arms[i], hunt->err);
	if (r == 0)
		r = compare_run(hunt->cs, &compare, ret, hunt->err);
	if (r == 0) {
		failed = failed_in_all(ret, &trials);
		hunt_count(hunt, trials, failed, ret->earlier);
		hunt->ret->interrupted |= ret->interrupted;
	}
	if (r == 0 && ret_series)
		r = case_series(hunt->cs, &compare.identity, 0, ret_series, hunt->err);
	/* Names in the result are the arms': they are needed no more than the counts. */
	VEC_FOREACH (&ret->arms, arm)
		arm->name = "";
	for (unsigned int i = 0; i < trying->count; i++)
		arm_deinit(&arms[i]);
	return r;
}
