#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/auto.h"
#include "base/strbuf.h"

/*
 * A connection between redhand and a worker: frames in both directions, none of which anybody
 * without the key can make, read, change, leave out or send twice: each is sealed with
 * ChaCha20-Poly1305 (RFC 8439, libsodium) under a key of its direction, with its number as nonce.
 *
 * What is sent waits here until the socket takes it, what came until it is a whole frame: neither
 * end ever waits for the other in here.
 */
enum frame_type {
	/* From a worker. */
	FRAME_HELLO = 1, /* what it is (node.h) */
	FRAME_RESULT,	 /* attempt, what became of the trial */
	FRAME_SORRY,	 /* it cannot work: a code, a sentence */
	/* From redhand. */
	FRAME_SETTINGS, /* of the trials to come */
	FRAME_JOB,	/* attempt, a trial */
	FRAME_STOP,	/* end what runs, there are no more trials of these settings */
	FRAME_BYE,	/* go away, and why */
	/* Both. */
	FRAME_ENTRY, /* attempt, a file or directory of a trial or of what is shipped (parcel.h) */
	FRAME_DATA,  /* attempt, what is in the file that came last */
	FRAME_ALIVE, /* nothing to say */
	FRAME_TYPES,
};

/* Larger than any list of tests. */
#define FRAME_MAX (64u << 20)

#define LINK_KEY 32u

struct link {
	int fd;		       /* -1 when closed */
	struct strbuf in, out; /* out: from out_at on */
	size_t in_at, out_at;  /* what was taken, what was sent */
	uint64_t in_seq, out_seq;
	uint8_t in_key[LINK_KEY], out_key[LINK_KEY];
	uint64_t heard_ns, said_ns; /* CLOCK_MONOTONIC: the latest bytes */
};

struct link_frame {
	enum frame_type type;
	const char *bytes; /* until the next link_receive() */
	size_t len;
};

/* Sets up a socket for it: not blocking, without delay, and broken when the other end's machine has
 * not answered for four seconds. `fd` is the link's from then on. */
void link_init(struct link *link, int fd);
void link_close(struct link *link);
/* Both ends prove that they know `key` and both nonces by every frame that they send. */
void link_key(struct link *link, bool worker, const uint8_t key[LINK_KEY], const void *nonces,
	      size_t len);
/* What only who knows the key can make of the nonces, for one purpose: a proof, or another key. */
void link_derive(const uint8_t key[LINK_KEY], const char *purpose, const void *nonces, size_t len,
		 uint8_t ret[LINK_KEY]);

/* Reads what there is. 1: something came, 0: nothing is there, negative: it is over. */
int link_receive(struct link *link);

/* The next whole frame: 1, 0: there is none yet, -EBADMSG: this is no such connection. */
int link_take(struct link *link, struct link_frame *ret);

/* Bytes of the greeting, before there are frames. */
size_t link_received(const struct link *link, const char **ret);
void link_skip(struct link *link, size_t len);
void link_put(struct link *link, const void *bytes, size_t len);

void link_send(struct link *link, enum frame_type type, const struct strbuf *payload);

size_t link_waiting(const struct link *link);
/* Hands to the socket what it takes. 0, or negative: it is over. */
int link_flush(struct link *link);
