/*
 * Fuzzer of the readers of ELF and DWARF: patches (offset, length, bytes) on a program with debug
 * information ($FUZZ_ELF), then what show, scan and doctor ask of it.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "debuginfo/lines.h"
#include "debuginfo/module.h"
#include "debuginfo/program.h"
#include "debuginfo/types.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char *clean;
static size_t clean_len;

static void start(void)
{
	const char *from = getenv("FUZZ_ELF");

	if (!from || file_read(from, 64u << 20, &clean, &clean_len, NULL) < 0) {
		(void)fprintf(stderr, "FUZZ_ELF must name a program\n");
		exit(2);
	}
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

static void ask(const char *path)
{
	struct program_facts *facts = mem_alloc(sizeof(*facts));
	struct module *module = NULL;
	struct types *types = NULL;
	uint64_t start = 0, offset = 0;
	size_t count;

	(void)program_read(path, facts, NULL);
	mem_free(facts);
	if (module_open(path, NULL, &module, NULL) == 0) {
		(void)module_symbol(module, "main", &start);
		for (uint64_t at = 0x1000; at < 0x2000; at += 0x40) {
			(void)module_name(module, at, &count);
			(void)module_function_start(module, at, &start);
		}
		mem_free(module_global(module, 0x4010, &offset));
		(void)module_eh_frames(module);
		module_close(module);
	}
	if (types_open(path, &types, NULL) == 0) {
		struct code_pieces pieces = { 0 };

		(void)types_function(types, "main", &pieces, NULL);
		code_pieces_deinit(&pieces);
		types_close(types);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char path[64];
	char *bytes;
	int fd;

	if (!clean)
		start();
	bytes = malloc(clean_len);
	memcpy(bytes, clean, clean_len);
	patch(bytes, data, size);
	fd = memfd_create("fuzz", MFD_CLOEXEC);
	(void)fd_write_all(fd, bytes, clean_len, "fuzz", NULL);
	free(bytes);
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	ask(path);
	fd_close(fd);
	return 0;
}
