#include "agent/core/log.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <time.h>

#include "agent/arch/x86_64.h"
#include "agent/core/agent.h"
#include "agent/core/clock.h"
#include "agent/core/memory.h"
#include "agent/core/secret.h"
#include "agent/core/text.h"
#include "agent/core/thread.h"
#include "wire/checksum.h"

#define IMAGES_MAX 100000u
#define CRASH_ONLY_EVENTS (8u << 20)
#define FILE_SPINS 200000u
#define ROOM_SURE (4ull << 30)
#define EVENTS_FEW (64u << 10) /* not worth asking for pages */

struct log log_map;

static uint64_t round_page(uint64_t bytes)
{
	return (bytes + LOG_PAGE - 1) & ~(uint64_t)(LOG_PAGE - 1);
}

static uint64_t region_add(struct log_header *header, enum log_region_kind kind, uint64_t at,
			   uint64_t bytes)
{
	header->regions[kind].offset = at;
	header->regions[kind].bytes = round_page(bytes);
	return at + header->regions[kind].bytes;
}

static uint64_t events_bytes(bool ids)
{
	uint64_t bytes = (uint64_t)agent.plan.events_mib << 20;

	return ids || bytes < CRASH_ONLY_EVENTS ? bytes : CRASH_ONLY_EVENTS;
}

/* The fixed part. Regions that the observer does not need are empty. */
static void header_plan(struct log_header *header)
{
	const struct plan_header *plan = &agent.plan;
	bool ids = plan->observer >= PLAN_OBSERVE_IDS;
	uint64_t at = 2 * LOG_PAGE;

	memset(header, 0, sizeof(*header));
	header->magic = LOG_MAGIC;
	header->version = LOG_VERSION;
	header->header_bytes = sizeof(*header);
	at = region_add(header, LOG_REGION_THREADS, at,
			plan->thread_slots * sizeof(struct log_thread));
	at = region_add(header, LOG_REGION_RESERVE, at, LOG_RESERVE_BYTES);
	if (ids) {
		at = region_add(header, LOG_REGION_CONTEXTS, at,
				plan->context_rows * sizeof(struct log_context));
		at = region_add(header, LOG_REGION_RINGS, at,
				(uint64_t)plan->thread_slots * plan->ring_records *
					sizeof(struct log_life));
	}
	if (ids && agent.watches)
		at = region_add(header, LOG_REGION_WATCH, at,
				round_page(sizeof(struct log_watch_area)) +
					(uint64_t)LOG_HITS *
						(LOG_HIT_SLOT + sizeof(struct log_hit_block)));
	at = region_add(header, LOG_REGION_EVENTS, at, events_bytes(ids));
	header->file_bytes = at;
	header->pid = agent.pid;
	header->ppid = (uint32_t)raw_syscall0(SYS_getppid);
	header->user = (uint32_t)raw_syscall0(SYS_geteuid) + 1;
	header->image = agent.image;
	header->observer = plan->observer;
	header->plan_flags = plan->flags;
	header->ring_records = ids ? plan->ring_records : 0;
	header->thread_slots = plan->thread_slots;
	header->context_rows = ids ? plan->context_rows : 0;
	header->id_base = agent.next_id;
	header->start_monotonic_ns = clock_ns_sigsafe(CLOCK_MONOTONIC);
	header->start_realtime_ns = clock_ns_sigsafe(CLOCK_REALTIME);
	header->agent_base = agent.text_low;
	header->agent_end = agent.text_high;
	header->epoch_base = agent.epoch;
}

/* A limit on the size of files (ulimit -f) answers with a signal that ends the target, though the
 * file is ours. It goes to the thread that wrote, so it is held back meanwhile and taken away. */
struct size_signal {
	uint64_t mask, pending;
};

#define SIZE_SIGNAL (1ull << (SIGXFSZ - 1))

static void size_signal_hold(struct size_signal *held)
{
	uint64_t block = SIZE_SIGNAL;

	held->pending = 0;
	(void)raw_syscall2(SYS_rt_sigpending, &held->pending, sizeof(held->pending));
	(void)raw_syscall4(SYS_rt_sigprocmask, SIG_BLOCK, &block, &held->mask, sizeof(block));
}

static void size_signal_release(const struct size_signal *held)
{
	struct timespec none = { 0, 0 };
	uint64_t take = SIZE_SIGNAL;

	if (!(held->pending & SIZE_SIGNAL))
		(void)raw_syscall4(SYS_rt_sigtimedwait, &take, NULL, &none, sizeof(take));
	(void)raw_syscall4(SYS_rt_sigprocmask, SIG_SETMASK, &held->mask, NULL, sizeof(held->mask));
}

int log_directory_sigsafe(void)
{
	static uint64_t device, inode; /* of the first time; a child has them, too */
	struct stat stat;
	long fd = raw_syscall4(SYS_openat, AT_FDCWD, agent.trial,
			       O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);

	if (fd < 0 || raw_syscall2(SYS_fstat, fd, &stat)) {
		if (fd >= 0)
			(void)raw_syscall1(SYS_close, fd);
		return fd < 0 ? (int)fd : -1;
	}
	if (!inode) {
		device = stat.st_dev;
		inode = stat.st_ino;
	}
	if (stat.st_dev == device && stat.st_ino == inode)
		return (int)fd;
	(void)raw_syscall1(SYS_close, fd);
	return -1;
}

/* The next image number of this pid, found by trying: exec leaves the earlier ones behind. */
static int file_create_at(int directory)
{
	struct text path;
	const char *name;
	uint32_t n;
	long fd;

	for (n = 0; n < IMAGES_MAX; n++) {
		text_begin(&path, agent.log_path, sizeof(agent.log_path));
		text_add(&path, agent.trial);
		text_add(&path, "/" WIRE_LOG_PREFIX);
		text_add_number(&path, agent.pid, 10);
		text_add(&path, ".");
		text_add_number(&path, n, 10);
		text_add(&path, WIRE_LOG_SUFFIX);
		if (path.cut)
			return -1;
		name = agent.log_path + strlen(agent.trial) + 1;
		fd = raw_syscall4(SYS_openat, directory, name,
				  O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
		if (fd >= 0) {
			/* A target that makes its files unreadable means its own. */
			(void)raw_syscall2(SYS_fchmod, fd, 0600);
			agent.image = n;
			return (int)fd;
		}
		if (fd != -EEXIST)
			return -1;
	}
	return -1;
}

static int file_create(void)
{
	int directory = log_directory_sigsafe(), fd;

	if (directory < 0)
		return -1;
	fd = file_create_at(directory);
	(void)raw_syscall1(SYS_close, directory);
	return fd;
}

static void map_place(const struct log_header *header, unsigned char *base)
{
	bool ids = header->ring_records != 0;

	log_map.base = base;
	log_map.bytes = header->file_bytes;
	log_map.header = (struct log_header *)base;
	log_map.threads = (void *)(base + header->regions[LOG_REGION_THREADS].offset);
	log_map.contexts =
		ids ? (void *)(base + header->regions[LOG_REGION_CONTEXTS].offset) : NULL;
	log_map.rings = ids ? (void *)(base + header->regions[LOG_REGION_RINGS].offset) : NULL;
	log_map.seq = 0;
	log_map.events_tail = log_map.events_ready = 0;
	log_map.reserve_tail = 0;
}

/* On tmpfs claiming it is zeroing it all. Where there is much room there will be some when a crash
 * comes, unless the target itself takes it: so this is for tmpfs alone. */
static bool room_is_sure(int fd)
{
	struct statfs room;

	return !raw_syscall2(SYS_fstatfs, fd, &room) && room.f_type == TMPFS_MAGIC &&
	       room.f_bavail * (uint64_t)room.f_bsize > ROOM_SURE;
}

/* Makes the file and maps it over `base` (0: anywhere). The address, or a negative errno. */
static long file_map(const struct log_header *header, int fd, uint64_t base)
{
	struct size_signal held;
	long r;

	size_signal_hold(&held);
	r = raw_syscall2(SYS_ftruncate, fd, header->file_bytes);
	/* The pages a crash needs are claimed now: there may be no disk left when it comes. A file
	 * system that cannot do this (EOPNOTSUPP) is used as it is. */
	if (!r && !room_is_sure(fd) &&
	    raw_syscall4(SYS_fallocate, fd, 0, 0,
			 header->regions[LOG_REGION_RESERVE].offset + (512u << 10)) == -ENOSPC)
		r = -ENOSPC;
	size_signal_release(&held);
	if (!r)
		r = raw_syscall6(SYS_mmap,
				 (long)(base ? base : memory_place_sigsafe(header->file_bytes)),
				 (long)header->file_bytes, PROT_READ | PROT_WRITE,
				 MAP_SHARED | (base ? MAP_FIXED : 0), fd, 0);
	/* Without this the kernel reads ahead into the holes of the sparse file, which costs up to
	 * 10 ms for every first touch of a page. */
	if (r > 0)
		(void)raw_syscall3(SYS_madvise, r, header->file_bytes, MADV_RANDOM);
	return r;
}

static long draft_map(const struct log_header *header, uint64_t base)
{
	long r = raw_syscall6(SYS_mmap,
			      (long)(base ? base : memory_place_sigsafe(header->file_bytes)),
			      (long)header->file_bytes, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | (base ? MAP_FIXED : 0),
			      -1, 0);

	if (r > 0 || r < -4095)
		(void)raw_syscall3(SYS_madvise, r, header->file_bytes, MADV_DONTDUMP);
	return r;
}

static void header_seal(struct log_header *header)
{
	header->check = checksum_add(CHECKSUM_SEED, header, LOG_FIXED_BYTES);
}

bool log_create(void)
{
	struct log_header header;
	uint32_t parent_image = agent.image;
	bool again = log_map.base != NULL;
	bool draft = agent.plan.observer < PLAN_OBSERVE_IDS;
	long fd = -1, r;
	int64_t bytes;

	agent.pid = (uint32_t)raw_syscall0(SYS_getpid);
	if (!draft && (fd = file_create()) < 0)
		return false;
	header_plan(&header);
	bytes = (int64_t)header.file_bytes;
	header.parent_image = again ? parent_image : UINT32_MAX;
	header.forked = again;
	header_seal(&header);
	if (!again)
		memory_count_sigsafe(bytes, draft ? bytes : 0);
	r = draft ? draft_map(&header, (uint64_t)log_map.base)
		  : file_map(&header, (int)fd, (uint64_t)log_map.base);
	if (fd >= 0)
		(void)raw_syscall1(SYS_close, fd);
	if (r < 0 && r > -4096) {
		if (!again)
			memory_count_sigsafe(-bytes, draft ? -bytes : 0);
		if (fd >= 0)
			(void)raw_syscall1(SYS_unlink, agent.log_path);
		return false;
	}
	map_place(&header, (unsigned char *)r);
	log_map.draft = draft;
	log_map.filed = 0;
	memcpy(log_map.base, &header, sizeof(header));
	memcpy(log_map.base + LOG_PAGE, &header, sizeof(header));
	log_map.id_base = agent.next_id;
	log_map.header->next_id = agent.next_id;
	log_map.header->state = LOG_STATE_RUNNING;
	return true;
}

/* Copies a part of the draft into its file. */
static bool draft_copy(int fd, uint64_t offset, uint64_t bytes)
{
	while (bytes) {
		long n = raw_syscall4(SYS_pwrite64, fd, log_map.base + offset, bytes, offset);

		if (n <= 0)
			return false;
		offset += (uint64_t)n;
		bytes -= (uint64_t)n;
	}
	return true;
}

/* The draft's file, made by whoever comes first; the others wait for it, but not for ever. */
static int draft_file(void)
{
	struct log_header *header = log_map.header;
	uint32_t none = 0, spins;
	int fd;

	if (!__atomic_compare_exchange_n(&log_map.filed, &none, 1, false, __ATOMIC_ACQ_REL,
					 __ATOMIC_ACQUIRE)) {
		for (spins = 0; spins < FILE_SPINS; spins++) {
			if (__atomic_load_n(&log_map.filed, __ATOMIC_ACQUIRE) == 2)
				return (int)raw_syscall4(
					SYS_openat, AT_FDCWD, agent.log_path,
					O_RDWR | O_CLOEXEC | O_NOATIME | O_NOFOLLOW, 0);
			__builtin_ia32_pause();
		}
		return -1;
	}
	fd = file_create();
	if (fd < 0)
		return -1; /* nobody needs to try again */
	/* The number was not known when the header was sealed. */
	header->image = agent.image;
	header_seal(header);
	memcpy(log_map.base + LOG_PAGE, header, sizeof(*header));
	__atomic_store_n(&log_map.filed, 2, __ATOMIC_RELEASE);
	return fd;
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* What was written so far; the rest of the file is a hole. */
static bool draft_copy_all(int fd)
{
	const struct log_region *regions = log_map.header->regions;
	uint64_t rows = smaller(log_map.header->threads_seen, agent.plan.thread_slots);
	struct size_signal held;
	bool whole;

	size_signal_hold(&held);
	whole = !raw_syscall2(SYS_ftruncate, fd, log_map.bytes);
	if (!whole) /* nothing will ever be in it */
		(void)raw_syscall1(SYS_unlink, agent.log_path);
	whole = whole && draft_copy(fd, 0, 2 * LOG_PAGE + rows * sizeof(struct log_thread)) &&
		draft_copy(fd, regions[LOG_REGION_RESERVE].offset,
			   smaller(log_map.reserve_tail, regions[LOG_REGION_RESERVE].bytes)) &&
		draft_copy(fd, regions[LOG_REGION_EVENTS].offset,
			   smaller(log_map.events_tail, regions[LOG_REGION_EVENTS].bytes));
	size_signal_release(&held);
	return whole;
}

void log_save_sigsafe(void)
{
	int fd;

	if (!log_map.header || !__atomic_load_n(&log_map.draft, __ATOMIC_ACQUIRE))
		return;
	fd = draft_file();
	if (fd < 0)
		return;
	(void)draft_copy_all(fd);
	(void)raw_syscall1(SYS_close, fd);
}

void log_publish_sigsafe(void)
{
	long fd;

	if (!log_map.header || !__atomic_exchange_n(&log_map.draft, false, __ATOMIC_ACQ_REL))
		return;
	fd = draft_file();
	if (fd < 0)
		return;
	/* On failure the draft stays: nobody will read it, but nothing breaks. */
	if (draft_copy_all((int)fd))
		(void)file_map(log_map.header, (int)fd, (uint64_t)log_map.base);
	(void)raw_syscall1(SYS_close, fd);
}

void log_drop_sigsafe(enum log_drop what)
{
	if (log_map.header)
		__atomic_fetch_add(&log_map.header->drops[what], 1, __ATOMIC_RELAXED);
}

bool log_holds_sigsafe(uint64_t address)
{
	return address - (uint64_t)log_map.base < log_map.bytes;
}

bool log_patch_hole_sigsafe(uint64_t address)
{
	uint64_t page = address & ~(uint64_t)(LOG_PAGE - 1), bytes = LOG_PAGE;
	long r;

	/* The header, too: somebody has cut the file. Nothing of it is left, and the next fault
	 * would come while this one's signal is blocked. */
	if (!memory_readable_sigsafe((uint64_t)log_map.base, 1)) {
		page = (uint64_t)log_map.base;
		bytes = round_page(log_map.bytes);
	}
	r = raw_syscall6(SYS_mmap, (long)page, (long)bytes, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
	return r == (long)page;
}

void log_writer_init_sigsafe(struct log_writer *writer, enum log_place place)
{
	uint64_t reserve = log_map.header ? (uint64_t)log_map.threads - (uint64_t)log_map.base : 0;
	uint64_t slots_at, n;

	memset(writer, 0, sizeof(*writer));
	writer->place = place;
	if (place != LOG_TO_SLOT)
		return;
	/* The two slots are the end of RESERVE, which lies behind THREADS. */
	reserve += round_page(agent.plan.thread_slots * sizeof(struct log_thread));
	slots_at = reserve + LOG_RESERVE_BYTES - 2 * LOG_SLOT_BYTES;
	n = __atomic_fetch_add(&log_map.header->forwarded_faults, 1, __ATOMIC_RELAXED);
	writer->slot_at = slots_at + (n & 1) * LOG_SLOT_BYTES;
	writer->slot_end = writer->slot_at + LOG_SLOT_BYTES - LOG_SLOT_NOTE;
}

/* The pages that come next, more at once as there are more events: a page of a file costs more than
 * a microsecond where it is touched, and less than half of that where it is asked for with others.
 */
static void events_populate(uint64_t start, uint64_t tail, uint64_t limit)
{
	uint64_t ready = __atomic_load_n(&log_map.events_ready, __ATOMIC_RELAXED);
	uint64_t from = round_page(tail), to = from + round_page(tail / 8);

	if (tail < ready || tail < EVENTS_FEW || to > limit)
		return;
	__atomic_store_n(&log_map.events_ready, to, __ATOMIC_RELAXED);
	memory_populate_sigsafe((uint64_t)log_map.base + start + from, to - from);
}

/* Takes span bytes; NULL when there is no room. */
static unsigned char *space_take(struct log_writer *writer, uint64_t span)
{
	const struct plan_header *plan = &agent.plan;
	uint64_t at, limit, start;

	start = 2 * LOG_PAGE + round_page(plan->thread_slots * sizeof(struct log_thread));
	switch (writer->place) {
	case LOG_TO_SLOT:
		if (span > writer->slot_end - writer->slot_at)
			break;
		at = writer->slot_at;
		writer->slot_at += span;
		return log_map.base + at;
	case LOG_TO_RESERVE:
		limit = LOG_RESERVE_BYTES - 2 * LOG_SLOT_BYTES;
		at = __atomic_fetch_add(&log_map.reserve_tail, span, __ATOMIC_RELAXED);
		if (at > limit || span > limit - at)
			break;
		log_map.header->reserve_tail = at + span;
		return log_map.base + start + at;
	case LOG_TO_EVENTS:
		start = log_map.bytes - events_bytes(log_map.rings);
		limit = log_map.bytes - start;
		at = __atomic_load_n(&log_map.events_tail, __ATOMIC_RELAXED);
		if (at > limit || span > limit - at)
			break;
		at = __atomic_fetch_add(&log_map.events_tail, span, __ATOMIC_RELAXED);
		if (at > limit || span > limit - at)
			break;
		log_map.header->events_tail = at + span;
		events_populate(start, at + span, limit);
		return log_map.base + start + at;
	}
	log_drop_sigsafe(writer->place == LOG_TO_EVENTS ? LOG_DROP_EVENT : LOG_DROP_RESERVE);
	return NULL;
}

/* Header last, and of the header the magic number last: a reader never sees half a record as a
 * whole one, and the checksum covers what the compiler or the CPU might reorder. */
static void record_seal(unsigned char *at, struct log_record *head)
{
	uint32_t magic = head->magic;

	head->head_check = log_head_check(head);
	head->check = 0;
	head->check = checksum_add(checksum_add(CHECKSUM_SEED, head, sizeof(*head)),
				   at + sizeof(*head), head->bytes);
	head->magic = 0;
	memcpy(at, head, sizeof(*head));
	__atomic_store_n((uint32_t *)at, magic, __ATOMIC_RELEASE);
}

static void record_head(struct log_record *head, const struct log_writer *writer,
			enum log_record_type type, size_t bytes)
{
	memset(head, 0, sizeof(*head));
	head->magic = LOG_RECORD_MAGIC;
	head->type = (uint16_t)type;
	head->bytes = (uint32_t)bytes;
	head->tid = thread_self ? thread_self->tid : (uint32_t)raw_syscall0(SYS_gettid);
	head->time_ns = clock_ns_sigsafe(CLOCK_MONOTONIC);
	head->seq = __atomic_add_fetch(&log_map.seq, 1, __ATOMIC_RELAXED);
	head->owner = writer->owner;
}

/* Names of files and lists of them are texts. Hits are sealed without secrets. Everything else may
 * hold memory of the target, also what is of a fixed size. */
static void record_hide(enum log_record_type type, unsigned char *fixed, size_t fixed_bytes,
			unsigned char *rest, size_t rest_bytes)
{
	const struct log_blob *blob = (const struct log_blob *)fixed;
	uint64_t address = SECRET_SOMEWHERE;

	if (type == LOG_HIT || type == LOG_HIT_BYTES)
		return;
	if (type == LOG_MODULE || type == LOG_IMAGE || type == LOG_HOOK ||
	    (type == LOG_BLOB && (blob->kind == LOG_BLOB_MAPS || blob->kind == LOG_BLOB_PATH ||
				  blob->kind == LOG_BLOB_COMMAND)))
		address = 0;
	else
		secret_hide_sigsafe(fixed, fixed_bytes, address);
	if (type == LOG_BLOB && blob->kind == LOG_BLOB_XSTATE)
		secret_hide_registers_sigsafe(rest, rest_bytes, 16);
	else if (rest_bytes)
		secret_hide_sigsafe(rest, rest_bytes, address);
}

uint64_t log_append_sigsafe(struct log_writer *writer, enum log_record_type type, const void *fixed,
			    size_t fixed_bytes, const void *rest, size_t rest_bytes)
{
	size_t bytes = fixed_bytes + rest_bytes;
	struct log_record head;
	unsigned char *at;

	if (!log_map.header || bytes > LOG_PAYLOAD_MAX)
		return 0;
	at = space_take(writer, log_record_span((uint32_t)bytes));
	if (!at)
		return 0;
	record_head(&head, writer, type, bytes);
	if (fixed_bytes)
		memcpy(at + sizeof(head), fixed, fixed_bytes);
	if (rest_bytes)
		memcpy(at + sizeof(head) + fixed_bytes, rest, rest_bytes);
	record_hide(type, at + sizeof(head), fixed_bytes, at + sizeof(head) + fixed_bytes,
		    rest_bytes);
	record_seal(at, &head);
	writer->blobs += type == LOG_BLOB;
	writer->blocks += type == LOG_BLOCK;
	return head.seq;
}

void log_event_sigsafe(enum log_record_type type, const void *fixed, size_t fixed_bytes)
{
	struct log_writer writer;

	log_writer_init_sigsafe(&writer, LOG_TO_EVENTS);
	(void)log_append_sigsafe(&writer, type, fixed, fixed_bytes, NULL, 0);
}

uint64_t log_begin_sigsafe(struct log_writer *writer, enum log_record_type type, const void *fixed,
			   size_t fixed_bytes)
{
	writer->owner = 0;
	writer->owner = log_append_sigsafe(writer, type, fixed, fixed_bytes, NULL, 0);
	return writer->owner;
}

void log_blob_sigsafe(struct log_writer *writer, enum log_blob_kind kind, unsigned index,
		      uint64_t address, const void *bytes, size_t len)
{
	struct log_blob blob = { .kind = (uint16_t)kind, .index = (uint16_t)index };

	blob.address = address;
	blob.total = len;
	for (blob.offset = 0; blob.offset < len; blob.offset += blob.bytes) {
		size_t left = len - blob.offset;

		blob.bytes = left < LOG_BLOB_CHUNK ? (uint32_t)left : LOG_BLOB_CHUNK;
		if (!log_append_sigsafe(writer, LOG_BLOB, &blob, sizeof(blob),
					(const char *)bytes + blob.offset, blob.bytes))
			return;
	}
}

size_t log_memory_sigsafe(struct log_writer *writer, enum log_blob_kind kind, unsigned index,
			  uint64_t address, size_t len)
{
	struct log_blob blob = { .kind = (uint16_t)kind, .index = (uint16_t)index };
	struct log_record head;
	unsigned char *at;

	if (!log_map.header)
		return 0;
	/* How much is readable is asked first, page by page, so that every piece can say the total.
	 */
	len = memory_readable_sigsafe(address, len);
	blob.address = address;
	blob.total = len;
	for (blob.offset = 0; blob.offset < len; blob.offset += blob.bytes) {
		size_t left = len - blob.offset;

		blob.bytes = left < LOG_BLOB_CHUNK ? (uint32_t)left : LOG_BLOB_CHUNK;
		at = space_take(writer, log_record_span(sizeof(blob) + blob.bytes));
		if (!at)
			return blob.offset;
		record_head(&head, writer, LOG_BLOB, sizeof(blob) + blob.bytes);
		memcpy(at + sizeof(head), &blob, sizeof(blob));
		/* A page that vanishes meanwhile leaves the zeros that are there. */
		(void)memory_read_sigsafe(at + sizeof(head) + sizeof(blob), address + blob.offset,
					  blob.bytes);
		secret_hide_sigsafe(at + sizeof(head) + sizeof(blob), blob.bytes,
				    address + blob.offset);
		record_seal(at, &head);
		writer->blobs++;
	}
	return len;
}
