#pragma once

#include "run/remote/cargo.h"
#include "run/remote/fleet.h"
#include "run/remote/handshake.h"
#include "run/remote/link.h"
#include "run/remote/parcel.h"

/* What the two halves of a fleet share: workers that come and go (fleet.c), and the trials that are
 * dealt to them (dealing.c). Private to them. */

/* A trial that a worker has. */
struct sent {
	uint64_t attempt; /* 0: none */
	struct trial_number number;
	unsigned int slot;
};

struct member {
	struct link link;
	struct greeting greeting;
	bool proven;	/* both ends know each other */
	bool ready;	/* it has said what it is, and got what is shipped */
	bool told;	/* it has the orders in force */
	bool gone;	/* to be freed */
	bool writing;	/* the socket is to say when it takes more */
	size_t shipped; /* frames of the cargo that it got */
	bool wants_agent;
	uint64_t since_ns;
	const struct machine_facts *machine;
	struct sent sent[POOL_DEPTH];
	unsigned int depth;
	int slot; /* that it serves; -1: any */
	struct parcel parcel;
	uint64_t parcel_attempt; /* whose files come; 0: none */
};

/* What a pool asks for. */
struct errand {
	const struct trial_settings *settings; /* NULL between pools */
	struct strbuf orders;
	int trials; /* the case's trials/ */
	unsigned int slots;
	struct member **by_slot;
	unsigned int *depth;
	VEC(struct trial_result) results;
	size_t taken; /* of the results */
};

struct fleet {
	struct fleet_request request;
	struct starter *starter;
	struct trust trust;
	int listener, epoll, wake_fd;
	char *connect;
	VEC(struct member *) members;
	unsigned int strangers, joined, idle, busy;
	VEC(struct machine_facts *) machines;
	struct cargo cargo;
	char *agent; /* fingerprint of ours */

	struct errand errand;
	uint64_t attempts, lost;
	uint64_t duties_ns, attentive_ns, left_ns;
	struct err sorry; /* what the last worker said that gave up; none since a result came */
	uint64_t sorry_ns;
	int trouble; /* negative: we cannot go on */
	struct err why;
};

/* It is not there any more: its trials are lost. */
void fleet_lose(struct fleet *f, struct member *m, const char *why);
/* Frees those that are lost. */
void fleet_sweep(struct fleet *f);
/* Hands on what waits, and has the socket tell when there is more room. */
void fleet_push_out(struct fleet *f, struct member *m);
/* Its machine cannot run the trials, and says why. */
void fleet_give_up_on(struct fleet *f, struct member *m, int code, const char *sentence,
		      const char *remedy);
/* Nobody can go on. */
void fleet_stop(struct fleet *f, int code, const struct err *why);

/* Tells a worker what is run, unless it knows. */
void deal_orders(struct fleet *f, struct member *m);
/* What it had is run again. */
void deal_lost(struct fleet *f, struct member *m);
void deal_unbind(struct fleet *f, struct member *m);
void deal_parcel_over(struct member *m);
/* What a worker said. */
void deal_files(struct fleet *f, struct member *m, const struct link_frame *frame);
void deal_result(struct fleet *f, struct member *m, const struct link_frame *frame);
/* Positive: there is one. */
int deal_pop(struct fleet *f, struct trial_result *ret);
