#include "cmd/progress.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/percent.h"
#include "base/strbuf.h"
#include "base/talk.h"

#define TERMINAL_EVERY_S 0.1
#define PLAIN_EVERY_S 10.0

/* Plain logs tell the first ways to fail as they come; the summary has the rest. */
#define TOLD_MAX 5

void progress_init(struct progress *progress)
{
	const char *term = getenv("TERM");

	/* A dumb one cannot take a line back: it gets what a file gets. */
	*progress = (struct progress){ .terminal = isatty(STDERR_FILENO) &&
						   !(term && strcmp(term, "dumb") == 0) };
}

void progress_add_time(struct strbuf *sb, double seconds)
{
	unsigned long long s = (unsigned long long)(seconds + 0.5);

	if (s < 120)
		strbuf_addf(sb, "%llu s", s);
	else if (s < 7200)
		strbuf_addf(sb, "%llu min", s / 60);
	else
		strbuf_addf(sb, "%llu h %llu min", s / 3600, s / 60 % 60);
}

static void add_view(struct strbuf *sb, const struct progress *progress,
		     const struct series_progress_view *view)
{
	double left;

	strbuf_addf(sb, "%llu", (unsigned long long)view->done);
	if (view->wanted > 0)
		strbuf_addf(sb, view->at_most ? " of at most %llu" : "/%llu",
			    (unsigned long long)view->wanted);
	strbuf_addf(sb, " trials, %llu failed (%s %%, 95 %%: %s–%s %%)",
		    (unsigned long long)view->rate.failed, PERCENT(view->rate.rate),
		    PERCENT(view->rate.low), PERCENT(view->rate.high));
	if (view->what)
		strbuf_addf(sb, ", %s", view->what);
	if (view->wanted <= view->done || progress->ran == 0 || view->at_most)
		return;
	left = (double)(view->wanted - view->done) * progress->ran_s / (double)progress->ran -
	       (view->seconds - progress->ran_s);
	if (left < 0.5)
		return; /* the one that runs takes longer than those before */
	strbuf_adds(sb, ", about ");
	progress_add_time(sb, left);
	strbuf_adds(sb, " left");
}

static void rewrite_line(struct progress *progress, const char *text)
{
	AUTO(strbuf_deinit) struct strbuf sb = { 0 };
	struct winsize size = { 0 };

	strbuf_adds(&sb, text);
	/* A line that wraps could not be rewritten. */
	if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1 &&
	    sb.len >= size.ws_col)
		sb.data[size.ws_col - 1] = '\0';
	(void)fprintf(stderr, "\r\033[K%s", strbuf_str(&sb));
	(void)fflush(stderr);
	progress->shown = true;
}

static void tell_failure(struct progress *progress, const struct progress_news *news)
{
	if (news->trial == 0 || news->trial == progress->news_trial || progress->told >= TOLD_MAX)
		return;
	progress->news_trial = news->trial;
	progress->told++;
	log_note("trial %llu failed: %s%s", (unsigned long long)news->trial, news->summary,
		 progress->told == TOLD_MAX ? " (the rest is in the summary)" : "");
}

void progress_say(struct progress *progress, double seconds, const char *text,
		  const struct progress_news *news)
{
	double every = progress->terminal ? TERMINAL_EVERY_S : PLAIN_EVERY_S;

	if (!log_shows(LOG_NORMAL))
		return;
	if (!progress->terminal)
		tell_failure(progress, news);
	if (seconds - progress->last_s < every)
		return;
	progress->last_s = seconds;
	if (progress->terminal)
		rewrite_line(progress, text);
	else
		log_note("%s", text);
}

void progress_show(void *ctx, const struct series_progress_view *view)
{
	AUTO(strbuf_deinit) struct strbuf sb = { 0 };
	struct progress *progress = ctx;

	if (view->ran != progress->ran) {
		progress->ran = view->ran;
		progress->ran_s = view->seconds;
	}
	add_view(&sb, progress, view);
	progress_say(progress, view->seconds, strbuf_str(&sb),
		     &(struct progress_news){ view->news_trial, view->news_summary });
}

void progress_add_minimized(struct strbuf *sb, const struct minimize_view *view)
{
	static const char *const phases[] = {
		[MINIMISER_BASELINE] = "the full list",
		[MINIMISER_SEARCH] = "searching",
		[MINIMISER_PROOF] = "proving",
		[MINIMISER_OTHERS] = "trying stand-ins",
		[MINIMISER_ORDER] = "trying other orders",
	};

	strbuf_addf(sb, "%s: %zu of %zu left, %llu trials", phases[view->phase], view->left,
		    view->total, (unsigned long long)view->trials);
	if (view->to_go >= 1)
		strbuf_addf(sb, ", about %.0f to go", view->to_go);
}

void progress_end(struct progress *progress)
{
	if (progress->shown)
		(void)fputs("\r\033[K", stderr);
	progress->shown = false;
}
