#include "debuginfo/source_path.h"

#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/strbuf.h"

/* Adds one part of a path, of which ".." takes the one before it away. */
static void add_part(struct strbuf *out, const char *part, size_t len)
{
	const char *last = out->len > 0 ? memrchr(out->data, '/', out->len) : NULL;
	bool up = len == 2 && strncmp(part, "..", 2) == 0;

	last = last ? last + 1 : strbuf_str(out);
	if (up && *last != '\0' && strcmp(last, "..") != 0) {
		out->len = (size_t)(last - out->data);
		if (out->len > 1)
			out->len--;
		out->data[out->len] = '\0';
		return;
	}
	/* Above the root is the root. */
	if (up && out->len == 1 && out->data[0] == '/')
		return;
	if (out->len > 0 && out->data[out->len - 1] != '/')
		strbuf_addc(out, '/');
	strbuf_add(out, part, len);
}

/* Takes "." and "x/.." out of a path, by its text alone. */
static char *path_fold(const char *path)
{
	struct strbuf out = { 0 };

	if (*path == '/')
		strbuf_addc(&out, '/');
	while (*path) {
		size_t len = strcspn(path, "/");

		if (len > 0 && !(len == 1 && path[0] == '.'))
			add_part(&out, path, len);
		path += len;
		path += strspn(path, "/");
	}
	if (out.len == 0)
		strbuf_addc(&out, '.');
	return strbuf_take(&out);
}

/* DWARF 5 writes the directory into a unit's own file names and leaves it out of the others, and
 * libdw gives both as they are. When the directory is relative too, only its text tells. */
static bool has_directory(const char *file, const char *directory)
{
	size_t len = strlen(directory);

	return file[0] == '/' || (strncmp(file, directory, len) == 0 && file[len] == '/');
}

char *source_path(const char *directory, const char *file)
{
	AUTO(mem_freep) char *full = NULL;
	AUTO(mem_freep) char *folded = NULL;

	full = !directory || has_directory(file, directory) ? mem_strdup(file)
							    : mem_printf("%s/%s", directory, file);
	folded = path_fold(full);
	if (strcmp(folded, full) != 0 && access(folded, F_OK) != 0 && access(full, F_OK) == 0)
		return TAKE(full);
	return TAKE(folded);
}
