#pragma once

#include <stdint.h>

#include "case/db.h"

/*
 * Bringing a database to the version this build speaks. Private to case/.
 *
 * A database of version N < version is changed by steps[N], steps[N + 1], … one
 * transaction each, so that an interrupted migration leaves a valid older case.
 */
struct schema {
	int64_t application; /* PRAGMA application_id: tells a case from any other database */
	int64_t version;
	const char *create;	  /* SQL for an empty database */
	const char *const *steps; /* steps[N] leads from version N to N + 1; [0] is unused */
};

/* -EPROTO: written by a newer redhand. -EMEDIUMTYPE: a database, but not a case. */
int schema_bring_up(struct db *db, const struct schema *schema, struct err *err);

/* The same check without changing anything; an older version is refused. */
int schema_check(struct db *db, const struct schema *schema, struct err *err);

extern const struct schema case_schema;
