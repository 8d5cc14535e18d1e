#include "debuginfo/module.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <elfutils/libdwfl.h>

#include "arch/arch.h"
#include "base/cstr.h"
#include "base/fd.h"
#include "base/vec.h"
#include "debuginfo/demangle.h"
#include "debuginfo/eh_frames.h"
#include "debuginfo/elf_symbols.h"
#include "debuginfo/lines.h"
#include "debuginfo/source_path.h"

#define SHELF_UNUSED_MAX 32 /* kept open although nobody uses them */

/* What is known about one address; kept, because the same frames come back in every trial. */
struct named_symbol {
	uint64_t vaddr;
	struct frame *frames; /* NULL while the slot is free */
	size_t count;
};

struct module {
	Dwfl_Callbacks callbacks; /* libdwfl keeps a pointer to it */
	char *debug_path;	  /* callbacks.debuginfo_path points here */
	char *bytes;		  /* of a module in memory; NULL for a file */
	Dwfl *dwfl;
	Dwfl_Module *mod;
	Elf *elf;
	GElf_Addr bias;
	VEC(GElf_Phdr) loads;
	struct elf_symbols *symbols; /* NULL until the first name is asked for */
	struct lines *lines;	     /* NULL as well when there is no DWARF */
	bool lines_tried;
	struct eh_frames *eh_frames; /* NULL until asked for */
	struct named_symbol *named;  /* open addressing */
	size_t named_count, named_room;
	char *path;	    /* of a file that may be shared; NULL: not on the shelf */
	struct stat st;	    /* of that file, when it was opened */
	unsigned int users; /* that have it open */
};

/*
 * Files that are open or were lately, the latest last.
 *
 * A hunt asks for the same few files in dozens of series, each with symbols of its own, and to
 * unpack and index debug information takes longer than a trial. The shelf belongs to the process,
 * as the files do to the machine: whoever opens one gets the one that is open. Only one thread of
 * redhand reads debug information.
 */
static VEC(struct module *) shelf;

bool module_same_file(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
	       a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

static struct module *shelf_remove(size_t at)
{
	struct module *module = shelf.items[at];

	shelf.count--;
	memmove(&shelf.items[at], &shelf.items[at + 1],
		(shelf.count - at) * sizeof(shelf.items[0]));
	return module;
}

/* NULL: it is to be opened. */
static struct module *shelf_take(const char *path, const char *debug_path, const struct stat *st)
{
	for (size_t i = shelf.count; i-- > 0;) {
		struct module *module = shelf.items[i];

		if (strcmp(module->path, path) != 0 || !module_same_file(&module->st, st) ||
		    !cstr_same(module->debug_path, debug_path))
			continue;
		(void)shelf_remove(i);
		VEC_PUSH(&shelf, module);
		module->users++;
		return module;
	}
	return NULL;
}

static struct module *module_new(const char *debug_path)
{
	struct module *module = mem_alloc(sizeof(*module));

	module->debug_path = cstr_dup(debug_path);
	module->callbacks = (Dwfl_Callbacks){
		.find_elf = dwfl_build_id_find_elf,
		.find_debuginfo = dwfl_standard_find_debuginfo,
		.section_address = dwfl_offline_section_address,
		.debuginfo_path = &module->debug_path,
	};
	module->dwfl = dwfl_begin(&module->callbacks);
	return module;
}

static void module_free(struct module *module)
{
	if (!module)
		return;
	for (size_t i = 0; i < module->named_room; i++) {
		for (size_t j = 0; j < module->named[i].count; j++) {
			mem_free(module->named[i].frames[j].function);
			mem_free(module->named[i].frames[j].file);
		}
		mem_free(module->named[i].frames);
	}
	mem_free(module->named);
	VEC_DEINIT(&module->loads);
	elf_symbols_free(module->symbols);
	lines_free(module->lines);
	eh_frames_free(module->eh_frames);
	if (module->dwfl)
		dwfl_end(module->dwfl);
	MEM_FREE(module->bytes, module->debug_path, module->path);
	mem_free(module);
}
AUTO_DEFINE(struct module, module_free)

/* What nobody has used for longest goes. So does what has no lines: debug information that was
 * looked for in vain may be there when it is opened next. */
static void shelf_thin(void)
{
	size_t unused = 0;

	for (size_t i = shelf.count; i-- > 0;) {
		const struct module *module = shelf.items[i];
		bool in_vain = module->lines_tried && !module->lines;

		if (module->users > 0 || (!in_vain && ++unused <= SHELF_UNUSED_MAX))
			continue;
		module_free(shelf_remove(i));
	}
}

/* Another file has come to its path, as in a bisection for every commit: nobody will ask for the
 * old one again, unless he has it open. */
static void shelf_replace(struct module *module)
{
	for (size_t i = shelf.count; i-- > 0;)
		if (shelf.items[i]->users == 0 && strcmp(shelf.items[i]->path, module->path) == 0 &&
		    !module_same_file(&shelf.items[i]->st, &module->st))
			module_free(shelf_remove(i));
	VEC_PUSH(&shelf, module);
}

void module_close(struct module *module)
{
	if (!module)
		return;
	if (!module->path) {
		module_free(module);
		return;
	}
	module->users--;
	shelf_thin();
}

/* Everything after the file was reported to libdwfl. */
static int module_finish(struct module *module, const char *name, struct err *err)
{
	GElf_Ehdr ehdr;
	size_t count;

	if (dwfl_report_end(module->dwfl, NULL, NULL) != 0 || !module->mod)
		return err_set(err, -ENOEXEC, "cannot read '%s' as an ELF file: %s", name,
			       dwfl_errmsg(-1));
	module->elf = dwfl_module_getelf(module->mod, &module->bias);
	if (!module->elf || !gelf_getehdr(module->elf, &ehdr) ||
	    elf_getphdrnum(module->elf, &count) != 0)
		return err_set(err, -ENOEXEC, "cannot read '%s' as an ELF file: %s", name,
			       dwfl_errmsg(-1));
	if (ehdr.e_machine != arch_native()->elf_machine ||
	    gelf_getclass(module->elf) != ELFCLASS64 ||
	    (ehdr.e_type != ET_DYN && ehdr.e_type != ET_EXEC))
		return err_set(err, -ENOEXEC, "'%s' is no program or library for %s", name,
			       arch_native()->name);
	for (size_t i = 0; i < count; i++) {
		GElf_Phdr phdr;

		if (gelf_getphdr(module->elf, (int)i, &phdr) && phdr.p_type == PT_LOAD)
			VEC_PUSH(&module->loads, phdr);
	}
	return 0;
}

bool module_covers(const struct module *module, uint64_t vaddr)
{
	return VEC_ANY(&module->loads, load,
		       vaddr >= load->p_vaddr && vaddr - load->p_vaddr < load->p_memsz);
}

int module_open(const char *path, const char *debug_path, struct module **ret, struct err *err)
{
	AUTO(module_freep) struct module *module = NULL;
	struct module *shared;
	AUTO(fd_closep) int fd = -1;
	char magic[SELFMAG];
	struct stat st;
	int r;

	/* The path came out of the target: it may be a pipe by now, and opening that must not
	 * hang. */
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_set_errno(err, -errno, "cannot open '%s'", path);
	if (!S_ISREG(st.st_mode))
		return err_set(err, -ENOEXEC, "'%s' is not a regular file", path);
	/* libdwfl would unpack compressed files in search of ELF, and a target's data may be large.
	 */
	if (pread(fd, magic, SELFMAG, 0) != SELFMAG || memcmp(magic, ELFMAG, SELFMAG) != 0)
		return err_set(err, -ENOEXEC, "'%s' is not an ELF file", path);

	shared = shelf_take(path, debug_path, &st);
	if (shared) {
		*ret = shared;
		return 0;
	}
	module = module_new(debug_path);
	if (!module->dwfl)
		return err_set(err, -ENOMEM, "cannot start libdwfl: %s", dwfl_errmsg(-1));
	dwfl_report_begin(module->dwfl);
	/* Base 0 with its own addresses added: handle addresses are those in the file. */
	module->mod = dwfl_report_elf(module->dwfl, path, path, fd, 0, true);
	if (module->mod)
		fd = -1; /* libdwfl's now */
	r = module_finish(module, path, err);
	if (r < 0)
		return r;
	module->path = mem_strdup(path);
	module->st = st;
	module->users = 1;
	shelf_replace(module);
	*ret = TAKE(module);
	return 0;
}

int module_open_memory(const char *name, const uint8_t *bytes, size_t len, struct module **ret,
		       struct err *err)
{
	AUTO(module_freep) struct module *module = module_new(NULL);
	int r;

	if (!module->dwfl)
		return err_set(err, -ENOMEM, "cannot start libdwfl: %s", dwfl_errmsg(-1));
	module->bytes = mem_alloc(len);
	memcpy(module->bytes, bytes, len);
	dwfl_report_begin(module->dwfl);
	module->mod = dwfl_report_offline_memory(module->dwfl, name, name, module->bytes, len);
	r = module_finish(module, name, err);
	if (r < 0)
		return r;
	*ret = TAKE(module);
	return 0;
}

int module_open_build_id(const uint8_t *id, size_t len, const char *debug_path, struct module **ret,
			 struct err *err)
{
	AUTO(module_freep) struct module *search = module_new(debug_path);
	char *path = NULL;
	Elf *elf = NULL;
	int fd, r;

	if (!search->dwfl)
		return err_set(err, -ENOMEM, "cannot start libdwfl: %s", dwfl_errmsg(-1));
	/* A module of that build-id somewhere: libdwfl has no other way to ask for a file. */
	dwfl_report_begin(search->dwfl);
	search->mod = dwfl_report_module(search->dwfl, "searched", 0x1000, 0x2000);
	if (!search->mod || dwfl_module_report_build_id(search->mod, id, len, 0) != 0)
		return err_set(err, -ENOENT, "cannot search by build-id: %s", dwfl_errmsg(-1));
	(void)dwfl_report_end(search->dwfl, NULL, NULL);
	fd = dwfl_build_id_find_elf(search->mod, NULL, NULL, 0, &path, &elf);
	if (elf)
		elf_end(elf);
	fd_close(fd);
	if (fd < 0 || !path) {
		free(path);
		return err_set(err, -ENOENT, "no file with this build-id is installed");
	}
	r = module_open(path, debug_path, ret, err);
	free(path);
	return r;
}

size_t module_build_id(const struct module *module, const uint8_t **ret)
{
	GElf_Addr vaddr;
	int len = dwfl_module_build_id(module->mod, ret, &vaddr);

	return len > 0 ? (size_t)len : 0;
}

bool module_vaddr(const struct module *module, uint64_t map_offset, bool exec, uint64_t file_offset,
		  uint64_t *ret)
{
	const GElf_Phdr *best = NULL;
	int best_score = -1;

	/* Two segments can share a page of the file, so the offset alone is not always enough:
	 * the one that this mapping begins with is the better answer, then the one with the same
	 * permission. */
	VEC_FOREACH (&module->loads, load) {
		uint64_t mask = load->p_align > 1 ? load->p_align - 1 : 0;
		uint64_t begin = load->p_offset & ~(mask & 0xfff);
		uint64_t end;
		int score = 0;

		if (__builtin_add_overflow(load->p_offset, load->p_filesz, &end))
			continue;
		end = (end + 0xfff) & ~UINT64_C(0xfff); /* pages are mapped whole */
		if (file_offset < begin || file_offset >= end)
			continue;
		if (!!(load->p_flags & PF_X) == exec)
			score += 2;
		if (begin == map_offset)
			score += 1;
		if (score > best_score) {
			best_score = score;
			best = load;
		}
	}
	if (!best)
		return false;
	*ret = best->p_vaddr + (file_offset - best->p_offset);
	return true;
}

bool module_read(const struct module *module, uint64_t vaddr, void *buf, size_t len)
{
	size_t size = 0;
	const char *bytes = elf_rawfile(module->elf, &size);

	VEC_FOREACH (&module->loads, load) {
		uint64_t into = vaddr - load->p_vaddr, offset;

		if (vaddr < load->p_vaddr || into >= load->p_filesz || len > load->p_filesz - into)
			continue;
		if (!bytes || __builtin_add_overflow(load->p_offset, into, &offset) ||
		    offset > size || len > size - offset)
			return false;
		memcpy(buf, bytes + offset, len);
		return true;
	}
	return false;
}

struct Dwfl_Module *module_dwfl(const struct module *module, uint64_t *ret_bias)
{
	*ret_bias = module->bias;
	return module->mod;
}

uint64_t module_build_id_vaddr(const struct module *module)
{
	const unsigned char *bits;
	GElf_Addr vaddr = 0;

	return dwfl_module_build_id(module->mod, &bits, &vaddr) > 0 ? vaddr - module->bias : 0;
}

bool module_segment(const struct module *module, size_t index, struct module_segment *ret)
{
	const GElf_Phdr *load = module->loads.items + index;
	size_t size = 0;
	const char *bytes = elf_rawfile(module->elf, &size);

	if (index >= module->loads.count)
		return false;
	*ret = (struct module_segment){ .vaddr = load->p_vaddr,
					.read = load->p_flags & PF_R,
					.write = load->p_flags & PF_W,
					.exec = load->p_flags & PF_X };
	if (!bytes || load->p_offset >= size)
		return true;
	ret->bytes = (const uint8_t *)bytes + load->p_offset;
	ret->len = load->p_filesz < size - load->p_offset ? load->p_filesz : size - load->p_offset;
	return true;
}

/* The content of a section of the file itself, or NULL; libelf's. */
static void *module_section(const struct module *module, const char *name, uint64_t *ret_vaddr)
{
	Elf_Scn *section = NULL;
	size_t names;

	if (elf_getshdrstrndx(module->elf, &names) != 0)
		return NULL;
	while ((section = elf_nextscn(module->elf, section))) {
		GElf_Shdr header;
		const char *found;

		if (!gelf_getshdr(section, &header) || header.sh_type == SHT_NOBITS)
			continue;
		found = elf_strptr(module->elf, names, header.sh_name);
		if (found && strcmp(found, name) == 0) {
			*ret_vaddr = header.sh_addr;
			return elf_getdata(section, NULL);
		}
	}
	return NULL;
}

struct pointer_search {
	uint64_t low, high;
	void (*fn)(void *ctx, uint64_t value);
	void *ctx;
};

static void pointer_tell(const struct pointer_search *search, uint64_t value)
{
	if (value >= search->low && value < search->high)
		search->fn(search->ctx, value);
}

/* In a file that is loaded wherever it fits, addresses are made by relocations. False when there
 * are none to be found. */
static bool pointers_relocated(const struct module *module, const struct pointer_search *search)
{
	uint64_t vaddr;
	Elf_Data *rela = module_section(module, ".rela.dyn", &vaddr);
	Elf_Data *relr = module_section(module, ".relr.dyn", &vaddr);
	GElf_Rela entry;

	for (int i = 0; rela && gelf_getrela(rela, i, &entry); i++)
		pointer_tell(search, (uint64_t)entry.r_addend);
	/* Here the address stands where it will be used, and the list is of such places. */
	return rela && !relr;
}

void module_each_pointer(const struct module *module, uint64_t low, uint64_t high,
			 void (*fn)(void *ctx, uint64_t value), void *ctx)
{
	struct pointer_search search = { .low = low, .high = high, .fn = fn, .ctx = ctx };
	struct module_segment segment;
	GElf_Ehdr ehdr;

	if (gelf_getehdr(module->elf, &ehdr) && ehdr.e_type == ET_DYN &&
	    pointers_relocated(module, &search))
		return;
	for (size_t i = 0; module_segment(module, i, &segment); i++) {
		size_t at = (8 - segment.vaddr % 8) % 8;

		for (; !segment.exec && at + 8 <= segment.len; at += 8) {
			uint64_t word;

			memcpy(&word, segment.bytes + at, sizeof(word));
			pointer_tell(&search, word);
		}
	}
}

struct eh_frames *module_eh_frames(struct module *module)
{
	uint64_t section = 0;
	Elf_Data *data;

	if (!module->eh_frames) {
		data = module_section(module, ".eh_frame", &section);
		module->eh_frames = eh_frames_new(data, section);
	}
	return module->eh_frames;
}

struct lines *module_lines(struct module *module)
{
	if (!module->lines_tried) {
		module->lines_tried = true;
		module->lines = lines_new(module->mod);
	}
	return module->lines;
}

struct elf_symbols *module_symbols(struct module *module)
{
	if (!module->symbols)
		module->symbols = elf_symbols_new(module->mod);
	return module->symbols;
}

bool module_symbol(struct module *module, const char *name, uint64_t *ret)
{
	uint64_t address;

	if (!elf_symbols_lookup(module_symbols(module), name, &address))
		return false;
	*ret = address - module->bias;
	return true;
}

bool module_function_start(struct module *module, uint64_t vaddr, uint64_t *ret)
{
	struct eh_frame frame;
	uint64_t start;

	if (elf_symbols_find(module_symbols(module), vaddr + module->bias, &start)) {
		*ret = start - module->bias;
		return true;
	}
	if (!eh_frames_find(module_eh_frames(module), vaddr, &frame))
		return false;
	*ret = frame.low;
	return true;
}

char *module_global(struct module *module, uint64_t vaddr, uint64_t *ret_offset)
{
	uint64_t address = vaddr + module->bias, start;
	const char *name = elf_symbols_find_data(module_symbols(module), address, &start);

	if (!name)
		return NULL;
	*ret_offset = address - start;
	return demangle(name);
}

static bool is_mangled(const char *name)
{
	return name && (strncmp(name, "_Z", 2) == 0 || strncmp(name, "_R", 2) == 0);
}

/* Is the ELF symbol a better name for a function than what DWARF calls it? When DWARF has none, or
 * no mangled one for a C++ function. And C libraries have internal names for what they export
 * ("__GI___libc_malloc"), as a linkage name or as the name itself: people know the plain one. */
static bool prefers_symbol(const char *name, const char *linkage_name, const char *symbol)
{
	if (!symbol || is_mangled(name))
		return false;
	if (!name || linkage_name || is_mangled(symbol))
		return true;
	return strspn(symbol, "_") < strspn(name, "_");
}

static void name_into(struct module *module, struct named_symbol *named)
{
	struct line_frame lines[LINE_FRAMES_MAX];
	uint64_t address = named->vaddr + module->bias;
	const char *symbol = elf_symbols_find(module_symbols(module), address, NULL);
	size_t count = 0;

	if (module_lines(module))
		count = lines_find(module->lines, address, lines);
	if (count == 0) {
		lines[0] = (struct line_frame){ 0 };
		count = 1;
	}
	named->frames = mem_alloc(count * sizeof(*named->frames));
	named->count = count;
	for (size_t i = 0; i < count; i++) {
		struct frame *frame = &named->frames[i];
		const char *name = lines[i].linkage_name;

		if (!name)
			name = lines[i].name;
		if (i + 1 == count && prefers_symbol(name, lines[i].linkage_name, symbol))
			name = symbol;
		frame->kind = i + 1 < count ? FRAME_INLINE : FRAME_NATIVE;
		frame->function = name ? demangle(name) : NULL;
		if (name && name == lines[i].name && lines[i].scope) {
			mem_free(frame->function);
			frame->function = mem_printf("%s::%s", lines[i].scope, name);
		}
		frame->line = lines[i].line;
		if (lines[i].file)
			frame->file = source_path(lines[i].directory, lines[i].file);
	}
}

static size_t slot_of(const struct named_symbol *table, size_t room, uint64_t vaddr)
{
	size_t i = (size_t)((vaddr * UINT64_C(0x9e3779b97f4a7c15)) >> 20) & (room - 1);

	while (table[i].frames && table[i].vaddr != vaddr)
		i = (i + 1) & (room - 1);
	return i;
}

static void named_grow(struct module *module)
{
	size_t room = module->named_room > 0 ? module->named_room * 2 : 64;
	struct named_symbol *table = mem_alloc(room * sizeof(*table));

	for (size_t i = 0; i < module->named_room; i++)
		if (module->named[i].frames)
			table[slot_of(table, room, module->named[i].vaddr)] = module->named[i];
	mem_free(module->named);
	module->named = table;
	module->named_room = room;
}

const struct frame *module_name(struct module *module, uint64_t vaddr, size_t *ret_count)
{
	struct named_symbol *named;

	if (module->named_count * 2 >= module->named_room)
		named_grow(module);
	named = &module->named[slot_of(module->named, module->named_room, vaddr)];
	if (!named->frames) {
		named->vaddr = vaddr;
		name_into(module, named);
		module->named_count++;
	}
	*ret_count = named->count;
	return named->frames;
}
