/*
 * Fuzzer of case.db: patches (offset, length, bytes) on a sound one, made by redhand, then
 * everything that `case show` and `report` read. It lies in memory: what is tried is what SQLite
 * and redhand make of the bytes. It has been packed into small pages, so that a patch seldom meets
 * emptiness.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/fd.h"
#include "base/mem.h"
#include "case/case_inside.h"
#include "case/schema.h"
#include "studies/overview/case_investigation.h"
#include "studies/overview/case_overview.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct case_store *store;
static char *clean, *bytes;
static size_t clean_len;

static void give_up(const char *why)
{
	(void)fprintf(stderr, "FUZZ_CASE must name a case.db: %s\n", why);
	exit(2);
}

/* $FUZZ_CASE is a case.db that redhand made. Its directory is needed once, to have a store. */
static void start(void)
{
	const char *from = getenv("FUZZ_CASE");
	AUTO(mem_freep)
	char *dir = from ? mem_strndup(from, strlen(from) - strlen("/case.db")) : NULL;
	struct err err = { 0 };
	sqlite3_int64 len = 0;
	sqlite3 *packed = NULL;

	if (!dir || case_open(dir, CASE_READ, &store, &err) < 0)
		give_up(err.message);
	fd_close(store->trials_fd); /* logs are the target `wire` */
	store->trials_fd = -1;
	clean = (char *)sqlite3_serialize(store->db.handle, "main", &len, 0);
	/* Not in write-ahead mode: there is no log beside it. */
	clean[18] = clean[19] = 1;
	if (sqlite3_open(":memory:", &packed) != SQLITE_OK ||
	    sqlite3_deserialize(packed, "main", (unsigned char *)clean, len, len,
				SQLITE_DESERIALIZE_FREEONCLOSE) != SQLITE_OK ||
	    sqlite3_exec(packed, "PRAGMA page_size=1024; VACUUM", NULL, NULL, NULL) != SQLITE_OK)
		give_up(sqlite3_errmsg(packed));
	clean = (char *)sqlite3_serialize(packed, "main", &len, 0);
	clean_len = (size_t)len;
	(void)sqlite3_close(packed);
	bytes = malloc(clean_len);
}

static void patch(const uint8_t *data, size_t size)
{
	while (size >= 5) {
		size_t at = ((size_t)data[0] | (size_t)data[1] << 8 | (size_t)data[2] << 16) %
			    clean_len;
		size_t len = data[3] % 16 + 1;

		data += 4;
		size -= 4;
		len = len < size ? len : size;
		len = len < clean_len - at ? len : clean_len - at;
		memcpy(bytes + at, data, len);
		data += len;
		size -= len;
	}
}

/* As a command opens it. */
static void read_all(void)
{
	struct investigation investigation = { 0 };
	struct err err = { 0 };

	if (sqlite3_deserialize(store->db.handle, "main", (unsigned char *)bytes,
				(sqlite3_int64)clean_len, (sqlite3_int64)clean_len,
				SQLITE_DESERIALIZE_READONLY) != SQLITE_OK)
		abort();
	if (db_distrust(&store->db, &err) < 0 || schema_check(&store->db, &case_schema, &err) < 0)
		return;
	if (investigation_read(store, NULL, &investigation, &err) == 0)
		investigation_deinit(&investigation);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!clean)
		start();
	memcpy(bytes, clean, clean_len);
	patch(data, size);
	read_all();
	return 0;
}
