#pragma once

#include <stdint.h>

#include "base/err.h"
#include "run/remote/handshake.h"

/*
 * A worker: one slot on some machine, for a redhand on another one.
 *
 * It asks redhand for work and runs it with the pool and slot that redhand itself would use here
 * (pool.h). What trials leave is sent back. When the connection is lost, running trials are ended
 * and removed at once; then it asks again for a while, unless nobody listens there any more.
 */
struct worker_request {
	const char *host, *port;
	const struct trust *trust;
	uint64_t patience_ns; /* how long a network may be away */
};

/* Returns when redhand has no more work: 0. */
int worker_run(const struct worker_request *request, struct err *err);
