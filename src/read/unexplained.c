#include "read/unexplained.h"

#include <inttypes.h>
#include <string.h>

#include "arch/store.h"
#include "base/strbuf.h"

static void add_caller(struct strbuf *sb, const struct event_log *log, uint64_t back,
		       struct symbols *symbols)
{
	struct snapshot snapshot = { .pid = (int)log->reader.header.pid,
				     .since_ns = log->reader.header.start_realtime_ns,
				     .mappings = log->modules.items,
				     .mapping_count = log->modules.count };
	struct stack stack = { 0 };

	symbols_name(symbols, &snapshot, back, 0, &stack);
	if (stack.count > 0) {
		strbuf_adds(sb, ", called from ");
		frame_describe(&stack.frames[0], sb);
	}
	stack_deinit(&stack);
}

static void tell_call(const struct event_log *log, const struct log_between_call *call,
		      struct symbols *symbols, struct strv *ret)
{
	const char *name = arch_system_call_name(call->number);
	AUTO(strbuf_deinit) struct strbuf sb = { 0 };

	strbuf_addf(&sb, "%s ", name ? name : "a system call");
	if (call->fd >= 0)
		strbuf_addf(&sb, "from descriptor %d ", call->fd);
	strbuf_addf(&sb, "put %" PRIu64 " bytes at 0x%" PRIx64 ", thread %u", call->bytes,
		    call->buffer, call->tid);
	add_caller(&sb, log, call->caller, symbols);
	strv_take(ret, strbuf_take(&sb));
}

static bool begins(const char *path, const char *with)
{
	return strncmp(path, with, strlen(with)) == 0;
}

/* As /proc/PID/maps writes them. */
static const char *kind_of(const char *path)
{
	if (!*path || begins(path, "/dev/zero") || begins(path, "/SYSV") ||
	    begins(path, "/memfd:") || begins(path, "/dev/shm/"))
		return "shared memory";
	return begins(path, "/dev/") || begins(path, "/sys/") || begins(path, "anon_inode:")
		       ? "a device's memory"
		       : "a shared mapping of a file";
}

static void tell_mapping(const struct log_watch_changed *changed, struct strv *ret)
{
	AUTO(strbuf_deinit) struct strbuf sb = { 0 };
	char path[sizeof(changed->path) + 1] = { 0 };

	memcpy(path, changed->path, sizeof(changed->path));
	if (!(changed->flags & LOG_BETWEEN_MAPPED))
		return;
	if (!(changed->flags & LOG_BETWEEN_SHARED)) {
		strbuf_adds(&sb, "it lies in memory of this process alone");
		strv_take(ret, strbuf_take(&sb));
		return;
	}
	strbuf_addf(&sb, "it lies in %s", kind_of(path));
	if (*path) {
		strbuf_adds(&sb, ": ");
		strbuf_add_printable(&sb, path, strlen(path));
		strbuf_addf(&sb, " at offset 0x%" PRIx64,
			    changed->map_offset + (changed->address - changed->map_low));
	}
	strv_take(ret, strbuf_take(&sb));
}

static void tell_others(const struct log_watch_changed *changed, struct strv *ret)
{
	AUTO(strbuf_deinit) struct strbuf sb = { 0 };
	uint32_t known = changed->other_count < LOG_BETWEEN_OTHERS ? changed->other_count
								   : LOG_BETWEEN_OTHERS;

	if (changed->again != 0)
		strv_take(ret,
			  mem_printf("this process has it mapped for writing at 0x%" PRIx64 ", too",
				     changed->again));
	if (!(changed->flags & LOG_BETWEEN_LOOKED))
		return;
	if (changed->other_count == 0) {
		strv_take(ret, mem_strdup("when it was found changed, no other process that could "
					  "be looked at had it mapped for writing"));
		return;
	}
	strbuf_adds(&sb, "mapped for writing by process ");
	for (uint32_t i = 0; i < known; i++) {
		const char *name = changed->others[i].name;

		strbuf_addf(&sb, "%s%u (", i == 0 ? "" : ", ", changed->others[i].pid);
		strbuf_add_printable(&sb, name, strnlen(name, sizeof(changed->others[i].name)));
		strbuf_addc(&sb, ')');
	}
	if (changed->other_count > known)
		strbuf_addf(&sb, " and %u more", changed->other_count - known);
	strv_take(ret, strbuf_take(&sb));
}

static void tell_between(const struct event_log *log, const struct log_watch_changed *changed,
			 struct symbols *symbols, struct strv *ret)
{
	for (uint32_t i = 0; i < changed->call_count && i < LOG_BETWEEN_CALLS; i++)
		tell_call(log, &changed->calls[i], symbols, ret);
	if (changed->call_count > LOG_BETWEEN_CALLS)
		strv_take(ret, mem_printf("%u more system calls that filled it",
					  changed->call_count - LOG_BETWEEN_CALLS));
	tell_mapping(changed, ret);
	tell_others(changed, ret);
}

/* ---- the change --------------------------------------------------------------------------------
 */

/* A hit that came with or after it, and that left what was found, explains it. One that was found
 * alongside another counts if that store covered it. */
bool change_explained(const struct trial_hits *log, const struct event_log *in,
		      const struct log_watch_changed *changed, struct symbols *symbols)
{
	VEC_FOREACH (&log->hits, caught) {
		const struct log_hit *hit = caught->hit;

		if (caught->log != in || hit->watched != changed->watched ||
		    memcmp(hit->new, changed->found, sizeof(hit->new)) != 0)
			continue;
		if (!(hit->flags & LOG_HIT_ALONGSIDE) || hit_covers(caught, symbols))
			return true;
	}
	return false;
}

static bool find_watched(const struct event_log *log, uint64_t number, struct log_watched *ret)
{
	return log_watched(&log->reader, (uint32_t)(number % LOG_WATCHED), ret) &&
	       ret->number == number;
}

struct outside_change *unexplained_tell(struct event_log *in,
					const struct log_watch_changed *changed,
					struct symbols *symbols)
{
	struct outside_change *change = mem_alloc(sizeof(*change));
	struct log_watch_row row = { 0 };
	struct log_watched watched;

	(void)log_watch_row(&in->reader, changed->watch, &row);
	*change = (struct outside_change){
		.home = { .kind = HOME_ADDRESS,
			  .address = changed->address,
			  .len = changed->bytes },
		.old = watched_word(changed->expected, changed->bytes),
		.new = watched_word(changed->found, changed->bytes),
		.value_len = changed->bytes < 8 ? changed->bytes : 8,
		.kernel_writes = row.kernel_writes != 0,
		.gap = row.yielded != LOG_YIELDED_NOT,
	};
	tell_between(in, changed, symbols, &change->between);
	if (find_watched(in, changed->watched, &watched) && watched.id != 0) {
		change->home.kind = HOME_BLOCK;
		change->home.block_id = watched.id;
		change->home.key = event_log_key(in, &watched.key, 0);
		change->home.offset = (int64_t)(watched.address - watched.start);
		change->victim = hit_block(in, &watched, symbols);
	}
	return change;
}

struct outside_change *unexplained_find(const struct trial_hits *log, struct event_log *in,
					uint64_t number, uint64_t value, unsigned int len,
					struct symbols *symbols)
{
	uint64_t mask = len == 0 || len >= 8 ? UINT64_MAX : (1ull << len * 8) - 1;
	struct outside_change *found = NULL;
	struct log_item item;

	log_reader_rewind(&in->reader);
	while (!found && log_reader_next(&in->reader, &item)) {
		struct log_watch_changed changed;

		if (item.head.type == LOG_WATCH_CHANGED &&
		    log_payload(&item, &changed, sizeof(changed)) && changed.watched == number &&
		    changed.watch < LOG_WATCHES && changed.bytes <= LOG_WATCH_BYTES &&
		    ((watched_word(changed.found, changed.bytes) ^ value) & mask) == 0 &&
		    !change_explained(log, in, &changed, symbols))
			found = unexplained_tell(in, &changed, symbols);
	}
	return found;
}
