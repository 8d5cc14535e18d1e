#include "agent/core/modules.h"

#include <elf.h>
#include <link.h>
#include <stddef.h>
#include <string.h>

#include "agent/arch/x86_64.h"
#include "agent/core/feature.h"
#include "agent/core/log.h"
#include "agent/core/maps.h"
#include "agent/core/memory.h"
#include "agent/core/real.h"
#include "wire/checksum.h"

#define MODULES_MAX 1024u
#define SEEN_MAX 2048u
#define LIBRARIES_MAX 16384u

struct table {
	uint32_t count;
	struct loaded_module modules[MODULES_MAX]; /* by address */
};

static struct {
	struct table tables[2];
	struct table *current;	 /* atomic */
	uint32_t stale;		 /* atomic */
	uint32_t generation;	 /* atomic */
	uint32_t building;	 /* atomic: one builder, others go on with the old table */
	uint64_t seen[SEEN_MAX]; /* (low, base, identity) mixed, of code already recorded */
	uint32_t seen_count;
	uint64_t last; /* the loader's latest library when the table was built */
	struct maps_buffer buffer;
} state;

/* The list may change meanwhile: it is read as the kernel would. */
static uint64_t loader_next(uint64_t map)
{
	uint64_t next = 0;

	if (!map || memory_read_sigsafe(&next, map + offsetof(struct link_map, l_next),
					sizeof(next)) != sizeof(next))
		return 0;
	return next;
}

static void loader_follow(void)
{
	uint64_t at = real.loader ? (uint64_t)real.loader->r_map : 0, next;
	uint32_t count;

	for (count = 0; count < LIBRARIES_MAX && (next = loader_next(at)); count++)
		at = next;
	state.last = at;
}

bool modules_grown_sigsafe(void)
{
	return loader_next(__atomic_load_n(&state.last, __ATOMIC_RELAXED)) != 0;
}

/* The identity by a note with the build-id, which is kept; 0: there is none. */
static uint64_t build_id_take(const unsigned char *notes, size_t bytes, struct log_module *record)
{
	size_t at = 0;

	while (at + sizeof(Elf64_Nhdr) <= bytes) {
		Elf64_Nhdr note;
		size_t name, body;

		memcpy(&note, notes + at, sizeof(note));
		name = at + sizeof(note);
		body = name + (((size_t)note.n_namesz + 3) & ~(size_t)3);
		if (body > bytes || note.n_descsz > bytes - body)
			break;
		if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
		    !memcmp(notes + name, "GNU", 4) && note.n_descsz <= 20) {
			record->build_id_bytes = note.n_descsz;
			memcpy(record->build_id, notes + body, note.n_descsz);
			return wire_module_identity(record->build_id, note.n_descsz, "");
		}
		at = body + (((size_t)note.n_descsz + 3) & ~(size_t)3);
	}
	return 0;
}

/* The beginning of a module's file as it is mapped. */
struct first_page {
	unsigned char bytes[2048];
	size_t have;
	Elf64_Ehdr ehdr;
};

static bool header_at(const struct first_page *page, unsigned i, Elf64_Phdr *ret)
{
	uint64_t at = page->ehdr.e_phoff + i * sizeof(*ret);

	if (i >= page->ehdr.e_phnum || at + sizeof(*ret) > page->have)
		return false;
	memcpy(ret, page->bytes + at, sizeof(*ret));
	return true;
}

static uint64_t note_identity(const struct first_page *page, const Elf64_Phdr *phdr,
			      uint64_t lowest, struct log_module *record)
{
	unsigned char notes[256];
	size_t bytes = phdr->p_memsz < sizeof(notes) ? phdr->p_memsz : sizeof(notes);
	uint64_t at = phdr->p_vaddr - lowest;

	if (at < page->have && bytes <= page->have - at)
		memcpy(notes, page->bytes + at, bytes);
	else
		bytes = memory_read_sigsafe(notes, record->bias + phdr->p_vaddr, bytes);
	return build_id_take(notes, bytes, record);
}

/* The build-id of a module whose ELF header is mapped at base: a hash of it, or 0. */
static uint64_t module_notes(uint64_t base, struct log_module *record, uint64_t *ret_eh_header)
{
	struct first_page page;
	Elf64_Phdr phdr;
	uint64_t lowest = UINT64_MAX, identity = 0;
	unsigned i;

	page.have = memory_read_sigsafe(page.bytes, base, sizeof(page.bytes));
	if (page.have < sizeof(page.ehdr))
		return 0;
	memcpy(&page.ehdr, page.bytes, sizeof(page.ehdr));
	if (memcmp(page.ehdr.e_ident, ELFMAG, SELFMAG) != 0 ||
	    page.ehdr.e_phentsize != sizeof(phdr))
		return 0;
	for (i = 0; header_at(&page, i, &phdr); i++)
		if (phdr.p_type == PT_LOAD && phdr.p_vaddr < lowest)
			lowest = phdr.p_vaddr & ~(uint64_t)4095;
	if (lowest == UINT64_MAX)
		return 0;
	record->bias = base - lowest;
	for (i = 0; header_at(&page, i, &phdr); i++) {
		if (phdr.p_type == PT_GNU_EH_FRAME)
			*ret_eh_header = record->bias + phdr.p_vaddr;
		if (phdr.p_type == PT_NOTE && !identity)
			identity = note_identity(&page, &phdr, lowest, record);
	}
	return identity;
}

static void path_copy(char *to, size_t cap, const char *path)
{
	size_t len = strlen(path);

	if (len >= cap)
		path += len - (cap - 1);
	memcpy(to, path, strlen(path) + 1);
}

static void module_record(const struct loaded_module *module, struct log_module *record,
			  const char *path)
{
	/* Code may lie in several segments (of huge pages, of what is run often): a record each. */
	uint64_t key = checksum_mix(module->low, checksum_mix(module->base, module->identity));
	struct log_writer writer;
	size_t bytes;
	uint32_t i;

	for (i = 0; i < state.seen_count; i++)
		if (state.seen[i] == key)
			return;
	if (state.seen_count == SEEN_MAX)
		return;
	state.seen[state.seen_count++] = key;
	record->identity = module->identity;
	path_copy(record->path, sizeof(record->path), path);
	/* Who opens the file needs all of it. */
	bytes = strlen(path);
	if (bytes < sizeof(record->path))
		bytes = 0;
	log_writer_init_sigsafe(&writer, LOG_TO_EVENTS);
	(void)log_append_sigsafe(&writer, LOG_MODULE, record, sizeof(*record), path, bytes);
}

/* One pass over the maps. The file's first mapping (offset 0) names the base of those after it. */
static void table_build(struct table *table)
{
	struct log_module record;
	struct maps_line line;
	struct maps_walk walk;
	uint64_t base = 0, base_inode = 0, identity = 0, eh_header = 0;

	table->count = 0;
	memset(&record, 0, sizeof(record));
	if (!maps_begin_sigsafe(&walk, &state.buffer))
		return;
	while (maps_next_sigsafe(&walk, &line)) {
		struct loaded_module *module;

		if (line.inode && (line.offset == 0 || line.inode != base_inode)) {
			base = line.low;
			base_inode = line.inode;
			memset(&record, 0, sizeof(record));
			record.low = line.low;
			identity = 0;
			eh_header = 0;
		}
		record.high = line.high;
		if (!line.executable || table->count == MODULES_MAX)
			continue;
		if (line.path[0] == '[' && line.path[1] != 'v') /* vsyscall and vdso stay unknown */
			continue;
		module = &table->modules[table->count];
		module->low = line.low;
		module->high = line.high;
		module->base = base;
		if (!line.inode) {
			module->base = line.low;
			module->identity = 0;
			module->bias = 0;
			module->eh_header = 0;
			table->count++;
			continue;
		}
		if (!identity) {
			identity = module_notes(base, &record, &eh_header);
			if (!identity)
				identity = wire_module_identity(NULL, 0, line.path);
		}
		module->identity = identity;
		module->bias = record.bias;
		module->eh_header = eh_header;
		table->count++;
		record.text_low = line.low;
		record.text_high = line.high;
		module_record(module, &record, line.path);
	}
	maps_end_sigsafe(&walk);
}

void modules_refresh_sigsafe(void)
{
	struct table *next;
	uint32_t idle = 0;

	if (!__atomic_compare_exchange_n(&state.building, &idle, 1, false, __ATOMIC_ACQUIRE,
					 __ATOMIC_RELAXED))
		return;
	__atomic_store_n(&state.stale, 0, __ATOMIC_RELAXED);
	loader_follow();
	next = state.current == &state.tables[0] ? &state.tables[1] : &state.tables[0];
	table_build(next);
	__atomic_store_n(&state.current, next, __ATOMIC_RELEASE);
	__atomic_fetch_add(&state.generation, 1, __ATOMIC_RELEASE);
	__atomic_store_n(&state.building, 0, __ATOMIC_RELEASE);
	FEATURES_TELL(process.modules_changed);
}

uint32_t modules_generation_sigsafe(void)
{
	if (__atomic_load_n(&state.stale, __ATOMIC_RELAXED))
		modules_refresh_sigsafe();
	return __atomic_load_n(&state.generation, __ATOMIC_ACQUIRE);
}

void modules_forget(void)
{
	state.seen_count = 0;
	state.building = 0;
}

void modules_stale_sigsafe(void)
{
	__atomic_store_n(&state.stale, 1, __ATOMIC_RELAXED);
}

const struct loaded_module *module_find_sigsafe(uint64_t address)
{
	const struct table *table = __atomic_load_n(&state.current, __ATOMIC_ACQUIRE);
	uint32_t low = 0, high;

	if (!table)
		return NULL;
	high = table->count;
	while (low < high) {
		uint32_t middle = (low + high) / 2;
		const struct loaded_module *module = &table->modules[middle];

		if (address < module->low)
			high = middle;
		else if (address >= module->high)
			low = middle + 1;
		else
			return module;
	}
	return NULL;
}

const struct loaded_module *module_find_caller_sigsafe(uint64_t address)
{
	const struct loaded_module *module;

	if (__atomic_load_n(&state.stale, __ATOMIC_RELAXED))
		modules_refresh_sigsafe();
	module = module_find_sigsafe(address);
	if (module)
		return module;
	modules_refresh_sigsafe();
	return module_find_sigsafe(address);
}

uint64_t module_place_sigsafe(uint64_t identity, uint64_t elf_address)
{
	const struct table *table = __atomic_load_n(&state.current, __ATOMIC_ACQUIRE);
	uint32_t i;

	for (i = 0; table && i < table->count; i++)
		if (table->modules[i].identity == identity)
			return table->modules[i].bias + elf_address;
	return 0;
}
