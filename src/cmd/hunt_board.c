#include "cmd/hunt_board.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/now.h"
#include "base/talk.h"
#include "report/wording.h"

#define TOLD_S 5 /* what takes less is over before it is read */

/* https://no-color.org, for stderr. */
static bool wants_colour(bool terminal)
{
	const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");

	return terminal && !(no_color && no_color[0] != '\0') &&
	       !(term && strcmp(term, "dumb") == 0);
}

void hunt_board_init(struct hunt_board *board, double budget_s)
{
	*board = (struct hunt_board){ .started_s = clock_s(), .budget_s = budget_s };
	progress_init(&board->progress);
	board->colour = wants_colour(board->progress.terminal);
}

void hunt_board_end(struct hunt_board *board)
{
	progress_end(&board->progress);
}

static void add_left(const struct hunt_board *board, struct strbuf *sb)
{
	double left = board->budget_s - (clock_s() - board->started_s);

	if (board->budget_s <= 0)
		return;
	strbuf_adds(sb, "; ");
	progress_add_time(sb, left > 0 ? left : 0);
	strbuf_adds(sb, " left");
}

/* What is still to come, as long as nothing has shown that it takes longer. */
static void add_expected(const struct hunt_board *board, struct strbuf *sb)
{
	double passed = clock_s() - board->expected_at_s;
	double left = board->expected_s - passed, runs;

	if (board->expected_trials < 1 || left <= 0)
		return;
	runs = ceil(board->expected_trials * left / board->expected_s);
	strbuf_addf(sb, "; a verdict in about %.0f more run%s", runs, runs > 1 ? "s" : "");
	if (left < 1)
		return;
	strbuf_adds(sb, ", ");
	progress_add_time(sb, left);
}

/* The question that is asked. `what` is how far it is; NULL: it begins, which is shown at once. */
static void show(struct hunt_board *board, const char *what, const struct progress_news *news)
{
	AUTO(strbuf_deinit) struct strbuf sb = { 0 };

	strbuf_addf(&sb, "[%u/%u] %s", board->number, board->count,
		    board->title ? board->title : "");
	if (what)
		strbuf_addf(&sb, " %s", what);
	else
		board->progress.last_s = -1e9;
	add_expected(board, &sb);
	add_left(board, &sb);
	/* By the hunt's own clock: that of a series begins anew in every stage. */
	progress_say(&board->progress, clock_s() - board->started_s, strbuf_str(&sb), news);
}

static void begin(void *ctx, unsigned int number, unsigned int count, const char *question)
{
	struct hunt_board *board = ctx;

	board->number = number;
	board->count = count;
	board->title = words_named("question", question);
	show(board, NULL, &(struct progress_news){ 0 });
}

static void put_line(struct hunt_board *board, const char *stage, const char *line, bool left_out)
{
	if (!log_shows(LOG_NORMAL))
		return;
	if (!board->progress.terminal) {
		log_note("%s: %s", stage, line);
		return;
	}
	progress_end(&board->progress);
	(void)fprintf(stderr, "%s%s%s %-9s %s\n",
		      !board->colour ? ""
		      : left_out     ? "\033[2m"
				     : "\033[32m",
		      left_out ? "-" : "✓", board->colour ? "\033[0m" : "", stage, line);
	show(board, NULL, &(struct progress_news){ 0 });
}

static void say(void *ctx, const char *stage, const struct said *said)
{
	AUTO(mem_freep) char *line = words_of(said);

	put_line(ctx, stage, line ? line : "", said->id && strcmp(said->id, "left-out") == 0);
}

/* Said once it is known, and again when it has changed by half. */
static void expect(void *ctx, double trials, double failures, double seconds)
{
	struct hunt_board *board = ctx;
	AUTO(strbuf_deinit) struct strbuf sb = { 0 };
	bool news = board->expected_trials < 1 || trials > 1.5 * board->expected_trials;

	board->expected_trials = trials;
	board->expected_s = seconds;
	board->expected_at_s = clock_s();
	if (!news || trials < 1 || seconds < TOLD_S)
		return;
	strbuf_addf(&sb, "a verdict will probably take about %.0f more runs, of which %.0f fail: ",
		    ceil(trials), ceil(failures));
	progress_add_time(&sb, seconds);
	put_line(board, "outlook", strbuf_str(&sb), false);
}

static void progressed(void *ctx, const struct series_progress_view *view)
{
	struct hunt_board *board = ctx;
	AUTO(strbuf_deinit) struct strbuf sb = { 0 };

	if (view->done == 0)
		strbuf_adds(&sb, "no trial has ended yet");
	else
		strbuf_addf(&sb, "%llu trial%s, %llu failed", (unsigned long long)view->done,
			    view->done == 1 ? "" : "s", (unsigned long long)view->rate.failed);
	if (view->what)
		strbuf_addf(&sb, ": %s", view->what);
	/* New ways to fail are news while it is asked how it fails; later stages see them again. */
	show(board, strbuf_str(&sb),
	     board->number == 1 ? &(struct progress_news){ view->news_trial, view->news_summary }
				: &(struct progress_news){ 0 });
}

static void minimized(void *ctx, const struct minimize_view *view)
{
	struct hunt_board *board = ctx;
	AUTO(strbuf_deinit) struct strbuf sb = { 0 };

	progress_add_minimized(&sb, view);
	show(board, strbuf_str(&sb), &(struct progress_news){ 0 });
}

struct hunt_show hunt_board_show(struct hunt_board *board)
{
	return (struct hunt_show){ .begin = begin,
				   .say = say,
				   .expect = expect,
				   .progress = progressed,
				   .minimize_progress = minimized,
				   .ctx = board };
}
