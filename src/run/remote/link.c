#include "run/remote/link.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sodium.h>
#include <string.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "base/now.h"

#define MAC_BYTES crypto_aead_chacha20poly1305_ietf_ABYTES
#define NONCE_BYTES crypto_aead_chacha20poly1305_ietf_NPUBBYTES
_Static_assert(LINK_KEY == crypto_aead_chacha20poly1305_ietf_KEYBYTES, "one kind of key");

/* Of the kernel: it answers for a process that is busy, and nobody answers for a machine that has
 * gone or a link that was cut. */
#define SILENCE_MS 4000
#define PROBE_S 1

/* What one call reads at most, so that a busy link does not keep us from the others. */
#define RECEIVE_MOST (1u << 20)

struct header {
	uint32_t len, type;
	uint8_t mac[MAC_BYTES];
};
_Static_assert(sizeof(struct header) == offsetof(struct header, mac) + MAC_BYTES, "no hole");

static void set(int fd, int level, int option, int value)
{
	/* A socket of another family has no such option, and needs none. */
	(void)setsockopt(fd, level, option, &value, sizeof(value));
}

void link_init(struct link *link, int fd)
{
	*link = (struct link){ .fd = fd, .heard_ns = clock_ns(), .said_ns = clock_ns() };
	(void)fcntl(fd, F_SETFL, O_NONBLOCK);
	(void)fcntl(fd, F_SETFD, FD_CLOEXEC);
	set(fd, IPPROTO_TCP, TCP_NODELAY, 1);
	set(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
	set(fd, IPPROTO_TCP, TCP_KEEPIDLE, PROBE_S);
	set(fd, IPPROTO_TCP, TCP_KEEPINTVL, PROBE_S);
	set(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, SILENCE_MS);
}

void link_close(struct link *link)
{
	fd_close(link->fd);
	link->fd = -1;
	strbuf_deinit(&link->in);
	strbuf_deinit(&link->out);
	sodium_memzero(link->in_key, sizeof(link->in_key));
	sodium_memzero(link->out_key, sizeof(link->out_key));
	link->in_at = link->out_at = 0;
}

void link_derive(const uint8_t key[LINK_KEY], const char *purpose, const void *nonces, size_t len,
		 uint8_t ret[LINK_KEY])
{
	crypto_generichash_state h;

	/* Fails only for lengths that are none. The end of the purpose is part of it. */
	(void)crypto_generichash_init(&h, key, LINK_KEY, LINK_KEY);
	(void)crypto_generichash_update(&h, (const uint8_t *)purpose, strlen(purpose) + 1);
	(void)crypto_generichash_update(&h, nonces, len);
	(void)crypto_generichash_final(&h, ret, LINK_KEY);
}

void link_key(struct link *link, bool worker, const uint8_t key[LINK_KEY], const void *nonces,
	      size_t len)
{
	link_derive(key, "frames of redhand", nonces, len, worker ? link->in_key : link->out_key);
	link_derive(key, "frames of a worker", nonces, len, worker ? link->out_key : link->in_key);
}

/* No number comes twice under a key: keys are of one connection and one direction. */
static void nonce_of(uint64_t seq, uint8_t ret[NONCE_BYTES])
{
	memset(ret, 0, NONCE_BYTES);
	memcpy(ret, &seq, sizeof(seq));
}

int link_receive(struct link *link)
{
	size_t most = RECEIVE_MOST;
	bool any = false;

	if (link->in_at > 0) {
		memmove(link->in.data, link->in.data + link->in_at, link->in.len - link->in_at);
		link->in.len -= link->in_at;
		link->in_at = 0;
	}
	while (most > 0) {
		size_t room = most < 65536 ? most : 65536;
		ssize_t n = recv(link->fd, strbuf_reserve(&link->in, room), room, 0);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			break;
		if (n < 0)
			return -errno;
		if (n == 0)
			return any ? 1 : -EPIPE;
		any = true;
		link->in.len += (size_t)n;
		link->heard_ns = clock_ns();
		most -= (size_t)n;
		/* Mostly there is no more: it is asked for when the socket says so. */
		if ((size_t)n < room)
			break;
	}
	return any;
}

size_t link_received(const struct link *link, const char **ret)
{
	*ret = link->in.data ? link->in.data + link->in_at : "";
	return link->in.len - link->in_at;
}

void link_skip(struct link *link, size_t len)
{
	link->in_at += len;
}

int link_take(struct link *link, struct link_frame *ret)
{
	const char *at;
	size_t len = link_received(link, &at);
	uint8_t nonce[NONCE_BYTES], *payload;
	struct header header;

	if (len < sizeof(header))
		return 0;
	memcpy(&header, at, sizeof(header));
	if (header.len > FRAME_MAX || header.type == 0 || header.type >= FRAME_TYPES)
		return -EBADMSG;
	if (len - sizeof(header) < header.len)
		return 0;
	nonce_of(link->in_seq++, nonce);
	payload = (uint8_t *)link->in.data + link->in_at + sizeof(header);
	if (crypto_aead_chacha20poly1305_ietf_decrypt_detached(
		    payload, NULL, payload, header.len, header.mac, (const uint8_t *)&header,
		    offsetof(struct header, mac), nonce, link->in_key) != 0)
		return -EBADMSG;
	*ret = (struct link_frame){ .type = header.type,
				    .bytes = at + sizeof(header),
				    .len = header.len };
	link_skip(link, sizeof(header) + header.len);
	return 1;
}

void link_put(struct link *link, const void *bytes, size_t len)
{
	if (link->out_at == link->out.len) {
		strbuf_clear(&link->out);
		link->out_at = 0;
	}
	strbuf_add(&link->out, bytes, len);
}

/* The same for a payload in two parts. */
static void link_send_two(struct link *link, enum frame_type type, const struct strbuf *first,
			  const void *bytes, size_t len)
{
	struct header header = { .len = (uint32_t)(first->len + len), .type = type };
	uint8_t nonce[NONCE_BYTES], *payload;

	if (link->fd < 0)
		return;
	link_put(link, &header, sizeof(header));
	link_put(link, strbuf_str(first), first->len);
	link_put(link, bytes, len);
	payload = (uint8_t *)link->out.data + link->out.len - header.len;
	nonce_of(link->out_seq++, nonce);
	(void)crypto_aead_chacha20poly1305_ietf_encrypt_detached(
		payload, payload - MAC_BYTES, NULL, payload, header.len, (const uint8_t *)&header,
		offsetof(struct header, mac), NULL, nonce, link->out_key);
}

void link_send(struct link *link, enum frame_type type, const struct strbuf *payload)
{
	link_send_two(link, type, payload, "", 0);
}

size_t link_waiting(const struct link *link)
{
	return link->out.len - link->out_at;
}

int link_flush(struct link *link)
{
	while (link_waiting(link) > 0) {
		ssize_t n = send(link->fd, link->out.data + link->out_at, link_waiting(link),
				 MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return 0;
		if (n < 0)
			return -errno;
		link->out_at += (size_t)n;
		link->said_ns = clock_ns();
	}
	return 0;
}
