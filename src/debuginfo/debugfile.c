#include "debuginfo/debugfile.h"

#include <elfutils/libdwelf.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/fd.h"

#define DEBUG_ROOT "/usr/lib/debug"

/* One readable line table is enough; a file of damaged ones is given up after this many. */
#define UNITS_TRIED 200

static void elf_endp(Elf **elf)
{
	(void)elf_end(*elf);
}

bool debugfile_strings_end(Dwarf *dwarf)
{
	Elf *elf = dwarf_getelf(dwarf);
	Elf_Scn *section = NULL;
	size_t names = 0;

	(void)elf_getshdrstrndx(elf, &names);
	while ((section = elf_nextscn(elf, section)) != NULL) {
		GElf_Shdr header;
		const char *name = gelf_getshdr(section, &header)
					   ? elf_strptr(elf, names, header.sh_name)
					   : NULL;
		const Elf_Data *data;

		if (!name ||
		    (strcmp(name, ".debug_str") != 0 && strcmp(name, ".debug_line_str") != 0))
			continue;
		if (header.sh_flags & SHF_COMPRESSED)
			(void)elf_compress(section, 0, 0); /* as libdw has done */
		data = elf_getdata(section, NULL);
		if (data && data->d_buf && data->d_size > 0 &&
		    ((const char *)data->d_buf)[data->d_size - 1] != '\0')
			return false;
	}
	return true;
}

void debugfile_read_lines(Elf *elf, bool *ret_units, bool *ret_lines)
{
	Dwarf *dwarf = dwarf_begin_elf(elf, DWARF_C_READ, NULL);
	Dwarf_Off at = 0, next;
	size_t header_size;
	bool units = false, lines = false;

	bool whole = dwarf && debugfile_strings_end(dwarf);

	for (int i = 0; whole && !lines && i < UNITS_TRIED; i++) {
		Dwarf_Lines *table;
		Dwarf_Die die;
		size_t count;

		if (dwarf_nextcu(dwarf, at, &next, &header_size, NULL, NULL, NULL) != 0 ||
		    next <= at)
			break;
		if (dwarf_offdie(dwarf, at + header_size, &die)) {
			units = true;
			lines = dwarf_getsrclines(&die, &table, &count) == 0 && count > 0;
		}
		at = next;
	}
	(void)dwarf_end(dwarf);
	*ret_units = units;
	*ret_lines = lines;
}

/* The build-id as hexadecimal digits; empty when there is none. */
static void read_build_id(Elf *elf, char ret[2 * 64 + 1])
{
	const void *bytes = NULL;
	ssize_t len = dwelf_elf_gnu_build_id(elf, &bytes);

	ret[0] = '\0';
	for (ssize_t i = 0; i < len && i < 64; i++)
		(void)snprintf(ret + 2 * i, 3, "%02x", ((const unsigned char *)bytes)[i]);
}

/* The checksum of .gnu_debuglink: CRC-32 (IEEE 802.3, reflected) over the whole debug file. */
static bool file_crc32(int fd, uint32_t *ret)
{
	uint32_t table[256], crc = 0xffffffffu;
	unsigned char chunk[65536];
	ssize_t n;

	for (uint32_t i = 0; i < 256; i++) {
		uint32_t value = i;

		for (int bit = 0; bit < 8; bit++)
			value = value & 1 ? (value >> 1) ^ 0xedb88320u : value >> 1;
		table[i] = value;
	}
	for (off_t at = 0; (n = pread(fd, chunk, sizeof(chunk), at)) > 0; at += n)
		for (ssize_t i = 0; i < n; i++)
			crc = table[(crc ^ chunk[i]) & 0xff] ^ (crc >> 8);
	*ret = ~crc;
	return n == 0;
}

/* Does the file hold debug information of this very program? The build-id tells; a program without
 * one has the checksum in its .gnu_debuglink. A file left over from another build would give wrong
 * lines, which is worse than none. */
static bool belongs(const char *path, uint32_t checksum, struct program_facts *facts)
{
	AUTO(fd_closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	AUTO(elf_endp) Elf *elf = NULL;
	char build_id[sizeof(facts->build_id)];
	uint32_t seen;
	bool units, lines;
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return false;
	elf = elf_begin(fd, ELF_C_READ, NULL);
	if (!elf || elf_kind(elf) != ELF_K_ELF)
		return false;
	read_build_id(elf, build_id);
	if (strcmp(build_id, facts->build_id) != 0)
		return false;
	if (build_id[0] == '\0' && (!file_crc32(fd, &seen) || seen != checksum))
		return false;
	debugfile_read_lines(elf, &units, &lines);
	if (!units)
		return false;
	facts->debug_file_lines = lines;
	(void)snprintf(facts->debug_file, sizeof(facts->debug_file), "%s", path);
	return true;
}

void debugfile_find(Elf *elf, struct program_facts *facts)
{
	static const char *const patterns[] = { "%s/%s", "%s/.debug/%s", DEBUG_ROOT "%s/%s" };
	char path[sizeof(facts->debug_file)], folder[sizeof(facts->path)], real[PATH_MAX];
	GElf_Word checksum = 0;
	const char *name = dwelf_elf_gnu_debuglink(elf, &checksum);
	char *slash;

	read_build_id(elf, facts->build_id);
	/* A name with a slash would lead out of the folders that are searched. */
	if (name && name[0] != '\0' && !strchr(name, '/'))
		(void)snprintf(facts->debug_link, sizeof(facts->debug_link), "%s", name);
	if (strlen(facts->build_id) > 2) {
		(void)snprintf(path, sizeof(path), DEBUG_ROOT "/.build-id/%.2s/%s.debug",
			       facts->build_id, facts->build_id + 2);
		if (belongs(path, checksum, facts))
			return;
	}
	if (facts->debug_link[0] == '\0')
		return;
	(void)snprintf(folder, sizeof(folder), "%s", realpath(facts->path, real) ? real : "");
	slash = strrchr(folder, '/');
	if (!slash)
		return;
	*slash = '\0';
	for (size_t i = 0; i < ARRAY_SIZE(patterns); i++) {
		int len = snprintf(path, sizeof(path), patterns[i], folder, facts->debug_link);

		if (len > 0 && (size_t)len < sizeof(path) && belongs(path, checksum, facts))
			return;
	}
}
