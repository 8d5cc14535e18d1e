#include "cache.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define LOG_MAGIC 0x31676f4c67655350u
#define LOG_VERSION 5u
/* The log never gets longer. Plans of several devices fit into half of it, which is the most that
 * compaction keeps. */
#define LOG_LIMIT ((size_t)256 << 10)
/* Not worth compacting. */
#define LOG_LEAST ((size_t)16 << 10)

struct log_header {
	uint64_t magic;
	uint32_t version;
	uint32_t reserved;
	uint64_t generation; /* another one after each compaction */
	uint64_t kept;	     /* `end` as the last compaction left it */
	uint64_t end;	     /* of the last record */
};

struct entry {
	uint64_t key;
	uint64_t offset;
};

struct index {
	struct entry *entries; /* in log order: of two with one key the later one counts */
	size_t count, capacity;
};

struct cache {
	char *log_path, *temp_path;
	enum cache_rewrite rewrite;
	int lock_fd; /* locked: shared to scan the log, exclusive to change it */
	int fd;	     /* the log */
	ino_t inode;
	unsigned char *map;  /* LOG_LIMIT bytes of the log, which grows into them */
	unsigned char *held; /* our own copy of the log; NULL in shared mode */
	struct index index;
	uint64_t generation, scanned; /* what `index` covers */
};

static void index_add(struct index *x, uint64_t key, uint64_t offset)
{
	if (x->count == x->capacity) {
		x->capacity = x->capacity ? 2 * x->capacity : 64;
		x->entries = realloc(x->entries, x->capacity * sizeof(*x->entries));
		if (!x->entries)
			abort();
	}
	x->entries[x->count].key = key;
	x->entries[x->count].offset = offset;
	x->count++;
}

/* Adds the records of log[from, end) and returns where the last good one ends. */
static uint64_t index_scan(struct index *x, const unsigned char *log, uint64_t from, uint64_t end)
{
	while (record_check(log + from, end - from, from)) {
		const struct record *r = (const struct record *)(log + from);

		index_add(x, r->key, from);
		from += r->size;
	}
	return from;
}

static bool index_find(const struct index *x, uint64_t key, uint64_t *ret_offset)
{
	for (size_t i = x->count; i-- > 0;) {
		if (x->entries[i].key == key) {
			*ret_offset = x->entries[i].offset;
			return true;
		}
	}
	return false;
}

static int pwrite_all(int fd, const void *data, size_t size, off_t at)
{
	const unsigned char *bytes = data;

	while (size) {
		ssize_t n = pwrite(fd, bytes, size, at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		bytes += n;
		size -= (size_t)n;
		at += n;
	}
	return 0;
}

/* Reads up to `size` bytes, fewer at the end of the file. */
static size_t pread_all(int fd, void *data, size_t size)
{
	unsigned char *bytes = data;
	size_t done = 0;

	while (done < size) {
		ssize_t n = pread(fd, bytes + done, size - done, (off_t)done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		done += (size_t)n;
	}
	return done;
}

static void cache_lock(struct cache *c, int how)
{
	while (flock(c->lock_fd, how) < 0 && errno == EINTR)
		;
}

static bool log_read_header(int fd, struct log_header *ret)
{
	struct stat st;

	return pread_all(fd, ret, sizeof(*ret)) == sizeof(*ret) && fstat(fd, &st) == 0 &&
	       ret->magic == LOG_MAGIC && ret->version == LOG_VERSION && ret->end >= sizeof(*ret) &&
	       ret->end <= LOG_LIMIT && ret->kept <= LOG_LIMIT && ret->end <= (uint64_t)st.st_size;
}

static void log_detach(struct cache *c)
{
	if (c->map)
		munmap(c->map, LOG_LIMIT);
	if (c->fd >= 0)
		close(c->fd);
	c->map = NULL;
	c->fd = -1;
}

/* Opens and maps the log as it is in the directory now. Locked. */
static int log_attach(struct cache *c)
{
	struct stat st;
	void *map;

	log_detach(c);
	c->fd = open(c->log_path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
	if (c->fd < 0)
		return -errno;
	if (fstat(c->fd, &st) < 0)
		return -errno;
	map = mmap(NULL, LOG_LIMIT, PROT_READ, MAP_SHARED, c->fd, 0);
	if (map == MAP_FAILED)
		return -errno;
	c->map = map;
	c->inode = st.st_ino;
	c->generation = 0;
	return 0;
}

static bool log_is_current(const struct cache *c)
{
	struct stat st;

	return c->fd >= 0 && stat(c->log_path, &st) == 0 && st.st_ino == c->inode;
}

static int log_store_in_place(struct cache *c, const unsigned char *log, size_t size)
{
	int r;

	/* Cut first and write the header last: in between the old header promises more than the
	 * file has, and a log that was left like that reads as an empty one. */
	if (ftruncate(c->fd, (off_t)size) < 0)
		return -errno;
	r = pwrite_all(c->fd, log + sizeof(struct log_header), size - sizeof(struct log_header),
		       sizeof(struct log_header));
	return r < 0 ? r : pwrite_all(c->fd, log, sizeof(struct log_header), 0);
}

static int log_store_beside(struct cache *c, const unsigned char *log, size_t size)
{
	int fd = open(c->temp_path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666), r;

	if (fd < 0)
		return -errno;
	r = pwrite_all(fd, log, size, 0);
	close(fd);
	if (r < 0)
		return r;
	if (rename(c->temp_path, c->log_path) < 0)
		return -errno;
	return log_attach(c);
}

/*
 * Writes the log anew with the newest record of each key, as many of the youngest as fit into half
 * of it. A log that cannot be read becomes an empty one. Locked exclusively.
 */
static int log_compact(struct cache *c)
{
	unsigned char *old = malloc(LOG_LIMIT), *new = calloc(1, LOG_LIMIT);
	struct log_header h;
	struct index x = { 0 };
	size_t size = sizeof(h), keep;
	int r;

	if (!old || !new)
		abort();
	if (log_read_header(c->fd, &h) && pread_all(c->fd, old, h.end) == h.end) {
		index_scan(&x, old, sizeof(h), h.end);
		h.generation++;
	} else {
		struct timespec now;

		clock_gettime(CLOCK_REALTIME, &now);
		h.generation = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
	}
	for (keep = x.count; keep > 0; keep--) {
		const struct entry *e = &x.entries[keep - 1];
		uint64_t newest;

		if (index_find(&x, e->key, &newest) && newest == e->offset)
			size += ((const struct record *)(old + e->offset))->size;
		if (size > LOG_LIMIT / 2)
			break;
	}
	size = sizeof(h);
	for (size_t i = keep; i < x.count; i++) {
		const struct entry *e = &x.entries[i];
		const struct record *rec = (const struct record *)(old + e->offset);
		uint64_t newest;

		if (!index_find(&x, e->key, &newest) || newest != e->offset)
			continue;
		memcpy(new + size, rec, rec->size);
		record_move((struct record *)(new + size), (int64_t)size - (int64_t)e->offset,
			    e->offset);
		size += rec->size;
	}
	h.magic = LOG_MAGIC;
	h.version = LOG_VERSION;
	h.reserved = 0;
	h.kept = size;
	h.end = size;
	memcpy(new, &h, sizeof(h));
	if (c->rewrite == CACHE_REPLACE)
		r = log_store_beside(c, new, size);
	else
		r = log_store_in_place(c, new, size);
	free(x.entries);
	free(old);
	free(new);
	return r;
}

/* Brings the index up to date with the mapped log. Locked. */
static void cache_scan(struct cache *c)
{
	struct log_header h;

	if (!log_read_header(c->fd, &h)) {
		c->index.count = 0;
		return;
	}
	if (h.generation != c->generation) {
		c->index.count = 0;
		c->scanned = sizeof(h);
		c->generation = h.generation;
	}
	c->scanned = index_scan(&c->index, c->map, c->scanned, h.end);
}

/* Lets a shared cache see what others have added or compacted since. */
static void cache_refresh(struct cache *c)
{
	const struct log_header *h = (const struct log_header *)c->map;

	if (c->held)
		return;
	if (log_is_current(c) && h->generation == c->generation && h->end == c->scanned)
		return;
	cache_lock(c, LOCK_SH);
	if (log_is_current(c) || log_attach(c) == 0)
		cache_scan(c);
	cache_lock(c, LOCK_UN);
}

bool cache_find(struct cache *c, uint64_t key, struct plan_view *ret)
{
	uint64_t offset;

	if (!c || !c->map)
		return false;
	cache_refresh(c);
	if (!c->map || !index_find(&c->index, key, &offset))
		return false;
	ret->base = c->held ? c->held : c->map;
	ret->rec = (const struct record *)(ret->base + offset);
	return true;
}

/* A log is due when it has doubled: most of what it has got since is newer versions of what it
 * had. */
static bool log_is_due(const struct log_header *h, size_t more)
{
	uint64_t due = 2 * h->kept;

	if (due < LOG_LEAST)
		due = LOG_LEAST;
	if (due > LOG_LIMIT)
		due = LOG_LIMIT;
	return h->end + more > due;
}

static int log_append(struct cache *c, struct record *rec)
{
	struct log_header h;
	int r;

	if (!log_is_current(c) && (r = log_attach(c)) < 0)
		return r;
	if (!log_read_header(c->fd, &h) || log_is_due(&h, rec->size)) {
		r = log_compact(c);
		if (r < 0)
			return r;
		if (!log_read_header(c->fd, &h) || h.end + rec->size > LOG_LIMIT)
			return -ENOSPC;
	}
	record_move(rec, (int64_t)h.end, 0);
	r = pwrite_all(c->fd, rec, rec->size, (off_t)h.end);
	if (r < 0)
		return r;
	h.end += rec->size;
	return pwrite_all(c->fd, &h, sizeof(h), 0);
}

void cache_put(struct cache *c, uint64_t key, const struct plan *p)
{
	struct record *rec;

	if (!c)
		return;
	rec = record_new(p, key);
	cache_lock(c, LOCK_EX);
	(void)log_append(c, rec); /* a cache may forget */
	cache_lock(c, LOCK_UN);
	free(rec);
}

static int make_directories(char *path)
{
	for (char *p = path + 1;; p++) {
		char end = *p;

		if (end != '/' && end != '\0')
			continue;
		*p = '\0';
		if (mkdir(path, 0777) < 0 && errno != EEXIST)
			return -errno;
		*p = end;
		if (end == '\0')
			return 0;
	}
}

static char *default_dir(void)
{
	const char *base = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
	char *dir = NULL;
	int n = -1;

	if (base && *base)
		n = asprintf(&dir, "%s/presegment", base);
	else if (home && *home)
		n = asprintf(&dir, "%s/.cache/presegment", home);
	return n < 0 ? NULL : dir;
}

static char *join(const char *dir, const char *name)
{
	char *path;

	if (asprintf(&path, "%s/%s", dir, name) < 0)
		abort();
	return path;
}

/* Locked exclusively. */
static int cache_load(struct cache *c, enum cache_mode mode)
{
	struct log_header h;
	int r = log_attach(c);

	if (r < 0)
		return r;
	if (!log_read_header(c->fd, &h) && (r = log_compact(c)) < 0)
		return r;
	cache_scan(c);
	/* Whatever follows the last good record was cut off or damaged. */
	if (log_read_header(c->fd, &h) && c->scanned != h.end) {
		r = log_compact(c);
		if (r < 0)
			return r;
		cache_scan(c);
	}
	if (mode != CACHE_PRIVATE)
		return 0;
	c->held = malloc(c->scanned);
	if (!c->held)
		return -ENOMEM;
	memcpy(c->held, c->map, c->scanned);
	return 0;
}

int cache_open(const struct cache_options *o, int device, struct cache **ret, struct diag *diag)
{
	char *dir = o->dir ? strdup(o->dir) : default_dir(), *lock_path;
	enum cache_mode mode = o->mode;
	struct cache *c;
	int r;

	if (!dir)
		return diag_set(diag, -ENOENT, "neither XDG_CACHE_HOME nor HOME is set");
	if (mode == CACHE_AUTO)
		mode = device == 0 ? CACHE_PRIVATE : CACHE_SHARED;
	r = make_directories(dir);
	if (r < 0) {
		diag_set(diag, r, "cannot make '%s': %s", dir, strerror(-r));
		free(dir);
		return r;
	}
	c = calloc(1, sizeof(*c));
	if (!c)
		abort();
	c->fd = -1;
	c->rewrite = o->rewrite;
	c->log_path = join(dir, "plans.log");
	c->temp_path = join(dir, "plans.new");
	lock_path = join(dir, "plans.lock");
	c->lock_fd = open(lock_path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
	free(lock_path);
	if (c->lock_fd < 0) {
		r = -errno;
	} else {
		cache_lock(c, LOCK_EX);
		r = cache_load(c, mode);
		cache_lock(c, LOCK_UN);
	}
	if (r < 0) {
		diag_set(diag, r, "cannot use the cache in '%s': %s", dir, strerror(-r));
		cache_close(c);
	} else {
		*ret = c;
	}
	free(dir);
	return r;
}

void cache_close(struct cache *c)
{
	if (!c)
		return;
	log_detach(c);
	if (c->lock_fd >= 0)
		close(c->lock_fd);
	free(c->held);
	free(c->index.entries);
	free(c->log_path);
	free(c->temp_path);
	free(c);
}

const char cache_options_help[] =
	"  --cache DIR              keep the compile cache in DIR\n"
	"  --cache-mode=MODE        auto (private on device 0, else shared), shared, private, off\n"
	"  --cache-rewrite=HOW      inplace or replace: how the log is compacted\n";

static int choose(const char *value, const char *const *names, struct diag *diag)
{
	for (int i = 0; names[i]; i++) {
		if (strcmp(value, names[i]) == 0)
			return i;
	}
	return diag_set(diag, -EINVAL, "'%s' is not one of the choices", value);
}

static int set_mode(struct cache_options *o, const char *value, struct diag *diag)
{
	static const char *const modes[] = { "auto", "shared", "private", "off", NULL };
	int choice = choose(value, modes, diag);

	if (choice < 0)
		return choice;
	o->mode = (enum cache_mode)choice;
	return 1;
}

static int set_rewrite(struct cache_options *o, const char *value, struct diag *diag)
{
	static const char *const rewrites[] = { "inplace", "replace", NULL };
	int choice = choose(value, rewrites, diag);

	if (choice < 0)
		return choice;
	o->rewrite = (enum cache_rewrite)choice;
	return 1;
}

int cache_options_init(struct cache_options *o, struct diag *diag)
{
	const char *mode = getenv("PRESEGMENT_CACHE_MODE");
	const char *rewrite = getenv("PRESEGMENT_CACHE_REWRITE");
	int r = 0;

	memset(o, 0, sizeof(*o));
	if (mode)
		r = set_mode(o, mode, diag);
	if (rewrite && r >= 0)
		r = set_rewrite(o, rewrite, diag);
	return r < 0 ? r : 0;
}

int cache_options_parse(struct cache_options *o, char **argv, int *i, struct diag *diag)
{
	const char *arg = argv[*i];

	if (strncmp(arg, "--cache-mode=", 13) == 0)
		return set_mode(o, arg + 13, diag);
	if (strncmp(arg, "--cache-rewrite=", 16) == 0)
		return set_rewrite(o, arg + 16, diag);
	if (strncmp(arg, "--cache=", 8) == 0) {
		o->dir = arg + 8;
	} else if (strcmp(arg, "--cache") == 0) {
		if (!argv[*i + 1])
			return diag_set(diag, -EINVAL, "--cache needs a directory");
		o->dir = argv[++*i];
	} else {
		return 0;
	}
	if (!*o->dir)
		return diag_set(diag, -EINVAL, "--cache needs a directory");
	return 1;
}
