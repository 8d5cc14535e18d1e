/*
 * What came of a search: the list, its proof, the command that runs it.
 */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "base/path.h"
#include "base/tree.h"
#include "model/known_secrets.h"
#include "search/stats/fisher.h"
#include "search/stats/rate.h"
#include "studies/series/listtext.h"
#include "studies/series/minimize_inside.h"
#include "studies/series/series_findings.h"

/* Below this, another order is said to fail at another rate. */
#define ORDER_MATTERS_P 0.05

static char *file_name(const struct minimize *m)
{
	return mem_printf("minimal-%lld.%s", (long long)m->runner.series.value,
			  m->framework->ops == &framework_ctest ? "sh" : "txt");
}

/* Stores this list as the file that people take. */
static int minimize_write_list(const struct minimize *m, const struct framework_list *list,
			       struct err *err)
{
	AUTO(strbuf_deinit) struct strbuf content = { 0 };
	AUTO(mem_freep) char *name = file_name(m);

	framework_file(m->framework, list, &content);
	return file_write_at(case_dir_fd(m->cs), name, strbuf_str(&content), content.len, err);
}

int minimize_keep_best(struct minimize *m, struct err *err)
{
	struct minimiser_result result;
	struct minimiser_state state;
	int r;

	if (!m->minimiser)
		return 0;
	minimiser_state(m->minimiser, &state);
	if (state.left == m->written)
		return 0;
	r = minimiser_result(m->minimiser, &result);
	if (r < 0)
		return err_set_errno(err, r, "cannot tell the best list");
	m->written = state.left;
	return minimize_write_list(
		m, &(struct framework_list){ .items = result.tests, .count = result.count }, err);
}

static struct rate rate_of(struct minimiser_count count)
{
	return rate_wilson(count.runs, count.failed, RATE_CONFIDENCE);
}

static void add_items(const struct minimize *m, const struct minimiser_result *from,
		      struct minimize_result *ret)
{
	size_t row = 0;

	for (size_t i = 0; i < from->count; i++) {
		uint32_t test = from->tests[i];
		struct minimal_item item = { .name = mem_strdup(m->framework->items.items[test]),
					     .victim = test == m->victim,
					     .needed = minimiser_needed(m->minimiser, test) };

		if (row < from->n_without && from->without[row].test == test) {
			item.without = rate_of(from->without[row].exact);
			item.wider = rate_of(from->without[row].wider);
			row++;
		}
		VEC_PUSH(&ret->items, item);
	}
}

static int by_need(const void *a, const void *b)
{
	const struct minimal_item *x = a, *y = b;

	return (x->needed < y->needed) - (x->needed > y->needed);
}

static void add_doubtful(const struct minimize *m, struct minimize_result *ret)
{
	for (size_t i = 0; i < m->framework->items.count; i++) {
		double needed = minimiser_needed(m->minimiser, i);

		if (needed > 0 && i != m->victim)
			VEC_PUSH(&ret->doubtful,
				 ((struct minimal_item){
					 .name = mem_strdup(m->framework->items.items[i]),
					 .needed = needed }));
	}
	VEC_SORT(&ret->doubtful, by_need);
}

/* The framework left to itself would not keep the order: the same files as in a trial, for good. */
static int add_exact_command(struct minimize *m, const struct framework_list *list,
			     struct minimize_result *ret, struct err *err)
{
	AUTO(trial_job_deinit) struct trial_job job = { .number = { .value = 1 } };
	AUTO(mem_freep)
	char *dir =
		mem_printf("%s/minimal-%lld.d", case_dir(m->cs), (long long)m->runner.series.value);
	AUTO(mem_freep) char *path = NULL;
	AUTO(fd_closep) int fd = -1;
	int r = tree_make(dir, err);

	if (r < 0)
		return r;
	path = realpath(dir, NULL);
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (!path || fd < 0)
		return err_set_errno(err, -errno, "cannot open '%s'", dir);
	m->framework->ops->build(m->framework, list, path, &job);
	VEC_FOREACH (&job.files, file)
		if (r == 0)
			r = file_write_at(fd, file->name, file->content, strlen(file->content),
					  err);
	strv_copy(&ret->argv, job.argv.items);
	for (size_t i = 0; i < m->request->slot_env->count; i++)
		strv_take(&ret->env,
			  trial_substitute(m->request->slot_env->items[i], 0, job.number));
	for (size_t i = 0; i < job.env.count; i++)
		if (strchr(job.env.items[i], '=') &&
		    strncmp(job.env.items[i], "REDHAND_MARKS=", 14) != 0)
			strv_add(&ret->env, job.env.items[i]);
	return r;
}

static int add_command(struct minimize *m, const struct framework_list *list,
		       struct minimize_result *ret, struct err *err)
{
	const struct framework_ops *ops = m->framework->ops;
	int r = 0;

	if (ops->advise && m->victim != MINIMISER_NO_VICTIM)
		ops->advise(m->framework, (uint32_t)m->victim, &ret->advice);
	/* Only a list that is final is worth the question. */
	ret->plain_differs = ret->verdict == MINIMAL_FOUND && ops->plain_differs &&
			     ops->plain_differs(m->framework, list);
	if (ret->plain_differs)
		r = add_exact_command(m, list, ret, err);
	else
		framework_plain(m->framework, list, ret->file, &ret->argv, &ret->env);
	return r < 0 ? r : minimize_write_list(m, list, err);
}

/* The list as the case keeps it: for whoever wants to run it later, from another directory. */
static int keep_result(struct minimize *m, const struct framework_list *list,
		       const struct minimize_result *result, struct err *err)
{
	AUTO(mem_freep) char *place = realpath(case_dir(m->cs), NULL);
	AUTO(mem_freep) char *name = file_name(m);
	AUTO(mem_freep) char *file = mem_printf("{case}/%s", name);
	AUTO(strbuf_deinit) struct strbuf items = { 0 };
	AUTO(strv_deinit) struct strv argv = { 0 };
	AUTO(strv_deinit) struct strv all = { 0 };
	AUTO(strv_deinit) struct strv env = { 0 };
	AUTO(strv_deinit) struct strv open_argv = { 0 };
	AUTO(strv_deinit) struct strv open_env = { 0 };

	listtext_write(list->items, list->count, &items);
	if (!result->plain_differs)
		framework_plain(m->framework, list, file, &argv, &all);
	for (size_t i = 0; result->plain_differs && i < result->argv.count; i++)
		strv_take(&argv, path_rename(result->argv.items[i], place ? place : "", "{case}"));
	/* The user's own variables come first; they are kept with the series. */
	for (size_t i = m->request->slot_env->count; i < result->env.count; i++)
		strv_take(&env, path_rename(result->env.items[i], place ? place : "", "{case}"));
	if (argv.count > 0)
		secret_words(argv.items, &open_argv);
	if (env.count > 0)
		secret_words(env.items, &open_env);
	return case_set_minimal(
		m->cs,
		&(struct minimal_record){ .series = m->runner.series,
					  .verdict = result->verdict,
					  .items = strbuf_str(&items),
					  .victim = result->victim,
					  .signature =
						  m->target.known ? m->target.signature.id : NULL,
					  .minimal = result->minimal,
					  .full = result->full,
					  .confidence = result->confidence,
					  .argv = &open_argv,
					  .env = &open_env },
		err);
}

/* How surely another order fails at another rate; 1 when it was not tried. */
static double differs(const struct rate *list, const struct rate *order)
{
	return fisher_two_sided(&(struct fisher_table){ .trials_a = list->trials,
							.failed_a = list->failed,
							.trials_b = order->trials,
							.failed_b = order->failed });
}

static void judge_order(struct minimize_result *ret)
{
	const struct rate *orders[] = { &ret->reversed, &ret->shuffled };
	bool all_fail = true;
	int tried = 0;

	ret->order_p = 1;
	for (size_t i = 0; i < ARRAY_SIZE(orders); i++) {
		if (orders[i]->trials == 0)
			continue;
		tried++;
		ret->order_p = fmin(ret->order_p, differs(&ret->minimal, orders[i]));
		all_fail = all_fail && orders[i]->failed > 0;
	}
	ret->order_p = fmin(ret->order_p * tried, 1);
	ret->order = MINIMAL_ORDER_UNKNOWN;
	if (tried > 0 && ret->order_p < ORDER_MATTERS_P)
		ret->order = MINIMAL_ORDER_MATTERS;
	else if (tried > 0 && all_fail)
		ret->order = MINIMAL_ORDER_SAME;
}

static int add_search(struct minimize *m, struct minimize_result *ret, struct err *err)
{
	static const enum minimal_verdict verdicts[] = {
		[MINIMISER_RUNNING] = MINIMAL_SEARCHING,
		[MINIMISER_MINIMAL] = MINIMAL_FOUND,
		[MINIMISER_NEVER_FAILED] = MINIMAL_SEARCHING,
		[MINIMISER_COUNT_MATTERS] = MINIMAL_COUNT_MATTERS,
	};
	static const enum minimal_others others[] = {
		[MINIMISER_OTHERS_UNKNOWN] = MINIMAL_OTHERS_UNKNOWN,
		[MINIMISER_OTHERS_NONE] = MINIMAL_OTHERS_NONE,
		[MINIMISER_OTHERS_SOME] = MINIMAL_OTHERS_SOME,
		[MINIMISER_OTHERS_ANY] = MINIMAL_OTHERS_ANY,
	};
	AUTO(mem_freep) uint32_t *tests = NULL;
	struct framework_list list;
	struct minimiser_result from;
	struct minimiser_state state;
	int r = minimiser_result(m->minimiser, &from);

	if (r < 0)
		return err_set_errno(err, r, "cannot tell the result");
	minimiser_state(m->minimiser, &state);
	m->never_failed = from.verdict == MINIMISER_NEVER_FAILED;
	ret->verdict = verdicts[from.verdict];
	ret->others = others[from.others];
	ret->confidence = from.confidence;
	ret->to_go = state.trials_to_go;
	ret->trials = state.trials;
	ret->other_failures = state.censored;
	ret->no_information = state.no_information;
	ret->rollbacks = state.rollbacks;
	ret->full = rate_of(from.full);
	ret->minimal = rate_of(from.minimal);
	ret->stand_ins = rate_of(from.others_runs);
	ret->reversed = rate_of(from.reversed);
	ret->shuffled = rate_of(from.shuffled);
	ret->order_checked = from.reversed.runs + from.shuffled.runs > 0;
	judge_order(ret);
	tests = mem_alloc(from.count * sizeof(tests[0]));
	memcpy(tests, from.tests, from.count * sizeof(tests[0]));
	list = (struct framework_list){ .items = tests, .count = from.count };
	add_items(m, &from, ret);
	if (ret->verdict == MINIMAL_SEARCHING)
		add_doubtful(m, ret);
	r = add_command(m, &list, ret, err);
	return r < 0 ? r : keep_result(m, &list, ret, err);
}

/* Before the target is known the full list is all there is. */
static int add_baseline(struct minimize *m, struct minimize_result *ret, struct err *err)
{
	struct framework_list list = { .items = m->full, .count = m->full_count };

	for (size_t i = 0; i < m->full_count; i++)
		VEC_PUSH(&ret->items,
			 ((struct minimal_item){ .name = mem_strdup(m->framework->items.items[i]),
						 .victim = i == m->victim }));
	ret->trials = m->target.runs;
	ret->full = rate_wilson(m->target.runs, 0, RATE_CONFIDENCE);
	framework_plain(m->framework, &list, ret->file, &ret->argv, &ret->env);
	return minimize_write_list(m, &list, err);
}

static int never_failed(const struct minimize *m, const struct minimize_result *result,
			struct err *err)
{
	uint64_t runs = result->full.trials;

	(void)err_set(err, -ENODATA,
		      "the full list of %zu %s did not fail%s: %llu clean runs, so it fails less "
		      "often than %.2g %% of the time (%.3g %% confidence)",
		      m->full_count, m->framework->ops->nouns,
		      m->target.known ? " in the way that was asked for" : "",
		      (unsigned long long)runs,
		      100 * rate_upper_bound_clean(runs, m->request->confidence),
		      100 * m->request->confidence);
	return err_set_remedy(err,
			      "raise the rate (more slots, load, another machine), or allow more "
			      "clean runs with --baseline N");
}

int minimize_summarise(struct minimize *m, struct minimize_result *ret, struct err *err)
{
	AUTO(mem_freep) char *name = file_name(m);
	int r;

	ret->framework = m->framework->ops->name;
	ret->noun = m->framework->ops->noun;
	ret->nouns = m->framework->ops->nouns;
	ret->total = m->framework->items.count;
	ret->wanted = m->request->confidence;
	ret->seed = m->seed;
	ret->file = mem_printf("%s/%s", case_dir(m->cs), name);
	if (m->victim != MINIMISER_NO_VICTIM)
		ret->victim = mem_strdup(m->framework->items.items[m->victim]);
	if (m->target.known)
		memcpy(ret->target, m->target.signature.id, sizeof(ret->target));
	r = m->minimiser ? add_search(m, ret, err) : add_baseline(m, ret, err);
	if (r == 0 && m->never_failed)
		r = never_failed(m, ret, err);
	return r < 0 ? r
		     : findings_signatures(
			       &(struct findings_source){ .tally = &m->runner.tally,
							  .cs = m->cs,
							  .series = m->runner.series,
							  .readings = runner_readings(&m->runner) },
			       &ret->signatures, err);
}
