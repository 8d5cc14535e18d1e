/* Where the code comes from: a file, a live process, a recorded trial. */
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/fd.h"
#include "debuginfo/module.h"
#include "model/mappings.h"
#include "studies/scan/code_scan_inside.h"
#include "studies/scan/scan_seen.h"

#define MAPS_BYTES_MAX (256u << 20)
#define JIT_PAGES_MAX 65536u
#define STAT_BYTES_MAX 4096u

static bool is_code(const struct mapping *mapping)
{
	return (mapping->perms & MAPPING_EXEC) && (mapping->perms & MAPPING_READ) &&
	       mapping->start < mapping->end &&
	       !(mapping->path && strcmp(mapping->path, "[vsyscall]") == 0);
}

static bool is_emitted(const struct mapping *mapping)
{
	return is_code(mapping) &&
	       (!mapping->path || mapping->path[0] == '\0' ||
		strncmp(mapping->path, "[anon", 5) == 0 || mapping_is_shared_memory(mapping));
}

static bool is_wanted(const struct scan_request *request, const struct mapping *mapping)
{
	const char *slash = mapping->path ? strrchr(mapping->path, '/') : NULL;

	if (!is_code(mapping) || !request->module)
		return is_code(mapping);
	if (strcmp(request->module, "emitted") == 0)
		return is_emitted(mapping);
	return mapping->path &&
	       (strcmp(mapping->path, request->module) == 0 ||
		fnmatch(request->module, slash ? slash + 1 : mapping->path, 0) == 0);
}

/* What the process adds to the addresses in the file behind a mapping. */
static bool find_bias(const struct mapping *mapping, uint64_t *ret)
{
	AUTO(module_closep) struct module *module = NULL;
	uint64_t vaddr;

	*ret = mapping->bias;
	if (mapping->bias_known)
		return true;
	if (module_open(mapping->path, NULL, &module, NULL) < 0 ||
	    !module_vaddr(module, mapping->file_offset, true, mapping->file_offset, &vaddr))
		return false;
	*ret = mapping->start - vaddr;
	return true;
}

/* Finds the global variable in one of the source's files, the program itself first. */
static int aim(struct scanner *scanner, const struct mapping *mappings, size_t count,
	       struct err *err)
{
	const struct scan_query *asked = &scanner->request->query;
	struct scan_query *query = &scanner->query;
	int first = 0;

	if (!scanner->request->global)
		return 0;
	for (size_t i = 0; i < count; i++) {
		uint64_t low, high, bias;
		int r;

		if (!is_code(&mappings[i]) || !mappings[i].path || mappings[i].path[0] != '/')
			continue;
		r = scan_global(mappings[i].path, scanner->request->global, &low, &high,
				first == 0 ? err : NULL);
		if (r == 0 && find_bias(&mappings[i], &bias)) {
			query->low = low + bias + (uint64_t)(asked->store ? asked->offset : 0);
			query->high = asked->store ? query->low + (asked->width ? asked->width : 1)
						   : high + bias;
			query->store = false;
			scanner->report->query = *query;
			return 0;
		}
		first = first < 0 ? first : r;
	}
	return first < 0 ? first
			 : err_set(err, -ENOENT, "there is no file to look for '%s' in",
				   scanner->request->global);
}

struct recorded {
	struct symbols *symbols;
	const struct snapshot *snapshot;
};

static bool read_recorded(void *ctx, taddr address, void *buf, size_t len)
{
	const struct recorded *recorded = ctx;

	return symbols_read(recorded->symbols, recorded->snapshot, address, buf, len);
}

int scan_file(const char *path, const struct scan_request *request, struct scan_report *ret,
	      struct err *err)
{
	AUTO(symbols_freep)
	struct symbols *symbols = symbols_new(&(struct symbols_options){ .no_python = true });
	AUTO(module_closep) struct module *module = NULL;
	char real[PATH_MAX];
	/* As if all of it were mapped where it says. */
	struct mapping mapping = { .end = UINT64_MAX,
				   .path = real,
				   .perms = MAPPING_READ | MAPPING_EXEC,
				   .bias_known = true };
	struct snapshot snapshot = { .mappings = &mapping, .mapping_count = 1 };
	struct recorded recorded = { symbols, &snapshot };
	struct scan_source source = { &snapshot, read_recorded, &recorded, true };
	struct scanner scanner;
	int r;

	if (!realpath(path, real))
		return err_set_errno(err, -errno, "cannot open '%s'", path);
	r = module_open(real, NULL, &module, err);
	if (r < 0)
		return r;
	ret->subject = mem_strdup(path);
	scanner_init(&scanner, request, symbols, ret);
	r = aim(&scanner, &mapping, 1, err);
	if (r < 0)
		return r;
	scanner_sweep(&scanner, &source, &mapping);
	scanner_finish(&scanner);
	return 0;
}

struct live {
	int fd; /* /proc/PID/mem */
};

static bool read_live(void *ctx, taddr address, void *buf, size_t len)
{
	const struct live *live = ctx;
	size_t have = 0;

	while (have < len) {
		ssize_t n =
			pread(live->fd, (char *)buf + have, len - have, (off_t)(address + have));

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		have += (size_t)n;
	}
	return true;
}

static int proc_trouble(int pid, int code, struct err *err)
{
	if (code == -ENOENT || code == -ESRCH)
		return err_set(err, -ESRCH, "there is no process %d", pid);
	(void)err_set_errno(err, code, "cannot read the memory of process %d", pid);
	if (code == -EACCES || code == -EPERM)
		(void)err_set_remedy(err, "run as the same user, or as root where "
					  "/proc/sys/kernel/yama/ptrace_scope forbids it");
	return code;
}

static int open_memory(int pid, struct err *err)
{
	char path[64];
	int fd;

	(void)snprintf(path, sizeof(path), "/proc/%d/mem", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? proc_trouble(pid, -errno, err) : fd;
}

/* Emitted code first: it is why people look into a process at all. */
static void sweep_mappings(struct scanner *scanner, const struct scan_source *source)
{
	const struct snapshot *snapshot = source->snapshot;

	for (size_t i = 0; i < snapshot->mapping_count; i++)
		if (is_wanted(scanner->request, &snapshot->mappings[i]))
			scanner_expect(scanner,
				       snapshot->mappings[i].end - snapshot->mappings[i].start);
	for (int emitted = 1; emitted >= 0; emitted--)
		for (size_t i = 0; i < snapshot->mapping_count; i++)
			if (is_wanted(scanner->request, &snapshot->mappings[i]) &&
			    is_emitted(&snapshot->mappings[i]) == (emitted == 1))
				scanner_sweep(scanner, source, &snapshot->mappings[i]);
}

/* Its user id + 1; 0 when it has gone. */
static uint32_t process_user(int pid)
{
	char path[64];
	struct stat st;

	(void)snprintf(path, sizeof(path), "/proc/%d", pid);
	return stat(path, &st) == 0 ? st.st_uid + 1 : 0;
}

/* When the process began, on the wall clock; 0 when that cannot be told. */
static uint64_t process_since(int pid)
{
	AUTO(mem_freep) char *text = NULL;
	struct timespec wall, boot;
	unsigned long long ticks;
	char path[64], *rest;
	uint64_t began;
	size_t len;

	(void)snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	if (file_read(path, STAT_BYTES_MAX, &text, &len, NULL) < 0 || !(rest = strrchr(text, ')')))
		return 0;
	/* The 22nd field; the name, which may hold anything, is the second. */
	// NOLINTNEXTLINE(cert-err34-c): the kernel wrote these numbers
	if (sscanf(rest + 1,
		   " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d "
		   "%*d %*d %llu",
		   &ticks) != 1)
		return 0;
	(void)clock_gettime(CLOCK_REALTIME, &wall);
	(void)clock_gettime(CLOCK_BOOTTIME, &boot);
	began = (uint64_t)ticks * (1000000000u / (uint64_t)sysconf(_SC_CLK_TCK));
	return (uint64_t)(wall.tv_sec - boot.tv_sec) * 1000000000u + (uint64_t)wall.tv_nsec -
	       (uint64_t)boot.tv_nsec + began;
}

int scan_process(int pid, const struct scan_request *request, struct scan_report *ret,
		 struct err *err)
{
	AUTO(symbols_freep)
	struct symbols *symbols = symbols_new(&(struct symbols_options){ .no_python = true });
	AUTO(mappings_deinit) struct mappings mappings = { 0 };
	AUTO(fd_closep) int fd = open_memory(pid, err);
	AUTO(mem_freep) char *text = NULL;
	struct snapshot snapshot = {
		.pid = pid, .tid = pid, .since_ns = process_since(pid), .user = process_user(pid)
	};
	struct live live = { fd };
	struct scan_source source = { &snapshot, read_live, &live, false };
	struct scanner scanner;
	char path[64];
	size_t len;
	int r;

	if (fd < 0)
		return fd;
	(void)snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	r = file_read(path, MAPS_BYTES_MAX, &text, &len, NULL);
	if (r < 0)
		return proc_trouble(pid, r, err);
	(void)mappings_parse(&mappings, text, len);
	if (mappings.count == 0)
		return err_set(err, -ESRCH, "process %d has ended and is not collected yet", pid);
	snapshot.mappings = mappings.items;
	snapshot.mapping_count = mappings.count;
	ret->subject = mem_printf("process %d", pid);
	scanner_init(&scanner, request, symbols, ret);
	r = aim(&scanner, mappings.items, mappings.count, err);
	if (r < 0)
		return r;
	sweep_mappings(&scanner, &source);
	scanner_finish(&scanner);
	return 0;
}

/* One process of it. */
struct remains {
	struct event_log *log;
	struct mappings maps; /* as of its last crash */
	VEC(struct mapping)
	files;			 /* of code that it had; paths are those of the log or of `maps` */
	VEC(struct piece) pages; /* emitted code; bytes are the log's */
	VEC(struct mapping) swept; /* what is looked at: files that nobody had before, and pages */
};

static void remains_deinit(struct remains *remains)
{
	mappings_deinit(&remains->maps);
	VEC_DEINIT(&remains->files);
	VEC_DEINIT(&remains->pages);
	VEC_DEINIT(&remains->swept);
}

/* The pages that the last record of the process has: a crash, or its exit. */
static void take_pages(struct remains *remains)
{
	struct log_reader *reader = &remains->log->reader;
	uint64_t newest = 0;
	struct log_item item;

	log_reader_rewind(reader);
	while (log_reader_next(reader, &item)) {
		struct piece page;
		struct log_blob blob;

		if (item.head.type != LOG_BLOB || !log_payload(&item, &blob, sizeof(blob)) ||
		    blob.kind != LOG_BLOB_JIT || blob.offset != 0 || item.head.owner < newest)
			continue;
		if (item.head.owner > newest)
			remains->pages.count = 0;
		newest = item.head.owner;
		page.bytes = log_payload_rest(&item, sizeof(blob), &page.len);
		page.address = blob.address;
		if (page.bytes && page.len > 0 && page.address <= UINT64_MAX - page.len &&
		    remains->pages.count < JIT_PAGES_MAX)
			VEC_PUSH(&remains->pages, page);
	}
	VEC_SORT_BY(&remains->pages, address);
}

/* Pages that follow each other become one mapping. */
static void map_pages(struct remains *remains)
{
	struct mapping mapping = { .perms = MAPPING_READ | MAPPING_WRITE | MAPPING_EXEC };

	VEC_FOREACH (&remains->pages, page) {
		if (mapping.end != page->address) {
			if (mapping.start < mapping.end)
				VEC_PUSH(&remains->swept, mapping);
			mapping.start = page->address;
		}
		mapping.end = page->address + page->len;
	}
	if (mapping.start < mapping.end)
		VEC_PUSH(&remains->swept, mapping);
}

static void take_maps(struct remains *remains)
{
	struct log_reader *reader = &remains->log->reader;
	struct log_item item;

	log_reader_rewind(reader);
	while (log_reader_next(reader, &item)) {
		AUTO(mem_freep) char *text = NULL;
		size_t len;

		if (item.head.type != LOG_CRASH)
			continue;
		text = blob_read(&remains->log->reader, &item, LOG_BLOB_MAPS, 0, NULL, &len);
		if (!text)
			continue;
		mappings_deinit(&remains->maps);
		remains->maps = (struct mappings){ 0 };
		(void)mappings_parse(&remains->maps, text, len);
	}
}

/* The modules that the observer wrote down, with their build-ids; observer `crash` has only the
 * mappings of the crash. */
static void take_files(struct remains *remains)
{
	const struct log_header *header = &remains->log->reader.header;
	const struct mappings *from =
		remains->log->modules.count > 0 ? &remains->log->modules : &remains->maps;

	for (size_t i = 0; i < from->count; i++) {
		const struct mapping *mapping = &from->items[i];

		/* redhand's own library was not there when it mattered. */
		if (is_code(mapping) && mapping->path && mapping->path[0] == '/' &&
		    !is_emitted(mapping) &&
		    !(mapping->start < header->agent_end && header->agent_base < mapping->end))
			VEC_PUSH(&remains->files, *mapping);
	}
}

static bool was_swept(const struct scan_report *report, const char *path)
{
	return VEC_ANY(&report->regions, region, strcmp(region->name, path) == 0);
}

static void take_remains(struct event_log *log, const struct scan_report *report,
			 struct remains *ret)
{
	ret->log = log;
	take_maps(ret);
	take_files(ret);
	take_pages(ret);
	map_pages(ret);
	VEC_FOREACH (&ret->files, file)
		if (!was_swept(report, file->path))
			VEC_PUSH(&ret->swept, *file);
	VEC_SORT_BY(&ret->swept, start);
}

static void sweep_remains(struct scanner *scanner, struct remains *remains)
{
	struct snapshot snapshot = event_log_snapshot(remains->log);
	struct recorded recorded = { scanner->symbols, &snapshot };

	snapshot.pieces = remains->pages.items;
	snapshot.piece_count = remains->pages.count;
	snapshot.mappings = remains->swept.items;
	snapshot.mapping_count = remains->swept.count;
	sweep_mappings(scanner, &(struct scan_source){ &snapshot, read_recorded, &recorded, true });
}

/* Emitted code that a process had when it died, but that was not kept. */
static void note_lost_code(const struct remains *remains, struct scan_report *report)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < remains->maps.count && remains->pages.count == 0; i++)
		if (is_emitted(&remains->maps.items[i]))
			bytes += remains->maps.items[i].end - remains->maps.items[i].start;
	if (bytes > 0)
		SAY_TOO(&report->notes, "note:emitted-code",
			said_number(remains->log->reader.header.pid), said_number(bytes / 1024));
}

int scan_trial(struct case_store *cs, uint64_t trial, const struct scan_request *request,
	       struct seen_list *seen, struct scan_report *ret, struct err *err)
{
	AUTO(symbols_freep)
	struct symbols *symbols = symbols_new(&(struct symbols_options){ .no_python = true });
	AUTO(reading_closep)
	struct reading *reading = reading_open(&(struct reading_of){
		.trials = case_trials_dir(cs), .trial = trial, .symbols = symbols });
	struct scan_request informed = *request;
	struct event_logs *logs;
	struct scanner scanner;
	bool aimed = false;
	int r = reading_logs(reading, &logs, err);

	if (r < 0)
		return r;
	if (logs->list.count == 0) {
		(void)err_set(err, -ENODATA, "no observer left anything of trial %s",
			      reading_name(reading));
		return err_set_remedy(err,
				      "scan a failed trial that ran with --observe crash or ids");
	}
	ret->subject = mem_printf("trial %s", reading_name(reading));
	seen_from_trial(reading, seen);
	seen_list_give(seen, &informed);
	scanner_init(&scanner, &informed, symbols, ret);
	VEC_FOREACH (&logs->list, log) {
		AUTO(remains_deinit) struct remains remains = { 0 };

		take_remains(log, ret, &remains);
		/* Each process has the variable at an address of its own, or not at all. */
		r = aim(&scanner, remains.files.items, remains.files.count, aimed ? NULL : err);
		if (r < 0)
			continue;
		aimed = true;
		sweep_remains(&scanner, &remains);
		note_lost_code(&remains, ret);
	}
	if (!aimed)
		return r;
	said_list_copy(&ret->notes, &logs->notes);
	scanner_finish(&scanner);
	return 0;
}
