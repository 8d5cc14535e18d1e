#pragma once

#include <stdbool.h>

#include "base/err.h"
#include "run/remote/link.h"

/*
 * How redhand and its workers know each other, before anything else is said.
 *
 * Both know a secret: a token that the scheduler hands to the worker with its job, or, where MUNGE
 * runs on all machines, a key that the worker puts into a credential that only the same user can
 * open. redhand says a random number, the worker another one and a proof over both; only then does
 * redhand prove itself. Whoever cannot is left without a word.
 */
#define TRUST_TOKEN_VARIABLE "REDHAND_TOKEN"
#define TRUST_MUNGE_VARIABLE "REDHAND_MUNGE"

struct trust {
	bool token_known;
	uint8_t token[LINK_KEY];
	char *munge_socket; /* NULL: MUNGE is not used; "": where it always is */
};

void trust_deinit(struct trust *trust);

/* redhand's: a token is drawn, unless `munge_socket` is where a MUNGE answers. */
int trust_make(struct trust *trust, const char *munge_socket, struct err *err);
/* The worker's, from what its environment says, which forgets it; `text` instead when not NULL. */
int trust_find(struct trust *trust, const char *text, struct err *err);
/* What a worker must be told: a line NAME=VALUE, the caller's to free. */
char *trust_variable(const struct trust *trust);

#define TRUST_NONCE 32u

struct greeting {
	uint8_t nonces[2 * TRUST_NONCE]; /* redhand's, the worker's */
	unsigned int step;
	uint8_t key[LINK_KEY];
};

/* redhand's first word. */
void greeting_begin(struct greeting *greeting, struct link *link);

/* Goes on with what has come. 1: both have proved themselves and the link has its keys; 0: more has
 * to come; -EACCES: the other end is a stranger, -EPROTO: it speaks as another redhand does. */
int greeting_go_on(struct greeting *greeting, const struct trust *trust, bool worker,
		   struct link *link);
