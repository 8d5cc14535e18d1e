#include "agent/python/interpreter.h"

#include <elf.h>
#include <string.h>

#include "agent/core/maps.h"
#include "agent/core/memory.h"
#include "agent/core/real.h"
#include "wire/python_record.h"

#define KEPT_BYTES (256u << 10)
#define MODULES_TRIED 8u
#define SYMBOLS_TRIED 64u /* one hash bucket is never that full */

static struct {
	uint64_t runtime, version;
} found;

/* One thread at a time has it; another that comes meanwhile does without. */
static struct {
	uint32_t taken; /* atomic */
	unsigned char bytes[KEPT_BYTES];
	size_t used;
	struct maps_buffer maps;
} kept;

struct symbols_at {
	uint64_t bias, names, symbols, hash;
};

static bool read_all(uint64_t from, void *to, size_t bytes)
{
	return memory_read_sigsafe(to, from, bytes) == bytes;
}

/* The loader writes run-time addresses into the dynamic section of all but the vDSO. */
static bool tables_find(uint64_t dynamic, struct symbols_at *ret)
{
	Elf64_Dyn entry;
	unsigned i;

	for (i = 0; i < 256; i++) {
		if (!read_all(dynamic + i * sizeof(entry), &entry, sizeof(entry)) ||
		    entry.d_tag == DT_NULL)
			break;
		if (entry.d_tag == DT_STRTAB)
			ret->names = entry.d_un.d_ptr;
		else if (entry.d_tag == DT_SYMTAB)
			ret->symbols = entry.d_un.d_ptr;
		else if (entry.d_tag == DT_GNU_HASH)
			ret->hash = entry.d_un.d_ptr;
	}
	return ret->names && ret->symbols && ret->hash;
}

static bool symbols_open(uint64_t base, struct symbols_at *ret)
{
	uint64_t dynamic = 0, lowest = UINT64_MAX;
	Elf64_Ehdr ehdr;
	Elf64_Phdr phdr;
	unsigned i;

	memset(ret, 0, sizeof(*ret));
	if (!read_all(base, &ehdr, sizeof(ehdr)) || memcmp(ehdr.e_ident, ELFMAG, SELFMAG) != 0 ||
	    ehdr.e_phentsize != sizeof(phdr))
		return false;
	for (i = 0; i < ehdr.e_phnum && i < 64; i++) {
		if (!read_all(base + ehdr.e_phoff + i * sizeof(phdr), &phdr, sizeof(phdr)))
			return false;
		if (phdr.p_type == PT_LOAD && phdr.p_vaddr < lowest)
			lowest = phdr.p_vaddr & ~(uint64_t)4095;
		if (phdr.p_type == PT_DYNAMIC)
			dynamic = phdr.p_vaddr;
	}
	if (!dynamic || lowest == UINT64_MAX)
		return false;
	ret->bias = base - lowest;
	return tables_find(ret->bias + dynamic, ret);
}

static bool name_is(uint64_t at, const char *name)
{
	char bytes[32];
	size_t len = strlen(name) + 1;

	return len <= sizeof(bytes) && read_all(at, bytes, len) && !memcmp(bytes, name, len);
}

/* DT_GNU_HASH: four words, the bloom filter, the buckets, the chains (one word per symbol, its
 * lowest bit set at the end of a chain). */
static uint64_t symbol_find(const struct symbols_at *at, const char *name)
{
	uint32_t head[4], hash = 5381, index, chain, i;
	uint64_t buckets;
	const char *c;
	Elf64_Sym symbol;

	for (c = name; *c; c++)
		hash = hash * 33 + (unsigned char)*c;
	if (!read_all(at->hash, head, sizeof(head)) || !head[0])
		return 0;
	buckets = at->hash + sizeof(head) + (uint64_t)head[2] * 8;
	if (!read_all(buckets + (uint64_t)(hash % head[0]) * 4, &index, 4) || index < head[1])
		return 0;
	for (i = 0; i < SYMBOLS_TRIED; i++, index++) {
		if (!read_all(buckets + ((uint64_t)head[0] + index - head[1]) * 4, &chain, 4))
			return 0;
		if ((chain | 1) == (hash | 1) &&
		    read_all(at->symbols + index * sizeof(symbol), &symbol, sizeof(symbol)) &&
		    symbol.st_shndx != SHN_UNDEF && name_is(at->names + symbol.st_name, name))
			return at->bias + symbol.st_value;
		if (chain & 1)
			return 0;
	}
	return 0;
}

/* A program that loaded its interpreter after we looked. Its file is named after it. */
static void found_later(void)
{
	unsigned tried = 0;
	struct maps_line line;
	struct maps_walk walk;

	if (!maps_begin_sigsafe(&walk, &kept.maps))
		return;
	while (!found.runtime && tried < MODULES_TRIED && maps_next_sigsafe(&walk, &line)) {
		const char *name = strrchr(line.path, '/');
		struct symbols_at symbols;
		uint64_t runtime, version;

		if (!name || line.offset || !line.readable || !strstr(name, "libpython"))
			continue;
		tried++;
		if (!symbols_open(line.low, &symbols))
			continue;
		runtime = symbol_find(&symbols, "_PyRuntime");
		version = symbol_find(&symbols, "Py_Version");
		if (runtime && version && read_all(version, &found.version, 8))
			found.runtime = runtime;
	}
	maps_end_sigsafe(&walk);
}

static bool piece_read(void *arg, uint64_t address, void *buf, size_t len)
{
	(void)arg;
	return read_all(address, buf, len);
}

/* Small pieces, and many: they share one blob. */
static void piece_keep(void *arg, uint64_t address, size_t len)
{
	struct log_kept head = { address, len };
	size_t span = sizeof(head) + ((len + 7) & ~(size_t)7);

	(void)arg;
	if (span > KEPT_BYTES - kept.used)
		return;
	memset(kept.bytes + kept.used + span - 8, 0, 8);
	if (!read_all(address, kept.bytes + kept.used + sizeof(head), len))
		return;
	memcpy(kept.bytes + kept.used, &head, sizeof(head));
	kept.used += span;
}

static void interpreter_write(struct log_writer *writer, const struct log_crash *crash)
{
	struct python_recorder recorder = { .read = piece_read,
					    .keep = piece_keep,
					    .budget = KEPT_BYTES / 4 * 3 };
	unsigned char head[PYTHON_OFFSETS_BYTES];
	struct python_layout layout;
	struct log_python record;

	if (!found.runtime && real.python_runtime && real.python_version) {
		found.runtime = (uint64_t)real.python_runtime;
		found.version = *real.python_version;
	}
	if (!found.runtime)
		found_later();
	if (!found.runtime)
		return;
	memset(&record, 0, sizeof(record));
	record.runtime = found.runtime;
	record.version = found.version;
	kept.used = 0;
	if (python_layout_find(found.version, &layout) &&
	    read_all(found.runtime, head, sizeof(head)) &&
	    python_layout_refine(&layout, head, sizeof(head)))
		record.frames = python_record_sigsafe(&layout, found.runtime, crash->fs_base,
						      crash->tid, &recorder);
	(void)log_append_sigsafe(writer, LOG_PYTHON, &record, sizeof(record), NULL, 0);
	if (kept.used)
		log_blob_sigsafe(writer, LOG_BLOB_PYTHON, 0, 0, kept.bytes, kept.used);
}

void interpreter_write_sigsafe(struct log_writer *writer, const struct log_crash *crash)
{
	uint32_t none = 0;

	if (!__atomic_compare_exchange_n(&kept.taken, &none, 1, false, __ATOMIC_ACQUIRE,
					 __ATOMIC_RELAXED))
		return;
	interpreter_write(writer, crash);
	__atomic_store_n(&kept.taken, 0, __ATOMIC_RELEASE);
}

bool interpreter_code_sigsafe(const struct log_python_code *record)
{
	struct python_recorder recorder = { .read = piece_read,
					    .keep = piece_keep,
					    .budget = KEPT_BYTES / 4 * 3 };
	struct log_writer writer;
	uint32_t none = 0;

	if (!__atomic_compare_exchange_n(&kept.taken, &none, 1, false, __ATOMIC_ACQUIRE,
					 __ATOMIC_RELAXED))
		return false;
	kept.used = 0;
	python_record_code_sigsafe(&record->layout, record->object, &recorder);
	log_writer_init_sigsafe(&writer, LOG_TO_EVENTS);
	(void)log_begin_sigsafe(&writer, LOG_PYTHON_CODE, record, sizeof(*record));
	if (kept.used)
		log_blob_sigsafe(&writer, LOG_BLOB_PYTHON, 0, 0, kept.bytes, kept.used);
	__atomic_store_n(&kept.taken, 0, __ATOMIC_RELEASE);
	return true;
}
