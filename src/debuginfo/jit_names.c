#include "debuginfo/jit_names.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/vec.h"
#include "debuginfo/code_layout.h"

#define FILE_BYTES_MAX ((size_t)256 << 20)
#define ENTRIES_MAX 4000000
#define NAME_MAX_BYTES 4096
#define LINES_MAX 8000000

struct line_entry {
	taddr address;
	uint32_t line;
	const char *file;
};

struct entry {
	taddr start, end;
	const char *name;
	uint32_t order;	     /* later ones win */
	uint32_t first_line; /* index into `lines` */
	uint32_t line_count;
	uint64_t moved_by; /* the lines' addresses are off by this */
};

struct jit_names {
	VEC(struct entry) entries; /* ascending by start once sorted */
	VEC(struct line_entry) lines;
	VEC(char *) strings;
	uint64_t longest;
	bool sorted;
};

struct jit_names *jit_names_new(void)
{
	return mem_alloc(sizeof(struct jit_names));
}

void jit_names_free(struct jit_names *names)
{
	if (!names)
		return;
	VEC_FREE(&names->strings, string, mem_free(*string));
	VEC_DEINIT(&names->entries);
	VEC_DEINIT(&names->lines);
	mem_free(names);
}

static const char *keep(struct jit_names *names, const char *text, size_t len)
{
	char *copy = mem_strndup(text, len < NAME_MAX_BYTES ? len : NAME_MAX_BYTES);

	VEC_PUSH(&names->strings, copy);
	return copy;
}

static struct entry *add(struct jit_names *names, taddr start, uint64_t size, const char *name)
{
	struct entry entry = { .start = start, .name = name };

	if (names->entries.count >= ENTRIES_MAX || size == 0 ||
	    __builtin_add_overflow(start, size, &entry.end))
		return NULL;
	entry.order = (uint32_t)names->entries.count;
	if (size > names->longest)
		names->longest = size;
	names->sorted = false;
	VEC_PUSH(&names->entries, entry);
	return &names->entries.items[names->entries.count - 1];
}

/* Reads a hexadecimal number without going past `end`. */
static const char *hex(const char *p, const char *end, uint64_t *ret)
{
	const char *start;
	uint64_t value = 0;

	if (end - p > 2 && p[0] == '0' && (p[1] == 'x' || p[1] == 'X'))
		p += 2;
	for (start = p; p < end && p - start < 16; p++) {
		char c = *p;

		if (c >= '0' && c <= '9')
			value = value << 4 | (uint64_t)(c - '0');
		else if (c >= 'a' && c <= 'f')
			value = value << 4 | (uint64_t)(c - 'a' + 10);
		else if (c >= 'A' && c <= 'F')
			value = value << 4 | (uint64_t)(c - 'A' + 10);
		else
			break;
	}
	if (p == start)
		return NULL;
	*ret = value;
	return p;
}

static bool add_line(struct jit_names *names, const char *p, const char *end)
{
	uint64_t start, size;

	p = hex(p, end, &start);
	if (!p || p == end || *p != ' ')
		return false;
	p = hex(p + 1, end, &size);
	if (!p || p == end || *p != ' ')
		return false;
	p++;
	if (end > p && end[-1] == '\r')
		end--;
	if (p == end)
		return false;
	return add(names, start, size, keep(names, p, (size_t)(end - p))) != NULL;
}

size_t jit_names_add_perf_map(struct jit_names *names, const char *text, size_t len)
{
	const char *end = text + len;
	size_t used = 0;

	while (text < end) {
		const char *newline = memchr(text, '\n', (size_t)(end - text));

		/* The last line may still be in the writing. */
		if (!newline)
			break;
		used += add_line(names, text, newline);
		if (names->entries.count >= ENTRIES_MAX)
			break;
		text = newline + 1;
	}
	return used;
}

/* jitdump, as in the kernel's tools/perf/Documentation/jitdump-specification.txt. */
#define DUMP_MAGIC 0x4a695444u /* "JiTD" as a number of the writer's byte order */

enum dump_record {
	DUMP_CODE_LOAD = 0,
	DUMP_CODE_MOVE = 1,
	DUMP_DEBUG_INFO = 2,
};

struct dump_prefix {
	uint32_t id;
	uint32_t total_size;
	uint64_t timestamp;
};

struct dump_load {
	uint32_t pid, tid;
	uint64_t vma, code_addr, code_size, code_index;
};

struct dump_move {
	uint32_t pid, tid;
	uint64_t vma, old_code_addr, new_code_addr, code_size, code_index;
};

struct dump_line {
	uint64_t address;
	uint32_t line, discriminator;
};

/* The newest debug information record: it comes before the code that it describes. */
struct pending {
	taddr code;
	uint32_t first_line, line_count;
};

static bool dump_load(struct jit_names *names, const uint8_t *p, size_t len,
		      struct pending *pending)
{
	struct dump_load load;
	struct entry *entry;
	const char *name;
	size_t room;

	if (len < sizeof(load))
		return false;
	memcpy(&load, p, sizeof(load));
	name = (const char *)p + sizeof(load);
	room = len - sizeof(load);
	if (!memchr(name, '\0', room))
		return false;
	entry = add(names, load.code_addr, load.code_size, keep(names, name, strlen(name)));
	if (entry && pending->line_count > 0 && pending->code == load.code_addr) {
		entry->first_line = pending->first_line;
		entry->line_count = pending->line_count;
	}
	pending->line_count = 0;
	return entry != NULL;
}

static bool dump_move(struct jit_names *names, const uint8_t *p, size_t len)
{
	struct dump_move move;
	struct entry old, *entry;
	size_t i;

	if (len < sizeof(move))
		return false;
	memcpy(&move, p, sizeof(move));
	/* Moves name recent code; a bounded look back keeps a hostile file from costing a square.
	 */
	for (i = names->entries.count; i-- > 0 && names->entries.count - i <= 4096;)
		if (names->entries.items[i].start == move.old_code_addr)
			break;
	if (i >= names->entries.count || names->entries.items[i].start != move.old_code_addr)
		return false;
	old = names->entries.items[i];
	entry = add(names, move.new_code_addr, move.code_size, old.name);
	if (!entry)
		return false;
	entry->first_line = old.first_line;
	entry->line_count = old.line_count;
	entry->moved_by = old.moved_by + (move.new_code_addr - move.old_code_addr);
	return true;
}

static void dump_debug_info(struct jit_names *names, const uint8_t *p, size_t len,
			    struct pending *pending)
{
	uint64_t code, count;
	const char *file = NULL;

	*pending = (struct pending){ 0 };
	if (len < 16)
		return;
	memcpy(&code, p, 8);
	memcpy(&count, p + 8, 8);
	p += 16;
	len -= 16;
	pending->code = code;
	pending->first_line = (uint32_t)names->lines.count;
	for (uint64_t i = 0; i < count && names->lines.count < LINES_MAX; i++) {
		struct dump_line line;
		const char *name = (const char *)p + sizeof(line);
		size_t name_len;

		if (len < sizeof(line) || !memchr(name, '\0', len - sizeof(line)))
			break;
		memcpy(&line, p, sizeof(line));
		name_len = strlen(name);
		/* "\xff" alone means: the same file as before. */
		if (!file || strcmp(name, "\xff") != 0)
			if (!file || strcmp(name, file) != 0)
				file = keep(names, name, name_len);
		VEC_PUSH(&names->lines, ((struct line_entry){ line.address, line.line, file }));
		pending->line_count++;
		p += sizeof(line) + name_len + 1;
		len -= sizeof(line) + name_len + 1;
	}
}

size_t jit_names_add_dump(struct jit_names *names, const uint8_t *bytes, size_t len)
{
	uint32_t magic, header_size;
	struct pending pending = { 0 };
	size_t at, used = 0;

	if (len < 40)
		return 0;
	memcpy(&magic, bytes, 4);
	memcpy(&header_size, bytes + 8, 4);
	if (magic != DUMP_MAGIC || header_size < 40)
		return 0;
	for (at = header_size; at < len && len - at >= sizeof(struct dump_prefix);) {
		struct dump_prefix prefix;
		const uint8_t *body = bytes + at + sizeof(prefix);
		size_t body_len;

		memcpy(&prefix, bytes + at, sizeof(prefix));
		/* The last record may still be in the writing. */
		if (prefix.total_size < sizeof(prefix) || prefix.total_size > len - at)
			break;
		body_len = prefix.total_size - sizeof(prefix);
		if (prefix.id == DUMP_CODE_LOAD)
			used += dump_load(names, body, body_len, &pending);
		else if (prefix.id == DUMP_CODE_MOVE)
			used += dump_move(names, body, body_len);
		else if (prefix.id == DUMP_DEBUG_INFO)
			dump_debug_info(names, body, body_len, &pending);
		if (names->entries.count >= ENTRIES_MAX)
			break;
		at += prefix.total_size;
	}
	return used;
}

static int by_start(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	return ORDER(x->start, y->start) ?: ORDER(x->order, y->order);
}

static void find_line(const struct jit_names *names, const struct entry *entry, taddr address,
		      struct jit_name *ret)
{
	taddr best = 0;

	for (uint32_t i = 0; i < entry->line_count; i++) {
		const struct line_entry *line = &names->lines.items[entry->first_line + i];
		taddr at = line->address + entry->moved_by;

		if (at <= address && at >= entry->start && at >= best) {
			best = at;
			ret->line = line->line;
			ret->file = line->file;
		}
	}
}

void jit_names_starts(const struct jit_names *names, taddr low, taddr high, struct code_layout *ret)
{
	VEC_FOREACH (&names->entries, entry)
		if (entry->start >= low && entry->start < high)
			VEC_PUSH(&ret->starts, entry->start);
}

bool jit_names_find(struct jit_names *names, taddr address, struct jit_name *ret)
{
	const struct entry *found = NULL;
	size_t low;

	if (!names->sorted && names->entries.count > 0)
		VEC_SORT(&names->entries, by_start);
	names->sorted = true;
	low = VEC_HOLDS_FOR(&names->entries, entry, entry->start <= address);
	for (size_t i = low; i-- > 0 && low - i <= 4096;) {
		const struct entry *entry = &names->entries.items[i];

		if (address - entry->start >= names->longest)
			break;
		if (address < entry->end && (!found || entry->order > found->order))
			found = entry;
	}
	if (!found)
		return false;
	*ret = (struct jit_name){ .function = found->name, .start = found->start };
	find_line(names, found, address, ret);
	return true;
}

/* The files of the process one after the other: the perf map, then each mapped dump, or the one
 * that came with its log. `at` starts at 0. Returns a path for the caller to free, or NULL after
 * the last. */
static char *next_file(const struct snapshot *snapshot, const char *directory, size_t *at)
{
	char end[64];

	if (snapshot->names_dir && *at < 2)
		return mem_printf((*at)++ == 0 ? "%s/perf-%d.map" : "%s/jit-%d.dump",
				  snapshot->names_dir, snapshot->pid);
	if (snapshot->names_dir)
		return NULL;
	if (*at == 0) {
		*at = 1;
		return mem_printf("%s/perf-%d.map", directory, snapshot->pid);
	}
	(void)snprintf(end, sizeof(end), "/jit-%d.dump", snapshot->pid);
	for (; *at - 1 < snapshot->mapping_count; ++*at) {
		const char *path = snapshot->mappings[*at - 1].path;
		size_t len = path ? strlen(path) : 0;
		/* Its other mappings stand next to the first. */
		const char *last = *at > 1 ? snapshot->mappings[*at - 2].path : NULL;

		if (len < strlen(end) || strcmp(path + len - strlen(end), end) != 0 ||
		    (last && strcmp(last, path) == 0))
			continue;
		++*at;
		return mem_strdup(path);
	}
	return NULL;
}

#define TICK_NS \
	100000000u /* a file's time is that of the last tick, and a file system may round it */

/* The name has the number of the process, and numbers come round again: a file that was last
 * written before there was this process, or after it, is another's. Anybody can write one into
 * /tmp: it must be the process's user's. */
static bool is_anothers(const struct snapshot *snapshot, const struct stat *st)
{
	uint64_t written =
		(uint64_t)st->st_mtim.tv_sec * 1000000000u + (uint64_t)st->st_mtim.tv_nsec;

	/* Who sent it along looked at that where it was written. */
	if (snapshot->names_dir)
		return false;
	return st->st_uid != (snapshot->user ? snapshot->user - 1 : geteuid()) ||
	       written + TICK_NS < snapshot->since_ns ||
	       (snapshot->until_ns > 0 && written > snapshot->until_ns);
}

/* At most FILE_BYTES_MAX bytes of a regular file of the process; NULL when there are none. */
static char *read_own(const struct snapshot *snapshot, const char *path, size_t *ret_len)
{
	AUTO(fd_closep)
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | O_NOFOLLOW);
	AUTO(mem_freep) char *data = NULL;
	struct stat st;
	size_t len = 0, room;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size <= 0 ||
	    is_anothers(snapshot, &st))
		return NULL;
	room = (uint64_t)st.st_size < FILE_BYTES_MAX ? (size_t)st.st_size : FILE_BYTES_MAX;
	data = mem_alloc(room + 1);
	while (len < room) {
		ssize_t n = read(fd, data + len, room - len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		len += (size_t)n;
	}
	*ret_len = len;
	return TAKE(data);
}

uint64_t jit_names_stamp(const struct snapshot *snapshot, const char *directory)
{
	uint64_t stamp = (uint64_t)snapshot->pid;
	size_t at = 0;
	char *path;

	while ((path = next_file(snapshot, directory, &at))) {
		struct stat st = { 0 };
		uint64_t parts[4] = { 0 };

		if (lstat(path, &st) == 0 && !is_anothers(snapshot, &st)) {
			parts[0] = st.st_ino;
			parts[1] = (uint64_t)st.st_size;
			parts[2] = (uint64_t)st.st_mtim.tv_sec;
			parts[3] = (uint64_t)st.st_mtim.tv_nsec;
		}
		for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
			stamp = (stamp ^ parts[i]) * UINT64_C(0x100000001b3) + 1;
		mem_free(path);
	}
	return stamp;
}

struct jit_names *jit_names_load(const struct snapshot *snapshot, const char *directory)
{
	struct jit_names *names = jit_names_new();
	size_t at = 0, len = 0;
	bool is_map = true;
	char *path;

	while ((path = next_file(snapshot, directory, &at))) {
		AUTO(mem_freep) char *bytes = read_own(snapshot, path, &len);

		if (bytes && is_map)
			(void)jit_names_add_perf_map(names, bytes, len);
		else if (bytes)
			(void)jit_names_add_dump(names, (const uint8_t *)bytes, len);
		is_map = false;
		mem_free(path);
	}
	return names;
}
