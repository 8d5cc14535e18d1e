#include "debuginfo/open_modules.h"

#include <errno.h>
#include <fts.h>
#include <string.h>
#include <sys/stat.h>

#include "base/cstr.h"
#include "base/vec.h"
#include "debuginfo/module.h"

/* One path as it once was on disk. */
struct file_entry {
	char *path;
	struct stat st;	       /* st_ino 0 when it could not be looked at */
	struct module *module; /* NULL: not there, not readable or no ELF file */
	bool is_other;	       /* it could be read and is something else than ELF */
	bool at_hand;	       /* modules_add() named it */
};

/* One search by build-id; also the unsuccessful ones, which can be slow. */
struct id_entry {
	uint8_t id[BUILD_ID_MAX];
	size_t len;
	struct module *module;
};

struct image_entry {
	uint8_t *bytes;
	size_t len;
	struct module *module; /* NULL when the bytes are no ELF image */
};

struct modules {
	char *debug_path;
	VEC(struct file_entry) files;
	VEC(struct id_entry) ids;
	VEC(struct image_entry) images;
	struct strv at_hand; /* not looked into yet */
};

struct modules *modules_new(const char *debug_path)
{
	struct modules *modules = mem_alloc(sizeof(*modules));

	modules->debug_path = cstr_dup(debug_path);
	return modules;
}

void modules_free(struct modules *modules)
{
	if (!modules)
		return;
	VEC_FOREACH (&modules->files, file) {
		module_close(file->module);
		mem_free(file->path);
	}
	VEC_FOREACH (&modules->ids, id)
		module_close(id->module);
	VEC_FOREACH (&modules->images, image) {
		module_close(image->module);
		mem_free(image->bytes);
	}
	VEC_DEINIT(&modules->files);
	VEC_DEINIT(&modules->ids);
	VEC_DEINIT(&modules->images);
	strv_deinit(&modules->at_hand);
	mem_free(modules->debug_path);
	mem_free(modules);
}

/* The newest state of a path. Valid until the next call. */
static const struct file_entry *file_get(struct modules *modules, const char *path)
{
	struct file_entry entry = { 0 };
	struct stat st = { 0 };
	struct err err;
	int r;

	if (stat(path, &st) < 0)
		st = (struct stat){ 0 };
	for (size_t i = modules->files.count; i-- > 0;)
		if (strcmp(modules->files.items[i].path, path) == 0 &&
		    module_same_file(&modules->files.items[i].st, &st))
			return &modules->files.items[i];
	entry.path = mem_strdup(path);
	entry.st = st;
	r = st.st_ino ? module_open(path, modules->debug_path, &entry.module, &err) : -ENOENT;
	entry.is_other = r == -ENOEXEC;
	VEC_PUSH(&modules->files, entry);
	return &modules->files.items[modules->files.count - 1];
}

static bool has_build_id(const struct module *module, const uint8_t *id, size_t len)
{
	const uint8_t *own;
	size_t own_len = module ? module_build_id(module, &own) : 0;

	return own_len > 0 && own_len == len && memcmp(own, id, len) == 0;
}

#define AT_HAND_MOST 4000u /* files that are looked into */

static void mark_at_hand(struct modules *modules, const char *path)
{
	const struct file_entry *file = file_get(modules, path);

	modules->files.items[file - modules->files.items].at_hand = true;
}

static void look_below(struct modules *modules, const char *path)
{
	char *roots[] = { (char *)path, NULL };
	FTS *fts = fts_open(roots, FTS_PHYSICAL | FTS_NOCHDIR | FTS_XDEV, NULL);
	FTSENT *entry;

	while (fts && modules->files.count < AT_HAND_MOST && (entry = fts_read(fts)) != NULL)
		if (entry->fts_info == FTS_F)
			mark_at_hand(modules, entry->fts_path);
	if (fts)
		(void)fts_close(fts);
}

/* Only who meets a file that is not where it was looks into those that might be it. */
static void look_at_hand(struct modules *modules)
{
	for (size_t i = 0; i < modules->at_hand.count; i++)
		look_below(modules, modules->at_hand.items[i]);
	strv_deinit(&modules->at_hand);
	modules->at_hand = (struct strv){ 0 };
}

void modules_add(struct modules *modules, const char *path)
{
	strv_add(&modules->at_hand, path);
}

static struct module *id_get(struct modules *modules, const uint8_t *id, size_t len)
{
	struct id_entry entry = { .len = len };
	struct err err;

	look_at_hand(modules);
	VEC_FOREACH (&modules->files, file)
		if (has_build_id(file->module, id, len))
			return file->module;
	VEC_FOREACH (&modules->ids, seen)
		if (seen->len == len && memcmp(seen->id, id, len) == 0)
			return seen->module;
	memcpy(entry.id, id, len);
	if (module_open_build_id(id, len, modules->debug_path, &entry.module, &err) == 0 &&
	    !has_build_id(entry.module, id, len)) {
		module_close(entry.module);
		entry.module = NULL;
	}
	VEC_PUSH(&modules->ids, entry);
	return entry.module;
}

/* Where no build-id was recorded: one of the files at hand with this name and size. */
static struct module *copy_get(struct modules *modules, const char *path, uint64_t size)
{
	const char *name = strrchr(path, '/') + 1;

	look_at_hand(modules);
	VEC_FOREACH (&modules->files, file)
		if (file->module && file->at_hand && size > 0 &&
		    (uint64_t)file->st.st_size == size &&
		    strcmp(strrchr(file->path, '/') + 1, name) == 0)
			return file->module;
	return NULL;
}

/* As /proc/PID/maps writes it behind the path of a file that is gone. */
static bool cut_deleted(const char *path, size_t *len)
{
	static const char suffix[] = " (deleted)";

	if (*len <= strlen(suffix) || strcmp(path + *len - strlen(suffix), suffix) != 0)
		return false;
	*len -= strlen(suffix);
	return true;
}

/* Is the file that has the path now the one that was mapped? */
static bool still_there(const struct file_entry *file, const struct mapping *mapping, size_t id_len,
			bool deleted)
{
	if (!file->module)
		return false;
	if (id_len > 0)
		return has_build_id(file->module, mapping->build_id, id_len);
	return !deleted &&
	       (mapping->file_size == 0 || mapping->file_size == (uint64_t)file->st.st_size);
}

enum module_match modules_find(struct modules *modules, const struct mapping *mapping,
			       struct module **ret)
{
	size_t len = mapping->path ? strlen(mapping->path) : 0;
	size_t id_len = mapping->build_id_len <= BUILD_ID_MAX ? mapping->build_id_len : 0;
	AUTO(mem_freep) char *path = NULL;
	const struct file_entry *file;
	struct module *module;
	bool deleted;

	if (len == 0 || mapping->path[0] != '/' || mapping_is_shared_memory(mapping))
		return MODULE_NONE;
	deleted = cut_deleted(mapping->path, &len);
	path = mem_strndup(mapping->path, len);
	file = file_get(modules, path);
	if (file->is_other && !deleted && id_len == 0)
		return MODULE_NONE;
	if (still_there(file, mapping, id_len, deleted))
		module = file->module;
	else if (id_len > 0)
		module = id_get(modules, mapping->build_id, id_len);
	else
		module = file->module ? NULL : copy_get(modules, path, mapping->file_size);
	if (!module)
		return MODULE_REPLACED;
	*ret = module;
	return MODULE_FOUND;
}

struct module *modules_find_image(struct modules *modules, const uint8_t *bytes, size_t len)
{
	struct image_entry entry = { .len = len };
	struct err err;

	VEC_FOREACH (&modules->images, image)
		if (image->len == len && memcmp(image->bytes, bytes, len) == 0)
			return image->module;
	entry.bytes = mem_alloc(len);
	memcpy(entry.bytes, bytes, len);
	(void)module_open_memory("[vdso]", bytes, len, &entry.module, &err);
	VEC_PUSH(&modules->images, entry);
	return entry.module;
}
