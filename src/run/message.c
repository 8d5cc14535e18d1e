/* Messages between redhand and its slots: a length, then so many bytes. */
#include "run/slot.h"

#include <errno.h>
#include <sys/socket.h>

/* Larger than any list of tests; a length beyond it means that we lost our place. */
#define MESSAGE_MAX (256u << 20)

static int send_all(int socket, const char *bytes, size_t len)
{
	while (len > 0) {
		ssize_t n = send(socket, bytes, len, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		bytes += n;
		len -= (size_t)n;
	}
	return 0;
}

static int receive_all(int socket, char *bytes, size_t len)
{
	while (len > 0) {
		ssize_t n = recv(socket, bytes, len, 0);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno == ECONNRESET ? 0 : -errno;
		if (n == 0)
			return 0;
		bytes += n;
		len -= (size_t)n;
	}
	return 1;
}

int message_send(int socket, const struct strbuf *message)
{
	AUTO(strbuf_deinit) struct strbuf framed = { 0 };

	/* One send for both: the other end wakes once. */
	pack_u64(&framed, message->len);
	strbuf_add(&framed, message->data, message->len);
	return send_all(socket, framed.data, framed.len);
}

int message_receive(int socket, struct strbuf *ret)
{
	uint64_t len = 0;
	int r = receive_all(socket, (char *)&len, sizeof(len));

	if (r <= 0)
		return r;
	if (len > MESSAGE_MAX)
		return -EBADMSG;
	strbuf_clear(ret);
	r = receive_all(socket, strbuf_reserve(ret, (size_t)len), (size_t)len);
	if (r > 0)
		ret->len = (size_t)len;
	return r;
}
