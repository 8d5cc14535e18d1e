/*
 * What lies in an event log, a line each: "TYPE name=value name="text" …".
 */
#include "studies/debug/dump.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "base/auto.h"
#include "base/fd.h"
#include "base/members.h"
#include "read/log_map.h"
#include "read/logs.h"
#include "wire/log_reader.h"

#define TYPE_NAME(type, name) [LOG_##name] = #name
static const char *const type_names[] = {
	FOR_MEMBERS(TYPE_NAME, , IMAGE, MODULE, THREAD_START, THREAD_END, CONTEXT, CRASH,
		    CRASH_DONE, CRASH_HANDLED, BLOB, BLOCK, VALUE, TRUNCATION, CHECKPOINT, GROWTH,
		    EXEC, EXIT),
	FOR_MEMBERS(TYPE_NAME, , BAD_FREE, UNOBSERVED, MODULE_GONE, PYTHON, PYTHON_STACK,
		    PYTHON_CODE, HOOK, HEAP, HEAP_DAMAGE, ROUND, SWEEP, FENCE, FENCE_ACCESS,
		    FENCE_COUNT, FENCE_END, HOLDER),
	[LOG_HIT] = "KEPT",
	[LOG_HIT_BYTES] = "KEPT_BYTES",
	[LOG_WATCH_CHANGED] = "CHANGED",
};

static const char *type_name(unsigned type)
{
	return type < ARRAY_SIZE(type_names) && type_names[type] ? type_names[type] : "?";
}

void dump_text(struct strbuf *out, const char *name, const void *bytes, size_t len)
{
	const unsigned char *p = bytes;
	size_t i;

	strbuf_addf(out, " %s=\"", name);
	for (i = 0; i < len; i++)
		if (p[i] == 0)
			strbuf_addc(out, ' ');
		else if (p[i] < 32 || p[i] == '"' || p[i] == '\\' || p[i] > 126)
			strbuf_addf(out, "\\x%02x", p[i]);
		else
			strbuf_addc(out, (char)p[i]);
	strbuf_addc(out, '"');
}

static void add_crash(struct strbuf *out, const struct log_reader *log, const struct log_item *item)
{
	static char maps[1 << 20];
	static const char *const names[] = { "r8",  "r9",  "r10", "r11", "r12", "r13",
					     "r14", "r15", "rdi", "rsi", "rbp", "rbx",
					     "rdx", "rax", "rcx", "rsp", "rip" };
	struct log_blob_info info;
	struct log_crash crash;
	unsigned i;

	log_payload(item, &crash, sizeof(crash));
	strbuf_addf(out,
		    " signo=%d code=%d flags=%#x fault=%#" PRIx64 " lane=%u follows=%" PRIu64
		    " action=%u sender=%u",
		    crash.signo, crash.code, crash.flags, crash.fault_address, crash.lane,
		    crash.follows, crash.previous_action, crash.sender_pid);
	dump_text(out, "thread", crash.thread_name,
		  strnlen(crash.thread_name, sizeof(crash.thread_name)));
	for (i = 0; i < ARRAY_SIZE(names); i++)
		strbuf_addf(out, " %s=%#" PRIx64, names[i], crash.gregs[i]);
	if (log_blob_gather(log, item, LOG_BLOB_STACK, 0, maps, sizeof(maps), &info))
		strbuf_addf(out, " stack=%#" PRIx64 "+%" PRIu64 " stack_missing=%" PRIu64,
			    info.address, info.total, info.missing);
	if (log_blob_gather(log, item, LOG_BLOB_MAPS, 0, maps, sizeof(maps), &info))
		strbuf_addf(out, " maps=%" PRIu64 " maps_missing=%" PRIu64, info.total,
			    info.missing);
	if (log_blob_gather(log, item, LOG_BLOB_CODE, 0, maps, sizeof(maps), &info))
		strbuf_addf(out, " code=%#" PRIx64 "+%" PRIu64, info.address, info.total);
	if (log_blob_gather(log, item, LOG_BLOB_ABORT, 0, maps, sizeof(maps), &info))
		dump_text(out, "abort", maps,
			  info.total < sizeof(maps) ? info.total : sizeof(maps));
	if (log_blob_gather(log, item, LOG_BLOB_FILES, 0, maps, sizeof(maps), &info))
		for (i = 0; i + sizeof(struct log_file_size) <= info.total;
		     i += sizeof(struct log_file_size)) {
			struct log_file_size file;

			memcpy(&file, maps + i, sizeof(file));
			if (crash.fault_address - file.map_low < file.map_bytes)
				strbuf_addf(out,
					    " file_size=%" PRId64 " mapped=%" PRIu64
					    " same_file=%u",
					    file.size, file.map_bytes, file.same_file);
		}
	if (log_blob_gather(log, item, LOG_BLOB_THREADS, 0, maps, sizeof(maps), &info))
		strbuf_addf(out, " threads=%" PRIu64, info.total / sizeof(struct log_thread_name));
}

static void add_blob(struct strbuf *out, const struct log_item *item)
{
	struct log_blob blob;
	const void *data;
	size_t bytes;

	log_payload(item, &blob, sizeof(blob));
	data = log_payload_rest(item, sizeof(blob), &bytes);
	strbuf_addf(out, " kind=%u index=%u address=%#" PRIx64 " offset=%" PRIu64 " total=%" PRIu64,
		    blob.kind, blob.index, blob.address, blob.offset, blob.total);
	if (blob.kind == LOG_BLOB_PATH || blob.kind == LOG_BLOB_COMMAND)
		dump_text(out, "text", data, bytes);
}

static void add_block(struct strbuf *out, const struct log_item *item)
{
	struct log_block b;

	log_payload(item, &b, sizeof(b));
	strbuf_addf(out,
		    " via=%u state=%s relation=%u api=%u where=%#" PRIx64 " value=%#" PRIx64
		    " id=%" PRIu64 " start=%#" PRIx64 " size=%" PRIu64
		    " context=%u free_context=%u ordinal=%u",
		    b.via, b.state == LOG_BLOCK_LIVE ? "live" : "freed", b.relation, b.api, b.where,
		    b.value, b.id, b.start, b.size, b.context, b.free_context, b.key.ordinal);
}

static uint64_t word(const uint8_t *bytes)
{
	uint64_t value;

	memcpy(&value, bytes, sizeof(value));
	return value;
}

/* Number, by how it is shown; text of a fixed field; nanoseconds, shown as microseconds. */
enum field_how { FIELD_DECIMAL, FIELD_SIGNED, FIELD_HEX, FIELD_TEXT, FIELD_US };

struct field {
	uint16_t type; /* of the record */
	uint16_t offset, bytes;
	enum field_how how;
	const char *name;
};

#define FIELD_NAMED(type, of, member, how, name)                                                  \
	{                                                                                         \
		type, offsetof(struct of, member), sizeof(((struct of *)0)->member), FIELD_##how, \
			name                                                                      \
	}
/* By their own names. */
#define FIELDS(type, of, how, ...) FOR_MEMBERS(FIELD_OWN, (type, of, how), __VA_ARGS__)
#define FIELD_OWN(record, member) FIELD_OWN_IN(FIELD_RECORD record, member)
#define FIELD_OWN_IN(...) FIELD_OWN_AS(__VA_ARGS__)
#define FIELD_OWN_AS(type, of, how, member) FIELD_NAMED(type, of, member, how, #member)
#define FIELD_RECORD(...) __VA_ARGS__

/* What is shown of a record, in this order. What a number alone does not tell is added by a
 * function of `parts`. */
static const struct field fields[] = {
	FIELDS(LOG_IMAGE, log_image, TEXT, exe),
	FIELDS(LOG_MODULE, log_module, HEX, bias),
	FIELDS(LOG_MODULE, log_module, DECIMAL, build_id_bytes),
	FIELDS(LOG_CONTEXT, log_context_seen, DECIMAL, context, lane),
	FIELD_NAMED(LOG_CONTEXT, log_context_seen, frame_count, DECIMAL, "frames"),
	FIELD_NAMED(LOG_CONTEXT, log_context_seen, stack_bytes, DECIMAL, "stack"),
	FIELD_NAMED(LOG_CRASH_DONE, log_crash_done, write_ns, US, "write_us"),
	FIELDS(LOG_CRASH_DONE, log_crash_done, DECIMAL, blobs, blocks),
	FIELDS(LOG_VALUE, log_value, HEX, where, value),
	FIELDS(LOG_VALUE, log_value, DECIMAL, id, size),
	FIELDS(LOG_TRUNCATION, log_truncation, DECIMAL, how),
	FIELD_NAMED(LOG_TRUNCATION, log_truncation, old_size, SIGNED, "old"),
	FIELD_NAMED(LOG_TRUNCATION, log_truncation, new_size, SIGNED, "new"),
	FIELDS(LOG_TRUNCATION, log_truncation, DECIMAL, inode, context),
	FIELDS(LOG_CHECKPOINT, log_checkpoint, DECIMAL, why),
	FIELDS(LOG_CHECKPOINT, log_checkpoint, SIGNED, fd),
	FIELD_NAMED(LOG_CHECKPOINT, log_checkpoint, realtime_ns, DECIMAL, "realtime"),
	FIELDS(LOG_CHECKPOINT, log_checkpoint, DECIMAL, stream_bytes),
	FIELDS(LOG_EXIT, log_exit, SIGNED, status),
	FIELDS(LOG_EXIT, log_exit, DECIMAL, how),
	FIELDS(LOG_BAD_FREE, log_bad_free, DECIMAL, kind),
	FIELDS(LOG_BAD_FREE, log_bad_free, HEX, pointer),
	FIELDS(LOG_BAD_FREE, log_bad_free, DECIMAL, context, evidence, by),
	FIELDS(LOG_HEAP_DAMAGE, log_heap_damage, DECIMAL, kind, check, context, bytes),
	FIELDS(LOG_HEAP_DAMAGE, log_heap_damage, SIGNED, offset),
	FIELDS(LOG_HEAP_DAMAGE, log_heap_damage, DECIMAL, length, checkpoint, good_checkpoint),
	FIELDS(LOG_ROUND, log_round, DECIMAL, check, whole, live, quarantined),
	FIELD_NAMED(LOG_ROUND, log_round, round_ns, US, "us"),
	FIELDS(LOG_ROUND, log_round, DECIMAL, damages, rounds),
	FIELD_NAMED(LOG_ROUND, log_round, spent_ns, US, "spent_us"),
	FIELDS(LOG_ROUND, log_round, DECIMAL, guarded, passed),
	FIELDS(LOG_FENCE, log_fence, DECIMAL, mode),
	FIELDS(LOG_FENCE, log_fence, SIGNED, trouble),
	FIELDS(LOG_FENCE, log_fence, DECIMAL, calls),
	FIELDS(LOG_FENCE, log_fence, HEX, flags),
	FIELDS(LOG_FENCE, log_fence, DECIMAL, turn, level, bytes, at_once),
	FIELDS(LOG_FENCE_ACCESS, log_fence_access, DECIMAL, number, side, flags, context, tid,
	       call),
	FIELDS(LOG_FENCE_ACCESS, log_fence_access, HEX, address),
	FIELDS(LOG_FENCE_ACCESS, log_fence_access, SIGNED, offset),
	FIELDS(LOG_FENCE_ACCESS, log_fence_access, DECIMAL, length),
	FIELD_NAMED(LOG_FENCE_ACCESS, log_fence_access, gregs[LOG_GREG_RIP], HEX, "rip"),
	FIELDS(LOG_FENCE_COUNT, log_fence_counts, DECIMAL, first),
	FIELDS(LOG_FENCE_END, log_fence_end, DECIMAL, fenced, passed, most, level, accesses,
	       let_through, left_open),
	FIELDS(LOG_SWEEP, log_sweep, DECIMAL, at, blocks, cut_short, context),
	FIELD_NAMED(LOG_SWEEP, log_sweep, read_bytes, DECIMAL, "read"),
	FIELD_NAMED(LOG_SWEEP, log_sweep, sweep_ns, US, "us"),
	FIELDS(LOG_HOLDER, log_holder, DECIMAL, kind),
	FIELD_NAMED(LOG_HOLDER, log_holder, target_id, DECIMAL, "target"),
	FIELDS(LOG_HOLDER, log_holder, HEX, target_start, where, value),
	FIELDS(LOG_HOLDER, log_holder, DECIMAL, id),
	FIELDS(LOG_HOLDER, log_holder, HEX, start),
	FIELDS(LOG_HOLDER, log_holder, DECIMAL, size),
	FIELDS(LOG_PYTHON_STACK, log_python_stack, DECIMAL, context),
	FIELDS(LOG_PYTHON, log_python, HEX, runtime, version),
	FIELDS(LOG_PYTHON, log_python, DECIMAL, frames),
	FIELDS(LOG_HOOK, log_hook, HEX, address, stub),
	FIELDS(LOG_HOOK, log_hook, DECIMAL, state),
	FIELD_NAMED(LOG_HOOK, log_hook, mark_count, DECIMAL, "marks"),
	FIELDS(LOG_HOOK, log_hook, TEXT, label),
	FIELDS(LOG_WATCH_CHANGED, log_watch_changed, DECIMAL, watched, watch),
	FIELDS(LOG_UNOBSERVED, log_unobserved, DECIMAL, why),
};

static int64_t widened(uint64_t value, size_t bytes)
{
	unsigned int unused = 64 - 8 * (unsigned int)bytes;

	return (int64_t)(value << unused) >> unused;
}

static void add_field(struct strbuf *out, const struct field *field, const uint8_t *bytes)
{
	uint64_t value = 0;

	if (field->how == FIELD_TEXT) {
		dump_text(out, field->name, bytes, strnlen((const char *)bytes, field->bytes));
		return;
	}
	memcpy(&value, bytes, field->bytes); /* little-endian, as the log is */
	if (field->how == FIELD_HEX)
		strbuf_addf(out, " %s=%#" PRIx64, field->name, value);
	else if (field->how == FIELD_SIGNED)
		strbuf_addf(out, " %s=%" PRId64, field->name, widened(value, field->bytes));
	else
		strbuf_addf(out, " %s=%" PRIu64, field->name,
			    field->how == FIELD_US ? value / 1000 : value);
}

/* A record that is shorter than its fields, which an older agent may have written, has zeros. */
static void add_fields(struct strbuf *out, const struct log_item *item)
{
	uint8_t bytes[1024] = { 0 };

	_Static_assert(sizeof(struct log_image) <= sizeof(bytes), "longest record");
	memcpy(bytes, item->payload,
	       item->head.bytes < sizeof(bytes) ? item->head.bytes : sizeof(bytes));
	for (size_t i = 0; i < ARRAY_SIZE(fields); i++)
		if (fields[i].type == item->head.type)
			add_field(out, &fields[i], bytes + fields[i].offset);
}

static void add_module(struct strbuf *out, const struct log_item *item)
{
	AUTO(mem_freep) char *path = NULL;
	struct log_module m;

	log_payload(item, &m, sizeof(m));
	strbuf_addf(out, " text=%#" PRIx64 "-%#" PRIx64, m.text_low, m.text_high);
	path = event_log_module_path(item, &m);
	dump_text(out, "path", path, strlen(path));
}

static void add_context(struct strbuf *out, const struct log_item *item)
{
	struct log_context_seen seen;

	log_payload(item, &seen, sizeof(seen));
	strbuf_addf(out, " hash=%016" PRIx64 " pcs=", seen.stack_hash);
	for (unsigned i = 0; i < seen.frame_count && i < LOG_CONTEXT_FRAMES; i++)
		strbuf_addf(out, "%s%#" PRIx64, i ? "," : "", seen.frames[i]);
}

static void add_checkpoint(struct strbuf *out, const struct log_item *item)
{
	struct log_checkpoint point;

	log_payload(item, &point, sizeof(point));
	strbuf_addf(out, " time=%" PRIu64, item->head.time_ns);
	dump_text(out, "text", point.text,
		  point.text_bytes < sizeof(point.text) ? point.text_bytes : sizeof(point.text));
}

static void add_growth(struct strbuf *out, const struct log_item *item)
{
	struct log_growth row;

	for (size_t i = 0; i + sizeof(row) <= item->head.bytes; i += sizeof(row)) {
		memcpy(&row, (const char *)item->payload + i, sizeof(row));
		strbuf_addf(out, " %u:%" PRIu64 "/%" PRIu64, row.context, row.live_blocks,
			    row.live_bytes);
	}
}

static void add_damage(struct strbuf *out, const struct log_item *item)
{
	struct log_heap_damage d;

	log_payload(item, &d, sizeof(d));
	strbuf_addf(out, " found=");
	for (unsigned i = 0; i < d.bytes && i < LOG_DAMAGE_BYTES; i++)
		strbuf_addf(out, "%02x", d.found[i]);
}

static void add_fence_counts(struct strbuf *out, const struct log_item *item)
{
	struct log_fence_counts c;

	log_payload(item, &c, sizeof(c));
	strbuf_addf(out, " counts=");
	for (unsigned i = 0; i < c.count && i < LOG_FENCE_COUNTS; i++)
		strbuf_addf(out, "%s%" PRIu64, i > 0 ? "," : "", c.counts[i]);
}

static void add_python_frames(struct strbuf *out, const struct log_item *item)
{
	const struct log_python_frame *frames;
	struct log_python_stack stack;
	size_t bytes;

	log_payload(item, &stack, sizeof(stack));
	frames = log_payload_rest(item, sizeof(stack), &bytes);
	strbuf_addf(out, " frames=");
	for (unsigned i = 0; i < stack.frame_count && i < bytes / sizeof(frames[0]); i++)
		strbuf_addf(out, "%s%u:%u@%d", i ? "," : "", frames[i].code, frames[i].instruction,
			    (int)frames[i].native);
}

static void add_changed(struct strbuf *out, const struct log_item *item)
{
	struct log_watch_changed changed;

	log_payload(item, &changed, sizeof(changed));
	strbuf_addf(out, " expected=%" PRIu64 " found=%" PRIu64, word(changed.expected),
		    word(changed.found));
}

static const struct {
	uint16_t type;
	void (*add)(struct strbuf *out, const struct log_item *item);
} parts[] = {
	{ LOG_MODULE, add_module },
	{ LOG_CONTEXT, add_context },
	{ LOG_BLOB, add_blob },
	{ LOG_BLOCK, add_block },
	{ LOG_CHECKPOINT, add_checkpoint },
	{ LOG_GROWTH, add_growth },
	{ LOG_HEAP_DAMAGE, add_damage },
	{ LOG_FENCE_COUNT, add_fence_counts },
	{ LOG_PYTHON_STACK, add_python_frames },
	{ LOG_WATCH_CHANGED, add_changed },
};

static void add_item(struct strbuf *out, const struct log_reader *log, const struct log_item *item)
{
	strbuf_addf(out, "%s seq=%" PRIu64 " owner=%" PRIu64 " tid=%u", type_name(item->head.type),
		    item->head.seq, item->head.owner, item->head.tid);
	add_fields(out, item);
	for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
		if (parts[i].type == item->head.type)
			parts[i].add(out, item);
	if (item->head.type == LOG_CRASH)
		add_crash(out, log, item);
	strbuf_addc(out, '\n');
}

static void add_rings(struct strbuf *out, struct log_reader *log)
{
	static const char *const ops[] = { "?", "?", "free", "resize" };
	struct log_ring_cursor cursor;
	struct log_life life;
	uint32_t lane;

	for (lane = 0; lane < log_lane_count(log); lane++) {
		if (!log_ring_begin(log, lane, &cursor))
			continue;
		while (log_ring_next(log, &cursor, &life))
			strbuf_addf(out,
				    "LIFE lane=%u op=%s id=%" PRIu64 " addr=%#" PRIx64
				    " size=%" PRIu64
				    " context=%u free_context=%u ordinal=%u epoch=%u api=%u\n",
				    lane, ops[life.op % 4], life.id, life.start,
				    log_life_size(&life), life.context & LOG_CONTEXT_MASK,
				    life.free_context, life.ordinal, life.epoch, life.api);
	}
}

/* For measuring how well keys hold: what names each block that was freed. */
static void add_keys(struct strbuf *out, struct log_reader *log)
{
	struct log_ring_cursor cursor;
	struct log_context context;
	struct log_life life;
	uint32_t lane;

	for (lane = 0; lane < log_lane_count(log); lane++) {
		if (!log_ring_begin(log, lane, &cursor))
			continue;
		while (log_ring_next(log, &cursor, &life))
			if (life.op == LOG_LIFE_FREE &&
			    log_context_row(log, life.context & LOG_CONTEXT_MASK, &context))
				strbuf_addf(out,
					    "KEY hash=%016" PRIx64
					    " lane=%u ordinal=%u size=%" PRIu64 "\n",
					    context.stack_hash, context.lane, life.ordinal,
					    log_life_size(&life));
	}
}

static void add_contexts(struct strbuf *out, struct log_reader *log)
{
	struct log_context c;
	uint32_t row;

	for (row = 1; row < log_context_count(log); row++)
		if (log_context_row(log, row, &c))
			strbuf_addf(out,
				    "ROW context=%u hash=%016" PRIx64 " lane=%u allocs=%" PRIu64
				    " frees=%" PRIu64 " bytes=%" PRIu64 "\n",
				    row, c.stack_hash, c.lane, c.allocs,
				    c.frees_own + c.frees_other,
				    c.alloc_bytes - c.free_bytes_own - c.free_bytes_other);
}

static void add_watch(struct strbuf *out, struct log_reader *log)
{
	struct log_writer_row writer;
	struct log_watched watched;
	struct log_watch_row w;
	uint32_t i;

	for (i = 0; i < LOG_WATCHES; i++)
		if (log_watch_row(log, i, &w))
			strbuf_addf(out,
				    "WATCH number=%u mode=%u kernel=%u trouble=%d objects=%" PRIu64
				    " armed=%" PRIu64 " displaced=%" PRIu64 " hits=%" PRIu64
				    " matched=%" PRIu64 " unchanged=%" PRIu64 " imprecise=%" PRIu64
				    " late=%" PRIu64 " yielded=%" PRIu64 " let_go=%" PRIu64 "\n",
				    i, w.mode, w.kernel_writes, w.trouble, w.objects, w.armed,
				    w.displaced, w.hits, w.matched, w.unchanged, w.imprecise,
				    w.late, w.yielded, w.let_go);
	for (i = 0; i < LOG_WRITERS; i++)
		if (log_writer_row(log, i, &writer))
			strbuf_addf(out,
				    "WRITER watch=%u alongside=%d rip=%#" PRIx64 " count=%" PRIu64
				    " changed=%" PRIu64 " first=%" PRIu64 " last=%" PRIu64
				    " value=%" PRIu64 "\n",
				    LOG_WRITER_WATCH(writer.watch),
				    (writer.watch & LOG_WRITER_ALONGSIDE) != 0, writer.rip,
				    writer.count, writer.changed, writer.first_hit, writer.last_hit,
				    writer.values[0]);
	for (i = 0; i < LOG_WATCHED; i++)
		if (log_watched(log, i, &watched))
			strbuf_addf(out,
				    "WATCHED number=%" PRIu64 " address=%#" PRIx64 " id=%" PRIu64
				    " size=%" PRIu64 " end=%u hits=%" PRIu64 " first=%" PRIu64
				    " last=%" PRIu64 " seen=%" PRIu64 "\n",
				    watched.number, watched.address, watched.id, watched.size,
				    watched.end, watched.hits, watched.first_value,
				    watched.last_value, watched.last_seen);
	for (i = 0; i < LOG_HITS; i++) {
		const struct log_hit *hit = log_hit(log, i);
		struct log_hit_block block = { 0 };
		struct log_last last;

		if (!hit)
			continue;
		if (!log_hit_block(log, hit->number, &block))
			block.len = 0;
		strbuf_addf(out,
			    "HIT number=%" PRIu64 " watch=%u flags=%#x watched=%" PRIu64
			    " id=%" PRIu64 " tid=%u old=%" PRIu64 " new=%" PRIu64 " rip=%#" PRIx64
			    " stack=%u code=%u owner=%" PRIu64 " known=%d block=%u nth=%" PRIu64
			    "\n",
			    hit->number, hit->watch, hit->flags, hit->watched, hit->id, hit->tid,
			    word(hit->old), word(hit->new), (uint64_t)hit->gregs[LOG_GREG_RIP],
			    hit->stack_bytes, hit->code_bytes, hit->owners[0].id,
			    log_last(log, hit->address, &last), block.len, block.nth);
	}
	strbuf_addf(out, "WATCH_DAMAGE hits=%" PRIu64 "\n", log->damage.hits);
}

static const char *trust_name(uint32_t trust)
{
	static const char *const names[] = { "none", "watched", "used", "left" };

	return trust < ARRAY_SIZE(names) ? names[trust] : "?";
}

static void add_header(struct strbuf *out, const struct log_reader *log)
{
	const struct log_header *h = &log->header;
	unsigned i;

	strbuf_addf(
		out,
		"HEADER pid=%u ppid=%u image=%u observer=%u state=%u retired=%u forked=%u contexts=%" PRIu64
		" threads=%" PRIu64 " forwarded=%" PRIu64 " next_id=%" PRIu64 " id_base=%" PRIu64
		" exited=%u status=%d holds=%" PRIu64 " held_ns=%" PRIu64 " libc_cache=%s drops=",
		h->pid, h->ppid, h->image, h->observer, h->state, h->retired, h->forked,
		h->contexts_used, h->threads_seen, h->forwarded_faults, h->next_id, h->id_base,
		h->exited, (int)h->exit_status, h->chaos_holds, h->chaos_held_ns,
		trust_name(h->libc_cache));
	for (i = 0; i < LOG_DROP_COUNT; i++)
		strbuf_addf(out, "%s%" PRIu64, i ? "," : "", h->drops[i]);
	strbuf_addc(out, '\n');
}

static void add_log(struct strbuf *out, struct log_reader *log, unsigned int sections)
{
	struct log_item item;

	add_header(out, log);
	while (log_reader_next(log, &item))
		add_item(out, log, &item);
	if (sections & DUMP_RINGS)
		add_rings(out, log);
	if (sections & DUMP_KEYS)
		add_keys(out, log);
	if (sections & DUMP_CONTEXTS)
		add_contexts(out, log);
	if (sections & DUMP_WATCH)
		add_watch(out, log);
	strbuf_addf(out,
		    "DAMAGE headers=%" PRIu64 " records=%" PRIu64 " bytes=%" PRIu64
		    " incomplete=%" PRIu64 " ring=%" PRIu64 " rows=%" PRIu64 "\n",
		    log->damage.headers, log->damage.records, log->damage.record_bytes,
		    log->damage.incomplete, log->damage.ring_records, log->damage.context_rows);
}

int dump_log(const char *path, unsigned int sections, struct strbuf *out, struct err *err)
{
	AUTO(fd_closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	enum log_read_result result;
	struct log_reader log;
	struct stat st;
	const void *bytes;

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_set_errno(err, -errno, "cannot read '%s'", path);
	bytes = st.st_size > 0 ? log_map(fd, (size_t)st.st_size) : NULL;
	if (!bytes && st.st_size > 0)
		return err_set_errno(err, -errno, "cannot read '%s'", path);
	result = log_reader_init(&log, bytes, (size_t)st.st_size);
	if (result == LOG_READ_OK)
		add_log(out, &log, sections);
	if (bytes)
		(void)munmap((void *)bytes, (size_t)st.st_size);
	if (result != LOG_READ_OK)
		return err_set(err, -EINVAL, "'%s': %s", path, log_read_result_text(result));
	return 0;
}
