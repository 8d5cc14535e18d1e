/*
 * Fuzzer of case.db: patches (offset, length, bytes) on a sound one, made by redhand, then
 * everything that `case show` and `report` read. It lies in memory, and only what is patched is
 * written.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/tmpdir.h"
#include "case/case.h"
#include "studies/overview/investigation.h"
#include "studies/overview/overview.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char *dir;
static char *clean, *bytes;
static int db = -1;
static size_t clean_len;

static void remove_dir(void)
{
	tmpdir_remove(dir);
}

/* $FUZZ_CASE is a case.db that redhand made. */
static void start(void)
{
	const char *from = getenv("FUZZ_CASE");

	if (!from || file_read(from, 64u << 20, &clean, &clean_len, NULL) < 0 ||
	    tmpdir_make("/dev/shm", "fuzz-", &dir, NULL) < 0) {
		(void)fprintf(stderr, "FUZZ_CASE must name a case.db\n");
		exit(2);
	}
	(void)atexit(remove_dir);
	bytes = malloc(clean_len);
	memcpy(bytes, clean, clean_len);
}

/* Nothing that an earlier input led to stays: a case of an older version is brought up to date. */
static void renew(void)
{
	static const char *const others[] = { "case.db-wal", "case.db-shm", "case.db-journal" };
	int folder = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		(void)unlinkat(folder, others[i], 0);
	(void)file_write_at(folder, "case.db", clean, clean_len, NULL);
	fd_close(db);
	db = openat(folder, "case.db", O_RDWR | O_CLOEXEC);
	fd_close(folder);
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
		(void)!pwrite(db, bytes + at, len, (off_t)at);
		data += len;
		size -= len;
	}
}

static void read_all(void)
{
	struct investigation investigation = { 0 };
	struct case_store *cs = NULL;
	struct err err = { 0 };

	if (case_open(dir, CASE_READ, &cs, &err) < 0)
		return;
	if (investigation_read(cs, NULL, &investigation, &err) == 0)
		investigation_deinit(&investigation);
	case_close(cs);
}

/* Is it as it was, but for the patches? */
static bool is_as_patched(void)
{
	static char *held;

	held = held ? held : malloc(clean_len);
	return lseek(db, 0, SEEK_END) == (off_t)clean_len &&
	       pread(db, held, clean_len, 0) == (ssize_t)clean_len &&
	       memcmp(held, bytes, clean_len) == 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!clean)
		start();
	if (db < 0)
		renew();
	patch(data, size);
	read_all();
	if (is_as_patched()) {
		for (size_t at = 0; at < clean_len; at += 4096)
			if (memcmp(bytes + at, clean + at,
				   clean_len - at < 4096 ? clean_len - at : 4096) != 0)
				(void)!pwrite(db, clean + at,
					      clean_len - at < 4096 ? clean_len - at : 4096,
					      (off_t)at);
	} else {
		renew();
	}
	memcpy(bytes, clean, clean_len);
	return 0;
}
