/*
 * The page of a case, live: made anew when the case has changed, and no more often than costs a
 * tenth of a core.
 */
#include "cmd/commands.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/talk.h"
#include "case/case.h"
#include "cmd/common.h"
#include "report/report_page.h"
#include "report/report_serve.h"
#include "serve/server.h"
#include "studies/overview/case_investigation.h"

#define TOKEN_BYTES 16u
#define TOKEN_MAX 128u
#define LOOK_MS 1000u
#define SHARE 10u /* of the time at most one part goes into making pages */
#define PING_MS 10000u

struct serve_options {
	struct common_options common;
	uint64_t port;
	const char *bind;
	const char *token_file;
};

static const struct option serve_option_table[] = {
	OPTION(COUNT, "port", "P", offsetof(struct serve_options, port),
	       "The port to listen on (default: any that is free)", .max = 65535),
	OPTION(TEXT, "bind", "ADDRESS", offsetof(struct serve_options, bind),
	       "The address to listen on (default: 127.0.0.1, which only this machine reaches). With "
	       "another one everybody who can reach it and knows the token can read the case, and "
	       "what is sent is not encrypted"),
	OPTION(TEXT, "token-file", "FILE", offsetof(struct serve_options, token_file),
	       "Keep the token of the address in FILE, which is made when it is missing, for its "
	       "owner alone: with it and --port an open page goes on after a restart (default: a "
	       "new token every time)"),
	OPTIONS_END,
};

static void defaults(void *ptr)
{
	struct serve_options *options = ptr;

	options->bind = "127.0.0.1";
}

static int new_token(char **ret, struct err *err)
{
	unsigned char bytes[TOKEN_BYTES];
	struct strbuf sb = { 0 };

	if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
		return err_set_errno(err, -errno, "there is no random token");
	for (size_t i = 0; i < sizeof(bytes); i++)
		strbuf_addf(&sb, "%02x", bytes[i]);
	*ret = strbuf_take(&sb);
	return 0;
}

static int check_token(const char *token, const char *path, struct err *err)
{
	static const char letters[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_";

	if (strlen(token) < TOKEN_BYTES || token[strspn(token, letters)] != '\0')
		return err_set(err, -EINVAL, "'%s' holds no token: %u letters and digits or more",
			       path, TOKEN_BYTES);
	return 0;
}

static int read_token(const char *path, char **ret, struct err *err)
{
	AUTO(fd_closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	char text[TOKEN_MAX + 1];
	ssize_t len;
	int r;

	if (fd < 0)
		return err_set_errno(err, -errno, "cannot read '%s'", path);
	r = fd_check_ours(fd, path, err);
	if (r < 0)
		return r;
	len = read(fd, text, TOKEN_MAX);
	if (len < 0)
		return err_set_errno(err, -errno, "cannot read '%s'", path);
	text[len] = '\0';
	text[strcspn(text, "\r\n")] = '\0';
	r = check_token(text, path, err);
	if (r == 0)
		*ret = mem_strdup(text);
	return r;
}

static int keep_token(const char *path, const char *token, struct err *err)
{
	AUTO(fd_closep) int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	AUTO(mem_freep) char *line = mem_printf("%s\n", token);

	if (fd < 0)
		return err_set_errno(err, -errno, "cannot make '%s'", path);
	return fd_write_all(fd, line, strlen(line), path, err);
}

static int find_token(const char *path, char **ret, struct err *err)
{
	char *token = NULL;
	int r;

	if (path && access(path, F_OK) == 0)
		return read_token(path, ret, err);
	r = new_token(&token, err);
	if (r == 0 && path)
		r = keep_token(path, token, err);
	if (r < 0)
		mem_free(token);
	else
		*ret = token;
	return r;
}

/* What changes with every commit to the case. Nothing is opened for it. */
struct stamp {
	struct {
		int64_t size, s, ns;
		uint64_t inode;
	} files[2];
};

static struct stamp look(const char *dir)
{
	static const char *const names[] = { "case.db", "case.db-wal" };
	struct stamp stamp;

	memset(&stamp, 0, sizeof(stamp));
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		AUTO(mem_freep) char *path = mem_printf("%s/%s", dir, names[i]);
		struct stat st;

		if (stat(path, &st) < 0)
			continue;
		stamp.files[i].size = st.st_size;
		stamp.files[i].s = st.st_mtim.tv_sec;
		stamp.files[i].ns = st.st_mtim.tv_nsec;
		stamp.files[i].inode = st.st_ino;
	}
	return stamp;
}

/* A case that is not there yet, or just being made, is an empty one. */
static int read_case(const char *dir, struct investigation *inv, struct trial_dots *dots,
		     struct err *err)
{
	AUTO(case_closep) struct case_store *cs = NULL;
	AUTO(mem_freep) char *db = mem_printf("%s/case.db", dir);
	int r;

	if (access(db, F_OK) < 0 && errno == ENOENT) {
		inv->case_dir = mem_strdup(dir);
		return 0;
	}
	r = case_open(dir, CASE_READ, &cs, err);
	if (r == 0)
		r = investigation_read(cs, NULL, inv, err);
	if (r < 0)
		return r;
	layout_read(inv);
	return dots_read(cs, inv, dots, err);
}

static char *render(const struct investigation *inv, const struct trial_dots *dots, uint64_t state)
{
	char *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);

	if (!out)
		return NULL;
	report_investigation_html(
		inv, dots,
		&(struct page_options){ .version = REDHAND_VERSION, .live = true, .state = state },
		out);
	if (fclose(out) != 0) {
		free(text);
		return NULL;
	}
	return text;
}

struct show {
	const char *dir;
	struct server *server;
	uint64_t state;	    /* numbers of states go on after a restart: they begin with the time */
	struct stamp stamp; /* of what is shown */
	bool shown;
	bool complained; /* about a case that cannot be read */
};

/* Shows the case as it is now. One that cannot be read at this moment is shown as it was. */
static int update(struct show *show, struct err *err)
{
	AUTO(investigation_deinit) struct investigation inv = { 0 };
	AUTO(trial_dots_deinit) struct trial_dots dots = { 0 };
	struct stamp stamp = look(show->dir);
	struct err trouble = { 0 };
	char *html;

	if (show->shown && memcmp(&stamp, &show->stamp, sizeof(stamp)) == 0)
		return 0;
	if (read_case(show->dir, &inv, &dots, &trouble) < 0) {
		if (!show->shown && !show->complained)
			log_err(&trouble);
		show->complained = true;
		return 0;
	}
	html = render(&inv, &dots, ++show->state);
	if (!html)
		return err_set(err, -ENOMEM, "the page cannot be made");
	show->stamp = stamp;
	show->shown = true;
	show->complained = false;
	return server_publish(show->server, html, show->state, err);
}

static uint64_t now_ms(clockid_t clock)
{
	struct timespec ts;

	(void)clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

/* Until a signal ends it. */
static int follow(struct show *show, const sigset_t *signals, struct err *err)
{
	uint64_t pinged = now_ms(CLOCK_MONOTONIC);

	for (;;) {
		uint64_t began = now_ms(CLOCK_MONOTONIC), took, pause;
		struct timespec wait;
		int r = update(show, err);

		if (r < 0)
			return r;
		took = now_ms(CLOCK_MONOTONIC) - began;
		pause = took * SHARE > LOOK_MS ? took * SHARE : LOOK_MS;
		wait = (struct timespec){ .tv_sec = (time_t)(pause / 1000),
					  .tv_nsec = (long)(pause % 1000) * 1000000 };
		if (sigtimedwait(signals, NULL, &wait) > 0)
			return 0;
		if (now_ms(CLOCK_MONOTONIC) - pinged >= PING_MS) {
			server_ping(show->server);
			pinged = now_ms(CLOCK_MONOTONIC);
		}
	}
}

static bool is_local(const char *address)
{
	return strncmp(address, "127.", 4) == 0 || strcmp(address, "::1") == 0;
}

static void tell(const struct serve_options *options, uint16_t port, const char *token)
{
	bool six = strchr(options->bind, ':') != NULL;
	AUTO(mem_freep)
	char *url = mem_printf("http://%s%s%s:%u/%s/", six ? "[" : "", options->bind,
			       six ? "]" : "", port, token);

	if (options->common.json)
		report_serve_json(options->common.case_dir, url, port, stdout);
	else
		(void)printf("%s\n", url);
	(void)fflush(stdout);
	if (!is_local(options->bind))
		log_warning(
			"everybody who can reach %s and knows this address can read the case, and "
			"what is sent is not encrypted",
			options->bind);
	log_note("Ctrl-C ends it");
}

static int serve(const struct invocation *inv, struct err *err)
{
	const struct serve_options *options = inv->options;
	AUTO(mem_freep) char *token = NULL;
	AUTO(mem_freep) char *policy = page_policy(true);
	struct show show = { .dir = options->common.case_dir, .state = now_ms(CLOCK_REALTIME) };
	sigset_t signals;
	int r = find_token(options->token_file, &token, err);

	if (r < 0)
		return r;
	/* Before there are threads, so that they all leave these signals to us. */
	(void)sigemptyset(&signals);
	(void)sigaddset(&signals, SIGINT);
	(void)sigaddset(&signals, SIGTERM);
	(void)sigaddset(&signals, SIGHUP);
	(void)sigprocmask(SIG_BLOCK, &signals, NULL);
	/* A hunt goes first. */
	(void)setpriority(PRIO_PROCESS, 0, 10);
	r = server_open(&(struct server_options){ .address = options->bind,
						  .port = (uint16_t)options->port,
						  .token = token,
						  .policy = policy },
			&show.server, err);
	if (r < 0)
		return r;
	r = update(&show, err);
	if (r == 0) {
		tell(options, server_port(show.server), token);
		r = follow(&show, &signals, err);
	}
	server_close(show.server);
	return r < 0 ? r : EXIT_AS_EXPECTED;
}

const struct command cmd_serve = {
	.name = "serve",
	.summary = "The page of a case, live in a browser while a hunt runs",
	.usage = "[options]",
	.description =
		"Prints an address and shows there what redhand report --format html writes, as it is now: "
		"an open page follows the case while trials run. It only reads, and can be started before "
		"there is a case.\n\n"
		"The address has a random token in it, which is all that keeps others out. It serves the "
		"page and nothing else: no request names a file. It listens on this machine only, unless "
		"--bind says otherwise.\n\n"
		"Pages are made at low priority, only when the case has changed, and with at most a tenth "
		"of a core; all readers share one copy. Ctrl-C ends it, with exit status 0.",
	.examples = "  redhand serve\n"
		    "      open the address that it prints\n\n"
		    "  redhand serve --port 8080 --token-file ~/.redhand-token\n"
		    "      the same address tomorrow\n",
	OWN_OPTIONS(struct serve_options, "The page", serve_option_table),
	.defaults = defaults,
	.run = serve,
};
