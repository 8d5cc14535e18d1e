/*
 * Fuzzer of case.db: patches (offset, length, bytes) on a sound one, made by the target itself,
 * then everything that `case show` and `report` read.
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
static char *clean;
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
	    tmpdir_make(NULL, "fuzz-", &dir, NULL) < 0) {
		(void)fprintf(stderr, "FUZZ_CASE must name a case.db\n");
		exit(2);
	}
	(void)atexit(remove_dir);
}

static void patch(char *bytes, const uint8_t *data, size_t size)
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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int folder;
	char *bytes;

	if (!clean)
		start();
	bytes = malloc(clean_len);
	memcpy(bytes, clean, clean_len);
	patch(bytes, data, size);
	folder = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	(void)file_write_at(folder, "case.db", bytes, clean_len, NULL);
	fd_close(folder);
	free(bytes);
	read_all();
	return 0;
}
