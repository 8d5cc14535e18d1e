/*
 * Many workers in one process, which run nothing: each answers a trial at once. For what a redhand
 * can stand (bench/machines).
 *
 *	machines-sim HOST:PORT WORKERS AGENT-DIR
 */
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/now.h"
#include "base/pack.h"
#include "run/job.h"
#include "run/remote/handshake.h"
#include "run/remote/listener.h"
#include "run/remote/node.h"

struct pretender {
	struct link link;
	struct greeting greeting;
	bool known, over;
};

static struct trust trust;
static struct hello hello; /* with redhand's own agent: nothing need be shipped */

static int reach(const char *host, const char *port)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *list;
	int fd;

	if (getaddrinfo(host, port, &hints, &list) != 0)
		return -1;
	fd = socket(list->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd >= 0 && connect(fd, list->ai_addr, list->ai_addrlen) < 0) {
		(void)close(fd);
		fd = -1;
	}
	freeaddrinfo(list);
	return fd;
}

static void answer(struct pretender *p, const struct link_frame *frame)
{
	struct unpacker u = { .at = frame->bytes, .left = frame->len };
	AUTO(strbuf_deinit) struct strbuf payload = { 0 };
	struct trial_result result = { .end = { .wall_ns = 1000000, .started_ms = 1 } };

	pack_u64(&payload, unpack_u64(&u));
	result.number.value = unpack_u64(&u);
	trial_result_pack(&result, &payload);
	link_send(&p->link, FRAME_RESULT, &payload);
}

static void introduce(struct pretender *p, size_t number)
{
	AUTO(strbuf_deinit) struct strbuf payload = { 0 };

	mem_free(hello.machine.node);
	hello.machine.node = mem_printf("node%zu", number / 16);
	hello_pack(&hello, &payload);
	link_send(&p->link, FRAME_HELLO, &payload);
	p->known = true;
}

static void go_on(struct pretender *p, size_t number)
{
	struct link_frame frame;
	int r = 0;

	p->over = link_receive(&p->link) < 0;
	if (!p->known) {
		r = greeting_go_on(&p->greeting, &trust, true, &p->link);
		if (r > 0)
			introduce(p, number);
	}
	while (p->known && (r = link_take(&p->link, &frame)) > 0) {
		if (frame.type == FRAME_JOB)
			answer(p, &frame);
		p->over |= frame.type == FRAME_BYE;
	}
	p->over |= r < 0 || link_flush(&p->link) < 0;
}

int main(int argc, char **argv)
{
	struct err err = { 0 };
	char *host = NULL, *port = NULL;
	size_t count = argc > 2 ? strtoul(argv[2], NULL, 10) : 0, left = count;
	struct pretender *all = mem_alloc((count + 1) * sizeof(*all));
	int epoll = epoll_create1(EPOLL_CLOEXEC);
	static const struct strbuf nothing;

	hello_make(&hello, argc > 3 ? argv[3] : NULL);
	if (count == 0 || listener_split(argv[1], &host, &port, &err) < 0 ||
	    trust_find(&trust, NULL, &err) < 0) {
		(void)fprintf(stderr, "machines-sim: %s\n", err.message);
		return 2;
	}
	for (size_t i = 0; i < count; i++) {
		struct epoll_event event = { .events = EPOLLIN, .data.u64 = i };
		int fd = reach(host, port);

		if (fd < 0)
			return 2;
		link_init(&all[i].link, fd);
		(void)epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
	}
	while (left > 0) {
		struct epoll_event events[256];
		int n = epoll_wait(epoll, events, 256, 500);
		uint64_t now = clock_ns();

		for (int i = 0; i < n; i++) {
			struct pretender *p = &all[events[i].data.u64];

			go_on(p, events[i].data.u64);
			if (p->over) {
				link_close(&p->link);
				left--;
			}
		}
		for (size_t i = 0; i < count; i++)
			if (!all[i].over && all[i].known &&
			    now - all[i].link.said_ns > 1000000000u) {
				link_send(&all[i].link, FRAME_ALIVE, &nothing);
				(void)link_flush(&all[i].link);
			}
	}
	return 0;
}
