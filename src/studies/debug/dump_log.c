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
#include "read/log_map.h"
#include "read/logs.h"
#include "wire/log_reader.h"

static const char *const type_names[] = {
	[LOG_IMAGE] = "IMAGE",
	[LOG_MODULE] = "MODULE",
	[LOG_THREAD_START] = "THREAD_START",
	[LOG_THREAD_END] = "THREAD_END",
	[LOG_CONTEXT] = "CONTEXT",
	[LOG_CRASH] = "CRASH",
	[LOG_CRASH_DONE] = "CRASH_DONE",
	[LOG_CRASH_HANDLED] = "CRASH_HANDLED",
	[LOG_BLOB] = "BLOB",
	[LOG_BLOCK] = "BLOCK",
	[LOG_VALUE] = "VALUE",
	[LOG_TRUNCATION] = "TRUNCATION",
	[LOG_CHECKPOINT] = "CHECKPOINT",
	[LOG_GROWTH] = "GROWTH",
	[LOG_EXEC] = "EXEC",
	[LOG_EXIT] = "EXIT",
	[LOG_BAD_FREE] = "BAD_FREE",
	[LOG_UNOBSERVED] = "UNOBSERVED",
	[LOG_MODULE_GONE] = "MODULE_GONE",
	[LOG_PYTHON] = "PYTHON",
	[LOG_PYTHON_STACK] = "PYTHON_STACK",
	[LOG_PYTHON_CODE] = "PYTHON_CODE",
	[LOG_HOOK] = "HOOK",
	[LOG_HEAP] = "HEAP",
	[LOG_HEAP_DAMAGE] = "HEAP_DAMAGE",
	[LOG_ROUND] = "ROUND",
	[LOG_SWEEP] = "SWEEP",
	[LOG_FENCE] = "FENCE",
	[LOG_FENCE_ACCESS] = "FENCE_ACCESS",
	[LOG_FENCE_COUNT] = "FENCE_COUNT",
	[LOG_FENCE_END] = "FENCE_END",
	[LOG_HOLDER] = "HOLDER",
	[LOG_HIT] = "KEPT",
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

static void add_item(struct strbuf *out, const struct log_reader *log, const struct log_item *item)
{
	strbuf_addf(out, "%s seq=%" PRIu64 " owner=%" PRIu64 " tid=%u", type_name(item->head.type),
		    item->head.seq, item->head.owner, item->head.tid);
	switch (item->head.type) {
	case LOG_IMAGE: {
		struct log_image image;

		log_payload(item, &image, sizeof(image));
		dump_text(out, "exe", image.exe, strnlen(image.exe, sizeof(image.exe)));
		break;
	}
	case LOG_MODULE: {
		AUTO(mem_freep) char *path = NULL;
		struct log_module m;

		log_payload(item, &m, sizeof(m));
		strbuf_addf(out,
			    " bias=%#" PRIx64 " text=%#" PRIx64 "-%#" PRIx64 " build_id_bytes=%u",
			    m.bias, m.text_low, m.text_high, m.build_id_bytes);
		path = event_log_module_path(item, &m);
		dump_text(out, "path", path, strlen(path));
		break;
	}
	case LOG_CONTEXT: {
		struct log_context_seen seen;

		log_payload(item, &seen, sizeof(seen));
		strbuf_addf(out, " hash=%016" PRIx64 " context=%u lane=%u frames=%u stack=%u",
			    seen.stack_hash, seen.context, seen.lane, seen.frame_count,
			    seen.stack_bytes);
		strbuf_addf(out, " pcs=");
		for (unsigned i = 0; i < seen.frame_count && i < LOG_CONTEXT_FRAMES; i++)
			strbuf_addf(out, "%s%#" PRIx64, i ? "," : "", seen.frames[i]);
		break;
	}
	case LOG_CRASH:
		add_crash(out, log, item);
		break;
	case LOG_CRASH_DONE: {
		struct log_crash_done done;

		log_payload(item, &done, sizeof(done));
		strbuf_addf(out, " write_us=%" PRIu64 " blobs=%u blocks=%u", done.write_ns / 1000,
			    done.blobs, done.blocks);
		break;
	}
	case LOG_BLOB:
		add_blob(out, item);
		break;
	case LOG_VALUE: {
		struct log_value v;

		if (log_payload(item, &v, sizeof(v)))
			strbuf_addf(out,
				    " where=0x%" PRIx64 " value=0x%" PRIx64 " id=%" PRIu64
				    " size=%" PRIu64,
				    v.where, v.value, v.id, v.size);
		break;
	}
	case LOG_BLOCK:
		add_block(out, item);
		break;
	case LOG_TRUNCATION: {
		struct log_truncation cut;

		log_payload(item, &cut, sizeof(cut));
		strbuf_addf(out,
			    " how=%u old=%" PRId64 " new=%" PRId64 " inode=%" PRIu64 " context=%u",
			    cut.how, cut.old_size, cut.new_size, cut.inode, cut.context);
		break;
	}
	case LOG_CHECKPOINT: {
		struct log_checkpoint point;

		log_payload(item, &point, sizeof(point));
		strbuf_addf(out,
			    " why=%u fd=%d time=%" PRIu64 " realtime=%" PRIu64
			    " stream_bytes=%" PRIu64,
			    point.why, point.fd, item->head.time_ns, point.realtime_ns,
			    point.stream_bytes);
		dump_text(out, "text", point.text,
			  point.text_bytes < sizeof(point.text) ? point.text_bytes
								: sizeof(point.text));
		break;
	}
	case LOG_GROWTH: {
		struct log_growth row;
		size_t i;

		for (i = 0; i + sizeof(row) <= item->head.bytes; i += sizeof(row)) {
			memcpy(&row, (const char *)item->payload + i, sizeof(row));
			strbuf_addf(out, " %u:%" PRIu64 "/%" PRIu64, row.context, row.live_blocks,
				    row.live_bytes);
		}
		break;
	}
	case LOG_EXIT: {
		struct log_exit e;

		log_payload(item, &e, sizeof(e));
		strbuf_addf(out, " status=%d how=%u", (int)e.status, e.how);
		break;
	}
	case LOG_BAD_FREE: {
		struct log_bad_free bad;

		log_payload(item, &bad, sizeof(bad));
		strbuf_addf(out, " kind=%u pointer=%#" PRIx64 " context=%u evidence=%u by=%u",
			    bad.kind, bad.pointer, bad.context, bad.evidence, bad.by);
		break;
	}
	case LOG_HEAP_DAMAGE: {
		struct log_heap_damage d;
		unsigned i;

		log_payload(item, &d, sizeof(d));
		strbuf_addf(out,
			    " kind=%u check=%u context=%u bytes=%u offset=%" PRId64
			    " length=%" PRIu64 " checkpoint=%" PRIu64 " good_checkpoint=%" PRIu64
			    " found=",
			    d.kind, d.check, d.context, d.bytes, d.offset, d.length, d.checkpoint,
			    d.good_checkpoint);
		for (i = 0; i < d.bytes && i < LOG_DAMAGE_BYTES; i++)
			strbuf_addf(out, "%02x", d.found[i]);
		break;
	}
	case LOG_ROUND: {
		struct log_round r;

		log_payload(item, &r, sizeof(r));
		strbuf_addf(out,
			    " check=%u whole=%u live=%" PRIu64 " quarantined=%" PRIu64
			    " us=%" PRIu64 " damages=%" PRIu64 " rounds=%" PRIu64
			    " spent_us=%" PRIu64 " guarded=%" PRIu64 " passed=%" PRIu64,
			    r.check, r.whole, r.live, r.quarantined, r.round_ns / 1000, r.damages,
			    r.rounds, r.spent_ns / 1000, r.guarded, r.passed);
		break;
	}
	case LOG_FENCE: {
		struct log_fence f;

		log_payload(item, &f, sizeof(f));
		strbuf_addf(out,
			    " mode=%u trouble=%d calls=%u flags=%#x turn=%u level=%u bytes=%" PRIu64
			    " at_once=%" PRIu64,
			    f.mode, f.trouble, f.calls, f.flags, f.turn, f.level, f.bytes,
			    f.at_once);
		break;
	}
	case LOG_FENCE_ACCESS: {
		struct log_fence_access a;

		log_payload(item, &a, sizeof(a));
		strbuf_addf(
			out,
			" number=%u side=%u flags=%u context=%u tid=%u call=%u address=%#" PRIx64
			" offset=%" PRId64 " length=%" PRIu64 " rip=%#" PRIx64,
			a.number, a.side, a.flags, a.context, a.tid, a.call, a.address, a.offset,
			a.length, a.gregs[LOG_GREG_RIP]);
		break;
	}
	case LOG_FENCE_COUNT: {
		struct log_fence_counts c;
		unsigned i;

		log_payload(item, &c, sizeof(c));
		strbuf_addf(out, " first=%u counts=", c.first);
		for (i = 0; i < c.count && i < LOG_FENCE_COUNTS; i++)
			strbuf_addf(out, "%s%" PRIu64, i > 0 ? "," : "", c.counts[i]);
		break;
	}
	case LOG_FENCE_END: {
		struct log_fence_end e;

		log_payload(item, &e, sizeof(e));
		strbuf_addf(out,
			    " fenced=%" PRIu64 " passed=%" PRIu64 " most=%" PRIu64
			    " level=%u accesses=%u let_through=%" PRIu64 " left_open=%" PRIu64,
			    e.fenced, e.passed, e.most, e.level, e.accesses, e.let_through,
			    e.left_open);
		break;
	}
	case LOG_SWEEP: {
		struct log_sweep s;

		log_payload(item, &s, sizeof(s));
		strbuf_addf(out,
			    " at=%u blocks=%u cut_short=%u context=%u read=%" PRIu64 " us=%" PRIu64,
			    s.at, s.blocks, s.cut_short, s.context, s.read_bytes,
			    s.sweep_ns / 1000);
		break;
	}
	case LOG_HOLDER: {
		struct log_holder h;

		log_payload(item, &h, sizeof(h));
		strbuf_addf(out,
			    " kind=%u target=%" PRIu64 " target_start=%#" PRIx64 " where=%#" PRIx64
			    " value=%#" PRIx64 " id=%" PRIu64 " start=%#" PRIx64 " size=%" PRIu64,
			    h.kind, h.target_id, h.target_start, h.where, h.value, h.id, h.start,
			    h.size);
		break;
	}
	case LOG_PYTHON_STACK: {
		struct log_python_stack stack;
		size_t bytes;
		const struct log_python_frame *frames;

		log_payload(item, &stack, sizeof(stack));
		frames = log_payload_rest(item, sizeof(stack), &bytes);
		strbuf_addf(out, " context=%u frames=", stack.context);
		for (unsigned i = 0; i < stack.frame_count && i < bytes / sizeof(frames[0]); i++)
			strbuf_addf(out, "%s%u:%u@%d", i ? "," : "", frames[i].code,
				    frames[i].instruction, (int)frames[i].native);
		break;
	}
	case LOG_PYTHON: {
		struct log_python python;

		log_payload(item, &python, sizeof(python));
		strbuf_addf(out, " runtime=%#" PRIx64 " version=%#" PRIx64 " frames=%u",
			    python.runtime, python.version, python.frames);
		break;
	}
	case LOG_HOOK: {
		struct log_hook hook;

		log_payload(item, &hook, sizeof(hook));
		strbuf_addf(out, " address=%#" PRIx64 " stub=%#" PRIx64 " state=%u marks=%u",
			    hook.address, hook.stub, hook.state, hook.mark_count);
		dump_text(out, "label", hook.label, strnlen(hook.label, sizeof(hook.label)));
		break;
	}
	case LOG_WATCH_CHANGED: {
		struct log_watch_changed changed;

		log_payload(item, &changed, sizeof(changed));
		strbuf_addf(out,
			    " watched=%" PRIu64 " watch=%u expected=%" PRIu64 " found=%" PRIu64,
			    changed.watched, changed.watch, word(changed.expected),
			    word(changed.found));
		break;
	}
	case LOG_UNOBSERVED: {
		struct log_unobserved u;

		log_payload(item, &u, sizeof(u));
		strbuf_addf(out, " why=%u", u.why);
		break;
	}
	default:
		break;
	}
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
				    " late=%" PRIu64 " yielded=%" PRIu64 "\n",
				    i, w.mode, w.kernel_writes, w.trouble, w.objects, w.armed,
				    w.displaced, w.hits, w.matched, w.unchanged, w.imprecise,
				    w.late, w.yielded);
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
		struct log_last last;

		if (!hit)
			continue;
		strbuf_addf(out,
			    "HIT number=%" PRIu64 " watch=%u flags=%#x watched=%" PRIu64
			    " id=%" PRIu64 " tid=%u old=%" PRIu64 " new=%" PRIu64 " rip=%#" PRIx64
			    " stack=%u code=%u owner=%" PRIu64 " known=%d\n",
			    hit->number, hit->watch, hit->flags, hit->watched, hit->id, hit->tid,
			    word(hit->old), word(hit->new), (uint64_t)hit->gregs[LOG_GREG_RIP],
			    hit->stack_bytes, hit->code_bytes, hit->owners[0].id,
			    log_last(log, hit->address, &last));
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
	AUTO(fd_closep) int fd = open(path, O_RDONLY | O_CLOEXEC);
	enum log_read_result result;
	struct log_reader log;
	struct stat st;
	const void *bytes;

	if (fd < 0 || fstat(fd, &st) < 0)
		return err_errno(err, -errno, "cannot read '%s'", path);
	bytes = st.st_size > 0 ? log_map(fd, (size_t)st.st_size) : NULL;
	if (!bytes && st.st_size > 0)
		return err_errno(err, -errno, "cannot read '%s'", path);
	result = log_reader_init(&log, bytes, (size_t)st.st_size);
	if (result == LOG_READ_OK)
		add_log(out, &log, sections);
	if (bytes)
		(void)munmap((void *)bytes, (size_t)st.st_size);
	if (result != LOG_READ_OK)
		return err_set(err, -EINVAL, "'%s': %s", path, log_read_result_text(result));
	return 0;
}
