#include "run/output.h"

#include <ctype.h>
#include <string.h>
#include <time.h>

#include "run/breadcrumb.h"
#include "run/testline.h"

/* Enough for a real log; a program that prints without end teaches nothing more. */
#define PAIRS_MAX 2000
#define FAILED_TESTS_MAX 64
#define MILESTONES_MAX 16384

/* A line of one of the two streams. */
struct line {
	const struct capture *from;
	const char *text;
	size_t len;
};

static void drop_milestones(struct trial_end *end)
{
	VEC_FOREACH (&end->milestones, milestone)
		milestone_deinit(milestone);
	end->milestones.count = 0;
	end->milestones_full = false;
}

static void note_milestone(struct output *o, const struct line *line, enum milestone_kind kind,
			   const char *name)
{
	AUTO(strbuf_deinit) struct strbuf text = { 0 };
	struct timespec now;

	if (!(o->flags & OUTPUT_MILESTONES))
		return;
	if (kind != MILESTONE_LINE && !o->tests_seen) {
		o->tests_seen = true;
		drop_milestones(o->end);
	}
	if ((kind == MILESTONE_LINE && o->tests_seen) ||
	    (kind == MILESTONE_TEST_START && o->ends_seen))
		return;
	o->ends_seen |= kind == MILESTONE_TEST_END;
	if (o->end->milestones.count >= MILESTONES_MAX) {
		o->end->milestones_full = true;
		return;
	}
	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	strbuf_add_printable(&text, line->text,
			     line->len < MILESTONE_TEXT ? line->len : MILESTONE_TEXT);
	VEC_PUSH(&o->end->milestones,
		 ((struct milestone){
			 .kind = kind,
			 .fd = line->from == &o->out ? 1 : 2,
			 .start = line->from->line_start,
			 .end = line->from->line_end,
			 .arrived_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec,
			 .name = mem_strdup(name),
			 .text = strbuf_take(&text),
		 }));
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
static void note_test_line(struct output *o, const struct line *line)
{
	enum test_event event;
	char *name;

	if (o->wanted.list && o->wanted.list->marks)
		return;
	event = testline_read(line->text, line->len, &name);
	if (event == TEST_NONE)
		return;
	if (!o->settings->breadcrumb.given)
		note_milestone(o, line,
			       event == TEST_STARTED ? MILESTONE_TEST_START : MILESTONE_TEST_END,
			       name);
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

/* The line as a breadcrumb. The trial's own TMPDIR, which nobody but redhand made another one each
 * time, is the same place in all of them. */
static char *crumb_of(const struct output *o, const char *line, size_t len)
{
	const char *base = o->settings->trials.tmp_dirs;
	size_t base_len = base ? strlen(base) : 0;
	AUTO(strbuf_deinit) struct strbuf same = { 0 };
	const char *end = line + len, *found;

	while (base_len > 0 && (found = memmem(line, (size_t)(end - line), base, base_len))) {
		const char *number = found + base_len + 1, *after = number;

		while (after < end && isdigit((unsigned char)*after))
			after++;
		if (after <= number)
			break;
		strbuf_add(&same, line, (size_t)(found - line));
		strbuf_adds(&same, "$TMPDIR");
		line = after;
	}
	if (same.len == 0)
		return crumb_from_line(line, (size_t)(end - line));
	strbuf_add(&same, line, (size_t)(end - line));
	return crumb_from_line(strbuf_str(&same), same.len);
}

/* A sanitizer's summary says what and where, and so does a panic of Rust's; what is printed behind
 * that is the same in all. */
static bool is_summary(const char *crumb)
{
	return crumb && ((strncmp(crumb, "SUMMARY: ", 9) == 0 && strstr(crumb, "Sanitizer: ")) ||
			 (strncmp(crumb, "thread '", 8) == 0 && strstr(crumb, " panicked at ")));
}

static bool is_farewell(const struct line *line)
{
	return line->len >= 10 && line->len < 40 && line->text[0] == '=' && line->text[1] == '=' &&
	       memcmp(line->text + line->len - 10, "==ABORTING", 10) == 0;
}

/* A rule or a caret is drawn below many a line. */
static bool says_anything(const char *crumb)
{
	while (*crumb && !isalnum((unsigned char)*crumb) && (unsigned char)*crumb < 0x80)
		crumb++;
	return *crumb != '\0';
}

static void note_crumb(struct output *o, const struct line *line)
{
	struct trial_end *end = o->end;
	AUTO(mem_freep) char *crumb = NULL;

	/* Between the two it shows bytes of memory. */
	if (is_summary(end->last_crumb) && !o->settings->breadcrumb.given &&
	    (line->from == &o->err || is_farewell(line)))
		return;

	if (o->settings->breadcrumb.given &&
	    !line_matches(&o->settings->breadcrumb.regex, line->text, line->len))
		return;
	crumb = crumb_of(o, line->text, line->len);
	if (!says_anything(crumb))
		return;
	note_milestone(o, line, MILESTONE_LINE, crumb);
	if (o->flags & OUTPUT_PAIRS)
		note_pair(end, end->last_crumb ? end->last_crumb : CRUMB_START, crumb);
	mem_free(end->last_crumb);
	end->last_crumb = TAKE(crumb);
}

static void on_line(struct output *o, const struct capture *from, const char *line, size_t len)
{
	AUTO(strbuf_deinit) struct strbuf plain = { 0 };
	struct line whole;

	/* On a terminal test frameworks write in colour, and ^ still means the first letter. */
	if (memchr(line, '\033', len)) {
		crumb_plain(line, len, &plain);
		line = strbuf_str(&plain);
		len = plain.len;
	}
	whole = (struct line){ .from = from, .text = line, .len = len };
	note_test_line(o, &whole);
	note_crumb(o, &whole);
	VEC_FOREACH (&o->settings->fail_on, rule)
		if (!o->end->matched && line_matches(&rule->regex, line, len))
			o->end->matched = crumb_of(o, line, len);
}

static void on_out_line(void *ctx, const char *line, size_t len)
{
	struct output *o = ctx;

	on_line(o, &o->out, line, len);
}

static void on_err_line(void *ctx, const char *line, size_t len)
{
	struct output *o = ctx;

	on_line(o, &o->err, line, len);
}

void output_init(struct output *o, const struct trial_settings *settings)
{
	*o = (struct output){ .settings = settings };
	capture_init(&o->out, settings->output_limit, on_out_line, o);
	capture_init(&o->err, settings->output_limit, on_err_line, o);
	capture_init(&o->marks, 0, on_mark, o);
}

void output_deinit(struct output *o)
{
	capture_deinit(&o->out);
	capture_deinit(&o->err);
	capture_deinit(&o->marks);
	wanted_deinit(&o->wanted);
}

void output_begin(struct output *o, struct trial_end *end, unsigned int flags)
{
	capture_reset(&o->out);
	capture_reset(&o->err);
	capture_reset(&o->marks);
	o->end = end;
	o->flags = flags;
	o->tests_seen = o->ends_seen = false;
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
	if ((o->flags & OUTPUT_PAIRS) && end->last_crumb)
		note_pair(end, end->last_crumb, CRUMB_END);
	o->end = NULL;
}
