#include "debuginfo/program.h"

#include <elfutils/libdw.h>
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/auto.h"
#include "base/cstr.h"
#include "base/fd.h"
#include "debuginfo/debugfile.h"
#include "debuginfo/script.h"

/* How deep scripts may name scripts as their interpreters; the kernel stops at this depth too
 * (BINPRM recursion in fs/exec.c). */
#define SCRIPT_DEPTH 5

struct machine_name {
	unsigned int machine, class;
	const char *name;
};

static const struct machine_name machine_names[] = {
	{ EM_X86_64, ELFCLASS64, "x86-64" },   { EM_X86_64, ELFCLASS32, "x32" },
	{ EM_386, ELFCLASS32, "i386" },	       { EM_AARCH64, ELFCLASS64, "aarch64" },
	{ EM_ARM, ELFCLASS32, "arm" },	       { EM_RISCV, ELFCLASS64, "riscv64" },
	{ EM_RISCV, ELFCLASS32, "riscv32" },   { EM_PPC64, ELFCLASS64, "ppc64" },
	{ EM_S390, ELFCLASS64, "s390x" },      { EM_MIPS, ELFCLASS32, "mips" },
	{ EM_MIPS, ELFCLASS64, "mips64" },     { EM_LOONGARCH, ELFCLASS64, "loongarch64" },
	{ EM_SPARCV9, ELFCLASS64, "sparc64" },
};

static void elf_endp(Elf **elf)
{
	(void)elf_end(*elf);
}

static void read_machine(Elf *elf, const GElf_Ehdr *header, struct program_facts *facts)
{
	unsigned int class = (unsigned int)gelf_getclass(elf);

	(void)snprintf(facts->machine, sizeof(facts->machine), "machine %u", header->e_machine);
	for (size_t i = 0; i < ARRAY_SIZE(machine_names); i++)
		if (machine_names[i].machine == header->e_machine &&
		    machine_names[i].class == class)
			(void)snprintf(facts->machine, sizeof(facts->machine), "%s",
				       machine_names[i].name);
	facts->native = header->e_machine == EM_X86_64 && class == ELFCLASS64 &&
			header->e_ident[EI_DATA] == ELFDATA2LSB;
}

static enum program_libc libc_of_loader(const char *loader)
{
	const char *slash = strrchr(loader, '/');
	const char *name = slash ? slash + 1 : loader;

	if (strncmp(name, "ld-musl", 7) == 0)
		return PROGRAM_LIBC_MUSL;
	if (strncmp(name, "ld-linux", 8) == 0 || strncmp(name, "ld64.so", 7) == 0 ||
	    strncmp(name, "ld.so", 5) == 0)
		return PROGRAM_LIBC_GLIBC;
	return PROGRAM_LIBC_UNKNOWN;
}

static void read_segments(Elf *elf, int fd, const GElf_Ehdr *header, struct program_facts *facts)
{
	size_t count = 0;
	bool loads = false;

	if (elf_getphdrnum(elf, &count) < 0)
		count = 0;
	for (size_t i = 0; i < count; i++) {
		GElf_Phdr segment;
		size_t len;
		ssize_t n;

		if (!gelf_getphdr(elf, (int)i, &segment))
			break;
		loads |= segment.p_type == PT_LOAD;
		if (segment.p_type != PT_INTERP || facts->dynamic)
			continue;
		facts->dynamic = true;
		len = segment.p_filesz < sizeof(facts->loader) ? segment.p_filesz
							       : sizeof(facts->loader) - 1;
		n = pread(fd, facts->loader, len, (off_t)segment.p_offset);
		facts->loader[n > 0 ? n : 0] = '\0';
	}
	facts->executable = loads && (header->e_type == ET_EXEC || header->e_type == ET_DYN);
	facts->pie = header->e_type == ET_DYN;
	facts->libc = facts->dynamic ? libc_of_loader(facts->loader) : PROGRAM_LIBC_STATIC;
	if (!loads)
		(void)snprintf(facts->trouble, sizeof(facts->trouble),
			       "it has nothing to load: an object file, a debug file, or damaged");
}

static void set_allocator(struct program_facts *facts, const char *name, bool inside)
{
	/* One that is inside decides: it is the one that no preload can replace. */
	if (facts->allocator[0] != '\0' && (facts->allocator_inside || !inside))
		return;
	(void)snprintf(facts->allocator, sizeof(facts->allocator), "%s", name);
	facts->allocator_inside = inside;
}

/* Only of one that other files see do libraries make use, too; one that was hidden is local. */
static void note_malloc(struct program_facts *facts, bool exported)
{
	if (!facts->malloc_inside || exported)
		facts->malloc_hidden = !exported;
	facts->malloc_inside = true;
}

static void read_symbols(Elf *elf, Elf_Scn *section, const GElf_Shdr *header,
			 struct program_facts *facts)
{
	static const char *const mallocs[] = { "malloc", "je_malloc", "mi_malloc", "tc_malloc",
					       "_rjem_malloc" };
	/* Those that have a malloc of their own, each with its start. */
	static const char *const sanitizers[] = { "__asan_init", "__tsan_init", "__msan_init",
						  "__hwasan_init", "__lsan_init" };
	Elf_Data *data = elf_getdata(section, NULL);
	GElf_Sym symbol;

	for (int i = 0; data && gelf_getsym(data, i, &symbol); i++) {
		const char *name = elf_strptr(elf, header->sh_link, symbol.st_name);

		if (!name || name[0] == '\0')
			continue;
		facts->sanitized |= cstr_among(name, sanitizers, ARRAY_SIZE(sanitizers));
		if (symbol.st_shndx == SHN_UNDEF || GELF_ST_TYPE(symbol.st_info) != STT_FUNC)
			continue;
		if (facts->dynamic && strcmp(name, "malloc") == 0)
			note_malloc(facts, header->sh_type == SHT_DYNSYM);
		for (size_t m = 0; m < ARRAY_SIZE(mallocs); m++)
			if (strcmp(name, mallocs[m]) == 0)
				set_allocator(facts, name, true);
	}
}

static void read_libraries(Elf *elf, Elf_Scn *section, const GElf_Shdr *header,
			   struct program_facts *facts)
{
	static const char *const allocators[] = { "libjemalloc", "libtcmalloc", "libmimalloc",
						  "libtbbmalloc", "libhoard" };
	Elf_Data *data = elf_getdata(section, NULL);
	GElf_Dyn entry;

	for (int i = 0; data && gelf_getdyn(data, i, &entry) && entry.d_tag != DT_NULL; i++) {
		const char *name;

		if (entry.d_tag != DT_NEEDED)
			continue;
		name = elf_strptr(elf, header->sh_link, entry.d_un.d_val);
		for (size_t a = 0; name && a < ARRAY_SIZE(allocators); a++)
			if (strncmp(name, allocators[a], strlen(allocators[a])) == 0)
				set_allocator(facts, name, false);
	}
}

static void read_sections(Elf *elf, struct program_facts *facts)
{
	Elf_Scn *section = NULL;

	while ((section = elf_nextscn(elf, section))) {
		GElf_Shdr header;

		if (!gelf_getshdr(section, &header))
			continue;
		if (header.sh_type == SHT_SYMTAB)
			facts->symbols = true;
		if (header.sh_type == SHT_SYMTAB || header.sh_type == SHT_DYNSYM)
			read_symbols(elf, section, &header, facts);
		if (header.sh_type == SHT_DYNAMIC)
			read_libraries(elf, section, &header, facts);
	}
	/* In a static program the C library's own malloc is a symbol like any other. */
	if (!facts->dynamic && strcmp(facts->allocator, "malloc") == 0)
		facts->allocator[0] = '\0';
}

static bool has_privileges(int fd, const struct stat *st)
{
	return (st->st_mode & S_ISUID) != 0 ||
	       (st->st_mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP) ||
	       fgetxattr(fd, "security.capability", NULL, 0) > 0;
}

static void read_elf(Elf *elf, int fd, struct program_facts *facts)
{
	GElf_Ehdr header;

	facts->kind = PROGRAM_ELF;
	if (!gelf_getehdr(elf, &header)) {
		(void)snprintf(facts->trouble, sizeof(facts->trouble),
			       "its ELF header is damaged (%s)", elf_errmsg(-1));
		return;
	}
	read_machine(elf, &header, facts);
	read_segments(elf, fd, &header, facts);
	read_sections(elf, facts);
	debugfile_read_lines(elf, &facts->units, &facts->lines);
	debugfile_find(elf, facts);
}

/* Opens for reading without being held up or led astray by a FIFO or a device. */
static int open_regular(const char *path, struct stat *ret_st, int *ret_fd, struct err *err)
{
	AUTO(fd_closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);

	if (fd < 0) {
		(void)err_set_errno(err, -errno, "cannot read '%s'", path);
		if (errno == EACCES)
			(void)err_set_remedy(err, "run redhand as a user who may read the program");
		return err ? err->code : -errno;
	}
	if (fstat(fd, ret_st) < 0)
		return err_set_errno(err, -errno, "cannot read '%s'", path);
	if (!S_ISREG(ret_st->st_mode))
		return err_set(err, -EINVAL, "'%s' is not a file", path);
	*ret_fd = fd;
	fd = -1;
	return 0;
}

/* Reads one file; a script's interpreter goes to `next`, which stays empty otherwise. */
static int read_one(const char *path, struct program_facts *facts, char next[PATH_MAX],
		    struct err *err)
{
	AUTO(fd_closep) int fd = -1;
	AUTO(elf_endp) Elf *elf = NULL;
	struct stat st;
	int r = open_regular(path, &st, &fd, err);

	if (r < 0)
		return r;
	facts->privileged = has_privileges(fd, &st);
	r = script_interpreter(fd, next, facts->trouble, sizeof(facts->trouble));
	if (r > 0) {
		/* The kernel ignores set-user-id on scripts. */
		facts->privileged = false;
		facts->kind = PROGRAM_SCRIPT;
		return 0;
	}
	(void)elf_version(EV_CURRENT);
	/* Read, never mapped: a file that shrinks meanwhile must not raise SIGBUS here. */
	elf = elf_begin(fd, ELF_C_READ, NULL);
	if (elf && elf_kind(elf) == ELF_K_ELF) {
		read_elf(elf, fd, facts);
		return 0;
	}
	facts->kind = PROGRAM_OTHER;
	(void)snprintf(facts->trouble, sizeof(facts->trouble), "%s",
		       st.st_size == 0 ? "it is empty"
				       : "it is neither an ELF program nor a script with '#!'");
	return 0;
}

int program_read(const char *path, struct program_facts *ret, struct err *err)
{
	struct program_facts facts = { 0 };
	char at[PATH_MAX], next[PATH_MAX];
	int r;

	if (strlen(path) >= sizeof(at))
		return err_set(err, -ENAMETOOLONG, "the path of the program is too long");
	(void)snprintf(at, sizeof(at), "%s", path);
	for (int depth = 0; depth < SCRIPT_DEPTH; depth++) {
		(void)snprintf(facts.path, sizeof(facts.path), "%s", at);
		next[0] = '\0';
		r = read_one(at, &facts, next, err);
		if (r < 0 && depth == 0)
			return r;
		if (r < 0) {
			(void)snprintf(facts.trouble, sizeof(facts.trouble),
				       "its interpreter cannot be read: %s", strerror(-r));
			break;
		}
		if (next[0] == '\0')
			break;
		if (depth == 0)
			(void)snprintf(facts.script, sizeof(facts.script), "%s", at);
		if (depth + 1 == SCRIPT_DEPTH)
			(void)snprintf(facts.trouble, sizeof(facts.trouble),
				       "its interpreters are scripts, too many in a row");
		(void)snprintf(at, sizeof(at), "%s", next);
	}
	*ret = facts;
	return 0;
}

static bool imports(Elf *elf, Elf_Scn *section, const GElf_Shdr *header, const char *const *names)
{
	Elf_Data *data = elf_getdata(section, NULL);
	GElf_Sym symbol;

	for (int i = 0; data && gelf_getsym(data, i, &symbol); i++) {
		const char *name = elf_strptr(elf, header->sh_link, symbol.st_name);

		for (size_t n = 0; name && symbol.st_shndx == SHN_UNDEF && names[n]; n++)
			if (strcmp(name, names[n]) == 0)
				return true;
	}
	return false;
}

bool program_imports(const char *path, const char *const *names)
{
	AUTO(fd_closep) int fd = -1;
	AUTO(elf_endp) Elf *elf = NULL;
	Elf_Scn *section = NULL;
	bool found = false;
	struct stat st;

	if (open_regular(path, &st, &fd, NULL) < 0)
		return false;
	(void)elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ, NULL);
	while (elf && !found && (section = elf_nextscn(elf, section))) {
		GElf_Shdr header;

		if (gelf_getshdr(section, &header) && header.sh_type == SHT_DYNSYM)
			found = imports(elf, section, &header, names);
	}
	return found;
}
