#include "run/remote/listener.h"

#include <errno.h>
#include <netdb.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>

#include "base/auto.h"
#include "base/fd.h"
#include "base/mem.h"

/* All of a large job array may knock at once. */
#define BACKLOG 4096

static void addrinfo_freep(struct addrinfo **list)
{
	if (*list)
		freeaddrinfo(*list);
}

int listener_split(const char *text, char **ret_host, char **ret_port, struct err *err)
{
	const char *colon = strrchr(text, ':');
	bool bracketed = text[0] == '[' && colon && colon > text && colon[-1] == ']';

	if (!colon || colon == text || colon[1] == '\0')
		return err_set(err, -EINVAL, "'%s' is not HOST:PORT", text);
	*ret_host = bracketed ? mem_strndup(text + 1, (size_t)(colon - text) - 2)
			      : mem_strndup(text, (size_t)(colon - text));
	*ret_port = mem_strdup(colon + 1);
	return 0;
}

/* The address that packets to `peer` would leave from: a datagram socket finds it without sending
 * any. */
static int find_own(const char *peer, char **ret, struct err *err)
{
	struct addrinfo hints = { .ai_socktype = SOCK_DGRAM };
	AUTO(addrinfo_freep) struct addrinfo *list = NULL;
	struct sockaddr_storage own;
	socklen_t len = sizeof(own);
	char text[NI_MAXHOST];
	int code = getaddrinfo(peer, "1", &hints, &list);

	if (code != 0)
		return err_set(err, -EHOSTUNREACH, "cannot find the host '%s': %s", peer,
			       gai_strerror(code));
	for (const struct addrinfo *at = list; at; at = at->ai_next) {
		AUTO(fd_closep) int fd = socket(at->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);

		if (fd >= 0 && connect(fd, at->ai_addr, at->ai_addrlen) == 0 &&
		    getsockname(fd, (struct sockaddr *)&own, &len) == 0 &&
		    getnameinfo((struct sockaddr *)&own, len, text, sizeof(text), NULL, 0,
				NI_NUMERICHOST) == 0) {
			*ret = mem_strdup(text);
			return 0;
		}
	}
	return err_set(err, -EHOSTUNREACH, "no address of this machine leads to '%s'", peer);
}

static int bind_to(const char *host, const char *port, int *ret_fd, char **ret_connect,
		   struct err *err)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE };
	AUTO(addrinfo_freep) struct addrinfo *list = NULL;
	AUTO(fd_closep) int fd = -1;
	struct sockaddr_storage own;
	socklen_t len = sizeof(own);
	char number[NI_MAXSERV], address[NI_MAXHOST];
	int code = getaddrinfo(host, port, &hints, &list), on = 1;

	if (code != 0)
		return err_set(err, -EINVAL, "cannot find the address '%s': %s", host,
			       gai_strerror(code));
	fd = socket(list->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd >= 0)
		(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (fd < 0 || bind(fd, list->ai_addr, list->ai_addrlen) < 0 || listen(fd, BACKLOG) < 0 ||
	    getsockname(fd, (struct sockaddr *)&own, &len) < 0)
		return err_set_errno(err, -errno, "cannot listen for workers on '%s'", host);
	if (getnameinfo((struct sockaddr *)&own, len, address, sizeof(address), number,
			sizeof(number), NI_NUMERICHOST | NI_NUMERICSERV) != 0)
		return err_set(err, -EINVAL, "the address '%s' has no name", host);
	*ret_connect = strchr(address, ':') ? mem_printf("[%s]:%s", address, number)
					    : mem_printf("%s:%s", address, number);
	*ret_fd = fd;
	fd = -1;
	return 0;
}

int listener_open(const char *bind, const char *peer, int *ret_fd, char **ret_connect,
		  struct err *err)
{
	AUTO(mem_freep) char *host = NULL;
	AUTO(mem_freep) char *port = NULL;
	int r = 0;

	if (bind && strchr(bind, ':') &&
	    (bind[0] == '[' || strchr(bind, ':') == strrchr(bind, ':')))
		r = listener_split(bind, &host, &port, err);
	else if (bind)
		host = mem_strdup(bind);
	else if (peer)
		r = find_own(peer, &host, err);
	else
		host = mem_strdup("127.0.0.1");
	return r < 0 ? r : bind_to(host, port ? port : "0", ret_fd, ret_connect, err);
}
