#include "debuginfo/space.h"

#include <elf.h>
#include <string.h>
#include <sys/auxv.h>

#include "base/mem.h"
#include "debuginfo/module.h"

/* A vDSO has a few pages; more is a lie. */
#define VDSO_MAX (256 * 1024)

struct space_slot {
	bool known;
	enum module_match match;
	struct module *module;
	bool kernel;
};

void space_init(struct space *space, struct modules *modules, const struct snapshot *snapshot)
{
	*space = (struct space){ .modules = modules, .snapshot = snapshot };
	space->slots = mem_alloc((snapshot->mapping_count + 1) * sizeof(*space->slots));
}

void space_deinit(struct space *space)
{
	mem_free(space->slots);
	space->slots = NULL;
}

/* Does our own vDSO have the bytes that were recorded of the target's? At least some must have
 * been: without evidence it could be another kernel's. */
static bool vdso_agrees(const struct snapshot *snapshot, const struct mapping *mapping,
			const uint8_t *own, size_t len)
{
	size_t compared = 0;

	for (taddr at = mapping->start; at < mapping->start + len; at++) {
		uint8_t byte;

		if (!snapshot_read(snapshot, at, &byte, 1))
			continue;
		if (byte != own[at - mapping->start])
			return false;
		compared++;
	}
	return compared >= 16;
}

static bool vdso_build_id_agrees(struct module *module, const struct mapping *mapping)
{
	const uint8_t *id;
	size_t len = module ? module_build_id(module, &id) : 0;

	return len > 0 && len == mapping->build_id_len && len <= BUILD_ID_MAX &&
	       memcmp(id, mapping->build_id, len) == 0;
}

/* Our own vDSO's length in whole pages. Its section headers stand at the very end. */
static uint64_t vdso_len(const uint8_t *own)
{
	Elf64_Ehdr ehdr;

	memcpy(&ehdr, own, sizeof(ehdr));
	return (ehdr.e_shoff + (uint64_t)ehdr.e_shnum * ehdr.e_shentsize + 0xfff) &
	       ~UINT64_C(0xfff);
}

static struct module *find_vdso(struct space *space, const struct mapping *mapping)
{
	const uint8_t *own = (const uint8_t *)getauxval(AT_SYSINFO_EHDR);
	uint64_t len = mapping->end - mapping->start;
	AUTO(mem_freep) uint8_t *image = NULL;
	struct module *module;

	if (mapping->end <= mapping->start || len > VDSO_MAX)
		return NULL;
	image = mem_alloc(len);
	if (snapshot_read(space->snapshot, mapping->start, image, len))
		return modules_find_image(space->modules, image, len);
	/* Not recorded whole. It is the kernel's, so on the same kernel ours is the same one. */
	if (!own || vdso_len(own) != len)
		return NULL;
	module = modules_find_image(space->modules, own, len);
	if (vdso_build_id_agrees(module, mapping) ||
	    vdso_agrees(space->snapshot, mapping, own, len))
		return module;
	return NULL;
}

void space_find(struct space *space, taddr address, struct place *ret)
{
	const struct mapping *mapping = snapshot_mapping(space->snapshot, address);
	struct space_slot *slot;
	uint64_t file_offset;

	*ret = (struct place){ .mapping = mapping };
	if (!mapping)
		return;
	slot = &space->slots[mapping - space->snapshot->mappings];
	if (!slot->known) {
		slot->known = true;
		if (mapping->path && strcmp(mapping->path, "[vdso]") == 0) {
			slot->kernel = true;
			slot->module = find_vdso(space, mapping);
			slot->match = slot->module ? MODULE_FOUND : MODULE_NONE;
		} else {
			slot->match = modules_find(space->modules, mapping, &slot->module);
		}
	}
	ret->kernel = slot->kernel;
	ret->match = slot->match;
	file_offset = address - mapping->start + mapping->file_offset;
	ret->vaddr = mapping->bias_known ? address - mapping->bias : file_offset;
	if (slot->match == MODULE_FOUND) {
		ret->module = slot->module;
		/* A file that is mapped where none of its segments are: not by the loader. */
		if (!mapping->bias_known &&
		    !module_vaddr(slot->module, mapping->file_offset,
				  (mapping->perms & MAPPING_EXEC) != 0, file_offset, &ret->vaddr)) {
			ret->match = MODULE_NONE;
			ret->module = NULL;
		}
	}
}

bool space_read(void *arg, taddr address, void *buf, size_t len)
{
	struct space *space = arg;
	struct place place;

	if (snapshot_read(space->snapshot, address, buf, len))
		return true;
	space_find(space, address, &place);
	if (place.match != MODULE_FOUND || (place.mapping->perms & MAPPING_WRITE) ||
	    len > place.mapping->end - address)
		return false;
	return module_read(place.module, place.vaddr, buf, len);
}

size_t space_read_before(struct space *space, taddr address, uint8_t *buf, size_t len)
{
	/* Halving finds the readable part in few tries; a byte more or less does not matter. */
	for (; len > 0; len -= (len + 3) / 4)
		if (address >= len && space_read(space, address - len, buf, len))
			return len;
	return 0;
}

size_t space_read_after(struct space *space, taddr address, uint8_t *buf, size_t len)
{
	for (; len > 0; len -= (len + 3) / 4)
		if (address <= UINT64_MAX - len && space_read(space, address, buf, len))
			return len;
	return 0;
}

/* Is the file called "PREFIX…" or "libPREFIX…"? */
static bool is_called(const char *path, const char *prefix)
{
	const char *base = strrchr(path, '/');

	base = base ? base + 1 : path;
	if (strncmp(base, "lib", 3) == 0)
		base += 3;
	return strncmp(base, prefix, strlen(prefix)) == 0;
}

bool space_symbol(struct space *space, const char *prefix, const char *name, taddr *ret)
{
	struct module *asked = NULL;

	for (size_t i = 0; i < space->snapshot->mapping_count; i++) {
		const struct mapping *mapping = &space->snapshot->mappings[i];
		struct place place;
		uint64_t vaddr;

		if (!mapping->path || !is_called(mapping->path, prefix))
			continue;
		space_find(space, mapping->start, &place);
		if (place.match != MODULE_FOUND || place.module == asked)
			continue;
		asked = place.module;
		if (module_symbol(place.module, name, &vaddr)) {
			*ret = mapping->start - place.vaddr + vaddr;
			return true;
		}
	}
	return false;
}
