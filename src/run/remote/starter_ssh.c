/*
 * Workers that ssh starts, on hosts that have redhand where this one has it. Slots are dealt to the
 * hosts in turn. The token goes through stdin: a command line is there for everybody to read.
 */
#include <string.h>

#include "base/words.h"
#include "run/remote/starter.h"

static void next_host(const char **at, char **ret)
{
	size_t len = strcspn(*at, ",");

	*ret = mem_strndup(*at, len);
	*at += len + ((*at)[len] == ',');
}

/* The name that ssh makes of it: hosts may have others in its configuration. */
static char *real_host(const struct starter *s, const char *host)
{
	const char *argv[] = { "ssh", "-G", host, NULL };
	AUTO(strbuf_deinit) struct strbuf out = { 0 };
	AUTO(strbuf_deinit) struct strbuf error = { 0 };
	struct err ignored = { 0 };
	const char *found;

	if (starter_ask(s, argv, NULL, 5, &out, &error, &ignored) != 0)
		return mem_strdup(host);
	found = strstr(strbuf_str(&out), "\\x0ahostname ");
	if (!found)
		return mem_strdup(host);
	found += strlen("\\x0ahostname ");
	return mem_strndup(found, strcspn(found, "\n\\"));
}

static int check(struct starter *s, struct err *err)
{
	const char *at = s->options;
	AUTO(mem_freep) char *host = NULL;
	AUTO(mem_freep) char *name = NULL;

	next_host(&at, &host);
	name = real_host(s, host);
	(void)err;
	/* USER@ is not part of where it is. */
	s->peer = mem_strdup(strrchr(name, '@') ? strrchr(name, '@') + 1 : name);
	return 0;
}

static int start(struct starter *s, struct err *err)
{
	AUTO(strbuf_deinit) struct strbuf command = { 0 };
	AUTO(mem_freep) char *token = mem_printf("%s\n", strchr(s->how.variable, '=') + 1);
	const char *at = s->options;

	strbuf_adds(&command, "exec ");
	words_quote(&command, s->redhand);
	strbuf_adds(&command, " worker --token-file - --connect ");
	words_quote(&command, s->how.connect);
	for (unsigned int slot = 0; slot < s->how.slots; slot++) {
		AUTO(mem_freep) char *host = NULL;
		AUTO(strv_deinit) struct strv argv = { 0 };

		if (*at == '\0')
			at = s->options;
		next_host(&at, &host);
		strv_add(&argv, "ssh");
		strv_add(&argv, "-T");
		strv_add(&argv, "-o");
		strv_add(&argv, "BatchMode=yes");
		strv_add(&argv, "--");
		strv_add(&argv, host);
		strv_add(&argv, strbuf_str(&command));
		started_add(s, slot, &argv, token);
	}
	return started_begin(s, err);
}

const struct starter_ops starter_ssh = { .name = "ssh",
					 .takes_options = true,
					 .check = check,
					 .start = start,
					 .watch = started_watch,
					 .stop = started_stop };
