#include "run/outcome.h"

#include <stdlib.h>
#include <string.h>

#include "base/cstr.h"
#include "run/breadcrumb.h"

static bool counts(const struct trial_settings *settings, enum failure_kind kind)
{
	return (settings->ignored & (1u << kind)) == 0;
}

/* A crash in a process whose parent hid it from us, or that hid it itself. */
static bool hidden(const struct trial_settings *settings, const struct trial_end *end)
{
	return (settings->children || end->hid_its_own) && end->observed.signal != 0 &&
	       end->signal == 0 && end->stray.signal == 0;
}

bool judge_failed(const struct trial_settings *settings, const struct trial_end *end)
{
	if (end->by_observer)
		return false;
	return ((end->signal != 0 || end->stray.signal != 0 || hidden(settings, end)) &&
		counts(settings, FAILURE_SIGNAL)) ||
	       (end->timed_out && counts(settings, FAILURE_TIMEOUT)) || end->matched ||
	       (end->exit_status > 0 && counts(settings, FAILURE_EXIT));
}

/* Breadcrumbs that the user chose are places and part of the identity. A line that just happened
 * to be the last is used only when no test or function says more, and without its numbers: one
 * failure must not fall apart into as many as there are counters in a log. */
static char *identity_crumb(const struct trial_settings *settings, const struct trial_end *end,
			    const struct signature *signature)
{
	if (!end->last_crumb)
		return NULL;
	if (settings->breadcrumb.given)
		return mem_strdup(end->last_crumb);
	return signature->test || signature->site ? NULL : crumb_mask_numbers(end->last_crumb);
}

/* A function where there is a name, else the place in its file: the same in every run. */
static char *site_text(const struct crash *crash)
{
	const struct frame *frame = crash_site(crash);
	const char *slash;

	if (!frame)
		return NULL;
	if (frame->function)
		return mem_strdup(frame->function);
	slash = strrchr(frame->module, '/');
	return mem_printf("%s+0x%llx", slash ? slash + 1 : frame->module,
			  (unsigned long long)frame->offset);
}

static void add(struct signatures *ret, struct signature signature)
{
	signature_seal(&signature);
	VEC_FOREACH (&ret->list, s) {
		if (strcmp(s->id, signature.id) == 0) {
			signature_deinit(&signature);
			return;
		}
	}
	VEC_PUSH(&ret->list, signature);
}

struct judging {
	const struct trial_settings *settings;
	const struct trial_end *end;
	const struct crash *crash; /* NULL when nobody saw one */
	struct signatures *ret;
};

static void add_placed(const struct judging *v, struct signature signature)
{
	signature.exit_status = v->end->exit_status;
	signature.test = cstr_dup(v->end->running_test);
	if (v->crash && signature.kind == FAILURE_SIGNAL &&
	    (v->crash->signal == signature.signal || v->crash->ended_by == signature.signal)) {
		signature.fault = mem_strdup(fault_class_name(v->crash->fault));
		signature.site = v->crash->from_outside ? NULL : site_text(v->crash);
	}
	signature.crumb = identity_crumb(v->settings, v->end, &signature);
	add(v->ret, signature);
}

static void add_failed_tests(const struct trial_end *end, struct signatures *ret)
{
	for (size_t i = 0; i < end->failed_tests.count; i++)
		add(ret, (struct signature){ .kind = FAILURE_TEST,
					     .exit_status = end->exit_status,
					     .test = mem_strdup(end->failed_tests.items[i]) });
}

static int by_id(const void *a, const void *b)
{
	return strcmp(((const struct signature *)a)->id, ((const struct signature *)b)->id);
}

/* True when the exit status needs no further explanation. */
static bool add_deaths(const struct judging *v)
{
	const struct trial_end *end = v->end;
	bool hides = hidden(v->settings, end);

	if (!counts(v->settings, FAILURE_SIGNAL))
		return false;
	if (end->signal != 0)
		add_placed(v, (struct signature){ .kind = FAILURE_SIGNAL, .signal = end->signal });
	if (end->stray.signal != 0)
		add_placed(v, (struct signature){ .kind = FAILURE_SIGNAL,
						  .signal = end->stray.signal,
						  .stray = true });
	if (hides)
		add_placed(v, (struct signature){ .kind = FAILURE_SIGNAL,
						  .signal = end->observed.signal,
						  .stray = !end->hid_its_own });
	return end->signal != 0 || end->stray.signal != 0 || hides;
}

void judge_signatures(const struct trial_settings *settings, const struct trial_end *end,
		      const struct crash *crash, struct signatures *ret)
{
	const struct judging v = { settings, end, crash, ret };
	bool died;

	if (!judge_failed(settings, end))
		return;
	died = add_deaths(&v);
	if (end->timed_out && counts(settings, FAILURE_TIMEOUT))
		add_placed(&v, (struct signature){ .kind = FAILURE_TIMEOUT });
	if (end->matched)
		add(ret, (struct signature){ .kind = FAILURE_OUTPUT,
					     .exit_status = end->exit_status,
					     .crumb = crumb_mask_numbers(end->matched) });
	if (counts(settings, FAILURE_EXIT)) {
		/* A status that a crash, a match or a failed test explains is no further failure.
		 */
		if (end->exit_status > 0 && end->failed_tests.count == 0 && !end->matched && !died)
			add_placed(&v, (struct signature){ .kind = FAILURE_EXIT });
		/* Tests that failed before a crash are failures of their own. */
		add_failed_tests(end, ret);
	}
	VEC_SORT(&ret->list, by_id);
}
