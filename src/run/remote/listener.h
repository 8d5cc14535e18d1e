#pragma once

#include "base/err.h"

/*
 * Where workers come to: a port on the one address of this machine that routes to them.
 */

/* `bind` as the user gave it (ADDRESS or ADDRESS:PORT), or NULL: the address that packets to `peer`
 * leave from, loopback when that is NULL, too. *ret_connect is ADDRESS:PORT for workers, the
 * caller's to free. */
int listener_open(const char *bind, const char *peer, int *ret_fd, char **ret_connect,
		  struct err *err);

/* Splits HOST:PORT or [HOST]:PORT; both are the caller's to free. -EINVAL: it is none. */
int listener_split(const char *text, char **ret_host, char **ret_port, struct err *err);
