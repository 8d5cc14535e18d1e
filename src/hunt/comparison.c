/*
 * Settings that are tried against each other, in turns: `compare` inside of a hunt.
 *
 * What is counted is what is hunted: where a test fails in every run and the crash comes now and
 * then, an arm in which only the test failed has not shown anything. Where the question is what
 * brings a crash out, any crash counts; where it is what hides it, only that one.
 */
#include "hunt/inquiry.h"

#include <string.h>

#include "run/settings.h"
#include "search/stats/fisher.h"
#include "search/stats/rate.h"

struct counting {
	struct inquiry *inq;
	const struct arms_request *asked;
};

static void identify(const struct arms_request *asked, const char *settings, struct strbuf *sb)
{
	strbuf_adds(sb, settings);
	/* Of another program than the settings', its words are what the arms run. */
	if (asked->list)
		strbuf_addf(sb, "list %s\n", asked->list);
	for (unsigned int i = 0; i < asked->count; i++)
		strbuf_addf(sb, "arm %zu:%s\n", strlen(asked->arms[i]), asked->arms[i]);
	strbuf_addf(sb, "trials %llu\n", (unsigned long long)asked->trials);
}

/* One failure of a trial. */
struct shown_comparison {
	bool crash, target, stranger;
};

static struct shown_comparison look_at(const struct inquiry *inq, const char *id)
{
	AUTO(signature_deinit) struct signature signature = { 0 };
	struct err ignored = { 0 };
	struct shown_comparison shown = { 0 };

	if (case_signature(inq->cs, id, &signature, &ignored) < 0)
		return shown;
	shown.crash = signature.kind == FAILURE_SIGNAL;
	shown.target = target_is(&inq->known.match, &signature);
	shown.stranger =
		shown.crash && !shown.target && !bystanders_have(&inq->known.others, &signature);
	return shown;
}

/* Does a trial with these signatures (ids, separated by a space) show what is asked for? */
static bool shows(const struct counting *counting, const struct tally *tally,
		  const char *signatures, char stranger[SIGNATURE_ID_LEN + 1])
{
	bool found = false;
	char id[SIGNATURE_ID_LEN + 1];

	stranger[0] = '\0';
	if (!hunt_crashes(counting->inq))
		return tally_counts(tally, signatures);
	while ((signatures = signature_next_id(signatures, id)) != NULL) {
		struct shown_comparison shown = look_at(counting->inq, id);

		found |= counting->asked->target ? shown.target : shown.crash;
		if (shown.stranger)
			memcpy(stranger, id, sizeof(id));
	}
	return found;
}

static void count(const struct counting *counting, const struct tally *tally,
		  struct arms_outcome *ret)
{
	uint64_t trials[ARMS_MAX] = { 0 }, failed[ARMS_MAX] = { 0 }, strange[ARMS_MAX] = { 0 };

	VEC_FOREACH (&tally->counts, c) {
		char stranger[SIGNATURE_ID_LEN + 1];
		bool shown;

		if (c->arm >= ARMS_MAX)
			continue;
		trials[c->arm] += c->count;
		shown = shows(counting, tally, c->signatures, stranger);
		if (stranger[0] != '\0' && c->count > strange[c->arm]) {
			strange[c->arm] = c->count;
			memcpy(ret->stranger[c->arm], stranger, sizeof(stranger));
		}
		if (!shown)
			continue;
		failed[c->arm] += c->count;
		if (ret->example[c->arm] == 0)
			ret->example[c->arm] = c->trial;
	}
	for (unsigned int i = 0; i < ARMS_MAX; i++)
		ret->arms[i] = rate_wilson(trials[i], failed[i], RATE_CONFIDENCE);
}

static bool enough(void *ctx, const struct tally *tally)
{
	const struct counting *counting = ctx;
	struct arms_outcome so_far = { 0 };

	count(counting, tally, &so_far);
	return so_far.arms[counting->asked->until_arm].failed >= counting->asked->until_failures;
}

static int run(struct inquiry *inq, struct compare_request *compare, struct arms_outcome *ret)
{
	AUTO(compare_result_deinit) struct compare_result result = { 0 };
	AUTO(tally_deinit) struct tally tally = { 0 };
	struct series_found found;
	int r = compare_run(inq->cs, compare, &result, inq->err);

	if (r == 0)
		r = case_series(inq->cs, &compare->series.identity, 0, &found, inq->err);
	if (r == 0)
		r = tally_load(&tally, inq->cs, found.id, inq->err);
	if (r < 0)
		return r;
	count(compare->enough_ctx, &tally, ret);
	ret->interrupted = result.interrupted;
	ret->series = found.id;
	inq->ret->interrupted |= result.interrupted;
	for (unsigned int i = 0; i < ARMS_MAX; i++)
		hunt_count(inq, ret->arms[i].trials, ret->arms[i].failed, 0);
	hunt_count(inq, 0, 0, result.earlier);
	return 0;
}

int hunt_compare(struct inquiry *inq, const struct arms_request *asked, struct arms_outcome *ret)
{
	const struct hunt_request *request = inq->request;
	AUTO(strbuf_deinit) struct strbuf identity = { 0 };
	AUTO(mem_freep)
	char *settings =
		series_settings_with(inq->how.plain_settings, "command", "command 7:compare\n");
	struct counting counting = { inq, asked };
	struct arm arms[ARMS_MAX] = { 0 };
	struct compare_request compare = { .series = hunt_series(inq, &inq->how.plain),
					   .arms = arms,
					   .arm_count = asked->count,
					   .trials = asked->trials,
					   .seed = request->seed,
					   .stop_early = asked->stop_early,
					   .enough = asked->until_failures > 0 ? enough : NULL,
					   .enough_ctx = &counting };
	int r = 0;

	compare.series.program = asked->program;
	compare.series.slot_env = asked->env;
	identify(asked, settings, &identity);
	compare.series.identity =
		(struct series_identity){ .command = "compare",
					  .settings = strbuf_str(&identity),
					  .program = inq->how.plain.identity.program };
	*ret = (struct arms_outcome){ 0 };
	for (unsigned int i = 0; i < asked->count && r == 0; i++)
		r = arm_parse(asked->arms[i], &arms[i], inq->err);
	if (r == 0)
		r = run(inq, &compare, ret);
	for (unsigned int i = 0; i < asked->count; i++)
		arm_deinit(&arms[i]);
	return r;
}

double attempt_p(const struct rate *a, const struct rate *b)
{
	return fisher_two_sided(&(struct fisher_table){ .trials_a = a->trials,
							.failed_a = a->failed,
							.trials_b = b->trials,
							.failed_b = b->failed });
}
