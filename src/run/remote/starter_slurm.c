/*
 * Workers as tasks of one Slurm job array: a task for each slot, never a job for each trial (which
 * takes Slurm a hundred times as long as a worker). What Slurm says about them is told in its
 * words.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cstr.h"
#include "base/fd.h"
#include "base/now.h"
#include "base/which.h"
#include "base/words.h"
#include "run/remote/link.h"
#include "run/remote/starter.h"

#define ASK_S 30 /* a controller that is being restarted answers late */
#define LOOK_NS 2000000000ull
#define AGAIN_MOST 20u

/* "NAME = VALUE" of scontrol show config; NULL. */
static char *config_value(const char *config, const char *name)
{
	const char *at = strstr(config, name);

	if (!at)
		return NULL;
	at += strcspn(at, "=\n");
	if (*at != '=')
		return NULL;
	at += 1 + strspn(at + 1, " ");
	/* Line ends come as \x0a: what is printed was made printable. */
	return mem_strndup(at, strcspn(at, "\n\\"));
}

/* SlurmctldHost[0] = name(address) */
static char *controller(const char *config)
{
	AUTO(mem_freep) char *value = config_value(config, "SlurmctldHost[0]");
	char *bracket = value ? strchr(value, '(') : NULL;

	if (!value)
		return NULL;
	if (!bracket)
		return mem_strndup(value, strcspn(value, " "));
	return mem_strndup(bracket + 1, strcspn(bracket + 1, ")"));
}

static char *munge_socket(const char *config)
{
	AUTO(mem_freep) char *type = config_value(config, "AuthType");
	AUTO(mem_freep) char *info = config_value(config, "AuthInfo");
	const char *at = info ? strstr(info, "socket=") : NULL;

	if (!type || strcmp(type, "auth/munge") != 0)
		return NULL;
	return at ? mem_strndup(at + 7, strcspn(at + 7, ", ")) : mem_strdup("");
}

static int check(struct starter *s, struct err *err)
{
	static const char *const needed[] = { "sbatch", "squeue", "scancel", "scontrol" };
	const char *argv[] = { "scontrol", "show", "config", NULL };
	AUTO(strbuf_deinit) struct strbuf out = { 0 };
	AUTO(strbuf_deinit) struct strbuf error = { 0 };
	int r;

	for (size_t i = 0; i < ARRAY_SIZE(needed); i++) {
		AUTO(mem_freep) char *path = NULL;

		if (which(needed[i], NULL, &path, NULL) < 0) {
			(void)err_set(err, -ENOENT,
				      "--runner slurm needs Slurm's commands, and '%s' is not here",
				      needed[i]);
			return err_set_remedy(err, "run redhand where jobs are submitted from: "
						   "Debian has it in slurm-client");
		}
	}
	r = starter_ask(s, argv, NULL, ASK_S, &out, &error, err);
	if (r < 0)
		return r;
	if (r > 0)
		return err_set(err, -EIO, "Slurm does not answer: %.300s", strbuf_str(&error));
	s->peer = controller(strbuf_str(&out));
	s->munge_socket = munge_socket(strbuf_str(&out));
	return 0;
}

static int submit(struct starter *s, unsigned int tasks, struct err *err)
{
	AUTO(strv_deinit) struct strv argv = { 0 };
	AUTO(strbuf_deinit) struct strbuf script = { 0 };
	AUTO(strbuf_deinit) struct strbuf out = { 0 };
	AUTO(strbuf_deinit) struct strbuf error = { 0 };
	AUTO(strv_deinit) struct strv options = { 0 };
	AUTO(mem_freep) char *array = mem_printf("--array=0-%u", tasks - 1);
	int r = words_split(s->options, &options, err);

	if (r < 0)
		return err_set_prefix(err, "--runner slurm");
	strv_add(&argv, "sbatch");
	strv_add(&argv, "--parsable");
	strv_add(&argv, array);
	strv_add(&argv, "--requeue");
	strv_add(&argv, "--ntasks=1");
	strv_add(&argv, "--job-name=redhand");
	strv_add(&argv, "--output=/dev/null");
	for (size_t i = 0; i < options.count; i++)
		strv_add(&argv, options.items[i]);
	strbuf_adds(&script, "#!/bin/sh\nexec ");
	words_quote(&script, s->redhand);
	strbuf_adds(&script, " worker --connect ");
	words_quote(&script, s->how.connect);
	strbuf_addc(&script, '\n');
	r = starter_ask(s, (const char *const *)argv.items, strbuf_str(&script), ASK_S, &out,
			&error, err);
	if (r < 0)
		return r;
	if (r > 0 || out.len == 0) {
		const char *text = strbuf_str(&error);
		size_t len = strcspn(text, "\\\n");

		return err_set(err, -EINVAL, "Slurm refuses the workers: %.*s", (int)len, text);
	}
	/* JOB or JOB;CLUSTER */
	strv_take(&s->jobs, mem_strndup(strbuf_str(&out), strcspn(strbuf_str(&out), ";\n\\")));
	return 0;
}

static int start(struct starter *s, struct err *err)
{
	return submit(s, s->how.slots, err);
}

struct states {
	unsigned int pending, running, ended;
	unsigned int
		delayed; /* of those pending: Slurm waits two minutes before it starts one anew */
	char reason[64]; /* of one that is pending */
	char end_reason[96]; /* of one that ended */
};

static bool is_final(const char *state)
{
	static const char *const final[] = { "BOOT_FAIL", "CANCELLED", "COMPLETED",	"DEADLINE",
					     "FAILED",	  "NODE_FAIL", "OUT_OF_MEMORY", "TIMEOUT",
					     "REVOKED",	  "PREEMPTED" };

	return cstr_among(state, final, ARRAY_SIZE(final));
}

/* Lines "STATE|REASON". */
static struct states count_states(char *text)
{
	struct states states = { 0 };
	char *save = NULL;

	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		char *reason = strchr(line, '|');

		if (!reason)
			continue;
		*reason++ = '\0';
		if (strcmp(line, "PENDING") == 0) {
			states.pending++;
			states.delayed += strcmp(reason, "BeginTime") == 0;
			(void)snprintf(states.reason, sizeof(states.reason), "%s", reason);
		} else if (is_final(line)) {
			states.ended++;
			(void)snprintf(states.end_reason, sizeof(states.end_reason), "%.40s, %.40s",
				       line, reason);
		} else {
			states.running++;
		}
	}
	return states;
}

static void tell(struct starter *s, const struct states *states)
{
	AUTO(said_deinit) struct said said = { 0 };

	if (states->pending > 0)
		SAY(&said, "workers:pending", said_number(states->pending),
		    said_number(s->how.slots), said_text(states->reason));
	if (!said_anything(&said) || said_same(&said, &s->told))
		return;
	said_move(&s->told, &said);
	starter_say(s, &s->told);
}

/* What ended is asked for anew, as long as workers are known to get through at all. */
static int replace(struct starter *s, const struct states *states, unsigned int joined,
		   struct err *err)
{
	AUTO(said_deinit) struct said ended = { 0 };
	unsigned int there = states->pending - states->delayed + states->running;

	if (there + states->delayed == 0 && joined == 0 &&
	    (s->most_joined == 0 || s->again >= AGAIN_MOST)) {
		(void)err_set(err, -ECHILD, "no worker comes: Slurm has ended all of them (%s)",
			      states->end_reason);
		return err_set_remedy(err, "--runner 'slurm:--output=FILE' shows what they said");
	}
	if (there >= s->how.slots || s->most_joined == 0 || s->again >= AGAIN_MOST)
		return 0;
	s->again++;
	SAY(&ended, "workers:ended", said_number(s->how.slots - there),
	    states->end_reason[0] != '\0' ? said_text(states->end_reason) : said_none());
	starter_say(s, &ended);
	return submit(s, s->how.slots - there, err);
}

static int hear(struct starter *s, unsigned int joined, struct err *err)
{
	char bytes[4096];
	ssize_t n;
	int status = 0;
	struct states states;

	while ((n = read(s->answer, bytes, sizeof(bytes))) > 0)
		strbuf_add(&s->heard, bytes, (size_t)n);
	if (n < 0 && errno == EAGAIN)
		return 0;
	fd_close(s->answer);
	s->answer = -1;
	(void)waitpid(s->asking, &status, 0);
	s->asking = 0;
	/* A controller that does not answer now may do so later; the workers need none. */
	if (status != 0 || s->heard.len == 0)
		return 0;
	states = count_states(s->heard.data);
	tell(s, &states);
	return replace(s, &states, joined, err);
}

static int watch(struct starter *s, unsigned int joined, struct err *err)
{
	AUTO(strbuf_deinit) struct strbuf jobs = { 0 };

	if (s->asking > 0)
		return hear(s, joined, err);
	if (clock_ns() - s->asked_ns < LOOK_NS)
		return 0;
	s->asked_ns = clock_ns();
	for (size_t i = 0; i < s->jobs.count; i++)
		strbuf_addf(&jobs, "%s%s", i > 0 ? "," : "", s->jobs.items[i]);
	(void)starter_begin_ask(s, (const char *[]){ "squeue", "--noheader", "--array",
						     "--states=all", "--format=%T|%r", "--jobs",
						     strbuf_str(&jobs), NULL });
	return 0;
}

static void stop(struct starter *s)
{
	for (size_t i = 0; i < s->jobs.count; i++) {
		const char *argv[] = { "scancel", "--quiet", s->jobs.items[i], NULL };
		AUTO(strbuf_deinit) struct strbuf out = { 0 };
		AUTO(strbuf_deinit) struct strbuf error = { 0 };
		struct err ignored = { 0 };

		(void)starter_ask(s, argv, NULL, 5, &out, &error, &ignored);
	}
}

const struct starter_ops starter_slurm = {
	.name = "slurm", .check = check, .start = start, .watch = watch, .stop = stop
};
