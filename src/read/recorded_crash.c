#include "read/recorded_crash.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "arch/arch.h"

#define DATA_PIECES 4u
#define CANDIDATES_MAX 1000
#define RAISED_WITHIN_NS 10000000000u /* a handler that prints a backtrace takes its time */
#define GREGS_NAMED 18u		      /* of the kernel's list, those that are registers */
#define GREG_TRAPNO 20u
#define LAST_WORDS_NS 10000000000u /* what its other threads may still write */
#define TRAP_BREAKPOINT 3u	   /* int3: the instruction pointer is behind it */

static int by_importance(const void *a, const void *b)
{
	const struct crash_place *x = a, *y = b;

	if (x->final != y->final)
		return x->final ? -1 : 1;
	if (x->expected != y->expected)
		return x->expected ? -1 : 1;
	return x->realtime_ns < y->realtime_ns ? -1 : x->realtime_ns > y->realtime_ns;
}

static size_t find_place(const struct crash_places *places, const struct event_log *log,
			 uint64_t seq)
{
	size_t i = 0;

	while (i < places->list.count &&
	       (places->list.items[i].log != log || places->list.items[i].item.head.seq != seq))
		i++;
	return i;
}

static void drop_place(struct crash_places *places, size_t index)
{
	if (index < places->list.count)
		places->list.items[index] = places->list.items[--places->list.count];
}

/* abort() raises its signal, and when that was ignored or the handler comes back it ends the
 * process without asking again. */
static bool is_abort(const struct crash_places *places, size_t index)
{
	const struct crash_place *place = &places->list.items[index];

	if (place->signal != SIGABRT || !place->raised || !place->expected)
		return false;
	for (size_t i = 0; i < places->list.count; i++) {
		const struct crash_place *other = &places->list.items[i];

		if (other->log == place->log &&
		    (other->final || other->item.head.seq > place->item.head.seq))
			return false;
	}
	return true;
}

/* A handler that made the fault look like a call, in a process that then ended by itself and not by
 * libc's exit. `signal`: what the command died of. */
static bool is_called_end(const struct crash_place *place, const struct log_item *handled,
			  int signal)
{
	struct log_crash_diverted to;
	struct log_crash crash;

	return (signal == 0 || place->expected) && !place->log->reader.header.exited &&
	       log_payload(&place->item, &crash, sizeof(crash)) && handled->head.bytes > 0 &&
	       log_payload(handled, &to, sizeof(to)) && log_crash_called(&crash, &to);
}

/* A fault that the target's own handler took and came back from is ordinary life. */
static void drop_handled(struct crash_places *places, struct event_log *log, int signal)
{
	struct log_item item;

	log_reader_rewind(&log->reader);
	while (log_reader_next(&log->reader, &item)) {
		size_t i = item.head.type == LOG_CRASH_HANDLED
				   ? find_place(places, log, item.head.owner)
				   : places->list.count;

		if (i < places->list.count && !places->list.items[i].final &&
		    !is_abort(places, i) && !is_called_end(&places->list.items[i], &item, signal))
			drop_place(places, i);
	}
}

/* Python's faulthandler and others take a fault, say something and raise it again. The first one
 * is the crash; the second only says that it was deadly. */
static void drop_raised_again(struct crash_places *places)
{
	for (size_t i = 0; i < places->list.count;) {
		struct crash_place *again = &places->list.items[i];
		size_t first = again->raised && again->follows != 0
				       ? find_place(places, again->log, again->follows)
				       : places->list.count;

		if (first < places->list.count &&
		    (again->in_handler ||
		     (places->list.items[first].signal == again->signal &&
		      again->realtime_ns - places->list.items[first].realtime_ns <
			      RAISED_WITHIN_NS))) {
			if (again->final)
				places->list.items[first].ended_by = again->signal;
			places->list.items[first].final |= again->final;
			places->list.items[first].expected |= again->expected;
			drop_place(places, i);
			i = 0;
		} else {
			i++;
		}
	}
}

/* A thread that met another fault, and not in the handler of this one, has come out of that. */
static bool was_survived(const struct crash_places *places, const struct crash_place *place)
{
	return VEC_ANY(&places->list, other,
		       other->log == place->log && other->tid == place->tid && !other->in_handler &&
			       other->item.head.seq > place->item.head.seq);
}

static void drop_survived(struct crash_places *places)
{
	for (size_t i = 0; i < places->list.count;) {
		if (!places->list.items[i].final && was_survived(places, &places->list.items[i]))
			drop_place(places, i);
		else
			i++;
	}
}

static void collect(struct event_log *log, int signal, struct crash_places *ret)
{
	struct log_item item;

	log_reader_rewind(&log->reader);
	while (log_reader_next(&log->reader, &item)) {
		struct log_crash record;

		if (item.head.type == LOG_CRASH && log_payload(&item, &record, sizeof(record)) &&
		    ret->list.count < CANDIDATES_MAX)
			VEC_PUSH(&ret->list,
				 ((struct crash_place){
					 .log = log,
					 .item = item,
					 .signal = record.signo,
					 .tid = record.tid,
					 .ended_by = record.signo,
					 .follows = record.follows,
					 .final = (record.flags & LOG_CRASH_FINAL) != 0,
					 .raised = (record.flags & LOG_CRASH_SENT) &&
						   record.sender_pid == log->reader.header.pid,
					 .in_handler = (record.flags & LOG_CRASH_IN_HANDLER) != 0,
					 .expected = record.signo == signal,
					 .realtime_ns = record.realtime_ns }));
	}
}

void crash_places_find(struct event_logs *logs, int signal, struct crash_places *ret)
{
	VEC_FOREACH (&logs->list, log)
		collect(log, signal, ret);
	/* First: a handler that blocks the signal it raises has returned when it is delivered. */
	drop_raised_again(ret);
	drop_survived(ret);
	VEC_FOREACH (&logs->list, log)
		drop_handled(ret, log, signal);
	VEC_SORT(&ret->list, by_importance);
}

void crash_places_deinit(struct crash_places *places)
{
	VEC_DEINIT(&places->list);
}

void crash_record_deinit(struct crash_record *record)
{
	for (size_t i = 0; i < record->pieces_owned; i++)
		mem_free((void *)record->pieces.items[i].bytes);
	VEC_DEINIT(&record->pieces);
	python_memory_deinit(&record->python);
	mem_free(record->stack);
	mem_free(record->files);
	mappings_deinit(&record->mappings);
}

static void add_piece(struct crash_record *record, enum log_blob_kind kind, unsigned int index)
{
	struct piece piece;
	size_t len;

	piece.bytes =
		blob_read(&record->log->reader, &record->item, kind, index, &piece.address, &len);
	if (!piece.bytes)
		return;
	piece.len = len;
	VEC_PUSH(&record->pieces, piece);
	record->pieces_owned = record->pieces.count;
}

/* Sizes and build-ids that were recorded, so that replaced files are noticed. */
static void complete_mappings(struct crash_record *record)
{
	for (size_t i = 0; i < record->mappings.count; i++) {
		struct mapping *mapping = &record->mappings.items[i];

		for (size_t k = 0; k < record->file_count; k++)
			if (record->files[k].map_low == mapping->start && record->files[k].size > 0)
				mapping->file_size = (uint64_t)record->files[k].size;
		for (size_t k = 0; k < record->log->modules.count; k++) {
			const struct mapping *module = &record->log->modules.items[k];

			if (mapping->start < module->end && module->start < mapping->end) {
				mapping->build_id_len = module->build_id_len;
				memcpy(mapping->build_id, module->build_id, module->build_id_len);
			}
		}
	}
}

/* The instruction that it is about. */
static uint64_t record_rip(const struct crash_record *record)
{
	bool behind = record->raw.signo == SIGTRAP && !(record->raw.flags & LOG_CRASH_SENT) &&
		      record->raw.gregs[GREG_TRAPNO] == TRAP_BREAKPOINT;

	return record->raw.gregs[LOG_GREG_RIP] - behind;
}

/* A record in short form has no mappings: those of the latest before it that has. */
static char *earlier_maps(struct crash_record *record, size_t *ret_len)
{
	struct log_item item, before = { 0 };

	log_reader_rewind(&record->log->reader);
	while (log_reader_next(&record->log->reader, &item)) {
		struct log_crash other;

		if (item.head.type == LOG_CRASH && log_payload(&item, &other, sizeof(other)) &&
		    !(other.flags & LOG_CRASH_LIGHT) && item.head.seq < record->item.head.seq &&
		    item.head.seq > before.head.seq)
			before = item;
	}
	return before.head.seq == 0
		       ? NULL
		       : blob_read(&record->log->reader, &before, LOG_BLOB_MAPS, 0, NULL, ret_len);
}

static void crash_record_fill(struct crash_record *record)
{
	AUTO(mem_freep) char *maps = NULL;
	struct registers registers = { 0 };
	size_t len;

	arch_registers_from_saved(arch_native(), record->raw.gregs, GREGS_NAMED, &registers);
	record->stack = blob_read(&record->log->reader, &record->item, LOG_BLOB_STACK,
				  LOG_STACK_INNER, &record->stack_address, &record->stack_len);
	add_piece(record, LOG_BLOB_CODE, 0);
	if (record->pieces.count > 0)
		event_log_unpatch(record->log, record->pieces.items[0].address,
				  (uint8_t *)record->pieces.items[0].bytes,
				  record->pieces.items[0].len);
	if (record->pieces.count > 0 && !(record->raw.flags & LOG_CRASH_SENT))
		(void)operands_of_fault(record->pieces.items[0].bytes, record->pieces.items[0].len,
					record->pieces.items[0].address, record_rip(record),
					&registers, &record->operands);
	add_piece(record, LOG_BLOB_STACK, LOG_STACK_MORE);
	add_piece(record, LOG_BLOB_STACK, LOG_STACK_OUTER);
	for (unsigned int i = 0; i < DATA_PIECES; i++)
		add_piece(record, LOG_BLOB_DATA, i);
	add_piece(record, LOG_BLOB_FAULT_MEMORY, 0);
	for (unsigned int i = 0; i < LOG_GREG_RSP; i++)
		add_piece(record, LOG_BLOB_MEMORY, i);
	python_memory_read(&record->log->reader, &record->item, &record->python);
	VEC_FOREACH (&record->python.pieces, piece)
		VEC_PUSH(&record->pieces, *piece);
	maps = blob_read(&record->log->reader, &record->item, LOG_BLOB_MAPS, 0, NULL, &len);
	if (!maps && (record->raw.flags & LOG_CRASH_LIGHT))
		maps = earlier_maps(record, &len);
	if (maps)
		(void)mappings_parse(&record->mappings, maps, len);
	record->files =
		blob_read(&record->log->reader, &record->item, LOG_BLOB_FILES, 0, NULL, &len);
	record->file_count = record->files ? len / sizeof(record->files[0]) : 0;
	complete_mappings(record);
}

void crash_record_open(const struct crash_place *place, struct crash_record *ret)
{
	ret->log = place->log;
	ret->item = place->item;
	(void)log_payload(&ret->item, &ret->raw, sizeof(ret->raw));
	crash_record_fill(ret);
}

/* A hook of the one function that has any; NULL when several have, or none. */
static const struct log_hook *only_hooked(const struct event_log *log)
{
	const struct log_hook *only = NULL;

	VEC_FOREACH (&log->hooks, hook) {
		if (hook->state != LOG_HOOK_PLACED)
			continue;
		if (only && strcmp(hook->label, only->label) != 0)
			return NULL;
		only = only ? only : hook;
	}
	return only;
}

/* A hook that watches a word of a frame runs when the function returns, and over what was left of
 * its frame. So it is told here, where the word was the return address and led nowhere. Only of one
 * function: which hook it was is not recorded. */
static void find_left(const struct crash_record *record, struct snapshot *ret)
{
	const struct arch *arch = arch_native();
	const struct log_hook *hook = only_hooked(record->log);
	uint64_t end = ret->registers.value[arch->sp];
	struct log_watched row;

	for (uint32_t i = 0; hook && i < LOG_WATCHED; i++)
		if (log_watched(&record->log->reader, i, &row) && row.number != 0 &&
		    row.end == LOG_WATCHED_RETURNED && row.address == end - sizeof(uint64_t) &&
		    row.last_value == ret->registers.value[arch->pc]) {
			ret->left = hook->address;
			ret->left_end = end;
			return;
		}
}

void crash_record_snapshot(const struct crash_record *record, struct snapshot *ret)
{
	const struct arch *arch = arch_native();
	/* A process that may open nothing more, or that sees no /proc, cannot tell where what is
	 * mapped: then it is where code lay when that was last looked at. */
	const struct mappings *mappings =
		record->mappings.count > 0 ? &record->mappings : &record->log->modules;

	*ret = event_log_snapshot(record->log);
	ret->until_ns = record->raw.realtime_ns + LAST_WORDS_NS;
	ret->tid = (int)record->raw.tid;
	ret->stack = (struct piece){ record->stack_address, record->stack, record->stack_len };
	ret->pieces = record->pieces.items;
	ret->piece_count = record->pieces.count;
	ret->python_runtime = record->python.record.runtime;
	ret->python_version = record->python.record.version;
	ret->mappings = mappings->items;
	ret->mapping_count = mappings->count;
	arch_registers_from_saved(arch, record->raw.gregs, GREGS_NAMED, &ret->registers);
	ret->registers.value[arch->pc] = event_log_original(record->log, record_rip(record));
	ret->registers.value[arch->thread_pointer] = record->raw.fs_base;
	ret->registers.known |= 1u << arch->thread_pointer;
	find_left(record, ret);
}
