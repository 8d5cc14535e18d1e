#pragma once

#include <stdint.h>

#include "base/err.h"

/*
 * A page that many may read while it changes: HTTP on one address, with a secret in its path.
 *
 *	GET /TOKEN/		the page as it was published last
 *	GET /TOKEN/events	server-sent events: `state` with its number, whenever it changes
 *
 * There is nothing else to be had, and nothing can be changed: no path of a request is ever looked
 *up in a file system. All readers share one copy of the page and one thread; connections, the
 *memory of each and the time that a silent one may take are limited, so that readers cost what they
 *read and nothing more.
 */
struct server;

struct server_options {
	const char *address; /* numeric: 127.0.0.1, ::1, 0.0.0.0 */
	uint16_t port;	     /* 0: any that is free */
	const char *token;
	const char *policy; /* Content-Security-Policy of the page */
};

int server_open(const struct server_options *options, struct server **ret, struct err *err);
void server_close(struct server *server);

uint16_t server_port(const struct server *server);

/* From now on this is the page; who follows it is told. `html` becomes the server's. */
int server_publish(struct server *server, char *html, uint64_t state, struct err *err);

/* Lets readers know that it is still there, and notices those that are not. */
void server_ping(struct server *server);
