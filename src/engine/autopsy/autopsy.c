#include "engine/autopsy/autopsy.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arch/arch.h"
#include "arch/operands.h"
#include "base/strbuf.h"
#include "debuginfo/symbols.h"
#include "engine/autopsy/fault.h"
#include "engine/autopsy/logs.h"
#include "engine/autopsy/pointers.h"

#define CRASHES_MAX 16
#define CANDIDATES_MAX 1000
#define RAISED_WITHIN_NS 10000000000u /* a handler that prints a backtrace takes its time */
#define CUTS_MAX 64

struct autopsy {
	struct symbols *symbols;
};

struct autopsy *autopsy_new(void)
{
	struct autopsy *autopsy = mem_alloc(sizeof(*autopsy));

	autopsy->symbols = symbols_new(&(struct symbols_options){ 0 });
	return autopsy;
}

void autopsy_free(struct autopsy *autopsy)
{
	if (!autopsy)
		return;
	symbols_free(autopsy->symbols);
	mem_free(autopsy);
}

/* One crash record with everything that belongs to it, as long as its stack is being made. */
struct body {
	struct event_log *log;
	struct log_item item;
	struct log_crash record;
	struct mappings mappings;
	VEC(struct piece) pieces;
	size_t pieces_owned; /* the first ones; those behind them point into `python` */
	void *stack;
	size_t stack_len;
	uint64_t stack_address;
	struct log_file_size *files;
	size_t file_count;
	struct fault_operands operands; /* empty when the code could not be read */
	void *python;
	struct log_python python_record;
};

static void body_deinit(struct body *body)
{
	for (size_t i = 0; i < body->pieces_owned; i++)
		mem_free((void *)body->pieces.items[i].bytes);
	VEC_DEINIT(&body->pieces);
	mem_free(body->python);
	mem_free(body->stack);
	mem_free(body->files);
	mappings_deinit(&body->mappings);
}

static void add_piece(struct body *body, enum log_blob_kind kind, unsigned int index)
{
	struct piece piece;
	size_t len;

	piece.bytes = event_log_blob(body->log, &body->item, kind, index, &piece.address, &len);
	if (!piece.bytes)
		return;
	piece.len = len;
	VEC_PUSH(&body->pieces, piece);
	body->pieces_owned = body->pieces.count;
}

/* The memory that names the thread's Python frames: many small pieces in one blob. */
static void add_python(struct body *body)
{
	struct log_item item = body->item;
	struct log_kept head;
	size_t len = 0;

	while (log_next_owned(&body->log->reader, body->item.head.seq, &item))
		if (item.head.type == LOG_PYTHON)
			(void)log_payload(&item, &body->python_record, sizeof(body->python_record));
	body->python = event_log_blob(body->log, &body->item, LOG_BLOB_PYTHON, 0, NULL, &len);
	for (size_t at = 0; body->python && len - at > sizeof(head);) {
		struct piece piece = { .bytes = (uint8_t *)body->python + at + sizeof(head) };

		memcpy(&head, (uint8_t *)body->python + at, sizeof(head));
		at += sizeof(head);
		/* Zeros where a part of the blob was lost: what follows cannot be told apart. */
		if (head.bytes == 0 || head.bytes > len - at)
			break;
		piece.address = head.address;
		piece.len = head.bytes;
		VEC_PUSH(&body->pieces, piece);
		at += head.bytes + (-head.bytes & 7);
		if (at > len)
			break;
	}
}

/* Sizes and build-ids that were recorded, so that replaced files are noticed. */
static void complete_mappings(struct body *body)
{
	for (size_t i = 0; i < body->mappings.count; i++) {
		struct mapping *mapping = &body->mappings.items[i];

		for (size_t k = 0; k < body->file_count; k++)
			if (body->files[k].map_low == mapping->start && body->files[k].size > 0)
				mapping->file_size = (uint64_t)body->files[k].size;
		for (size_t k = 0; k < body->log->modules.count; k++) {
			const struct mapping *module = &body->log->modules.items[k];

			if (mapping->start < module->end && module->start < mapping->end) {
				mapping->build_id_len = module->build_id_len;
				memcpy(mapping->build_id, module->build_id, module->build_id_len);
			}
		}
	}
}

static void body_open(struct body *body)
{
	AUTO(mem_freep) char *maps = NULL;
	size_t len;

	body->stack = event_log_blob(body->log, &body->item, LOG_BLOB_STACK, 0,
				     &body->stack_address, &body->stack_len);
	add_piece(body, LOG_BLOB_CODE, 0);
	if (body->pieces.count > 0 && !(body->record.flags & LOG_CRASH_SENT))
		(void)operands_of_fault(body->pieces.items[0].bytes, body->pieces.items[0].len,
					body->pieces.items[0].address,
					body->record.gregs[LOG_GREG_RIP], &body->operands);
	add_piece(body, LOG_BLOB_FAULT_MEMORY, 0);
	for (unsigned int i = 0; i < LOG_GREG_RSP; i++)
		add_piece(body, LOG_BLOB_MEMORY, i);
	add_python(body);
	maps = event_log_blob(body->log, &body->item, LOG_BLOB_MAPS, 0, NULL, &len);
	if (maps)
		(void)mappings_parse(&body->mappings, maps, len);
	body->files = event_log_blob(body->log, &body->item, LOG_BLOB_FILES, 0, NULL, &len);
	body->file_count = body->files ? len / sizeof(body->files[0]) : 0;
	complete_mappings(body);
}

static void unwind_crash(struct autopsy *autopsy, const struct body *body, struct crash *ret)
{
	const struct arch *arch = arch_native();
	struct snapshot snapshot = {
		.pid = (int)body->log->reader.header.pid,
		.tid = (int)body->record.tid,
		.stack = { .address = body->stack_address,
			   .bytes = body->stack,
			   .len = body->stack_len },
		.pieces = body->pieces.items,
		.piece_count = body->pieces.count,
		.python_runtime = body->python_record.runtime,
		.python_version = body->python_record.version,
		.mappings = body->mappings.items,
		.mapping_count = body->mappings.count,
	};

	arch_registers_from_saved(arch, body->record.gregs, 18, &snapshot.registers);
	snapshot.registers.value[arch->thread_pointer] = body->record.fs_base;
	snapshot.registers.known |= 1u << arch->thread_pointer;
	(void)symbols_unwind(autopsy->symbols, &snapshot, &ret->stack, NULL);
}

static void read_owned(struct autopsy *autopsy, struct body *body, enum autopsy_depth depth,
		       struct crash *ret)
{
	AUTO(pointers_deinit)
	struct pointers pointers = { .log = body->log, .operands = &body->operands };
	struct log_item item = body->item;

	ret->cut_short = true;
	while (log_next_owned(&body->log->reader, body->item.head.seq, &item)) {
		struct log_block block;
		struct log_crash_done done;

		if (item.head.type == LOG_BLOCK && log_payload(&item, &block, sizeof(block)) &&
		    (depth == AUTOPSY_WHOLE || block.via == LOG_VIA_FAULT ||
		     block.via == LOG_VIA_POISON)) {
			pointers_note(&pointers, &block);
		} else if (item.head.type == LOG_CRASH_DONE &&
			   log_payload(&item, &done, sizeof(done))) {
			ret->write_us = done.write_ns / 1000;
			ret->cut_short = false;
		}
	}
	if (depth == AUTOPSY_WHOLE)
		pointers_note_former(&pointers);
	pointers_tell(&pointers, autopsy->symbols, ret);
}

/* ---- the crash ---- */

static char *printable(const char *text, size_t len)
{
	AUTO(strbuf_deinit) struct strbuf sb = { 0 };

	strbuf_add_printable(&sb, text, strnlen(text, len));
	return strbuf_take(&sb);
}

static void copy_registers(const struct log_crash *record, struct crash *ret)
{
	for (unsigned int i = 0; i < REGISTER_PLACES; i++) {
		(void)snprintf(ret->registers[i].name, sizeof(ret->registers[i].name), "%s",
			       register_at(i));
		ret->registers[i].value = record->gregs[i];
	}
	ret->register_count = REGISTER_PLACES;
}

static void build_crash(struct autopsy *autopsy, struct event_log *log, const struct log_item *item,
			enum autopsy_depth depth, struct crash *ret)
{
	AUTO(body_deinit) struct body body = { .log = log, .item = *item };

	(void)log_payload(item, &body.record, sizeof(body.record));
	body_open(&body);
	ret->pid = (int)log->reader.header.pid;
	ret->tid = (int)body.record.tid;
	ret->program = log->program ? mem_strdup(log->program) : NULL;
	ret->command = log->command ? mem_strdup(log->command) : NULL;
	ret->thread = printable(body.record.thread_name, sizeof(body.record.thread_name));
	ret->signal = body.record.signo;
	ret->code = body.record.code;
	ret->address = body.record.fault_address;
	ret->from_outside = (body.record.flags & LOG_CRASH_SENT) &&
			    body.record.sender_pid != log->reader.header.pid;
	ret->realtime_ns = body.record.realtime_ns;
	ret->abort_message = event_log_text(log, item, LOG_BLOB_ABORT);
	if (body.operands.instruction[0] != '\0')
		ret->instruction = mem_strdup(body.operands.instruction);
	if (body.operands.origin[0] != '\0')
		ret->origin = mem_strdup(body.operands.origin);
	copy_registers(&body.record, ret);
	unwind_crash(autopsy, &body, ret);
	read_owned(autopsy, &body, depth, ret);
	fault_classify(&(struct fault_facts){ .crash = &body.record,
					      .mappings = &body.mappings,
					      .files = body.files,
					      .file_count = body.file_count },
		       ret);
}

struct candidate {
	struct event_log *log;
	struct log_item item;
	int signal;
	uint64_t follows; /* the crash whose handler led to this one; 0 = none */
	bool final;	  /* the process died of it */
	bool raised;	  /* by the process itself, not by an instruction */
	bool in_handler;  /* while that handler ran: also an abort() in it */
	bool expected;	  /* its signal is what the command died of */
	uint64_t realtime_ns;
};

static int by_importance(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;

	if (x->final != y->final)
		return x->final ? -1 : 1;
	if (x->expected != y->expected)
		return x->expected ? -1 : 1;
	return x->realtime_ns < y->realtime_ns ? -1 : x->realtime_ns > y->realtime_ns;
}

struct candidates {
	VEC(struct candidate) list;
};

static size_t find_candidate(const struct candidates *candidates, const struct event_log *log,
			     uint64_t seq)
{
	size_t i = 0;

	while (i < candidates->list.count && (candidates->list.items[i].log != log ||
					      candidates->list.items[i].item.head.seq != seq))
		i++;
	return i;
}

static void drop_candidate(struct candidates *candidates, size_t index)
{
	if (index < candidates->list.count)
		candidates->list.items[index] = candidates->list.items[--candidates->list.count];
}

/* A fault that the target's own handler took and came back from is ordinary life. */
static void drop_handled(struct candidates *candidates, struct event_log *log)
{
	struct log_item item;

	log_reader_rewind(&log->reader);
	while (log_reader_next(&log->reader, &item)) {
		size_t i = item.head.type == LOG_CRASH_HANDLED
				   ? find_candidate(candidates, log, item.head.owner)
				   : candidates->list.count;

		if (i < candidates->list.count && !candidates->list.items[i].final)
			drop_candidate(candidates, i);
	}
}

/* Python's faulthandler and others take a fault, say something and raise it again. The first one
 * is the crash; the second only says that it was deadly. */
static void drop_raised_again(struct candidates *candidates)
{
	for (size_t i = 0; i < candidates->list.count;) {
		struct candidate *again = &candidates->list.items[i];
		size_t first = again->raised && again->follows != 0
				       ? find_candidate(candidates, again->log, again->follows)
				       : candidates->list.count;

		if (first < candidates->list.count &&
		    (again->in_handler ||
		     (candidates->list.items[first].signal == again->signal &&
		      again->realtime_ns - candidates->list.items[first].realtime_ns <
			      RAISED_WITHIN_NS))) {
			candidates->list.items[first].final |= again->final;
			candidates->list.items[first].expected |= again->expected;
			drop_candidate(candidates, i);
			i = 0;
		} else {
			i++;
		}
	}
}

static void collect(struct event_log *log, int signal, struct candidates *ret)
{
	struct log_item item;

	log_reader_rewind(&log->reader);
	while (log_reader_next(&log->reader, &item)) {
		struct log_crash record;

		if (item.head.type == LOG_CRASH && log_payload(&item, &record, sizeof(record)) &&
		    !(record.flags & LOG_CRASH_LIGHT) && ret->list.count < CANDIDATES_MAX)
			VEC_PUSH(&ret->list,
				 ((struct candidate){
					 .log = log,
					 .item = item,
					 .signal = record.signo,
					 .follows = record.follows,
					 .final = (record.flags & LOG_CRASH_FINAL) != 0,
					 .raised = (record.flags & LOG_CRASH_SENT) &&
						   record.sender_pid == log->reader.header.pid,
					 .in_handler = (record.flags & LOG_CRASH_IN_HANDLER) != 0,
					 .expected = record.signo == signal,
					 .realtime_ns = record.realtime_ns }));
	}
}

int autopsy_trial(struct autopsy *autopsy, int trials, const char *trial, int signal,
		  enum autopsy_depth depth, struct crash_report *ret, struct err *err)
{
	AUTO(event_logs_deinit) struct event_logs logs = { 0 };
	struct candidates candidates = { 0 };
	int r = event_logs_open(trials, trial, &logs, err);

	if (r < 0)
		return r;
	VEC_FOREACH (&logs.list, log)
		collect(log, signal, &candidates);
	/* First: a handler that blocks the signal it raises has returned when it is delivered. */
	drop_raised_again(&candidates);
	VEC_FOREACH (&logs.list, log)
		drop_handled(&candidates, log);
	if (candidates.list.count > 0)
		qsort(candidates.list.items, candidates.list.count,
		      sizeof(candidates.list.items[0]), by_importance);
	for (size_t i = 0; i < candidates.list.count && i < CRASHES_MAX; i++) {
		struct crash crash = { 0 };

		if (depth == AUTOPSY_SITE && i > 0)
			break;
		build_crash(autopsy, candidates.list.items[i].log, &candidates.list.items[i].item,
			    depth, &crash);
		VEC_PUSH(&ret->crashes, crash);
	}
	for (size_t i = 0; i < logs.notes.count; i++)
		strv_add(&ret->notes, logs.notes.items[i]);
	VEC_DEINIT(&candidates.list);
	return 0;
}

/* ---- files made shorter ---- */

static const char *how_text(uint32_t how)
{
	static const char *const names[] = { [LOG_BY_FTRUNCATE] = "ftruncate",
					     [LOG_BY_TRUNCATE] = "truncate",
					     [LOG_BY_OPEN] = "open with O_TRUNC" };

	return how < ARRAY_SIZE(names) && names[how] ? names[how] : "a system call";
}

static int tell_cut(struct autopsy *autopsy, struct event_log *log, const struct log_item *item,
		    const struct log_truncation *record, cut_fn fn, void *ctx, struct err *err)
{
	AUTO(mem_freep) char *path = event_log_text(log, item, LOG_BLOB_PATH);
	size_t stack_len = 0;
	AUTO(mem_freep)
	void *stack = event_log_blob(log, item, LOG_BLOB_STACK, 0, NULL, &stack_len);
	struct file_cut *cut = mem_alloc(sizeof(*cut));
	int r;

	cut->pid = (int)log->reader.header.pid;
	cut->program = mem_strdup(log->program ? log->program : "?");
	cut->how = mem_strdup(how_text(record->how));
	cut->old_size = record->old_size;
	cut->new_size = record->new_size;
	if (stack)
		event_log_unwind_callee(log, &record->registers, stack, stack_len, NULL, 0,
					autopsy->symbols, &cut->stack);
	r = fn(ctx,
	       &(struct cut_seen){ .path = path ? path : "?",
				   .device = record->device,
				   .inode = record->inode,
				   .realtime_ns = record->realtime_ns,
				   .cut = cut },
	       err);
	file_cut_free(cut);
	return r;
}

int autopsy_cuts(struct autopsy *autopsy, int trials, const char *trial, cut_fn fn, void *ctx,
		 struct err *err)
{
	AUTO(event_logs_deinit) struct event_logs logs = { 0 };
	int r = event_logs_open(trials, trial, &logs, err), told = 0;

	if (r < 0)
		return r;
	VEC_FOREACH (&logs.list, log) {
		struct log_item item;

		log_reader_rewind(&log->reader);
		while (r == 0 && told < CUTS_MAX && log_reader_next(&log->reader, &item)) {
			struct log_truncation record;

			if (item.head.type != LOG_TRUNCATION ||
			    !log_payload(&item, &record, sizeof(record)) || record.result != 0 ||
			    record.old_size <= record.new_size)
				continue;
			r = tell_cut(autopsy, log, &item, &record, fn, ctx, err);
			told++;
		}
	}
	return r;
}
