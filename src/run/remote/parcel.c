#include "run/remote/parcel.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "base/pack.h"

#define PIECE (1u << 20)
#define LEVEL 1 /* logs shrink to a tenth with any; this one is quick */

#define NAME_MOST 4096u
#define DEPTH_MOST 64u
#define ENTRIES_MOST 100000u
#define BYTES_MOST (4ull << 30)

enum entry_kind { ENTRY_DIRECTORY, ENTRY_FILE, ENTRY_PROGRAM, ENTRY_KINDS };

struct sender {
	const struct parcel_sink *sink;
	uint64_t attempt;
	char *raw, *packed;
	size_t packed_room;
	unsigned int depth;
};

static int send_entry(const struct sender *s, enum entry_kind kind, const char *name, uint64_t size)
{
	AUTO(strbuf_deinit) struct strbuf payload = { 0 };

	pack_u64(&payload, s->attempt);
	pack_u64(&payload, kind);
	pack_u64(&payload, size);
	pack_str(&payload, name);
	return s->sink->frame(s->sink->ctx, FRAME_ENTRY, &payload);
}

static int send_piece(const struct sender *s, uint64_t at, size_t len)
{
	AUTO(strbuf_deinit) struct strbuf payload = { 0 };
	size_t packed = ZSTD_compress(s->packed, s->packed_room, s->raw, len, LEVEL);

	if (ZSTD_isError(packed))
		return -EIO;
	pack_u64(&payload, s->attempt);
	pack_u64(&payload, at);
	pack_u64(&payload, len);
	strbuf_add(&payload, s->packed, packed);
	return s->sink->frame(s->sink->ctx, FRAME_DATA, &payload);
}

/* Where the file goes on after `at`, and how far, at most a piece. False: it does not. */
static bool next_data(int fd, uint64_t at, uint64_t size, uint64_t *ret_at, size_t *ret_len)
{
	off_t data = lseek(fd, (off_t)at, SEEK_DATA), hole;

	if (data < 0 && errno == ENXIO)
		return false;
	if (data < 0) /* a file system that knows no holes */
		data = (off_t)at;
	hole = lseek(fd, data, SEEK_HOLE);
	if (hole < 0 || (uint64_t)hole > size)
		hole = (off_t)size;
	*ret_at = (uint64_t)data;
	*ret_len = hole - data < (off_t)PIECE ? (size_t)(hole > data ? hole - data : 0) : PIECE;
	return *ret_len > 0;
}

static int send_file(const struct sender *s, int fd, const char *name, const struct stat *st)
{
	uint64_t size = (uint64_t)st->st_size, at = 0;
	int r = send_entry(s, st->st_mode & S_IXUSR ? ENTRY_PROGRAM : ENTRY_FILE, name, size);
	size_t want;

	while (r == 0 && at < size && next_data(fd, at, size, &at, &want)) {
		ssize_t got = pread(fd, s->raw, want, (off_t)at);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0) /* it was cut meanwhile */
			break;
		r = send_piece(s, at, (size_t)got);
		at += (uint64_t)got;
	}
	return r;
}

static int send_tree(struct sender *s, int dir, const char *name, const char *as);

static int send_below(struct sender *s, int fd, const char *as)
{
	int again = dup(fd), r = 0;
	DIR *stream = again < 0 ? NULL : fdopendir(again);
	struct dirent *entry;

	if (!stream) {
		fd_close(again);
		return 0;
	}
	while (r == 0 && (entry = readdir(stream)) != NULL) {
		AUTO(mem_freep) char *below = NULL;

		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		below = as ? mem_printf("%s/%s", as, entry->d_name) : mem_strdup(entry->d_name);
		r = send_tree(s, fd, entry->d_name, below);
	}
	(void)closedir(stream);
	return r;
}

static int send_tree(struct sender *s, int dir, const char *name, const char *as)
{
	/* A fifo without a writer must not hold us up, a terminal not become ours. */
	int flags = O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC | (s->depth > 0 ? O_NOFOLLOW : 0);
	AUTO(fd_closep) int fd = -1;
	struct stat st;
	int r = 0;

	if (s->depth >= DEPTH_MOST || (as && !parcel_name_is_safe(as)))
		return 0;
	fd = openat(dir, name, flags);
	if (fd < 0 || fstat(fd, &st) < 0)
		return 0;
	s->depth++;
	if (S_ISDIR(st.st_mode)) {
		if (as)
			r = send_entry(s, ENTRY_DIRECTORY, as, 0);
		if (r == 0)
			r = send_below(s, fd, as);
	} else if (S_ISREG(st.st_mode) && as) {
		r = send_file(s, fd, as, &st);
	}
	s->depth--;
	return r;
}

int parcel_send(const struct parcel_sink *sink, uint64_t attempt, int dir, const char *name,
		const char *as)
{
	AUTO(mem_freep) char *raw = mem_alloc(PIECE);
	size_t room = ZSTD_compressBound(PIECE);
	AUTO(mem_freep) char *packed = mem_alloc(room);
	struct sender s = {
		.sink = sink, .attempt = attempt, .raw = raw, .packed = packed, .packed_room = room
	};

	return send_tree(&s, dir, name, as);
}

void parcel_init(struct parcel *parcel, int dir)
{
	*parcel = (struct parcel){ .dir = dir, .file = -1 };
}

void parcel_deinit(struct parcel *parcel)
{
	fd_close(parcel->file);
	parcel->file = -1;
}

bool parcel_name_is_safe(const char *name)
{
	unsigned int depth = 0;

	if (name[0] == '\0' || strlen(name) > NAME_MOST)
		return false;
	for (;; depth++) {
		size_t len = strcspn(name, "/");

		if (len == 0 || len > NAME_MAX || depth >= DEPTH_MOST ||
		    (len == 1 && name[0] == '.') || (len == 2 && strncmp(name, "..", 2) == 0))
			return false;
		if (name[len] == '\0')
			return true;
		name += len + 1;
	}
}

/* The directory that an entry goes into: one after another, so that no link is followed. */
static int open_parent(int dir, const char *name, const char **ret_last)
{
	int fd = dup(dir);
	size_t len;

	for (; fd >= 0 && (len = strcspn(name, "/"), name[len] == '/'); name += len + 1) {
		AUTO(mem_freep) char *part = mem_strndup(name, len);
		int next = openat(fd, part, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

		fd_close(fd);
		fd = next;
	}
	*ret_last = name;
	return fd;
}

static bool may_come(const struct parcel *p, uint64_t kind, const char *name, uint64_t size)
{
	return kind < ENTRY_KINDS && parcel_name_is_safe(name) && p->entries < ENTRIES_MOST &&
	       size <= BYTES_MOST - p->bytes && (kind != ENTRY_DIRECTORY || size == 0);
}

static int put_entry(struct parcel *p, struct unpacker *u, struct err *err)
{
	uint64_t kind = unpack_u64(u), size = unpack_u64(u);
	AUTO(mem_freep) char *name = unpack_str(u);
	AUTO(fd_closep) int parent = -1;
	const char *last;

	if (u->broken || u->left > 0 || !name || !may_come(p, kind, name, size))
		return -EBADMSG;
	p->entries++;
	parcel_deinit(p);
	parent = open_parent(p->dir, name, &last);
	if (parent < 0)
		return -EBADMSG;
	if (kind == ENTRY_DIRECTORY) {
		if (mkdirat(parent, last, 0700) < 0 && errno != EEXIST)
			return err_set_errno(err, -errno, "cannot make '%s'", name);
		return 0;
	}
	p->file = openat(parent, last, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
			 kind == ENTRY_PROGRAM ? 0700 : 0600);
	if (p->file < 0)
		return errno == EEXIST ? -EBADMSG
				       : err_set_errno(err, -errno, "cannot make '%s'", name);
	if (ftruncate(p->file, (off_t)size) < 0)
		return err_set_errno(err, -errno, "cannot make '%s'", name);
	p->size = size;
	p->bytes += size;
	return 0;
}

static int put_data(struct parcel *p, struct unpacker *u, struct err *err)
{
	AUTO(mem_freep) char *raw = NULL;
	uint64_t at = unpack_u64(u), len = unpack_u64(u);
	size_t got;

	if (u->broken || p->file < 0 || len == 0 || len > PIECE || at > p->size ||
	    len > p->size - at)
		return -EBADMSG;
	raw = mem_alloc((size_t)len);
	got = ZSTD_decompress(raw, (size_t)len, u->at, u->left);
	if (ZSTD_isError(got) || got != len)
		return -EBADMSG;
	if (lseek(p->file, (off_t)at, SEEK_SET) < 0)
		return err_set_errno(err, -errno, "cannot write a file of a worker");
	return fd_write_all(p->file, raw, (size_t)len, "a file of a worker", err);
}

int parcel_put(struct parcel *parcel, enum frame_type type, const char *bytes, size_t len,
	       struct err *err)
{
	struct unpacker u = { .at = bytes, .left = len };
	int r = type == FRAME_ENTRY ? put_entry(parcel, &u, err) : put_data(parcel, &u, err);

	return r == -EBADMSG ? err_set(err, r, "a worker sent files that cannot be") : r;
}
