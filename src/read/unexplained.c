#include "read/unexplained.h"

#include <string.h>

#include "arch/store.h"
#include "base/strbuf.h"

static struct said_value caller_of(const struct event_log *log, uint64_t back,
				   struct symbols *symbols)
{
	struct snapshot snapshot = event_log_snapshot(log);
	struct said_value caller = said_none();
	struct stack stack = { 0 };

	symbols_name(symbols, &snapshot, back, 0, &stack);
	if (stack.count > 0)
		caller = said_frame(&stack.frames[0]);
	stack_deinit(&stack);
	return caller;
}

static void tell_call(const struct event_log *log, const struct log_between_call *call,
		      struct symbols *symbols, struct said_list *ret)
{
	SAY_TOO(ret, "between:call", said_text(arch_system_call_name(call->number)),
		call->fd >= 0 ? said_signed(call->fd) : said_none(), said_number(call->bytes),
		said_number(call->buffer), said_number(call->tid),
		caller_of(log, call->caller, symbols));
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
		return "mapping:shared-memory";
	return begins(path, "/dev/") || begins(path, "/sys/") || begins(path, "anon_inode:")
		       ? "mapping:device"
		       : "mapping:file";
}

static struct said_value printable(const char *text, size_t most)
{
	struct strbuf sb = { 0 };

	strbuf_add_printable(&sb, text, strnlen(text, most));
	return said_take(strbuf_take(&sb));
}

static void tell_mapping(const struct log_watch_changed *changed, struct said_list *ret)
{
	char path[sizeof(changed->path) + 1] = { 0 };

	memcpy(path, changed->path, sizeof(changed->path));
	if (!(changed->flags & LOG_BETWEEN_MAPPED))
		return;
	if (changed->flags & LOG_BETWEEN_SHARED)
		SAY_TOO(ret, "between:mapping", said_word(kind_of(path)),
			*path ? printable(path, sizeof(path)) : said_none(),
			said_number(changed->map_offset + (changed->address - changed->map_low)));
	else
		SAY_TOO(ret, "between:private");
}

static void tell_others(const struct log_watch_changed *changed, struct said_list *ret)
{
	uint32_t known = changed->other_count < LOG_BETWEEN_OTHERS ? changed->other_count
								   : LOG_BETWEEN_OTHERS;
	struct said *said;

	if (changed->again != 0)
		SAY_TOO(ret, "between:again", said_number(changed->again));
	if (!(changed->flags & LOG_BETWEEN_LOOKED))
		return;
	said = said_new(ret);
	if (changed->other_count == 0) {
		SAY(said, "between:nobody");
		return;
	}
	SAY(said, "between:others", said_count(changed->other_count - known));
	for (uint32_t i = 0; i < known; i++) {
		struct said other = { 0 };

		SAY(&other, "between:process", said_number(changed->others[i].pid),
		    printable(changed->others[i].name, sizeof(changed->others[i].name)));
		said_add(said, said_part(&other));
	}
}

static void tell_between(const struct event_log *log, const struct log_watch_changed *changed,
			 struct symbols *symbols, struct said_list *ret)
{
	for (uint32_t i = 0; i < changed->call_count && i < LOG_BETWEEN_CALLS; i++)
		tell_call(log, &changed->calls[i], symbols, ret);
	if (changed->call_count > LOG_BETWEEN_CALLS)
		SAY_TOO(ret, "between:more-calls",
			said_number(changed->call_count - LOG_BETWEEN_CALLS));
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
