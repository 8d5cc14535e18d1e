/*
 * redhand worker: one slot, or several, for a redhand on another machine.
 */
#include <errno.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/talk.h"
#include "cmd/commands.h"
#include "cmd/common.h"
#include "run/remote/listener.h"
#include "run/remote/worker.h"

struct worker_options {
	const char *connect;
	const char *token_file;
	uint64_t slots;
	uint64_t patience_ns;
	bool quiet;
};

#define PATIENCE_NS (600ull * 1000000000)
#define TOKEN_MOST 4096

static const struct option worker_option_table[] = {
	OPTION(TEXT, "connect", "HOST:PORT", offsetof(struct worker_options, connect),
	       "Where redhand listens; --runner tells it to the workers that it starts"),
	OPTION(COUNT, "slots", "N", offsetof(struct worker_options, slots),
	       "Be N workers (default 1)", .min = 1, .max = 1024),
	OPTION(TEXT, "token-file", "FILE", offsetof(struct worker_options, token_file),
	       "Read the token from FILE, from stdin when it is -, instead of the variable "
	       "REDHAND_TOKEN"),
	OPTION(DURATION, "patience", "TIME", offsetof(struct worker_options, patience_ns),
	       "How long to try to reach redhand again while the network is down (default 10m). "
	       "Where its machine answers that nobody listens, three seconds"),
	OPTION(FLAG, "quiet", NULL, offsetof(struct worker_options, quiet), "Print errors only",
	       .letter = 'q'),
	OPTIONS_END,
};

static void defaults(void *ptr)
{
	struct worker_options *options = ptr;

	options->slots = 1;
	options->patience_ns = PATIENCE_NS;
}

static int read_token(const char *path, char **ret, struct err *err)
{
	size_t len;
	int r = file_read(strcmp(path, "-") == 0 ? "/dev/stdin" : path, TOKEN_MOST, ret, &len, err);

	if (r == 0)
		(*ret)[strcspn(*ret, "\n")] = '\0';
	return r;
}

/* One process is one worker: what happens to one of them happens to no other. */
static int run_all(const struct worker_request *request, uint64_t slots, struct err *err)
{
	VEC(pid_t) others = { 0 };
	int r;

	for (uint64_t i = 1; i < slots; i++) {
		pid_t pid = fork();

		if (pid == 0) {
			r = worker_run(request, err);
			if (r < 0)
				log_err(err);
			_exit(r < 0 ? EXIT_TROUBLE : EXIT_AS_EXPECTED);
		}
		if (pid > 0)
			VEC_PUSH(&others, pid);
	}
	r = worker_run(request, err);
	VEC_FOREACH (&others, pid)
		while (waitpid(*pid, NULL, 0) < 0 && errno == EINTR)
			;
	VEC_DEINIT(&others);
	return r;
}

static int work(const struct worker_options *options, struct err *err)
{
	AUTO(trust_deinit) struct trust trust = { 0 };
	AUTO(mem_freep) char *token = NULL;
	AUTO(mem_freep) char *host = NULL;
	AUTO(mem_freep) char *port = NULL;
	int r = 0;

	if (!options->connect) {
		(void)err_set(err, -EINVAL, "a worker needs --connect HOST:PORT");
		return err_set_remedy(err, "redhand repro --runner … starts workers by itself");
	}
	r = listener_split(options->connect, &host, &port, err);
	if (r == 0 && options->token_file)
		r = read_token(options->token_file, &token, err);
	if (r == 0)
		r = trust_find(&trust, token, err);
	return r < 0 ? r
		     : run_all(&(struct worker_request){ .host = host,
							 .port = port,
							 .trust = &trust,
							 .patience_ns = options->patience_ns },
			       options->slots, err);
}

static int run(const struct invocation *inv, struct err *err)
{
	const struct worker_options *options = inv->options;
	int r;

	if (options->quiet)
		log_set_level(LOG_QUIET);
	r = work(options, err);
	return r < 0 ? r : EXIT_AS_EXPECTED;
}

const struct command cmd_worker = {
	.name = "worker",
	.summary = "Run trials on this machine for a redhand on another one",
	.usage = "[options] --connect HOST:PORT",
	.description =
		"Asks a redhand that runs with --runner for trials, runs them here and sends back what "
		"they left. What it needs comes over the connection: what to run, the agent, and the "
		"files of --ship. Trials run in a directory of the worker's own below TMPDIR, and nothing "
		"of them stays.\n\n"
		"Both ends prove themselves before anything else is said: with the token in the variable "
		"REDHAND_TOKEN, or by MUNGE where redhand's runner uses it. A worker without connection "
		"ends its trials within five seconds, and looks for its redhand for a while.\n\n"
		"Mostly nobody types this: --runner slurm, ssh and exec start workers.",
	.examples = "  redhand repro -j 8 --runner 'exec:srun -N1 {worker} # {slot}' -- ./mytests\n"
		    "      eight workers, each started by a command\n",
	OPTION_GROUPS(struct worker_options, OWN_GROUP("Worker", worker_option_table)),
	.defaults = defaults,
	.run = run,
};
