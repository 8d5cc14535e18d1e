/*
 * Prints an event log as text, one record per line: for tests and for looking at a log by hand.
 *
 *	dump_log FILE             records, counters, damage
 *	dump_log --rings FILE     and the history rings
 *	dump_log --contexts FILE  and the context rows
 *	dump_log --watch FILE     and what was watched and caught
 *	dump_log --keys FILE      one line per block that was freed, in the rings: "hash lane
 *	                          ordinal size"
 */
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

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
	[LOG_HOLDER] = "HOLDER",
	[LOG_HIT] = "KEPT",
	[LOG_WATCH_CHANGED] = "CHANGED",
};

static const char *type_name(unsigned type)
{
	return type < sizeof(type_names) / sizeof(type_names[0]) && type_names[type]
		       ? type_names[type]
		       : "?";
}

static void print_text(const char *name, const void *bytes, size_t len)
{
	const unsigned char *p = bytes;
	size_t i;

	printf(" %s=\"", name);
	for (i = 0; i < len; i++)
		if (p[i] == 0)
			putchar(' ');
		else if (p[i] < 32 || p[i] == '"' || p[i] == '\\' || p[i] > 126)
			printf("\\x%02x", p[i]);
		else
			putchar(p[i]);
	putchar('"');
}

static void print_crash(const struct log_reader *log, const struct log_item *item)
{
	static char maps[1 << 20];
	static const char *const names[] = { "r8",  "r9",  "r10", "r11", "r12", "r13",
					     "r14", "r15", "rdi", "rsi", "rbp", "rbx",
					     "rdx", "rax", "rcx", "rsp", "rip" };
	struct log_blob_info info;
	struct log_crash crash;
	unsigned i;

	log_payload(item, &crash, sizeof(crash));
	printf(" signo=%d code=%d flags=%#x fault=%#" PRIx64
	       " lane=%u thread=%.16s follows=%" PRIu64 " action=%u sender=%u",
	       crash.signo, crash.code, crash.flags, crash.fault_address, crash.lane,
	       crash.thread_name, crash.follows, crash.previous_action, crash.sender_pid);
	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		printf(" %s=%#" PRIx64, names[i], crash.gregs[i]);
	if (log_blob_gather(log, item, LOG_BLOB_STACK, 0, maps, sizeof(maps), &info))
		printf(" stack=%#" PRIx64 "+%" PRIu64 " stack_missing=%" PRIu64, info.address,
		       info.total, info.missing);
	if (log_blob_gather(log, item, LOG_BLOB_MAPS, 0, maps, sizeof(maps), &info))
		printf(" maps=%" PRIu64 " maps_missing=%" PRIu64, info.total, info.missing);
	if (log_blob_gather(log, item, LOG_BLOB_CODE, 0, maps, sizeof(maps), &info))
		printf(" code=%#" PRIx64 "+%" PRIu64, info.address, info.total);
	if (log_blob_gather(log, item, LOG_BLOB_ABORT, 0, maps, sizeof(maps), &info))
		print_text("abort", maps, info.total < sizeof(maps) ? info.total : sizeof(maps));
	if (log_blob_gather(log, item, LOG_BLOB_FILES, 0, maps, sizeof(maps), &info))
		for (i = 0; i + sizeof(struct log_file_size) <= info.total;
		     i += sizeof(struct log_file_size)) {
			struct log_file_size file;

			memcpy(&file, maps + i, sizeof(file));
			if (crash.fault_address - file.map_low < file.map_bytes)
				printf(" file_size=%" PRId64 " mapped=%" PRIu64 " same_file=%u",
				       file.size, file.map_bytes, file.same_file);
		}
	if (log_blob_gather(log, item, LOG_BLOB_THREADS, 0, maps, sizeof(maps), &info))
		printf(" threads=%" PRIu64, info.total / sizeof(struct log_thread_name));
}

static void print_blob(const struct log_item *item)
{
	struct log_blob blob;
	const void *data;
	size_t bytes;

	log_payload(item, &blob, sizeof(blob));
	data = log_payload_rest(item, sizeof(blob), &bytes);
	printf(" kind=%u index=%u address=%#" PRIx64 " offset=%" PRIu64 " total=%" PRIu64,
	       blob.kind, blob.index, blob.address, blob.offset, blob.total);
	if (blob.kind == LOG_BLOB_PATH || blob.kind == LOG_BLOB_COMMAND)
		print_text("text", data, bytes);
}

static void print_block(const struct log_item *item)
{
	struct log_block b;

	log_payload(item, &b, sizeof(b));
	printf(" via=%u state=%s relation=%u api=%u where=%#" PRIx64 " value=%#" PRIx64
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

static void print_item(const struct log_reader *log, const struct log_item *item)
{
	printf("%s seq=%" PRIu64 " owner=%" PRIu64 " tid=%u", type_name(item->head.type),
	       item->head.seq, item->head.owner, item->head.tid);
	switch (item->head.type) {
	case LOG_IMAGE: {
		struct log_image image;

		log_payload(item, &image, sizeof(image));
		printf(" exe=%.240s", image.exe);
		break;
	}
	case LOG_MODULE: {
		struct log_module m;

		log_payload(item, &m, sizeof(m));
		printf(" bias=%#" PRIx64 " text=%#" PRIx64 "-%#" PRIx64
		       " build_id_bytes=%u path=%.200s",
		       m.bias, m.text_low, m.text_high, m.build_id_bytes, m.path);
		break;
	}
	case LOG_CONTEXT: {
		struct log_context_seen seen;

		log_payload(item, &seen, sizeof(seen));
		printf(" hash=%016" PRIx64 " context=%u lane=%u frames=%u stack=%u",
		       seen.stack_hash, seen.context, seen.lane, seen.frame_count,
		       seen.stack_bytes);
		printf(" pcs=");
		for (unsigned i = 0; i < seen.frame_count && i < LOG_CONTEXT_FRAMES; i++)
			printf("%s%#" PRIx64, i ? "," : "", seen.frames[i]);
		break;
	}
	case LOG_CRASH:
		print_crash(log, item);
		break;
	case LOG_CRASH_DONE: {
		struct log_crash_done done;

		log_payload(item, &done, sizeof(done));
		printf(" write_us=%" PRIu64 " blobs=%u blocks=%u", done.write_ns / 1000, done.blobs,
		       done.blocks);
		break;
	}
	case LOG_BLOB:
		print_blob(item);
		break;
	case LOG_VALUE: {
		struct log_value v;

		if (log_payload(item, &v, sizeof(v)))
			printf(" where=0x%" PRIx64 " value=0x%" PRIx64 " id=%" PRIu64
			       " size=%" PRIu64,
			       v.where, v.value, v.id, v.size);
		break;
	}
	case LOG_BLOCK:
		print_block(item);
		break;
	case LOG_TRUNCATION: {
		struct log_truncation cut;

		log_payload(item, &cut, sizeof(cut));
		printf(" how=%u old=%" PRId64 " new=%" PRId64 " inode=%" PRIu64 " context=%u",
		       cut.how, cut.old_size, cut.new_size, cut.inode, cut.context);
		break;
	}
	case LOG_CHECKPOINT: {
		struct log_checkpoint point;

		log_payload(item, &point, sizeof(point));
		printf(" why=%u fd=%d time=%" PRIu64 " realtime=%" PRIu64 " stream_bytes=%" PRIu64,
		       point.why, point.fd, item->head.time_ns, point.realtime_ns,
		       point.stream_bytes);
		print_text("text", point.text,
			   point.text_bytes < sizeof(point.text) ? point.text_bytes
								 : sizeof(point.text));
		break;
	}
	case LOG_GROWTH: {
		struct log_growth row;
		size_t i;

		for (i = 0; i + sizeof(row) <= item->head.bytes; i += sizeof(row)) {
			memcpy(&row, (const char *)item->payload + i, sizeof(row));
			printf(" %u:%" PRIu64 "/%" PRIu64, row.context, row.live_blocks,
			       row.live_bytes);
		}
		break;
	}
	case LOG_EXIT: {
		struct log_exit e;

		log_payload(item, &e, sizeof(e));
		printf(" status=%d how=%u", (int)e.status, e.how);
		break;
	}
	case LOG_BAD_FREE: {
		struct log_bad_free bad;

		log_payload(item, &bad, sizeof(bad));
		printf(" kind=%u pointer=%#" PRIx64 " context=%u evidence=%u by=%u", bad.kind,
		       bad.pointer, bad.context, bad.evidence, bad.by);
		break;
	}
	case LOG_HEAP_DAMAGE: {
		struct log_heap_damage d;
		unsigned i;

		log_payload(item, &d, sizeof(d));
		printf(" kind=%u check=%u context=%u bytes=%u offset=%" PRId64 " length=%" PRIu64
		       " checkpoint=%" PRIu64 " good_checkpoint=%" PRIu64 " found=",
		       d.kind, d.check, d.context, d.bytes, d.offset, d.length, d.checkpoint,
		       d.good_checkpoint);
		for (i = 0; i < d.bytes && i < LOG_DAMAGE_BYTES; i++)
			printf("%02x", d.found[i]);
		break;
	}
	case LOG_ROUND: {
		struct log_round r;

		log_payload(item, &r, sizeof(r));
		printf(" check=%u whole=%u live=%" PRIu64 " quarantined=%" PRIu64 " us=%" PRIu64
		       " damages=%" PRIu64 " rounds=%" PRIu64 " spent_us=%" PRIu64
		       " guarded=%" PRIu64 " passed=%" PRIu64,
		       r.check, r.whole, r.live, r.quarantined, r.round_ns / 1000, r.damages,
		       r.rounds, r.spent_ns / 1000, r.guarded, r.passed);
		break;
	}
	case LOG_SWEEP: {
		struct log_sweep s;

		log_payload(item, &s, sizeof(s));
		printf(" at=%u blocks=%u cut_short=%u context=%u read=%" PRIu64 " us=%" PRIu64,
		       s.at, s.blocks, s.cut_short, s.context, s.read_bytes, s.sweep_ns / 1000);
		break;
	}
	case LOG_HOLDER: {
		struct log_holder h;

		log_payload(item, &h, sizeof(h));
		printf(" kind=%u target=%" PRIu64 " target_start=%#" PRIx64 " where=%#" PRIx64
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
		printf(" context=%u frames=", stack.context);
		for (unsigned i = 0; i < stack.frame_count && i < bytes / sizeof(frames[0]); i++)
			printf("%s%u:%u@%d", i ? "," : "", frames[i].code, frames[i].instruction,
			       (int)frames[i].native);
		break;
	}
	case LOG_PYTHON: {
		struct log_python python;

		log_payload(item, &python, sizeof(python));
		printf(" runtime=%#" PRIx64 " version=%#" PRIx64 " frames=%u", python.runtime,
		       python.version, python.frames);
		break;
	}
	case LOG_HOOK: {
		struct log_hook hook;

		log_payload(item, &hook, sizeof(hook));
		printf(" address=%#" PRIx64 " stub=%#" PRIx64 " state=%u marks=%u", hook.address,
		       hook.stub, hook.state, hook.mark_count);
		print_text("label", hook.label, strnlen(hook.label, sizeof(hook.label)));
		break;
	}
	case LOG_WATCH_CHANGED: {
		struct log_watch_changed changed;

		log_payload(item, &changed, sizeof(changed));
		printf(" watched=%" PRIu64 " watch=%u expected=%" PRIu64 " found=%" PRIu64,
		       changed.watched, changed.watch, word(changed.expected), word(changed.found));
		break;
	}
	case LOG_UNOBSERVED: {
		struct log_unobserved u;

		log_payload(item, &u, sizeof(u));
		printf(" why=%u", u.why);
		break;
	}
	default:
		break;
	}
	putchar('\n');
}

static void print_rings(struct log_reader *log)
{
	static const char *const ops[] = { "?", "?", "free", "resize" };
	struct log_ring_cursor cursor;
	struct log_life life;
	uint32_t lane;

	for (lane = 0; lane < log_lane_count(log); lane++) {
		if (!log_ring_begin(log, lane, &cursor))
			continue;
		while (log_ring_next(log, &cursor, &life))
			printf("LIFE lane=%u op=%s id=%" PRIu64 " addr=%#" PRIx64 " size=%" PRIu64
			       " context=%u free_context=%u ordinal=%u epoch=%u api=%u\n",
			       lane, ops[life.op % 4], life.id, life.start, log_life_size(&life),
			       life.context & LOG_CONTEXT_MASK, life.free_context, life.ordinal,
			       life.epoch, life.api);
	}
}

/* For measuring how well keys hold: of every block that was freed. */
static void print_keys(struct log_reader *log)
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
				printf("%016" PRIx64 " %u %u %" PRIu64 "\n", context.stack_hash,
				       context.lane, life.ordinal, log_life_size(&life));
	}
}

static void print_contexts(struct log_reader *log)
{
	struct log_context c;
	uint32_t row;

	for (row = 1; row < log_context_count(log); row++)
		if (log_context_row(log, row, &c))
			printf("ROW context=%u hash=%016" PRIx64 " lane=%u allocs=%" PRIu64
			       " frees=%" PRIu64 " bytes=%" PRIu64 "\n",
			       row, c.stack_hash, c.lane, c.allocs, c.frees_own + c.frees_other,
			       c.alloc_bytes - c.free_bytes_own - c.free_bytes_other);
}

static void print_watch(struct log_reader *log)
{
	struct log_writer_row writer;
	struct log_watched watched;
	struct log_watch_row w;
	uint32_t i;

	for (i = 0; i < LOG_WATCHES; i++)
		if (log_watch_row(log, i, &w))
			printf("WATCH number=%u mode=%u kernel=%u trouble=%d objects=%" PRIu64
			       " armed=%" PRIu64 " displaced=%" PRIu64 " hits=%" PRIu64
			       " matched=%" PRIu64 " unchanged=%" PRIu64 " imprecise=%" PRIu64
			       " late=%" PRIu64 " yielded=%" PRIu64 "\n",
			       i, w.mode, w.kernel_writes, w.trouble, w.objects, w.armed,
			       w.displaced, w.hits, w.matched, w.unchanged, w.imprecise, w.late,
			       w.yielded);
	for (i = 0; i < LOG_WRITERS; i++)
		if (log_writer_row(log, i, &writer))
			printf("WRITER watch=%u alongside=%d rip=%#" PRIx64 " count=%" PRIu64
			       " changed=%" PRIu64 " first=%" PRIu64 " last=%" PRIu64
			       " value=%" PRIu64 "\n",
			       LOG_WRITER_WATCH(writer.watch),
			       (writer.watch & LOG_WRITER_ALONGSIDE) != 0, writer.rip, writer.count,
			       writer.changed, writer.first_hit, writer.last_hit, writer.values[0]);
	for (i = 0; i < LOG_WATCHED; i++)
		if (log_watched(log, i, &watched))
			printf("WATCHED number=%" PRIu64 " address=%#" PRIx64 " id=%" PRIu64
			       " size=%" PRIu64 " end=%u hits=%" PRIu64 " first=%" PRIu64
			       " last=%" PRIu64 " seen=%" PRIu64 "\n",
			       watched.number, watched.address, watched.id, watched.size,
			       watched.end, watched.hits, watched.first_value, watched.last_value,
			       watched.last_seen);
	for (i = 0; i < LOG_HITS; i++) {
		const struct log_hit *hit = log_hit(log, i);
		struct log_last last;

		if (!hit)
			continue;
		printf("HIT number=%" PRIu64 " watch=%u flags=%#x watched=%" PRIu64 " id=%" PRIu64
		       " tid=%u old=%" PRIu64 " new=%" PRIu64 " rip=%#" PRIx64
		       " stack=%u code=%u owner=%" PRIu64 " known=%d\n",
		       hit->number, hit->watch, hit->flags, hit->watched, hit->id, hit->tid,
		       word(hit->old), word(hit->new), (uint64_t)hit->gregs[LOG_GREG_RIP],
		       hit->stack_bytes, hit->code_bytes, hit->owners[0].id,
		       log_last(log, hit->address, &last));
	}
	printf("WATCH_DAMAGE hits=%" PRIu64 "\n", log->damage.hits);
}

static void print_header(const struct log_reader *log)
{
	const struct log_header *h = &log->header;
	unsigned i;

	printf("HEADER pid=%u ppid=%u image=%u observer=%u state=%u retired=%u forked=%u contexts=%" PRIu64
	       " threads=%" PRIu64 " forwarded=%" PRIu64 " next_id=%" PRIu64 " id_base=%" PRIu64
	       " exited=%u status=%d holds=%" PRIu64 " held_ns=%" PRIu64 " drops=",
	       h->pid, h->ppid, h->image, h->observer, h->state, h->retired, h->forked,
	       h->contexts_used, h->threads_seen, h->forwarded_faults, h->next_id, h->id_base,
	       h->exited, (int)h->exit_status, h->chaos_holds, h->chaos_held_ns);
	for (i = 0; i < LOG_DROP_COUNT; i++)
		printf("%s%" PRIu64, i ? "," : "", h->drops[i]);
	putchar('\n');
}

int main(int argc, char **argv)
{
	const char *mode = argc > 2 ? argv[1] : "", *path = argv[argc - 1];
	enum log_read_result result;
	struct log_reader log;
	struct log_item item;
	struct stat stat;
	void *bytes;
	int fd;

	fd = argc > 1 ? open(path, O_RDONLY) : -1;
	if (fd < 0 || fstat(fd, &stat) || !stat.st_size)
		return 2;
	bytes = mmap(NULL, (size_t)stat.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (bytes == MAP_FAILED)
		return 2;
	result = log_reader_init(&log, bytes, (size_t)stat.st_size);
	if (result != LOG_READ_OK) {
		fprintf(stderr, "%s: %s\n", path, log_read_result_text(result));
		return 1;
	}
	if (!strcmp(mode, "--keys")) {
		print_keys(&log);
		return 0;
	}
	print_header(&log);
	while (log_reader_next(&log, &item))
		print_item(&log, &item);
	if (!strcmp(mode, "--rings"))
		print_rings(&log);
	if (!strcmp(mode, "--contexts"))
		print_contexts(&log);
	if (!strcmp(mode, "--watch"))
		print_watch(&log);
	printf("DAMAGE headers=%" PRIu64 " records=%" PRIu64 " bytes=%" PRIu64
	       " incomplete=%" PRIu64 " ring=%" PRIu64 " rows=%" PRIu64 "\n",
	       log.damage.headers, log.damage.records, log.damage.record_bytes,
	       log.damage.incomplete, log.damage.ring_records, log.damage.context_rows);
	return 0;
}
