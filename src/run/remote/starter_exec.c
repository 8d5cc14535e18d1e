/*
 * Workers that a command of the user's starts: any scheduler that redhand does not know.
 *
 * A template with {slot} is run once for each slot and is the worker, or waits for it. One without
 * is run once and sees to {slots} of them.
 */
#include <errno.h>
#include <string.h>

#include "base/words.h"
#include "run/remote/starter.h"

static void worker_command(const struct starter *s, struct strbuf *sb)
{
	words_quote(sb, s->redhand);
	strbuf_adds(sb, " worker --connect ");
	words_quote(sb, s->how.connect);
}

/* clang-format off */
enum hole { HOLE_WORKER, HOLE_CONNECT, HOLE_SLOT, HOLE_SLOTS };
static const char *const holes[] = {
	[HOLE_WORKER] = "{worker}", [HOLE_CONNECT] = "{connect}", [HOLE_SLOT] = "{slot}", [HOLE_SLOTS] = "{slots}",
};
/* clang-format on */

static void fill(const struct starter *s, unsigned int slot, struct strbuf *sb)
{
	const char *at = s->options;

	while (*at != '\0') {
		size_t i = 0;

		while (i < ARRAY_SIZE(holes) && strncmp(at, holes[i], strlen(holes[i])) != 0)
			i++;
		if (i == HOLE_WORKER)
			worker_command(s, sb);
		else if (i == HOLE_CONNECT)
			words_quote(sb, s->how.connect);
		else if (i == HOLE_SLOT)
			strbuf_addf(sb, "%u", slot);
		else if (i == HOLE_SLOTS)
			strbuf_addf(sb, "%u", s->how.slots);
		else
			strbuf_addc(sb, *at);
		at += i < ARRAY_SIZE(holes) ? strlen(holes[i]) : 1;
	}
}

static int check(struct starter *s, struct err *err)
{
	if (strstr(s->options, holes[HOLE_WORKER]) || strstr(s->options, holes[HOLE_CONNECT]))
		return 0;
	(void)err_set(err, -EINVAL, "the runner 'exec:%s' does not say where the worker goes",
		      s->options);
	return err_set_remedy(err, "{worker} stands for its whole command line, {connect} for what "
				   "redhand worker --connect wants");
}

static int start(struct starter *s, struct err *err)
{
	bool each = strstr(s->options, holes[HOLE_SLOT]) != NULL;

	for (unsigned int slot = 0; slot < (each ? s->how.slots : 1); slot++) {
		AUTO(strbuf_deinit) struct strbuf command = { 0 };
		AUTO(strv_deinit) struct strv argv = { 0 };

		fill(s, slot, &command);
		strv_add(&argv, "/bin/sh");
		strv_add(&argv, "-c");
		strv_add(&argv, strbuf_str(&command));
		started_add(s, each ? slot : UINT32_MAX, &argv, NULL);
	}
	return started_begin(s, err);
}

const struct starter_ops starter_exec = { .name = "exec",
					  .takes_options = true,
					  .check = check,
					  .start = start,
					  .watch = started_watch,
					  .stop = started_stop };
