#include "run/remote/fleet.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/tree.h"
#include "run/pool.h"
#include "run/remote/listener.h"
#include "run/remote/node.h"
#include "run/remote/orders.h"
#include "run/remote/parcel.h"
#include "run/remote/starter.h"
#include "run/remote/trust.h"

#define NS_PER_S 1000000000ull
#define DUTIES_NS (NS_PER_S / 4)
/* A worker says something every second. */
#define SILENCE_NS (5 * NS_PER_S)
#define GREETING_NS (5 * NS_PER_S)
/* How long others may take to come after one has given up. */
#define SORRY_NS (5 * NS_PER_S)
#define STRANGERS_MOST 4096u
#define EVENTS 256
/* What waits for a worker's socket before more of what is shipped is added. */
#define WAITING_MOST (1u << 20)
#define STATE_MOST 200u /* bytes of a worker's sentence */

/* A trial that a worker has. */
struct sent {
	uint64_t attempt; /* 0: none */
	struct trial_number number;
	unsigned int slot;
};

struct member {
	struct link link;
	struct greeting greeting;
	bool proven;	/* both ends know each other */
	bool ready;	/* it has said what it is, and got what is shipped */
	bool told;	/* it has the orders in force */
	bool gone;	/* to be freed */
	bool writing;	/* the socket is to say when it takes more */
	size_t shipped; /* frames of the cargo that it got */
	bool wants_agent;
	uint64_t since_ns;
	const struct machine *machine;
	struct sent sent[POOL_DEPTH];
	unsigned int depth;
	int slot; /* that it serves; -1: any */
	struct parcel parcel;
	uint64_t parcel_attempt; /* whose files come; 0: none */
};

struct cargo_frame {
	enum frame_type type;
	bool agent; /* for those alone that have another one */
	struct strbuf payload;
};

struct fleet {
	struct fleet_request request;
	struct starter *starter;
	struct trust trust;
	int listener, epoll, wake_fd;
	char *connect;
	VEC(struct member *) members;
	unsigned int strangers, joined, idle, busy;
	VEC(struct machine *) machines;
	VEC(struct cargo_frame) cargo;
	char *agent; /* fingerprint of ours */

	const struct trial_settings *settings; /* NULL between pools */
	struct strbuf orders;
	int trials; /* the case's trials/ */
	unsigned int slots;
	struct member **by_slot;
	unsigned int *depth;
	uint64_t attempts, lost;
	VEC(struct trial_result) results;
	size_t taken; /* of the results */
	uint64_t duties_ns, attentive_ns, left_ns;
	struct err sorry; /* what the last worker said that gave up; none since a result came */
	uint64_t sorry_ns;
	int trouble; /* negative: we cannot go on */
	struct err why;
};

/* ---- opening ---- */

int fleet_check(const char *runner, bool *ret_remote, struct err *err)
{
	AUTO(starter_closep) struct starter *starter = NULL;

	*ret_remote = strcmp(runner, "local") != 0;
	return *ret_remote ? starter_open(runner, &starter, err) : 0;
}

static int watch_fd(const struct fleet *f, int fd, void *what, bool writing)
{
	struct epoll_event event = { .events = EPOLLIN | (writing ? EPOLLOUT : 0),
				     .data.ptr = what };

	return epoll_ctl(f->epoll, EPOLL_CTL_ADD, fd, &event);
}

/* Which frames of the cargo are being made. */
struct loading {
	struct fleet *fleet;
	bool agent;
};

static int load_frame(void *ctx, enum frame_type type, const struct strbuf *payload)
{
	struct loading *loading = ctx;
	struct cargo_frame frame = { .type = type, .agent = loading->agent };

	strbuf_add(&frame.payload, payload->data, payload->len);
	VEC_PUSH(&loading->fleet->cargo, frame);
	return 0;
}

static int load_directory(struct loading *loading, const char *name)
{
	AUTO(strbuf_deinit) struct strbuf payload = { 0 };

	pack_u64(&payload, 0);
	pack_u64(&payload, 0);
	pack_u64(&payload, 0);
	pack_str(&payload, name);
	return load_frame(loading, FRAME_ENTRY, &payload);
}

/* Where it is to lie below ship/: as seen from here, or its last name when it lies elsewhere. */
static char *shipped_name(const char *path)
{
	const char *slash;

	while (path[0] == '.' && path[1] == '/')
		path += 2 + strspn(path + 2, "/");
	if (parcel_name_is_safe(path))
		return mem_strdup(path);
	slash = strrchr(path, '/');
	return slash && parcel_name_is_safe(slash + 1) ? mem_strdup(slash + 1) : NULL;
}

static int load_one(struct loading *loading, const char *path, struct err *err)
{
	struct parcel_sink sink = { .frame = load_frame, .ctx = loading };
	AUTO(mem_freep) char *trimmed = mem_strdup(path);
	AUTO(mem_freep) char *name = NULL;
	AUTO(mem_freep) char *as = NULL;

	while (strlen(trimmed) > 1 && trimmed[strlen(trimmed) - 1] == '/')
		trimmed[strlen(trimmed) - 1] = '\0';
	name = shipped_name(trimmed);
	if (access(path, R_OK) < 0)
		return err_errno(err, -errno, "--ship '%s' cannot be read", path);
	if (!name)
		return err_set(err, -EINVAL, "--ship '%s' has no name", path);
	as = mem_printf("ship/%s", name);
	for (char *at = strchr(as + 5, '/'); at; at = strchr(at + 1, '/')) {
		*at = '\0';
		(void)load_directory(loading, as);
		*at = '/';
	}
	return parcel_send(&sink, 0, AT_FDCWD, path, as);
}

static int load_cargo(struct fleet *f, struct err *err)
{
	static const char *const libraries[] = { "libredhand-agent.so",
						 "libredhand-agent-crash.so" };
	const struct strv *ship = f->request.ship;
	struct loading loading = { .fleet = f };
	int r = 0;

	if (ship && ship->count > 0)
		r = load_directory(&loading, "ship");
	for (size_t i = 0; r == 0 && ship && i < ship->count; i++)
		r = load_one(&loading, ship->items[i], err);
	loading.agent = true;
	if (r == 0 && f->request.agent_dir)
		r = load_directory(&loading, "agent");
	for (size_t i = 0; r == 0 && f->request.agent_dir && i < ARRAY_SIZE(libraries); i++) {
		AUTO(mem_freep)
		char *path = mem_printf("%s/%s", f->request.agent_dir, libraries[i]);
		AUTO(mem_freep) char *as = mem_printf("agent/%s", libraries[i]);
		struct parcel_sink sink = { .frame = load_frame, .ctx = &loading };

		r = parcel_send(&sink, 0, AT_FDCWD, path, as);
	}
	return r;
}

static int begin(struct fleet *f, struct err *err)
{
	AUTO(mem_freep) char *variable = NULL;
	int r = starter_open(f->request.runner, &f->starter, err);

	if (r == 0)
		r = trust_make(&f->trust, f->starter->munge_socket, err);
	if (r == 0)
		r = load_cargo(f, err);
	if (r == 0)
		r = listener_open(f->request.bind, f->starter->peer, &f->listener, &f->connect,
				  err);
	if (r < 0)
		return r;
	f->agent = agent_fingerprint(f->request.agent_dir);
	f->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (f->epoll < 0 || watch_fd(f, f->listener, f, false) < 0)
		return err_errno(err, -errno, "cannot wait for workers");
	variable = trust_variable(&f->trust);
	log_debug("workers connect to %s", f->connect);
	return starter_start(f->starter,
			     &(struct starter_start){ .slots = f->request.slots,
						      .connect = f->connect,
						      .variable = variable,
						      .say = f->request.say,
						      .say_ctx = f->request.say_ctx },
			     err);
}

int fleet_open(const struct fleet_request *request, struct fleet **ret, struct err *err)
{
	AUTO(fleet_closep) struct fleet *f = mem_alloc(sizeof(*f));
	int r;

	f->request = *request;
	f->listener = f->epoll = f->wake_fd = f->trials = -1;
	r = begin(f, err);
	if (r < 0)
		return r;
	*ret = TAKE(f);
	return 0;
}

/* ---- members ---- */

static void member_free(struct member *m)
{
	link_close(&m->link);
	parcel_deinit(&m->parcel);
	fd_close(m->parcel.dir);
	explicit_bzero(&m->greeting, sizeof(m->greeting));
	mem_free(m);
}

void fleet_close(struct fleet *f)
{
	AUTO(strbuf_deinit) struct strbuf nothing = { 0 };

	if (!f)
		return;
	fleet_end(f);
	fd_close(f->listener);
	VEC_FOREACH (&f->members, m) {
		if ((*m)->proven) {
			link_send(&(*m)->link, FRAME_BYE, &nothing);
			(void)link_flush(&(*m)->link);
		}
		member_free(*m);
	}
	VEC_DEINIT(&f->members);
	starter_close(f->starter);
	VEC_FOREACH (&f->machines, machine) {
		machine_deinit(*machine);
		mem_free(*machine);
	}
	VEC_DEINIT(&f->machines);
	VEC_FOREACH (&f->cargo, frame)
		strbuf_deinit(&frame->payload);
	VEC_DEINIT(&f->cargo);
	fd_close(f->epoll);
	trust_deinit(&f->trust);
	mem_free(f->connect);
	mem_free(f->agent);
	mem_free(f);
}

uint64_t fleet_lost(const struct fleet *f)
{
	return f->lost;
}

static void push_result(struct fleet *f, const struct trial_result *result)
{
	VEC_PUSH(&f->results, *result);
}

static void trial_name(uint64_t number, char ret[24])
{
	(void)snprintf(ret, 24, "%llu", (unsigned long long)number);
}

static void drop_files(const struct fleet *f, const struct sent *sent)
{
	char name[24];

	trial_name(sent->number.value, name);
	if (f->trials >= 0)
		(void)tree_remove_at(f->trials, name, NULL);
}

static void parcel_over(struct member *m)
{
	parcel_deinit(&m->parcel);
	fd_close(m->parcel.dir);
	m->parcel.dir = -1;
	m->parcel_attempt = 0;
}

/* The worker has one more, or one less. That its slot has one less is so only when the result has
 * been taken. */
static void set_depth(struct fleet *f, struct member *m, int by)
{
	f->idle -= m->ready && m->depth == 0;
	m->depth = (unsigned int)((int)m->depth + by);
	f->idle += m->ready && m->depth == 0;
}

static void release(struct fleet *f, struct member *m, struct sent *sent)
{
	sent->attempt = 0;
	set_depth(f, m, -1);
}

static void unbind(struct fleet *f, struct member *m)
{
	if (m->slot >= 0 && f->by_slot && (unsigned int)m->slot < f->slots)
		f->by_slot[m->slot] = NULL;
	m->slot = -1;
}

/* Its trials are nobody's fault: they are run again. */
static void lose(struct fleet *f, struct member *m, const char *why)
{
	if (m->gone)
		return;
	log_debug("a worker on '%s' is lost: %s", m->machine ? m->machine->node : "?", why);
	for (size_t i = 0; i < POOL_DEPTH; i++) {
		struct sent *sent = &m->sent[i];

		if (sent->attempt == 0)
			continue;
		if (m->parcel_attempt == sent->attempt)
			drop_files(f, sent);
		push_result(f, &(struct trial_result){ .number = sent->number,
						       .slot = sent->slot,
						       .lost = true,
						       .machine = m->machine });
		f->lost++;
		release(f, m, sent);
	}
	f->strangers -= !m->proven;
	f->joined -= m->ready;
	f->idle -= m->ready && m->depth == 0;
	unbind(f, m);
	m->ready = false;
	m->gone = true;
	parcel_over(m);
	fd_close(m->link.fd);
	m->link.fd = -1;
}

static void sweep(struct fleet *f)
{
	size_t kept = 0;

	for (size_t i = 0; i < f->members.count; i++) {
		if (f->members.items[i]->gone)
			member_free(f->members.items[i]);
		else
			f->members.items[kept++] = f->members.items[i];
	}
	f->members.count = kept;
}

/* Hands on what waits, and has the socket tell when there is more room. */
static void push_out(struct fleet *f, struct member *m)
{
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = m };
	bool writing;

	if (m->gone)
		return;
	if (link_flush(&m->link) < 0) {
		lose(f, m, "it does not take any more");
		return;
	}
	writing = link_waiting(&m->link) > 0;
	if (writing == m->writing)
		return;
	m->writing = writing;
	event.events |= writing ? EPOLLOUT : 0;
	(void)epoll_ctl(f->epoll, EPOLL_CTL_MOD, m->link.fd, &event);
}

static void send_away(struct fleet *f, struct member *m, const char *why)
{
	AUTO(strbuf_deinit) struct strbuf payload = { 0 };

	strbuf_adds(&payload, why);
	link_send(&m->link, FRAME_BYE, &payload);
	(void)link_flush(&m->link);
	lose(f, m, why);
}

/* ---- joining ---- */

static void tell_orders(struct fleet *f, struct member *m)
{
	if (!m->ready || !f->settings || m->told)
		return;
	link_send(&m->link, FRAME_SETTINGS, &f->orders);
	m->told = true;
	for (unsigned int i = 0; i < f->slots && m->slot < 0; i++)
		if (!f->by_slot[i]) {
			f->by_slot[i] = m;
			m->slot = (int)i;
		}
}

/* The next pieces of what is shipped; when that is all, it may work. */
static void ship(struct fleet *f, struct member *m)
{
	while (m->shipped < f->cargo.count && link_waiting(&m->link) < WAITING_MOST) {
		const struct cargo_frame *frame = &f->cargo.items[m->shipped++];

		if (!frame->agent || m->wants_agent)
			link_send(&m->link, frame->type, &frame->payload);
	}
	if (m->shipped == f->cargo.count) {
		m->ready = true;
		f->joined++;
		f->idle++;
		tell_orders(f, m);
	}
}

static const struct machine *keep_machine(struct fleet *f, struct hello *hello)
{
	struct machine *machine;

	VEC_FOREACH (&f->machines, known) {
		const struct machine *a = *known, *b = &hello->machine;

		if (strcmp(a->node, b->node) == 0 && strcmp(a->cores, b->cores) == 0 &&
		    strcmp(a->cpu, b->cpu) == 0 && strcmp(a->microcode, b->microcode) == 0 &&
		    strcmp(a->kernel, b->kernel) == 0 && strcmp(a->gpu, b->gpu) == 0)
			return a;
	}
	machine = mem_alloc(sizeof(*machine));
	*machine = hello->machine;
	hello->machine = (struct machine){ 0 };
	VEC_PUSH(&f->machines, machine);
	return machine;
}

static void take_hello(struct fleet *f, struct member *m, const struct link_frame *frame)
{
	AUTO(hello_deinit) struct hello hello = { 0 };

	if (m->machine || !hello_unpack(frame->bytes, frame->len, &hello)) {
		lose(f, m, "its first word cannot be read");
		return;
	}
	if (strcmp(hello.version, REDHAND_WIRE_VERSION) != 0) {
		(void)err_set(
			&f->sorry, -EPROTO,
			"the worker on '%s' is redhand %s and this is %s: they must be the same",
			hello.machine.node, hello.version, REDHAND_WIRE_VERSION);
		f->sorry_ns = link_now_ns();
		send_away(f, m, "this worker's redhand is not the one that it is to work for");
		return;
	}
	/* One that was given up, and another one for it: both have come. */
	if (f->joined >= f->request.slots) {
		send_away(f, m, "");
		return;
	}
	m->wants_agent = strcmp(hello.agent, f->agent) != 0;
	m->machine = keep_machine(f, &hello);
	log_debug("a worker on '%s' has come", m->machine->node);
	ship(f, m);
}

static void accept_all(struct fleet *f)
{
	for (;;) {
		int fd = accept4(f->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		struct member *m;

		if (fd < 0)
			return;
		if (f->strangers >= STRANGERS_MOST) {
			fd_close(fd);
			continue;
		}
		m = mem_alloc(sizeof(*m));
		link_init(&m->link, fd);
		parcel_init(&m->parcel, -1);
		m->slot = -1;
		m->since_ns = link_now_ns();
		f->strangers++;
		VEC_PUSH(&f->members, m);
		if (watch_fd(f, fd, m, false) < 0 ||
		    greeting_begin(&m->greeting, &m->link, NULL) < 0)
			lose(f, m, "there is no room for it");
		push_out(f, m);
	}
}

static void greet(struct fleet *f, struct member *m)
{
	int r = greeting_go_on(&m->greeting, &f->trust, false, &m->link);

	if (r < 0) {
		lose(f, m, "it is a stranger");
	} else if (r > 0) {
		m->proven = true;
		f->strangers--;
	}
}

/* ---- what members say ---- */

static struct sent *find_sent(struct member *m, uint64_t attempt)
{
	for (size_t i = 0; i < POOL_DEPTH; i++)
		if (attempt != 0 && m->sent[i].attempt == attempt)
			return &m->sent[i];
	return NULL;
}

/* The directory that a trial's files go into, made anew. */
static int make_directory(const struct fleet *f, const struct sent *sent)
{
	char name[24];

	trial_name(sent->number.value, name);
	if (mkdirat(f->trials, name, 0700) < 0 &&
	    (errno != EEXIST || tree_remove_at(f->trials, name, NULL) < 0 ||
	     mkdirat(f->trials, name, 0700) < 0))
		return -1;
	return openat(f->trials, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

static void stop_all(struct fleet *f, int code, const struct err *why)
{
	if (f->trouble == 0) {
		f->trouble = code;
		f->why = *why;
	}
}

static void take_files(struct fleet *f, struct member *m, const struct link_frame *frame)
{
	struct unpacker u = { .at = frame->bytes, .left = frame->len };
	uint64_t attempt = unpack_u64(&u);
	const struct sent *sent = find_sent(m, attempt);
	struct err err = { 0 };
	int r;

	if (u.broken || (m->parcel_attempt != 0 && m->parcel_attempt != attempt)) {
		lose(f, m, "it sends files that cannot be");
		return;
	}
	/* Of a trial that was ended meanwhile. */
	if (!sent)
		return;
	if (m->parcel_attempt == 0) {
		parcel_init(&m->parcel, make_directory(f, sent));
		m->parcel_attempt = attempt;
	}
	if (m->parcel.dir < 0) {
		(void)err_errno(&err, -errno, "cannot make a trial's directory");
		stop_all(f, err.code, &err);
		return;
	}
	r = parcel_put(&m->parcel, frame->type, u.at, u.left, &err);
	if (r == -EBADMSG)
		lose(f, m, err.message);
	else if (r < 0)
		stop_all(f, r, &err);
}

/* A machine that cannot run the trial says nothing about the trial. The others go on; without any,
 * its sentence is why. */
static void give_up_on(struct fleet *f, struct member *m, int code, const char *sentence,
		       const char *remedy)
{
	AUTO(strbuf_deinit) struct strbuf text = { 0 };

	strbuf_add_printable(&text, sentence, strnlen(sentence, STATE_MOST));
	(void)err_set(&f->sorry, code < 0 ? code : -EIO, "on '%s': %s",
		      m->machine ? m->machine->node : "?", strbuf_str(&text));
	f->sorry_ns = link_now_ns();
	strbuf_clear(&text);
	strbuf_add_printable(&text, remedy, strnlen(remedy, STATE_MOST));
	if (text.len > 0)
		(void)err_remedy(&f->sorry, "%s", strbuf_str(&text));
	if (f->request.say)
		f->request.say(f->request.say_ctx, f->sorry.message);
	send_away(f, m, "this machine cannot run the trials");
}

static void take_sorry(struct fleet *f, struct member *m, const struct link_frame *frame)
{
	struct unpacker u = { .at = frame->bytes, .left = frame->len };
	int code = (int)(int64_t)unpack_u64(&u);
	AUTO(mem_freep) char *sentence = unpack_str(&u);
	AUTO(mem_freep) char *remedy = unpack_str(&u);

	give_up_on(f, m, code, sentence ? sentence : "it cannot work", remedy ? remedy : "");
}

/* What it left has come before. */
static void settle_files(struct fleet *f, struct member *m, const struct sent *sent, bool left)
{
	bool came = m->parcel_attempt == sent->attempt;

	if (came)
		parcel_over(m);
	if (came && !left)
		drop_files(f, sent);
	if (!came && left)
		fd_close(make_directory(f, sent));
}

static void take_result(struct fleet *f, struct member *m, const struct link_frame *frame)
{
	struct unpacker u = { .at = frame->bytes, .left = frame->len };
	struct trial_result result = { 0 };
	uint64_t attempt = unpack_u64(&u);
	struct sent *sent = find_sent(m, attempt);

	if (!u.broken && !sent)
		return; /* of a trial that was ended meanwhile */
	if (u.broken || !trial_result_unpack(u.at, u.left, &result) ||
	    result.number.value != sent->number.value) {
		trial_result_deinit(&result);
		lose(f, m, "its result cannot be read");
		return;
	}
	settle_files(f, m, sent, result.left && !result.trouble);
	if (result.trouble) {
		give_up_on(f, m, result.trouble_code, result.trouble, "");
		trial_result_deinit(&result);
		return;
	}
	f->sorry.code = 0;
	result.slot = sent->slot;
	result.machine = m->machine;
	release(f, m, sent);
	push_result(f, &result);
}

static void take_frame(struct fleet *f, struct member *m, const struct link_frame *frame)
{
	switch (frame->type) {
	case FRAME_HELLO:
		take_hello(f, m, frame);
		break;
	case FRAME_ENTRY:
	case FRAME_DATA:
		take_files(f, m, frame);
		break;
	case FRAME_RESULT:
		take_result(f, m, frame);
		break;
	case FRAME_SORRY:
		take_sorry(f, m, frame);
		break;
	case FRAME_ALIVE:
		break;
	default:
		lose(f, m, "it says what no worker says");
	}
}

static void hear(struct fleet *f, struct member *m)
{
	int over = link_receive(&m->link), r = 1;
	struct link_frame frame;

	if (!m->proven)
		greet(f, m);
	while (m->proven && !m->gone && (r = link_take(&m->link, &frame)) > 0)
		take_frame(f, m, &frame);
	if (r < 0)
		lose(f, m, "its frames are not its own");
	if (over < 0)
		lose(f, m, strerror(-over));
	if (!m->gone && m->machine && !m->ready)
		ship(f, m);
	push_out(f, m);
}

/* ---- the pool's side ---- */

static int open_trials(const struct trial_settings *settings, struct err *err)
{
	int fd = open(settings->trials_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);

	return fd < 0 ? err_errno(err, -errno, "cannot open '%s'", settings->trials_path) : fd;
}

int fleet_begin(struct fleet *f, const struct trial_settings *settings, unsigned int slots,
		struct err *err)
{
	char cwd[PATH_MAX];

	fleet_end(f);
	if (!getcwd(cwd, sizeof(cwd)))
		return err_errno(err, -errno, "cannot find out where we are");
	f->trials = open_trials(settings, err);
	if (f->trials < 0)
		return f->trials;
	strbuf_clear(&f->orders);
	orders_pack(settings, cwd, environ, &f->orders);
	f->settings = settings;
	f->slots = slots;
	f->by_slot = mem_alloc(slots * sizeof(f->by_slot[0]));
	f->depth = mem_alloc(slots * sizeof(f->depth[0]));
	f->wake_fd = -1;
	f->attentive_ns = f->left_ns = link_now_ns();
	VEC_FOREACH (&f->members, m) {
		tell_orders(f, *m);
		push_out(f, *m);
	}
	return 0;
}

void fleet_end(struct fleet *f)
{
	static const struct strbuf nothing;

	if (!f->settings)
		return;
	VEC_FOREACH (&f->members, at) {
		struct member *m = *at;

		for (size_t i = 0; i < POOL_DEPTH; i++)
			if (m->sent[i].attempt != 0) {
				if (m->parcel_attempt == m->sent[i].attempt)
					drop_files(f, &m->sent[i]);
				release(f, m, &m->sent[i]);
			}
		parcel_over(m);
		if (m->told)
			link_send(&m->link, FRAME_STOP, &nothing);
		m->told = false;
		m->slot = -1;
		push_out(f, m);
	}
	sweep(f);
	for (; f->taken < f->results.count; f->taken++)
		trial_result_deinit(&f->results.items[f->taken]);
	VEC_DEINIT(&f->results);
	f->taken = 0;
	mem_free(f->by_slot);
	mem_free(f->depth);
	f->by_slot = NULL;
	f->depth = NULL;
	f->busy = 0;
	fd_close(f->trials);
	f->trials = -1;
	strbuf_deinit(&f->orders);
	f->settings = NULL;
}

bool fleet_takes(const struct fleet *f, unsigned int slot)
{
	const struct member *m = f->by_slot[slot];

	return m ? m->depth < POOL_DEPTH : f->idle > 0;
}

unsigned int fleet_depth(const struct fleet *f, unsigned int slot)
{
	return f->depth[slot];
}

unsigned int fleet_busy(const struct fleet *f)
{
	return f->busy;
}

static struct member *pick(const struct fleet *f, unsigned int slot)
{
	struct member *m = f->by_slot[slot];

	if (m && m->depth < POOL_DEPTH)
		return m;
	VEC_FOREACH (&f->members, other)
		if ((*other)->ready && (*other)->told && (*other)->depth == 0)
			return *other;
	return NULL;
}

int fleet_start(struct fleet *f, const struct trial_job *job, struct err *err)
{
	AUTO(strbuf_deinit) struct strbuf payload = { 0 };
	struct member *m = pick(f, job->slot);
	struct sent *sent = NULL;

	if (!m)
		return err_set(err, -EAGAIN, "no worker is free for slot %u", job->slot);
	for (size_t i = 0; i < POOL_DEPTH && !sent; i++)
		if (m->sent[i].attempt == 0)
			sent = &m->sent[i];
	*sent = (struct sent){ .attempt = ++f->attempts, .number = job->number, .slot = job->slot };
	set_depth(f, m, 1);
	f->depth[job->slot]++;
	f->busy++;
	pack_u64(&payload, sent->attempt);
	trial_job_pack(job, &payload);
	link_send(&m->link, FRAME_JOB, &payload);
	push_out(f, m);
	return 0;
}

/* Silence counts only while we listen: what a worker said in the meantime lies in the socket. */
static void find_silent(struct fleet *f, uint64_t now)
{
	VEC_FOREACH (&f->members, at) {
		struct member *m = *at;

		if (m->gone)
			continue;
		if (!m->proven && now - m->since_ns > GREETING_NS)
			lose(f, m, "it does not introduce itself");
		else if (now - m->link.heard_ns > SILENCE_NS && now - f->attentive_ns > NS_PER_S)
			lose(f, m, "it is silent");
	}
}

static int duties(struct fleet *f, struct err *err)
{
	uint64_t now = link_now_ns();
	int r;

	if (f->trouble < 0) {
		*err = f->why;
		return f->trouble;
	}
	if (now - f->duties_ns < DUTIES_NS)
		return 0;
	f->duties_ns = now;
	find_silent(f, now);
	sweep(f);
	r = starter_watch(f->starter, f->joined, err);
	/* What a worker said is nearer to the cause than that it ended. */
	if (f->joined == 0 && f->sorry.code != 0 && (r < 0 || now - f->sorry_ns > SORRY_NS)) {
		*err = f->sorry;
		return f->sorry.code;
	}
	return r;
}

static int pop_result(struct fleet *f, struct trial_result *ret)
{
	if (f->taken == f->results.count)
		return 0;
	*ret = f->results.items[f->taken++];
	f->depth[ret->slot]--;
	f->busy--;
	if (f->taken == f->results.count)
		f->taken = f->results.count = 0;
	return 1;
}

static int listen_for(struct fleet *f, int timeout_ms, struct err *err)
{
	struct epoll_event events[EVENTS];
	int n = epoll_wait(f->epoll, events, EVENTS, timeout_ms);

	if (n < 0 && errno != EINTR)
		return err_errno(err, -errno, "cannot wait for the workers");
	for (int i = 0; i < n; i++) {
		if (events[i].data.ptr == f)
			accept_all(f);
		else if (events[i].data.ptr && !((struct member *)events[i].data.ptr)->gone)
			hear(f, events[i].data.ptr);
	}
	return 0;
}

int fleet_wait(struct fleet *f, int wake_fd, int timeout_ms, struct trial_result *ret,
	       struct err *err)
{
	uint64_t now = link_now_ns();
	int r = pop_result(f, ret);

	if (r > 0)
		return r;
	if (now - f->left_ns > NS_PER_S)
		f->attentive_ns = now;
	if (wake_fd >= 0 && wake_fd != f->wake_fd && watch_fd(f, wake_fd, NULL, false) == 0)
		f->wake_fd = wake_fd;
	r = listen_for(f, timeout_ms, err);
	if (r == 0)
		r = duties(f, err);
	f->left_ns = link_now_ns();
	return r < 0 ? r : pop_result(f, ret);
}
