#pragma once

#include "base/pack.h"
#include "model/machine.h"

/*
 * What a worker is: its machine, and whether its redhand speaks as ours does.
 */
struct hello {
	char *version; /* of redhand; both must be the same */
	char *agent;   /* fingerprint of its agent; "" when it has none */
	struct machine machine;
};

/* Of this machine and process. `agent_dir` may be NULL. */
void hello_make(struct hello *hello, const char *agent_dir);
void hello_deinit(struct hello *hello);
void hello_pack(const struct hello *hello, struct strbuf *sb);
/* Texts are made printable and short. */
bool hello_unpack(const char *bytes, size_t len, struct hello *ret);

/* Of both libraries of the agent. The caller's to free. */
char *agent_fingerprint(const char *dir);

/* Variables that say what the node gave this very worker, and so are not those of redhand's own
 * environment: devices, what the scheduler says. */
bool node_owns_variable(const char *assignment);
