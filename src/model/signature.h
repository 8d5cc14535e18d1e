#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"

/*
 * One way to fail. Two trials that fail in the same way have the same id, in
 * this case and in any other: the id is a hash of what is compared.
 */
enum failure_kind {
	FAILURE_SIGNAL, /* the command, or a process of its tree, died from a signal */
	FAILURE_TIMEOUT,
	FAILURE_OUTPUT, /* --fail-on matched */
	FAILURE_TEST,	/* the command said that a test failed, and exited non-zero */
	FAILURE_EXIT,	/* non-zero, and nothing more is known */
	FAILURE_KINDS,
};

#define SIGNATURE_ID_LEN 10

struct signature {
	char id[SIGNATURE_ID_LEN + 1];
	enum failure_kind kind;
	int signal;	 /* FAILURE_SIGNAL */
	int exit_status; /* -1 when a signal ended it */
	bool stray;	 /* it was not the command itself that died */
	char *test;	 /* NULL when it cannot be told */
	char *crumb;	 /* last breadcrumb, where it is part of the identity; else NULL */
	char *fault;	 /* class of the fault (model/crash.h); NULL when nobody observed it */
	char *site;	 /* function where it died; NULL when nobody observed it */
	char *summary;	 /* one line for people */
};

struct signatures {
	VEC(struct signature) list;
};

/* The name in the case and in JSON. */
const char *failure_kind_name(enum failure_kind kind);

/* "SIGSEGV" and so on; "signal 71" for what has no name. Static storage. */
const char *signal_name(int signal);

/* Fills in id and summary from the other fields. */
void signature_seal(struct signature *signature);

/* The class of a fault for people: it may be the same text. */
const char *fault_told(const char *fault);

/* Takes the next id out of a list of them with spaces between; what follows it, or NULL when there
 * is none. */
const char *signature_next_id(const char *at, char id[SIGNATURE_ID_LEN + 1]);

/* Makes `to` a copy that owns its texts; what was in it is not freed. */
void signature_copy(struct signature *to, const struct signature *from);

void signature_deinit(struct signature *signature);
void signatures_deinit(struct signatures *signatures);
