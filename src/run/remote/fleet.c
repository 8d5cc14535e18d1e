#include "run/remote/fleet_inside.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/now.h"
#include "base/talk.h"
#include "run/remote/listener.h"
#include "run/remote/node.h"
#include "run/remote/starter.h"

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

static int begin(struct fleet *f, struct err *err)
{
	AUTO(mem_freep) char *variable = NULL;
	int r = starter_open(f->request.runner, &f->starter, err);

	if (r == 0)
		r = trust_make(&f->trust, f->starter->munge_socket, err);
	if (r == 0)
		r = cargo_load(&f->cargo, f->request.ship, f->request.agent_dir, err);
	if (r == 0)
		r = listener_open(f->request.bind, f->starter->peer, &f->listener, &f->connect,
				  err);
	if (r < 0)
		return r;
	f->agent = agent_fingerprint(f->request.agent_dir);
	f->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (f->epoll < 0 || watch_fd(f, f->listener, f, false) < 0)
		return err_set_errno(err, -errno, "cannot wait for workers");
	variable = trust_variable(&f->trust);
	log_debug("listening at %s", f->connect);
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
	f->listener = f->epoll = f->wake_fd = f->errand.trials = -1;
	r = begin(f, err);
	if (r < 0)
		return r;
	*ret = TAKE(f);
	return 0;
}

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
	cargo_deinit(&f->cargo);
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

void fleet_lose(struct fleet *f, struct member *m, const char *why)
{
	if (m->gone)
		return;
	log_debug("a worker on '%s' is lost: %s", m->machine ? m->machine->node : "?", why);
	deal_lost(f, m);
	f->strangers -= !m->proven;
	f->joined -= m->ready;
	f->idle -= m->ready && m->depth == 0;
	deal_unbind(f, m);
	m->ready = false;
	m->gone = true;
	deal_parcel_over(m);
	fd_close(m->link.fd);
	m->link.fd = -1;
}

void fleet_sweep(struct fleet *f)
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
void fleet_push_out(struct fleet *f, struct member *m)
{
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = m };
	bool writing;

	if (m->gone)
		return;
	if (link_flush(&m->link) < 0) {
		fleet_lose(f, m, "takes nothing");
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
	fleet_lose(f, m, why);
}

/* The next pieces of what is shipped; when that is all, it may work. */
static void ship(struct fleet *f, struct member *m)
{
	while (m->shipped < f->cargo.frames.count && link_waiting(&m->link) < WAITING_MOST) {
		const struct cargo_frame *frame = &f->cargo.frames.items[m->shipped++];

		if (!frame->agent || m->wants_agent)
			link_send(&m->link, frame->type, &frame->payload);
	}
	if (m->shipped == f->cargo.frames.count) {
		m->ready = true;
		f->joined++;
		f->idle++;
		deal_orders(f, m);
	}
}

static const struct machine_facts *keep_machine(struct fleet *f, struct hello *hello)
{
	struct machine_facts *machine;

	VEC_FOREACH (&f->machines, known) {
		const struct machine_facts *a = *known, *b = &hello->machine;

		if (strcmp(a->node, b->node) == 0 && strcmp(a->cores, b->cores) == 0 &&
		    strcmp(a->cpu, b->cpu) == 0 && strcmp(a->microcode, b->microcode) == 0 &&
		    strcmp(a->kernel, b->kernel) == 0 && strcmp(a->gpu, b->gpu) == 0)
			return a;
	}
	machine = mem_alloc(sizeof(*machine));
	*machine = hello->machine;
	hello->machine = (struct machine_facts){ 0 };
	VEC_PUSH(&f->machines, machine);
	return machine;
}

static void take_hello(struct fleet *f, struct member *m, const struct link_frame *frame)
{
	AUTO(hello_deinit) struct hello hello = { 0 };

	if (m->machine || !hello_unpack(frame->bytes, frame->len, &hello)) {
		fleet_lose(f, m, "unreadable hello");
		return;
	}
	if (strcmp(hello.version, REDHAND_WIRE_VERSION) != 0) {
		(void)err_set(
			&f->sorry, -EPROTO,
			"the worker on '%s' is redhand %s and this is %s: they must be the same",
			hello.machine.node, hello.version, REDHAND_WIRE_VERSION);
		f->sorry_ns = clock_ns();
		send_away(f, m, f->sorry.message);
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
		m->since_ns = clock_ns();
		f->strangers++;
		VEC_PUSH(&f->members, m);
		if (watch_fd(f, fd, m, false) < 0)
			fleet_lose(f, m, "no room");
		else
			greeting_begin(&m->greeting, &m->link);
		fleet_push_out(f, m);
	}
}

static void greet(struct fleet *f, struct member *m)
{
	int r = greeting_go_on(&m->greeting, &f->trust, false, &m->link);

	if (r < 0) {
		fleet_lose(f, m, r == -EPROTO ? "other protocol" : "a stranger");
	} else if (r > 0) {
		m->proven = true;
		f->strangers--;
	}
}

void fleet_stop(struct fleet *f, int code, const struct err *why)
{
	if (f->trouble == 0) {
		f->trouble = code;
		f->why = *why;
	}
}

/* A machine that cannot run the trial says nothing about the trial. The others go on; without any,
 * its sentence is why. */
void fleet_give_up_on(struct fleet *f, struct member *m, int code, const char *sentence,
		      const char *remedy)
{
	AUTO(strbuf_deinit) struct strbuf text = { 0 };

	strbuf_add_printable(&text, sentence, strnlen(sentence, STATE_MOST));
	(void)err_set(&f->sorry, code < 0 ? code : -EIO, "on '%s': %s",
		      m->machine ? m->machine->node : "?", strbuf_str(&text));
	f->sorry_ns = clock_ns();
	strbuf_clear(&text);
	strbuf_add_printable(&text, remedy, strnlen(remedy, STATE_MOST));
	if (text.len > 0)
		(void)err_set_remedy(&f->sorry, "%s", strbuf_str(&text));
	if (f->request.say)
		f->request.say(f->request.say_ctx, &(struct said){ .text = f->sorry.message });
	send_away(f, m, f->sorry.message);
}

static void take_sorry(struct fleet *f, struct member *m, const struct link_frame *frame)
{
	struct unpacker u = { .at = frame->bytes, .left = frame->len };
	int code = (int)(int64_t)unpack_u64(&u);
	AUTO(mem_freep) char *sentence = unpack_str(&u);
	AUTO(mem_freep) char *remedy = unpack_str(&u);

	fleet_give_up_on(f, m, code, sentence ? sentence : "cannot work", remedy ? remedy : "");
}

static void take_frame(struct fleet *f, struct member *m, const struct link_frame *frame)
{
	switch (frame->type) {
	case FRAME_HELLO:
		take_hello(f, m, frame);
		break;
	case FRAME_ENTRY:
	case FRAME_DATA:
		deal_files(f, m, frame);
		break;
	case FRAME_RESULT:
		deal_result(f, m, frame);
		break;
	case FRAME_SORRY:
		take_sorry(f, m, frame);
		break;
	case FRAME_ALIVE:
		break;
	default:
		fleet_lose(f, m, "unknown frame");
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
		fleet_lose(f, m, "forged frame");
	if (over < 0)
		fleet_lose(f, m, strerror(-over));
	if (!m->gone && m->machine && !m->ready)
		ship(f, m);
	fleet_push_out(f, m);
}

/* Silence counts only while we listen: what a worker said in the meantime lies in the socket. */
static void find_silent(struct fleet *f, uint64_t now)
{
	VEC_FOREACH (&f->members, at) {
		struct member *m = *at;

		if (m->gone)
			continue;
		if (!m->proven && now - m->since_ns > GREETING_NS)
			fleet_lose(f, m, "no introduction");
		else if (now - m->link.heard_ns > SILENCE_NS && now - f->attentive_ns > NS_PER_S)
			fleet_lose(f, m, "silent");
	}
}

static int duties(struct fleet *f, struct err *err)
{
	uint64_t now = clock_ns();
	int r;

	if (f->trouble < 0) {
		*err = f->why;
		return f->trouble;
	}
	if (now - f->duties_ns < DUTIES_NS)
		return 0;
	f->duties_ns = now;
	find_silent(f, now);
	fleet_sweep(f);
	r = starter_watch(f->starter, f->joined, err);
	/* What a worker said is nearer to the cause than that it ended. */
	if (f->joined == 0 && f->sorry.code != 0 && (r < 0 || now - f->sorry_ns > SORRY_NS)) {
		*err = f->sorry;
		return f->sorry.code;
	}
	return r;
}

static int listen_for(struct fleet *f, int timeout_ms, struct err *err)
{
	struct epoll_event events[EVENTS];
	int n = epoll_wait(f->epoll, events, EVENTS, timeout_ms);

	if (n < 0 && errno != EINTR)
		return err_set_errno(err, -errno, "cannot wait for the workers");
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
	uint64_t now = clock_ns();
	int r = deal_pop(f, ret);

	if (r > 0)
		return r;
	if (now - f->left_ns > NS_PER_S)
		f->attentive_ns = now;
	if (wake_fd >= 0 && wake_fd != f->wake_fd && watch_fd(f, wake_fd, NULL, false) == 0)
		f->wake_fd = wake_fd;
	r = listen_for(f, timeout_ms, err);
	if (r == 0)
		r = duties(f, err);
	f->left_ns = clock_ns();
	return r < 0 ? r : deal_pop(f, ret);
}
