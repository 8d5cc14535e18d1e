#include "engine/trial/output.h"

#include <string.h>

#include "engine/trial/crumb.h"
#include "engine/trial/testline.h"

/* Enough for a real log; a program that prints without end teaches nothing more. */
#define PAIRS_MAX 2000
#define FAILED_TESTS_MAX 64

static bool strv_has(const struct strv *strv, const char *text)
{
	for (size_t i = 0; i < strv->count; i++)
		if (strcmp(strv->items[i], text) == 0)
			return true;
	return false;
}

static void note_test(struct output *o, enum test_event event, char *owned)
{
	AUTO(mem_freep) char *name = owned;
	struct trial_end *end = o->end;

	wanted_event(&o->wanted, event, name);
	if (event == TEST_STARTED) {
		mem_free(end->running_test);
		end->running_test = TAKE(name);
		return;
	}
	if (end->running_test && strcmp(end->running_test, name) == 0) {
		mem_free(end->running_test);
		end->running_test = NULL;
	}
	if (event == TEST_FAILED && end->failed_tests.count < FAILED_TESTS_MAX &&
	    !strv_has(&end->failed_tests, name))
		strv_take(&end->failed_tests, TAKE(name));
}

/* Where tests are told by marks, what a test prints is nobody's progress. */
static void note_test_line(struct output *o, const char *line, size_t len)
{
	enum test_event event;
	char *name;

	if (o->wanted.list && o->wanted.list->marks)
		return;
	event = testline_read(line, len, &name);
	if (event != TEST_NONE)
		note_test(o, event, name);
}

static void on_mark(void *ctx, const char *line, size_t len)
{
	struct output *o = ctx;
	const char *name;
	enum test_event event = wanted_mark(&o->wanted, line, len, &name);

	if (event != TEST_NONE)
		note_test(o, event, mem_strdup(name));
}

static void note_pair(struct trial_end *end, const char *from, const char *to)
{
	if (end->pairs.count < PAIRS_MAX)
		VEC_PUSH(&end->pairs,
			 ((struct crumb_pair){ .from = mem_strdup(from), .to = mem_strdup(to) }));
}

static bool line_matches(const regex_t *regex, const char *line, size_t len)
{
	regmatch_t m[1] = { { .rm_so = 0, .rm_eo = (regoff_t)len } };

	return regexec(regex, line, 1, m, REG_STARTEND) == 0;
}

static void note_crumb(struct output *o, const char *line, size_t len)
{
	struct trial_end *end = o->end;
	AUTO(mem_freep) char *crumb = NULL;

	if (o->settings->breadcrumb_given && !line_matches(&o->settings->breadcrumb, line, len))
		return;
	crumb = crumb_from_line(line, len);
	if (crumb[0] == '\0')
		return;
	if (o->learn)
		note_pair(end, end->last_crumb ? end->last_crumb : CRUMB_START, crumb);
	mem_free(end->last_crumb);
	end->last_crumb = TAKE(crumb);
}

static void on_line(void *ctx, const char *line, size_t len)
{
	AUTO(strbuf_deinit) struct strbuf plain = { 0 };
	struct output *o = ctx;

	/* On a terminal test frameworks write in colour, and ^ still means the first letter. */
	if (memchr(line, '\033', len)) {
		crumb_plain(line, len, &plain);
		line = strbuf_str(&plain);
		len = plain.len;
	}
	note_test_line(o, line, len);
	note_crumb(o, line, len);
	VEC_FOREACH (&o->settings->fail_on, rule)
		if (!o->end->matched && line_matches(&rule->regex, line, len))
			o->end->matched = crumb_from_line(line, len);
}

void output_init(struct output *o, const struct trial_settings *settings)
{
	*o = (struct output){ .settings = settings };
	capture_init(&o->out, settings->output_limit, on_line, o);
	capture_init(&o->err, settings->output_limit, on_line, o);
	capture_init(&o->marks, 0, on_mark, o);
}

void output_deinit(struct output *o)
{
	capture_deinit(&o->out);
	capture_deinit(&o->err);
	capture_deinit(&o->marks);
	wanted_deinit(&o->wanted);
}

void output_begin(struct output *o, struct trial_end *end, bool learn)
{
	capture_reset(&o->out);
	capture_reset(&o->err);
	capture_reset(&o->marks);
	o->end = end;
	o->learn = learn;
	wanted_deinit(&o->wanted);
}

void output_want(struct output *o, const struct wanted_list *list)
{
	wanted_begin(&o->wanted, o->settings->tests, list, o->end);
}

void output_finish(struct output *o)
{
	struct trial_end *end = o->end;

	capture_finish(&o->out);
	capture_finish(&o->err);
	capture_finish(&o->marks);
	end->stdout_bytes = o->out.total;
	end->stderr_bytes = o->err.total;
	if (o->learn && end->last_crumb)
		note_pair(end, end->last_crumb, CRUMB_END);
	o->end = NULL;
}
