#include "agent/watch/unexplained_changes.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <time.h>

#include "agent/arch/x86_64.h"
#include "agent/core/clock.h"
#include "agent/core/maps.h"
#include "agent/core/text.h"
#include "agent/core/thread.h"
#include "agent/watch/watch_state.h"

#define CALLS_KEPT 64u
#define LOOKS_MOST 4u	    /* for other processes: it takes some milliseconds */
#define OTHERS_LOOKED 1024u /* processes of the machine that are looked at, at most */

bool unexplained_notes_calls;

/* A call and the object that it filled. Two threads may tear one: then its number is 0. */
struct change_note {
	uint64_t watched; /* atomic, written last; 0: torn, or none */
	uint64_t hits;	  /* of that object, when it was filled */
	struct log_between_call call;
};

static struct change_note notes[CALLS_KEPT];
static uint32_t note_count; /* atomic */
static uint32_t looks;	    /* atomic */

static struct {
	uint32_t taken; /* atomic: by one thread at a time; who comes second tells less */
	struct maps_buffer maps;
	_Alignas(8) char entries[4096];
} scratch;

static void note_write(const struct watch_armed *armed, uint64_t number,
		       const struct log_between_call *call)
{
	struct change_note *note =
		&notes[__atomic_fetch_add(&note_count, 1, __ATOMIC_RELAXED) % CALLS_KEPT];

	__atomic_store_n(&note->watched, 0, __ATOMIC_RELAXED);
	__atomic_thread_fence(__ATOMIC_RELEASE);
	note->hits = __atomic_load_n(&armed->row->hits, __ATOMIC_RELAXED);
	note->call = *call;
	__atomic_store_n(&note->watched, number, __ATOMIC_RELEASE);
}

/* What libc copied there had its hit. */
static bool unlike_last(const struct watch_armed *armed)
{
	uint64_t words[WATCH_WORDS] = { 0 };

	return watch_read_sigsafe(words, armed->address, armed->bytes) &&
	       memcmp(words, armed->last, sizeof(words)) != 0;
}

void unexplained_note_sigsafe(uint32_t number, int fd, const void *buffer, size_t bytes,
			      const void *caller)
{
	struct log_between_call call = { .buffer = (uint64_t)buffer,
					 .bytes = bytes,
					 .caller = (uint64_t)caller,
					 .number = number,
					 .fd = fd };
	unsigned i;

	for (i = 0; watch_state.area && i < WATCH_ARMED_MAX; i++) {
		const struct watch_armed *armed = &watch_state.armed[i];
		uint64_t object = __atomic_load_n(&armed->number, __ATOMIC_ACQUIRE);

		if (!object || armed->address >= call.buffer + bytes ||
		    call.buffer >= armed->address + armed->bytes || !unlike_last(armed))
			continue;
		call.time_ns = clock_ns_sigsafe(CLOCK_MONOTONIC);
		call.tid = thread_self ? thread_self->tid : (uint32_t)raw_syscall0(SYS_gettid);
		note_write(armed, object, &call);
	}
}

/* Newest first. */
static void calls_fill(uint64_t hits, struct log_watch_changed *changed)
{
	uint32_t end = __atomic_load_n(&note_count, __ATOMIC_RELAXED), i;

	for (i = 0; i < CALLS_KEPT && i < end; i++) {
		const struct change_note *note = &notes[(end - 1 - i) % CALLS_KEPT];
		struct log_between_call call = note->call;

		__atomic_thread_fence(__ATOMIC_ACQUIRE);
		if (__atomic_load_n(&note->watched, __ATOMIC_RELAXED) != changed->watched ||
		    note->hits != hits)
			continue;
		if (changed->call_count < LOG_BETWEEN_CALLS)
			changed->calls[changed->call_count] = call;
		changed->call_count++;
	}
}

/* The file, and the part of it, that the watched bytes are. */
struct change_part {
	uint64_t device, inode, offset, page;
};

static bool has_part(const struct maps_line *line, const struct change_part *part)
{
	return line->inode == part->inode && line->device == part->device &&
	       part->offset - line->offset < line->high - line->low;
}

static bool mapping_fill(struct log_watch_changed *changed, struct change_part *ret)
{
	struct maps_walk walk;
	struct maps_line line;
	struct text path;

	if (!maps_begin_sigsafe(&walk, &scratch.maps))
		return false;
	while (maps_next_sigsafe(&walk, &line)) {
		if (changed->address - line.low >= line.high - line.low)
			continue;
		changed->flags |= LOG_BETWEEN_MAPPED | (line.shared ? LOG_BETWEEN_SHARED : 0);
		changed->map_low = line.low;
		changed->map_high = line.high;
		changed->map_offset = line.offset;
		text_begin(&path, changed->path, sizeof(changed->path));
		text_add(&path, line.path);
		ret->device = line.device;
		ret->inode = line.inode;
		ret->page = line.low;
		ret->offset = line.offset + (changed->address - line.low);
		break;
	}
	maps_end_sigsafe(&walk);
	return changed->flags & LOG_BETWEEN_SHARED;
}

/* Where the process that `path` tells of can write to the part; 0: nowhere. `apart`: not this one.
 */
static uint64_t mapped_at(const char *path, const struct change_part *part, uint64_t apart)
{
	struct maps_walk walk;
	struct maps_line line;
	uint64_t found = 0;

	if (!maps_begin_at_sigsafe(&walk, &scratch.maps, path))
		return 0;
	while (!found && maps_next_sigsafe(&walk, &line))
		if (line.shared && line.writable && line.low != apart && has_part(&line, part))
			found = line.low + (part->offset - line.offset);
	maps_end_sigsafe(&walk);
	return found;
}

static void name_read(const char *pid, char *to, size_t room)
{
	char path[48];
	struct text text;

	text_begin(&text, path, sizeof(path));
	text_add(&text, "/proc/");
	text_add(&text, pid);
	text_add(&text, "/comm");
	if (maps_text_sigsafe(path, to, room))
		to[strcspn(to, "\n")] = 0;
}

static void other_look(const char *pid, const struct change_part *part,
		       struct log_watch_changed *changed)
{
	const char *at = pid;
	uint64_t number = text_number(&at, pid + strlen(pid), 10);
	struct log_between_other *other;
	char path[48];
	struct text text;

	if (*at || !number || number == agent.pid)
		return;
	text_begin(&text, path, sizeof(path));
	text_add(&text, "/proc/");
	text_add(&text, pid);
	text_add(&text, "/maps");
	if (!mapped_at(path, part, 0))
		return;
	if (changed->other_count < LOG_BETWEEN_OTHERS) {
		other = &changed->others[changed->other_count];
		other->pid = (uint32_t)number;
		name_read(pid, other->name, sizeof(other->name));
	}
	changed->other_count++;
}

static void others_look(const struct change_part *part, struct log_watch_changed *changed)
{
	long fd =
		raw_syscall4(SYS_openat, AT_FDCWD, "/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	uint32_t seen = 0;
	long got, at;

	if (fd < 0)
		return;
	changed->flags |= LOG_BETWEEN_LOOKED;
	while (seen < OTHERS_LOOKED && (got = raw_syscall3(SYS_getdents64, fd, scratch.entries,
							   sizeof(scratch.entries))) > 0) {
		for (at = 0; at < got; seen++) {
			const struct dirent64 *entry = (const void *)(scratch.entries + at);

			other_look(entry->d_name, part, changed);
			at += entry->d_reclen;
		}
	}
	(void)raw_syscall1(SYS_close, fd);
}

void unexplained_look_sigsafe(uint64_t hits, struct log_watch_changed *changed)
{
	struct change_part part = { 0 };

	calls_fill(hits, changed);
	if (__atomic_exchange_n(&scratch.taken, 1, __ATOMIC_ACQUIRE))
		return;
	if (__atomic_fetch_add(&looks, 1, __ATOMIC_RELAXED) < LOOKS_MOST &&
	    mapping_fill(changed, &part)) {
		changed->again = mapped_at("/proc/self/maps", &part, part.page);
		others_look(&part, changed);
	}
	__atomic_store_n(&scratch.taken, 0, __ATOMIC_RELEASE);
}
