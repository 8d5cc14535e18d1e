/*
 * HTTP by libmicrohttpd: one thread, epoll, streams that wait are suspended.
 */
#include "serve/server.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <inttypes.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "base/auto.h"
#include "base/mem.h"

#define CONNECTIONS_MOST 2048u
#define DESCRIPTORS_KEPT 64u /* of the process itself */
#define CONNECTION_BYTES (16u * 1024u)
#define SILENCE_S 15u /* a request that does not come, an answer that nobody takes */
#define EVENT_BYTES 64u

/*
 * libmicrohttpd brings a dozen libraries with it, and every other command starts without: it is
 * loaded when it is needed.
 */
#define FUNCTIONS(X)                     \
	X(add_response_header)           \
	X(create_response_from_buffer)   \
	X(create_response_from_callback) \
	X(destroy_response)              \
	X(get_daemon_info)               \
	X(queue_response)                \
	X(resume_connection)             \
	X(start_daemon)                  \
	X(stop_daemon)                   \
	X(suspend_connection)

static struct {
#define MEMBER(name) __typeof__(MHD_##name) *name;
	FUNCTIONS(MEMBER)
#undef MEMBER
} mhd;

static const struct {
	const char *name;
	void *at; /* of its pointer in `mhd` */
} functions[] = {
#define ROW(name) { "MHD_" #name, &mhd.name },
	FUNCTIONS(ROW)
#undef ROW
};

static int load(struct err *err)
{
	static const char *const names[] = { "libmicrohttpd.so.12", "libmicrohttpd.so" };
	void *library = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(names) && !library; i++)
		library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
	if (!library) {
		(void)err_set(err, -ENOENT, "libmicrohttpd is not installed: %s", dlerror());
		return err_set_remedy(err, "Debian has it as libmicrohttpd12");
	}
	for (size_t i = 0; i < ARRAY_SIZE(functions); i++) {
		void *found = dlsym(library, functions[i].name);

		if (!found)
			return err_set(err, -ENOENT, "libmicrohttpd has no %s", functions[i].name);
		memcpy(functions[i].at, &found, sizeof(found));
	}
	return 0;
}

/* Somebody who follows the page. */
struct stream {
	struct server *server;
	struct MHD_Connection *connection;
	bool suspended;
	bool pinged; /* a sign of life is due */
	bool told;   /* `state` means something */
	uint64_t state;
	struct stream *next;
};

struct server {
	struct MHD_Daemon *daemon;
	char *token, *policy;
	pthread_mutex_t lock;	   /* of all that follows */
	struct MHD_Response *page; /* NULL until it is published */
	uint64_t state;
	struct stream *streams;
	bool ending;
};

/* In the same time whatever differs. */
static bool bytes_same(const void *a, const void *b, size_t len)
{
	const unsigned char *x = a, *y = b;
	unsigned int differs = 0;

	while (len-- > 0)
		differs |= x[len] ^ y[len];
	return differs == 0;
}

/* What stands behind "/TOKEN/"; NULL when that does not. */
static const char *behind_token(const struct server *server, const char *url)
{
	size_t len = strlen(server->token);

	if (url[0] != '/' || strlen(url) < len + 2 || url[len + 1] != '/' ||
	    !bytes_same(url + 1, server->token, len))
		return NULL;
	return url + len + 2;
}

static void add_headers(const struct server *server, struct MHD_Response *response,
			const char *type)
{
	const char *const headers[][2] = { { "Content-Type", type },
					   { "Content-Security-Policy", server->policy },
					   { "X-Content-Type-Options", "nosniff" },
					   { "X-Frame-Options", "DENY" },
					   { "Referrer-Policy", "no-referrer" },
					   { "Cross-Origin-Resource-Policy", "same-origin" },
					   { "Cache-Control", "no-store" } };

	for (size_t i = 0; i < ARRAY_SIZE(headers); i++)
		(void)mhd.add_response_header(response, headers[i][0], headers[i][1]);
}

static enum MHD_Result refuse(const struct server *server, struct MHD_Connection *connection,
			      unsigned int status, const char *words)
{
	struct MHD_Response *response = mhd.create_response_from_buffer(
		strlen(words), (void *)words, MHD_RESPMEM_PERSISTENT);
	enum MHD_Result r;

	if (!response)
		return MHD_NO;
	add_headers(server, response, "text/plain; charset=utf-8");
	r = mhd.queue_response(connection, status, response);
	mhd.destroy_response(response);
	return r;
}

/* Called by libmicrohttpd when the reader can take more. */
static ssize_t next_event(void *ctx, uint64_t pos, char *buf, size_t room)
{
	struct stream *stream = ctx;
	struct server *server = stream->server;
	int len = 0;

	(void)pthread_mutex_lock(&server->lock);
	if (server->ending) {
		len = (int)MHD_CONTENT_READER_END_OF_STREAM;
	} else if (server->page && (!stream->told || stream->state != server->state)) {
		len = snprintf(buf, room, "event: state\ndata: %" PRIu64 "\n\n", server->state);
		stream->told = true;
		stream->state = server->state;
	} else if (stream->pinged) {
		len = snprintf(buf, room, ":\n\n");
	} else {
		stream->suspended = true;
		mhd.suspend_connection(stream->connection);
	}
	stream->pinged = false;
	(void)pthread_mutex_unlock(&server->lock);
	return len;
}

static void end_stream(void *ctx)
{
	struct stream *stream = ctx;
	struct server *server = stream->server;

	(void)pthread_mutex_lock(&server->lock);
	for (struct stream **at = &server->streams; *at; at = &(*at)->next)
		if (*at == stream) {
			*at = stream->next;
			break;
		}
	(void)pthread_mutex_unlock(&server->lock);
	mem_free(stream);
}

static enum MHD_Result follow(struct server *server, struct MHD_Connection *connection)
{
	struct stream *stream = mem_alloc(sizeof(*stream));
	struct MHD_Response *response;
	enum MHD_Result r;

	*stream = (struct stream){ .server = server, .connection = connection };
	response = mhd.create_response_from_callback(MHD_SIZE_UNKNOWN, EVENT_BYTES, next_event,
						     stream, end_stream);
	if (!response) {
		mem_free(stream);
		return MHD_NO;
	}
	(void)pthread_mutex_lock(&server->lock);
	stream->next = server->streams;
	server->streams = stream;
	(void)pthread_mutex_unlock(&server->lock);
	add_headers(server, response, "text/event-stream");
	r = mhd.queue_response(connection, MHD_HTTP_OK, response);
	mhd.destroy_response(response);
	return r;
}

static enum MHD_Result send_page(struct server *server, struct MHD_Connection *connection)
{
	enum MHD_Result r = MHD_NO;
	bool there;

	(void)pthread_mutex_lock(&server->lock);
	there = server->page != NULL;
	if (there) /* takes a reference: a page that is replaced lives until its last reader has it
		    */
		r = mhd.queue_response(connection, MHD_HTTP_OK, server->page);
	(void)pthread_mutex_unlock(&server->lock);
	return there ? r : refuse(server, connection, MHD_HTTP_SERVICE_UNAVAILABLE, "not ready\n");
}

static enum MHD_Result answer(void *ctx, struct MHD_Connection *connection, const char *url,
			      const char *method, const char *version, const char *upload,
			      size_t *upload_size, void **request)
{
	static int seen;
	struct server *server = ctx;
	const char *what;

	/* Called once when the head is read, and again when all of the request is. */
	if (!*request) {
		*request = &seen;
		return MHD_YES;
	}
	if (*upload_size > 0) {
		*upload_size = 0;
		return MHD_YES;
	}
	if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 && strcmp(method, MHD_HTTP_METHOD_HEAD) != 0)
		return refuse(server, connection, MHD_HTTP_METHOD_NOT_ALLOWED, "read only\n");
	what = behind_token(server, url);
	if (what && what[0] == '\0')
		return send_page(server, connection);
	if (what && strcmp(what, "events") == 0)
		return follow(server, connection);
	return refuse(server, connection, MHD_HTTP_NOT_FOUND, "not found\n");
}

/* As many connections as there are descriptors for. */
static unsigned int connection_limit(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return 256;
	if (limit.rlim_cur < CONNECTIONS_MOST + DESCRIPTORS_KEPT) {
		limit.rlim_cur = limit.rlim_max < CONNECTIONS_MOST + DESCRIPTORS_KEPT
					 ? limit.rlim_max
					 : CONNECTIONS_MOST + DESCRIPTORS_KEPT;
		(void)setrlimit(RLIMIT_NOFILE, &limit);
		(void)getrlimit(RLIMIT_NOFILE, &limit);
	}
	if (limit.rlim_cur >= CONNECTIONS_MOST + DESCRIPTORS_KEPT)
		return CONNECTIONS_MOST;
	return limit.rlim_cur > 2 * DESCRIPTORS_KEPT
		       ? (unsigned int)limit.rlim_cur - DESCRIPTORS_KEPT
		       : DESCRIPTORS_KEPT;
}

/* Where to listen; false when it is no address. */
static bool place_of(const struct server_options *options, struct sockaddr_storage *ret)
{
	struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_port = htons(options->port) };
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6, .sin6_port = htons(options->port) };

	*ret = (struct sockaddr_storage){ 0 };
	if (inet_pton(AF_INET, options->address, &v4.sin_addr) == 1)
		memcpy(ret, &v4, sizeof(v4));
	else if (inet_pton(AF_INET6, options->address, &v6.sin6_addr) == 1)
		memcpy(ret, &v6, sizeof(v6));
	else
		return false;
	return true;
}

int server_open(const struct server_options *options, struct server **ret, struct err *err)
{
	struct sockaddr_storage place;
	struct server *server;
	unsigned int flags = MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ITC;

	int r = load(err);

	if (r < 0)
		return r;
	if (!place_of(options, &place))
		return err_set(err, -EINVAL, "'%s' is no address", options->address);
	if (place.ss_family == AF_INET6)
		flags |= MHD_USE_IPv6;
	server = mem_alloc(sizeof(*server));
	*server = (struct server){ .token = mem_strdup(options->token),
				   .policy = mem_strdup(options->policy) };
	(void)pthread_mutex_init(&server->lock, NULL);
	errno = 0;
	server->daemon = mhd.start_daemon(flags, options->port, NULL, NULL, answer, server,
					  MHD_OPTION_SOCK_ADDR, (struct sockaddr *)&place,
					  MHD_OPTION_CONNECTION_LIMIT, connection_limit(),
					  MHD_OPTION_CONNECTION_TIMEOUT, SILENCE_S,
					  MHD_OPTION_CONNECTION_MEMORY_LIMIT,
					  (size_t)CONNECTION_BYTES, MHD_OPTION_END);
	if (!server->daemon) {
		int code = errno > 0 ? -errno : -EADDRINUSE;

		server_close(server);
		return err_set_errno(err, code, "cannot listen on %s, port %u", options->address,
				     options->port);
	}
	*ret = server;
	return 0;
}

/* The lock is held. */
static void wake_streams(struct server *server)
{
	for (struct stream *stream = server->streams; stream; stream = stream->next)
		if (stream->suspended) {
			stream->suspended = false;
			mhd.resume_connection(stream->connection);
		}
}

void server_close(struct server *server)
{
	if (!server)
		return;
	(void)pthread_mutex_lock(&server->lock);
	server->ending = true;
	wake_streams(server); /* libmicrohttpd does not end while one is suspended */
	(void)pthread_mutex_unlock(&server->lock);
	if (server->daemon)
		mhd.stop_daemon(server->daemon);
	if (server->page)
		mhd.destroy_response(server->page);
	(void)pthread_mutex_destroy(&server->lock);
	mem_free(server->token);
	mem_free(server->policy);
	mem_free(server);
}

uint16_t server_port(const struct server *server)
{
	const union MHD_DaemonInfo *info =
		mhd.get_daemon_info(server->daemon, MHD_DAEMON_INFO_BIND_PORT);

	return info ? info->port : 0;
}

int server_publish(struct server *server, char *html, uint64_t state, struct err *err)
{
	struct MHD_Response *page =
		mhd.create_response_from_buffer(strlen(html), html, MHD_RESPMEM_MUST_FREE);
	struct MHD_Response *old;

	if (!page) {
		mem_free(html);
		return err_set(err, -ENOMEM, "there is no memory for the page");
	}
	add_headers(server, page, "text/html; charset=utf-8");
	(void)pthread_mutex_lock(&server->lock);
	old = server->page;
	server->page = page;
	server->state = state;
	wake_streams(server);
	(void)pthread_mutex_unlock(&server->lock);
	if (old)
		mhd.destroy_response(old);
	return 0;
}

void server_ping(struct server *server)
{
	(void)pthread_mutex_lock(&server->lock);
	for (struct stream *stream = server->streams; stream; stream = stream->next)
		stream->pinged = true;
	wake_streams(server);
	(void)pthread_mutex_unlock(&server->lock);
}
