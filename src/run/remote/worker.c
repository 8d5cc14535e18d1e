#include "run/remote/worker.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/now.h"
#include "base/tmpdir.h"
#include "base/tree.h"
#include "model/known_secrets.h"
#include "run/observe.h"
#include "run/pool.h"
#include "run/remote/node.h"
#include "run/remote/orders.h"
#include "run/remote/parcel.h"
#include "run/tmp_dirs.h"

#define NS_PER_S 1000000000ull
#define ALIVE_NS NS_PER_S
#define GREETING_MS 5000
/* What waits to be sent before a parcel's next piece is read. */
#define WAITING_MOST (4u << 20)
#define STALLED_MS 4000
/* redhand has gone when its machine says so again and again for so long. */
#define REFUSED_NS (3 * NS_PER_S)
#define RETRY_MS 200

struct taken_job {
	uint64_t id; /* 0: none */
	struct trial_number number;
};

struct worker {
	const struct worker_request *request;
	struct link link;
	char *scratch;	      /* trials/, agent/ and ship/ of this machine alone */
	int dir;	      /* its descriptor */
	char *agent_dir;      /* our own; NULL */
	bool agent_sent;      /* redhand's is used instead */
	char *agent_link_dir; /* where the one that is used has an alias; NULL */
	bool shipped;
	struct parcel parcel; /* what is being shipped */
	struct orders orders;
	struct pool *pool; /* NULL: no orders */
	struct taken_job attempts[POOL_DEPTH];
	bool dismissed;	   /* redhand has said so */
	struct strbuf why; /* … because */
};

/* Waits until the socket takes something. */
static int wait_to_send(struct worker *w)
{
	struct pollfd fd = { .fd = w->link.fd, .events = POLLOUT };
	int r = poll(&fd, 1, STALLED_MS);

	if (r == 0)
		return -ETIMEDOUT;
	return r < 0 && errno != EINTR ? -errno : 0;
}

static int flush_to(struct worker *w, size_t most)
{
	int r = link_flush(&w->link);

	while (r == 0 && link_waiting(&w->link) > most) {
		r = wait_to_send(w);
		if (r == 0)
			r = link_flush(&w->link);
	}
	return r;
}

static int parcel_frame(void *ctx, enum frame_type type, const struct strbuf *payload)
{
	struct worker *w = ctx;

	link_send(&w->link, type, payload);
	return flush_to(w, WAITING_MOST);
}

static void stop_pool(struct worker *w)
{
	struct err ignored = { 0 };

	if (!w->pool)
		return;
	pool_close(w->pool);
	w->pool = NULL;
	memset(w->attempts, 0, sizeof(w->attempts));
	tmpdir_remove(w->orders.settings.trials.tmp_dirs);
	orders_deinit(&w->orders);
	w->orders = (struct orders){ 0 };
	(void)tree_remove_at(w->dir, "trials", &ignored);
}

/* The environment that redhand would have given, but for what is this worker's own. */
static void take_environment(const struct strv *env)
{
	AUTO(strv_deinit) struct strv own = { 0 };

	for (char **at = environ; at && *at; at++)
		if (node_owns_variable(*at))
			strv_add(&own, *at);
	(void)clearenv();
	for (size_t i = 0; i < env->count + own.count; i++) {
		bool theirs = i < env->count;
		const char *text = theirs ? env->items[i] : own.items[i - env->count];
		const char *equals = strchr(text, '=');
		AUTO(mem_freep) char *name = NULL;

		if (!equals || (theirs && node_owns_variable(text)))
			continue;
		name = mem_strndup(text, (size_t)(equals - text));
		(void)setenv(name, equals + 1, 1);
	}
	secret_learn(environ);
}

static int settle(struct worker *w, struct err *err)
{
	struct trial_settings *settings = &w->orders.settings;
	AUTO(mem_freep) char *ship = mem_printf("%s/ship", w->scratch);
	const char *cwd = w->shipped ? ship : w->orders.cwd;

	if (chdir(cwd) < 0) {
		(void)err_set_errno(err, -errno, "cannot work in '%s'", cwd);
		return err_set_remedy(err,
				      "--ship takes the files along that the nodes do not have");
	}
	settings->trials.path = mem_printf("%s/trials", w->scratch);
	settings->agent_dir = w->agent_sent  ? mem_printf("%s/agent", w->scratch)
			      : w->agent_dir ? mem_strdup(w->agent_dir)
					     : NULL;
	if (settings->agent_dir)
		observe_alias_agent(&settings->agent_dir, &w->agent_link_dir);
	(void)sigprocmask(SIG_BLOCK, NULL, &settings->signal_mask);
	if (mkdirat(w->dir, "trials", 0700) < 0)
		return err_set_errno(err, -errno, "cannot make '%s'", settings->trials.path);
	return settings->flags & TRIAL_SHARE_TMP ? 0 : tmp_dirs_make(settings, err);
}

static int take_orders(struct worker *w, const struct link_frame *frame, struct err *err)
{
	int r;

	stop_pool(w);
	if (!orders_unpack(frame->bytes, frame->len, &w->orders)) {
		orders_deinit(&w->orders);
		w->orders = (struct orders){ 0 };
		return err_set(err, -EBADMSG, "the settings from redhand cannot be read");
	}
	take_environment(&w->orders.env);
	r = settle(w, err);
	if (r == 0)
		r = pool_open(1, &w->orders.settings, -1, &w->pool, err);
	if (r < 0) {
		tmpdir_remove(w->orders.settings.trials.tmp_dirs);
		orders_deinit(&w->orders);
		w->orders = (struct orders){ 0 };
		(void)tree_remove_at(w->dir, "trials", NULL);
	}
	return r;
}

/* Lists and marks of a framework lie in the trial's directory: here that is another one. */
static void lead_here(const struct worker *w, struct strv *words)
{
	const char *theirs = w->orders.trials, *ours = w->orders.settings.trials.path;

	for (size_t i = 0; i < words->count; i++) {
		AUTO(strbuf_deinit) struct strbuf sb = { 0 };
		const char *at = words->items[i], *found;

		while ((found = strstr(at, theirs)) != NULL) {
			strbuf_add(&sb, at, (size_t)(found - at));
			strbuf_adds(&sb, ours);
			at = found + strlen(theirs);
		}
		if (at == words->items[i])
			continue;
		strbuf_adds(&sb, at);
		mem_free(words->items[i]);
		words->items[i] = strbuf_take(&sb);
	}
}

static int take_job(struct worker *w, const struct link_frame *frame, struct err *err)
{
	AUTO(trial_job_deinit) struct trial_job job = { 0 };
	struct unpacker u = { .at = frame->bytes, .left = frame->len };
	struct taken_job *free_one = NULL;
	uint64_t id = unpack_u64(&u);

	for (size_t i = 0; i < POOL_DEPTH && !free_one; i++)
		if (w->attempts[i].id == 0)
			free_one = &w->attempts[i];
	if (u.broken || id == 0 || !w->pool || !free_one || !trial_job_unpack(u.at, u.left, &job))
		return err_set(err, -EBADMSG, "a trial from redhand cannot be read");
	job.slot = 0;
	lead_here(w, &job.argv);
	lead_here(w, &job.env);
	*free_one = (struct taken_job){ .id = id, .number = job.number };
	return pool_start(w->pool, &job, err);
}

static int send_result(struct worker *w, struct trial_result *result)
{
	AUTO(strbuf_deinit) struct strbuf payload = { 0 };
	struct parcel_sink sink = { .frame = parcel_frame, .ctx = w };
	AUTO(mem_freep)
	char *name = mem_printf("trials/%llu", (unsigned long long)result->number.value);
	struct taken_job *mine = NULL;
	int r = 0;

	for (size_t i = 0; i < POOL_DEPTH; i++)
		if (w->attempts[i].id != 0 && w->attempts[i].number.value == result->number.value)
			mine = &w->attempts[i];
	if (!mine)
		return 0;
	if (result->left && !result->trouble)
		r = parcel_send(&sink, mine->id, w->dir, name, NULL);
	pack_u64(&payload, mine->id);
	trial_result_pack(result, &payload);
	if (r == 0)
		link_send(&w->link, FRAME_RESULT, &payload);
	mine->id = 0;
	if (result->left)
		(void)tree_remove_at(w->dir, name, NULL);
	return r == 0 ? flush_to(w, 0) : r;
}

static int take_shipped(struct worker *w, const struct link_frame *frame, struct err *err)
{
	struct unpacker u = { .at = frame->bytes, .left = frame->len };

	if (unpack_u64(&u) != 0 || u.broken)
		return err_set(err, -EBADMSG, "what redhand ships cannot be read");
	return parcel_put(&w->parcel, frame->type, u.at, u.left, err);
}

static bool is_there(const struct worker *w, const char *name)
{
	return faccessat(w->dir, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static int take_frame(struct worker *w, const struct link_frame *frame, struct err *err)
{
	switch (frame->type) {
	case FRAME_ENTRY:
	case FRAME_DATA:
		return take_shipped(w, frame, err);
	case FRAME_SETTINGS:
		/* All that is shipped has come; nobody can run a file that is open for writing. */
		parcel_deinit(&w->parcel);
		w->agent_sent = is_there(w, "agent");
		w->shipped = is_there(w, "ship");
		return take_orders(w, frame, err);
	case FRAME_JOB:
		return take_job(w, frame, err);
	case FRAME_STOP:
		stop_pool(w);
		return 0;
	case FRAME_BYE:
		w->dismissed = true;
		strbuf_add_printable(&w->why, frame->bytes, strnlen(frame->bytes, frame->len));
		return 0;
	case FRAME_ALIVE:
		return 0;
	default:
		return err_set(err, -EBADMSG, "redhand said what no redhand says");
	}
}

static int take_frames(struct worker *w, struct err *err)
{
	struct link_frame frame;
	int r;

	while ((r = link_take(&w->link, &frame)) > 0 && !w->dismissed) {
		r = take_frame(w, &frame, err);
		if (r < 0)
			return r;
	}
	return r < 0 ? err_set(err, r, "the connection is not what it was") : 0;
}

static int poll_link(struct worker *w)
{
	struct pollfd fd = { .fd = w->link.fd, .events = POLLIN };

	return poll(&fd, 1, (int)(ALIVE_NS / 1000000)) < 0 && errno != EINTR ? -errno : 0;
}

/* One turn: a result, or what redhand says, or a sign of life. Positive: the link is over. */
static int turn(struct worker *w, struct err *err)
{
	AUTO(trial_result_deinit) struct trial_result result = { 0 };
	static const struct strbuf nothing;
	int r = w->pool ? pool_wait(w->pool, w->link.fd, (int)(ALIVE_NS / 1000000), &result, err)
			: poll_link(w);

	if (r < 0)
		return r;
	if (r > 0 && send_result(w, &result) < 0)
		return 1;
	if (link_receive(&w->link) < 0)
		return 1;
	r = take_frames(w, err);
	if (r < 0)
		return r;
	if (clock_ns() - w->link.said_ns >= ALIVE_NS) {
		link_send(&w->link, FRAME_ALIVE, &nothing);
		if (flush_to(w, 0) < 0)
			return 1;
	}
	return 0;
}

static void say_sorry(struct worker *w, const struct err *err)
{
	AUTO(strbuf_deinit) struct strbuf payload = { 0 };

	pack_u64(&payload, (uint64_t)(int64_t)err->code);
	pack_str(&payload, err->message);
	pack_str(&payload, err->remedy);
	link_send(&w->link, FRAME_SORRY, &payload);
	(void)flush_to(w, 0);
}

/* Until the link is over: 0, or we cannot go on: negative. */
static int serve(struct worker *w, struct err *err)
{
	AUTO(hello_deinit) struct hello hello = { 0 };
	AUTO(strbuf_deinit) struct strbuf payload = { 0 };
	int r;

	hello_make(&hello, w->agent_dir);
	hello_pack(&hello, &payload);
	link_send(&w->link, FRAME_HELLO, &payload);
	r = flush_to(w, 0) < 0 ? 1 : 0;
	while (r == 0 && !w->dismissed)
		r = turn(w, err);
	if (r < 0)
		say_sorry(w, err);
	return r < 0 ? r : 0;
}

/* A connected socket; negative: -errno. */
static int reach(const struct worker_request *request)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *list = NULL;
	int r = -EHOSTUNREACH;

	if (getaddrinfo(request->host, request->port, &hints, &list) != 0)
		return -EHOSTUNREACH;
	for (const struct addrinfo *at = list; at && r < 0; at = at->ai_next) {
		int fd = socket(at->ai_family, at->ai_socktype | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
		struct pollfd ready = { .fd = fd, .events = POLLOUT };
		socklen_t len = sizeof(r);

		if (fd < 0) {
			r = -errno;
			continue;
		}
		r = connect(fd, at->ai_addr, at->ai_addrlen) < 0 ? -errno : 0;
		if (r == -EINPROGRESS) {
			r = poll(&ready, 1, GREETING_MS) > 0 ? 0 : -ETIMEDOUT;
			if (r == 0 && getsockopt(fd, SOL_SOCKET, SO_ERROR, &r, &len) == 0)
				r = -r;
		}
		if (r == 0)
			r = fd;
		else
			fd_close(fd);
	}
	freeaddrinfo(list);
	return r;
}

static int greet(struct worker *w)
{
	struct greeting greeting = { 0 };
	uint64_t give_up = clock_ns() + (uint64_t)GREETING_MS * 1000000u;
	int r = 0;

	while (r == 0 && clock_ns() < give_up) {
		r = poll_link(w);
		if (r == 0)
			r = link_receive(&w->link);
		/* Who closes instead of answering has not believed us. */
		if (r < 0 && greeting.step > 0)
			r = -EACCES;
		if (r >= 0)
			r = greeting_go_on(&greeting, w->request->trust, true, &w->link);
		if (r >= 0 && flush_to(w, 0) < 0)
			r = -EPIPE;
	}
	explicit_bzero(&greeting, sizeof(greeting));
	return r > 0 ? 0 : r < 0 ? r : -ETIMEDOUT;
}

/* How one connection went, for whether there is to be another one. */
struct tries {
	uint64_t since_ns;   /* of the first in a row that failed; 0: the last one was good */
	uint64_t refused_ns; /* the same, where its machine said that nobody listens; 0 */
};

static bool try_again(const struct worker *w, struct tries *tries, int r)
{
	uint64_t now = clock_ns();

	if (tries->since_ns == 0)
		tries->since_ns = now;
	if (r != -ECONNREFUSED)
		tries->refused_ns = 0;
	else if (tries->refused_ns == 0)
		tries->refused_ns = now;
	return now - tries->since_ns < w->request->patience_ns &&
	       (tries->refused_ns == 0 || now - tries->refused_ns < REFUSED_NS);
}

static void reset(struct worker *w)
{
	stop_pool(w);
	parcel_deinit(&w->parcel);
	link_close(&w->link);
	(void)chdir("/");
	(void)tree_remove_at(w->dir, "ship", NULL);
	(void)tree_remove_at(w->dir, "agent", NULL);
	tmpdir_remove(w->agent_link_dir);
	mem_free(w->agent_link_dir);
	w->agent_link_dir = NULL;
}

static int work(struct worker *w, struct err *err)
{
	struct tries tries = { 0 };

	while (!w->dismissed) {
		int r = reach(w->request);

		if (r >= 0) {
			link_init(&w->link, r);
			parcel_init(&w->parcel, w->dir);
			r = greet(w);
		}
		if (r == -EACCES) {
			(void)err_set(
				err, r,
				"the redhand at '%s:%s' is not the one that this worker is for, or not of its version",
				w->request->host, w->request->port);
			return r;
		}
		if (r == 0) {
			tries = (struct tries){ 0 };
			r = serve(w, err);
			if (r < 0)
				return r;
			r = -EPIPE;
		}
		reset(w);
		if (!w->dismissed && !try_again(w, &tries, r))
			return err_set_errno(err, r, "cannot reach redhand at '%s:%s'",
					     w->request->host, w->request->port);
		if (!w->dismissed)
			pause_ms(RETRY_MS);
	}
	return w->why.len > 0 ? err_set(err, -EPROTO, "%s", strbuf_str(&w->why)) : 0;
}

int worker_run(const struct worker_request *request, struct err *err)
{
	struct worker w = { .request = request, .link = { .fd = -1 }, .parcel = { .file = -1 } };
	struct err none = { 0 };
	int r = tmpdir_make(NULL, "worker-", &w.scratch, err);

	if (r < 0)
		return r;
	(void)observe_find_agent(&w.agent_dir, &none);
	w.dir = open(w.scratch, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	r = w.dir < 0 ? err_set_errno(err, -errno, "cannot open '%s'", w.scratch) : work(&w, err);
	reset(&w);
	fd_close(w.dir);
	tmpdir_remove(w.scratch);
	mem_free(w.scratch);
	mem_free(w.agent_dir);
	strbuf_deinit(&w.why);
	return r;
}
