#include "read/logs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "arch/arch.h"
#include "base/fd.h"
#include "base/strbuf.h"
#include "base/talk.h"
#include "read/log_map.h"
#include "read/logs_open.h"
#include "read/wrappers.h"
#include "wire/plan.h"

#define LOGS_MAX 1024
#define LOG_BYTES_MAX (8ull << 30)
#define HOOKS_MAX 16384

static bool is_log_name(const char *name)
{
	size_t len = strlen(name), suffix = strlen(WIRE_LOG_SUFFIX);

	return strncmp(name, WIRE_LOG_PREFIX, strlen(WIRE_LOG_PREFIX)) == 0 && len > suffix &&
	       strcmp(name + len - suffix, WIRE_LOG_SUFFIX) == 0;
}

static void event_log_deinit(struct event_log *log)
{
	if (log->bytes)
		(void)munmap((void *)log->bytes, log->len);
	MEM_FREE(log->name, log->names_dir, log->program, log->command);
	mappings_deinit(&log->modules);
	VEC_DEINIT(&log->contexts);
	python_stacks_deinit(&log->python);
	VEC_DEINIT(&log->module_records);
	VEC_DEINIT(&log->hooks);
	wrappers_free(log->wrappers);
}

void event_logs_deinit(struct event_logs *logs)
{
	VEC_FREE(&logs->list, log, event_log_deinit(log));
	said_list_deinit(&logs->notes);
}

static char *printable(const void *bytes, size_t len)
{
	AUTO(strbuf_deinit) struct strbuf sb = { 0 };

	strbuf_add_printable(&sb, bytes, len);
	return strbuf_take(&sb);
}

char *event_log_text(const struct event_log *log, const struct log_item *owner,
		     enum log_blob_kind kind)
{
	size_t len;
	AUTO(mem_freep) char *bytes = blob_read(&log->reader, owner, kind, 0, NULL, &len);

	if (!bytes)
		return NULL;
	while (len > 0 && (bytes[len - 1] == '\0' || bytes[len - 1] == '\n'))
		len--;
	/* The arguments of a command line are separated by NUL bytes. */
	for (size_t i = 0; i < len; i++)
		if (bytes[i] == '\0' || bytes[i] == '\n')
			bytes[i] = ' ';
	return printable(bytes, len);
}

static void take_image(struct event_log *log, const struct log_item *item)
{
	struct log_image image;

	if (log->program || !log_payload(item, &image, sizeof(image)))
		return;
	log->program = event_log_text(log, item, LOG_BLOB_PATH);
	if (!log->program)
		log->program = printable(image.exe, strnlen(image.exe, sizeof(image.exe)));
	log->command = event_log_text(log, item, LOG_BLOB_COMMAND);
}

char *event_log_module_path(const struct log_item *item, const struct log_module *module)
{
	size_t bytes;
	const char *whole = log_payload_rest(item, sizeof(*module), &bytes);

	if (bytes > 0)
		return mem_strndup(whole, strnlen(whole, bytes));
	return mem_strndup(module->path, strnlen(module->path, sizeof(module->path)));
}

static void take_module(struct event_log *log, const struct log_item *item)
{
	struct log_module module;
	struct mapping mapping = { .perms = MAPPING_READ | MAPPING_EXEC, .bias_known = true };

	if (!log_payload(item, &module, sizeof(module)) || module.text_low >= module.text_high)
		return;
	mapping.start = module.text_low;
	mapping.end = module.text_high;
	mapping.bias = module.bias;
	mapping.path = event_log_module_path(item, &module);
	mapping.build_id_len =
		module.build_id_bytes <= sizeof(module.build_id) ? module.build_id_bytes : 0;
	memcpy(mapping.build_id, module.build_id, mapping.build_id_len);
	log->modules.items = mem_resize(log->modules.items, log->modules.count + 1,
					sizeof(log->modules.items[0]));
	log->modules.room = log->modules.count + 1;
	log->modules.items[log->modules.count++] = mapping;
}

static void take_context(struct event_log *log, const struct log_item *item)
{
	struct log_context_seen seen;
	__typeof__(log->contexts.items[0]) entry;

	if (!log_payload(item, &seen, sizeof(seen)))
		return;
	entry.context = seen.context;
	entry.offset = item->offset;
	VEC_PUSH(&log->contexts, entry);
}

static void note_unobserved(struct event_logs *logs, struct event_log *log,
			    const struct log_item *item)
{
	static const char *const why[] = {
		[LOG_UNOBSERVED_STATIC] = "unobserved:static",
		[LOG_UNOBSERVED_SETUID] = "unobserved:setuid",
		[LOG_UNOBSERVED_FOREIGN] = "unobserved:foreign",
		[LOG_UNOBSERVED_SANITIZED] = "unobserved:sanitized",
		[LOG_UNOBSERVED_LIBC] = "unobserved:libc",
		[LOG_UNOBSERVED_SANDBOXED] = "unobserved:sandboxed",
		[LOG_UNOBSERVED_VALGRIND] = "unobserved:valgrind",
		[LOG_UNOBSERVED_EMULATED] = "unobserved:emulated",
		[LOG_UNOBSERVED_USER] = "unobserved:user",
		[LOG_UNOBSERVED_LIMIT] = "unobserved:limit",
	};
	AUTO(mem_freep) char *path = event_log_text(log, item, LOG_BLOB_PATH);
	struct log_unobserved record;

	if (logs->notes.list.count >= 20 || !log_payload(item, &record, sizeof(record)))
		return;
	if (record.why == LOG_UNOBSERVED_MALLOC)
		SAY_TOO(&logs->notes, "note:own-malloc", said_text(path ? path : "?"));
	else if (record.why < ARRAY_SIZE(why) && why[record.why])
		SAY_TOO(&logs->notes, "note:unobserved", said_text(path ? path : "?"),
			said_word(why[record.why]));
}

static void take_hook(struct event_log *log, const struct log_item *item)
{
	struct log_hook hook;

	if (!log_payload(item, &hook, sizeof(hook)) || log->hooks.count >= HOOKS_MAX)
		return;
	hook.label[sizeof(hook.label) - 1] = '\0';
	VEC_PUSH(&log->hooks, hook);
}

static bool hook_was_placed(const struct event_logs *logs, const char *label)
{
	VEC_FOREACH (&logs->list, log)
		VEC_FOREACH (&log->hooks, hook)
			if (hook->state == LOG_HOOK_PLACED && strcmp(hook->label, label) == 0)
				return true;
	return false;
}

/* Hooks that were asked for and are not there. A trial may run other programs, which they are not
 * meant for: what waits in one process counts only when no process had it. */
static void note_hooks(struct event_logs *logs)
{
	static const char *const why[LOG_HOOK_STATES] = {
		[LOG_HOOK_OTHER_CODE] = "hook:other-code",
		[LOG_HOOK_NO_MEMORY] = "hook:no-memory",
		[LOG_HOOK_TOO_FAR] = "hook:too-far",
		[LOG_HOOK_SHADOW] = "hook:shadow",
		[LOG_HOOK_FULL] = "hook:full",
		[LOG_HOOK_WAITING] = "hook:waiting",
	};

	VEC_FOREACH (&logs->list, log)
		VEC_FOREACH (&log->hooks, hook) {
			struct said note = { 0 };

			if (hook->state >= LOG_HOOK_STATES || !why[hook->state] ||
			    (hook->state == LOG_HOOK_WAITING && hook_was_placed(logs, hook->label)))
				continue;
			SAY(&note, "note:hook",
			    said_take(printable(hook->label, strlen(hook->label))),
			    said_word(why[hook->state]));
			said_add_once(&logs->notes, &note);
		}
}

uint64_t event_log_original(const struct event_log *log, uint64_t address)
{
	VEC_FOREACH (&log->hooks, hook) {
		uint64_t into = address - hook->stub, original = hook->address;

		if (hook->stub == 0 || into >= hook->stub_bytes)
			continue;
		for (size_t i = 0; i < hook->mark_count && i < LOG_HOOK_MARKS; i++)
			if (hook->marks[i].stub_offset <= into)
				original = hook->address + hook->marks[i].offset;
		return original;
	}
	return address;
}

bool event_log_is_tail(const struct event_log *log, uint64_t address)
{
	return VEC_ANY(&log->hooks, hook,
		       hook->tail != 0 && address - hook->tail < LOG_HOOK_TAIL_BYTES);
}

bool event_log_is_agent(const struct event_log *log, uint64_t address)
{
	const struct log_header *header = &log->reader.header;

	return event_log_is_tail(log, address) ||
	       (address >= header->agent_base && address < header->agent_end);
}

void event_log_unpatch(const struct event_log *log, uint64_t address, uint8_t *bytes, size_t len)
{
	VEC_FOREACH (&log->hooks, hook)
		for (size_t i = 0; hook->state == LOG_HOOK_PLACED && i < hook->covered &&
				   i < sizeof(hook->original);
		     i++)
			if (hook->address + i - address < len)
				bytes[hook->address + i - address] = hook->original[i];
}

static int by_context(const void *a, const void *b)
{
	/* Both begin with the context's number. */
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

static void note_trouble(struct event_logs *logs, struct event_log *log)
{
	static const char *const reasons[] = {
		[LOG_RETIRED_PLAN] = "retired:plan",
		[LOG_RETIRED_MEMORY] = "retired:memory",
		[LOG_RETIRED_DISK] = "retired:disk",
		[LOG_RETIRED_SYMBOLS] = "retired:symbols",
		[LOG_RETIRED_FILE] = "retired:file",
		[LOG_RETIRED_SELF_FAULT] = "retired:self-fault",
		[LOG_RETIRED_SANDBOX] = "retired:sandbox",
		[LOG_RETIRED_TRACED] = "retired:traced",
	};
	const struct log_header *header = &log->reader.header;
	const struct log_damage *damage = &log->reader.damage;
	uint64_t lost =
		damage->records + damage->ring_records + damage->context_rows + damage->headers;

	if (header->retired < ARRAY_SIZE(reasons) && reasons[header->retired])
		SAY_TOO(&logs->notes, "note:retired", said_number(header->pid),
			said_word(reasons[header->retired]));
	if (lost > 0)
		SAY_TOO(&logs->notes, "note:log-damaged", said_number(header->pid),
			said_number(lost));
}

static void read_through(struct event_logs *logs, struct event_log *log)
{
	struct log_item item;

	while (log_reader_next(&log->reader, &item)) {
		switch (item.head.type) {
		case LOG_IMAGE:
			take_image(log, &item);
			break;
		case LOG_MODULE:
			VEC_PUSH(&log->module_records, item.offset);
			take_module(log, &item);
			break;
		case LOG_CONTEXT:
			take_context(log, &item);
			break;
		case LOG_PYTHON_STACK:
		case LOG_PYTHON_CODE:
			python_stacks_take(&log->python, &item);
			break;
		case LOG_UNOBSERVED:
			note_unobserved(logs, log, &item);
			break;
		case LOG_HOOK:
			take_hook(log, &item);
			break;
		default:
			break;
		}
	}
	VEC_SORT(&log->contexts, by_context);
	python_stacks_sort(&log->python);
	note_trouble(logs, log);
}

/* Maps one log; false when it is none. Nobody writes to it any more: its process has ended. */
static bool map_log(int dir, const char *name, struct event_log *ret, struct err *err)
{
	AUTO(fd_closep) int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size <= 0 ||
	    (uint64_t)st.st_size > LOG_BYTES_MAX || fd_check_owner_of(fd, dir, name, err) < 0)
		return false;
	ret->bytes = log_map(fd, (size_t)st.st_size);
	if (!ret->bytes)
		return false;
	ret->len = (size_t)st.st_size;
	ret->name = mem_strdup(name);
	return log_reader_init(&ret->reader, ret->bytes, ret->len) == LOG_READ_OK;
}

static int by_start(const void *a, const void *b)
{
	const struct event_log *x = a, *y = b;
	uint64_t s = x->reader.header.start_monotonic_ns, t = y->reader.header.start_monotonic_ns;

	return s < t ? -1 : s > t;
}

/* Calls fn for every log in the trial's directory. */
static int for_each_log(int trials, const char *trial,
			void (*fn)(void *ctx, struct event_log *log, bool sound), void *ctx,
			struct err *err)
{
	int dir = openat(trials, trial, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *stream = dir < 0 ? NULL : fdopendir(dir);
	struct dirent *entry;
	struct err trouble = { 0 };
	size_t count = 0;

	if (!stream) {
		fd_close(dir);
		return err_set(err, -ENOENT, "there is no directory trials/%s", trial);
	}
	(void)fd_check_owner_of(dir, trials, trial, &trouble);
	while (trouble.code == 0 && count < LOGS_MAX && (entry = readdir(stream)) != NULL) {
		struct event_log log = { 0 };
		bool sound;

		if (!is_log_name(entry->d_name))
			continue;
		sound = map_log(dir, entry->d_name, &log, &trouble);
		if (!log.bytes)
			continue;
		fn(ctx, &log, sound);
		count++;
	}
	(void)closedir(stream);
	if (trouble.code < 0 && err)
		*err = trouble;
	return trouble.code;
}

static void keep_log(void *ctx, struct event_log *log, bool sound)
{
	struct event_logs *logs = ctx;

	if (!sound) {
		SAY_TOO(&logs->notes, "note:log-unreadable", said_text(log->name));
		event_log_deinit(log);
		return;
	}
	VEC_PUSH(&logs->list, *log);
}

/* Of a trial on another machine they lie beside the log. */
static void find_names(int trials, const char *trial, struct event_log *log)
{
	AUTO(mem_freep) char *dir = mem_printf("/proc/self/fd/%d/%s", trials, trial);

	AUTO(mem_freep) char *map = mem_printf("%s/perf-%u.map", dir, log->reader.header.pid);
	AUTO(mem_freep) char *dump = mem_printf("%s/jit-%u.dump", dir, log->reader.header.pid);

	if (access(map, F_OK) == 0 || access(dump, F_OK) == 0)
		log->names_dir = TAKE(dir);
}

struct snapshot event_log_snapshot(const struct event_log *log)
{
	return (struct snapshot){ .pid = (int)log->reader.header.pid,
				  .since_ns = log->reader.header.start_realtime_ns,
				  .user = log->reader.header.user,
				  .names_dir = log->names_dir,
				  .mappings = log->modules.items,
				  .mapping_count = log->modules.count };
}

int event_logs_open(int trials, const char *trial, struct event_logs *ret, struct err *err)
{
	int r = for_each_log(trials, trial, keep_log, ret, err);

	if (r < 0)
		return r;
	log_debug("trial %s: its logs are opened", trial);
	VEC_SORT(&ret->list, by_start);
	VEC_FOREACH (&ret->list, log) {
		find_names(trials, trial, log);
		read_through(ret, log);
	}
	note_hooks(ret);
	return 0;
}

static bool calls_were_told(const struct log_reader *reader)
{
	const struct log_header *header = &reader->header;
	struct log_watch_row row;

	return !header->exited && header->retired == LOG_RETIRED_NO &&
	       log_watch_row(reader, 0, &row) && row.mode == LOG_WATCH_PAGES;
}

static void glance_at_crash(struct event_glance *glance, const struct log_header *header,
			    const struct log_crash *crash)
{
	if (crash->flags & LOG_CRASH_FORWARDED) {
		glance->handed_signal = crash->signo;
		glance->handed_pid = (int)header->pid;
	} else if (glance->signal == 0 && (crash->flags & LOG_CRASH_FINAL)) {
		glance->signal = crash->signo;
		glance->pid = (int)header->pid;
	}
}

/* Of a handler that came back, or called something and never did. */
static void glance_at_handled(struct event_glance *glance, const struct log_header *header,
			      const struct log_item *item, const struct log_crash *last)
{
	struct log_crash_diverted to;

	if (item->head.bytes == 0 || !log_payload(item, &to, sizeof(to)) || header->exited ||
	    !log_crash_called(last, &to))
		return;
	glance->called_signal = last->signo;
	glance->called_pid = (int)header->pid;
	glance->called_parent = (int)header->ppid;
}

static void glance_at(void *ctx, struct event_log *log, bool sound)
{
	struct event_glance *glance = ctx;
	const struct log_header *header = &log->reader.header;
	struct log_crash crash, last = { 0 };
	struct log_item item;
	uint64_t last_seq = 0;

	glance->told |= sound && calls_were_told(&log->reader);
	while (sound && log_reader_next(&log->reader, &item)) {
		struct log_truncation cut;

		if (item.head.type == LOG_CRASH && log_payload(&item, &crash, sizeof(crash))) {
			if (item.head.seq > last_seq) {
				last = crash;
				last_seq = item.head.seq;
				glance->called_signal = 0;
			}
			glance_at_crash(glance, header, &crash);
		} else if (item.head.type == LOG_CRASH_HANDLED && item.head.owner == last_seq) {
			glance_at_handled(glance, header, &item, &last);
		} else if (item.head.type == LOG_TRUNCATION &&
			   log_payload(&item, &cut, sizeof(cut)) && cut.old_size > cut.new_size) {
			glance->cuts = true;
		}
	}
	event_log_deinit(log);
}

void event_logs_glance(int trials, const char *trial, struct event_glance *ret)
{
	*ret = (struct event_glance){ 0 };
	(void)for_each_log(trials, trial, glance_at, ret, NULL);
}

static bool chance_was_tossed(const struct log_item *item)
{
	struct log_heap heap;

	return item->head.type == LOG_HEAP && log_payload(item, &heap, sizeof(heap)) &&
	       heap.poison_ppm < 1000000;
}

/* Where its malloc is inside, all of it was seen but for blocks: that is told when there is more.
 */
static bool ran_unobserved(const struct log_item *item)
{
	struct log_unobserved record;

	return item->head.type == LOG_UNOBSERVED && log_payload(item, &record, sizeof(record)) &&
	       record.why != LOG_UNOBSERVED_MALLOC;
}

static bool tells_something(struct event_log *log)
{
	bool tells = log->reader.header.retired != LOG_RETIRED_NO;
	struct log_item item;

	/* With --poison-chance the log tells whose coin fell how. */
	log_reader_rewind(&log->reader);
	while (!tells && log_reader_next(&log->reader, &item))
		tells = chance_was_tossed(&item) || item.head.type == LOG_CRASH ||
			item.head.type == LOG_BAD_FREE || item.head.type == LOG_HIT ||
			item.head.type == LOG_HEAP_DAMAGE || item.head.type == LOG_FENCE_ACCESS ||
			ran_unobserved(&item);
	return tells;
}

void event_logs_prune(struct event_logs *logs, int trials, const char *trial)
{
	VEC_FOREACH (&logs->list, log) {
		AUTO(mem_freep) char *path = mem_printf("%s/%s", trial, log->name);

		if (!tells_something(log))
			(void)unlinkat(trials, path, 0);
	}
}

struct event_log *event_logs_owner(struct event_logs *logs, struct event_log *log, uint64_t id)
{
	/* From child to parent, as often as it was forked; the count bounds a circle. */
	for (size_t steps = 0; steps < logs->list.count; steps++) {
		const struct log_header *header = &log->reader.header;
		struct event_log *parent = NULL;

		if (!header->forked || id >= header->id_base)
			return log;
		VEC_FOREACH (&logs->list, other)
			if (other->reader.header.pid == header->ppid &&
			    other->reader.header.image == header->parent_image)
				parent = other;
		if (!parent)
			return NULL;
		log = parent;
	}
	return NULL;
}

static void set_register(struct registers *registers, const char *name, uint64_t value)
{
	int number = arch_register_find(arch_native(), name);

	if (number < 0)
		return;
	registers->value[number] = value;
	registers->known |= 1u << number;
}

static void drop_agent_frames(const struct event_log *log, struct stack *from, struct stack *to)
{
	const struct log_header *header = &log->reader.header;
	size_t first = 0;

	for (size_t i = 0; i < from->count; i++)
		if (from->frames[i].address >= header->agent_base &&
		    from->frames[i].address < header->agent_end &&
		    !event_log_is_tail(log, from->frames[i].address))
			first = i + 1;
	for (size_t i = first; i < from->count; i++)
		if (!event_log_is_tail(log, from->frames[i].address))
			(void)stack_push(to, &from->frames[i]);
	to->end = from->end;
}

void event_log_unwind_callee(struct event_log *log, const struct callee_stack *seen,
			     struct symbols *symbols, struct stack *ret)
{
	const struct log_callee_registers *registers = &seen->registers;
	AUTO(stack_deinit) struct stack whole = { 0 };
	struct snapshot snapshot = event_log_snapshot(log);

	snapshot.tid = (int)seen->tid;
	snapshot.stack = (struct piece){ registers->rsp, seen->bytes, seen->len };
	if (seen->python) {
		snapshot.pieces = seen->python->pieces.items;
		snapshot.piece_count = seen->python->pieces.count;
		snapshot.python_runtime = seen->python->record.runtime;
		snapshot.python_version = seen->python->record.version;
	}
	set_register(&snapshot.registers, "rip", registers->rip);
	set_register(&snapshot.registers, "rsp", registers->rsp);
	set_register(&snapshot.registers, "rbp", registers->rbp);
	set_register(&snapshot.registers, "rbx", registers->rbx);
	set_register(&snapshot.registers, "r12", registers->r12);
	set_register(&snapshot.registers, "r13", registers->r13);
	set_register(&snapshot.registers, "r14", registers->r14);
	set_register(&snapshot.registers, "r15", registers->r15);
	if (symbols_unwind(symbols, &snapshot, &whole, NULL) == 0)
		drop_agent_frames(log, &whole, ret);
	/* The unwinder found nothing outside of the agent: take what the agent's own scan saw. */
	for (size_t i = 0, scanned = ret->count == 0 ? seen->frame_count : 0; i < scanned; i++)
		symbols_name(symbols, &snapshot, seen->frames[i], FRAME_GUESSED, ret);
}

/* The agent's own walk came to the end: its return addresses are the stack. */
static void name_walked(struct event_log *log, const struct log_item *item,
			const struct log_context_seen *seen, struct symbols *symbols,
			struct stack *ret)
{
	AUTO(stack_deinit) struct stack whole = { 0 };
	struct snapshot snapshot = event_log_snapshot(log);
	VEC(taddr) entered = { 0 };
	size_t bytes, more;
	const unsigned char *rest = log_payload_rest(item, sizeof(*seen), &bytes);

	for (size_t i = 0; i < log->hooks.count; i++)
		VEC_PUSH(&entered, log->hooks.items[i].address);
	snapshot.entered = entered.items;
	snapshot.entered_count = entered.count;
	more = bytes / sizeof(uint64_t);
	for (size_t i = 0; i < seen->frame_count && i < LOG_CONTEXT_DEEP; i++) {
		uint64_t address;

		if (i < LOG_CONTEXT_FRAMES)
			address = seen->frames[i];
		else if (i - LOG_CONTEXT_FRAMES < more)
			memcpy(&address, rest + (i - LOG_CONTEXT_FRAMES) * sizeof(address),
			       sizeof(address));
		else
			break;
		symbols_name(symbols, &snapshot, address, 0, &whole);
	}
	symbols_complete(symbols, &snapshot, &whole);
	VEC_DEINIT(&entered);
	whole.end = seen->walk == LOG_WALK_WHOLE ? STACK_COMPLETE : STACK_TOO_DEEP;
	/* operator new of the C++ library calls a hook of ours out of another one. */
	drop_agent_frames(log, &whole, ret);
}

bool event_log_context(struct event_log *log, uint32_t context, struct symbols *symbols,
		       struct stack *ret)
{
	struct log_context_seen seen;
	struct log_item item;
	const void *stack;
	size_t low = VEC_HOLDS_FOR(&log->contexts, row, row->context < context), bytes;

	if (low >= log->contexts.count || log->contexts.items[low].context != context ||
	    !log_record_at(&log->reader, log->contexts.items[low].offset, &item) ||
	    !log_payload(&item, &seen, sizeof(seen)))
		return false;
	if (seen.walk != LOG_WALK_LOST) {
		name_walked(log, &item, &seen, symbols, ret);
		python_stacks_merge(&log->python, &log->reader, context, ret);
		return ret->count > 0;
	}
	stack = log_payload_rest(&item, sizeof(seen), &bytes);
	event_log_unwind_callee(
		log,
		&(struct callee_stack){ .registers = seen.registers,
					.bytes = stack,
					.len = bytes,
					.frames = seen.frames,
					.frame_count = seen.frame_count <= LOG_CONTEXT_FRAMES
							       ? seen.frame_count
							       : 0 },
		symbols, ret);
	python_stacks_merge(&log->python, &log->reader, context, ret);
	return ret->count > 0;
}

static bool context_without_wrappers(struct event_log *log, uint32_t context,
				     struct symbols *symbols, bool frees, struct stack *ret)
{
	struct snapshot snapshot;

	if (!event_log_context(log, context, symbols, ret))
		return false;
	if (!log->wrappers)
		log->wrappers = wrappers_new();
	snapshot = event_log_snapshot(log);
	wrappers_mark(log->wrappers, symbols, &snapshot, frees, ret);
	return true;
}

bool event_log_allocation(struct event_log *log, uint32_t context, struct symbols *symbols,
			  struct stack *ret)
{
	return context_without_wrappers(log, context, symbols, false, ret);
}

bool event_log_freeing(struct event_log *log, uint32_t context, struct symbols *symbols,
		       struct stack *ret)
{
	return context_without_wrappers(log, context, symbols, true, ret);
}

char *event_log_key(struct event_log *log, const struct block_key *key, uint32_t context)
{
	struct log_context row;

	if (key->stack_hash == 0) {
		if (!log_context_row(&log->reader, context, &row))
			return NULL;
		return mem_printf("%016" PRIx64, row.stack_hash);
	}
	if (key->lane > 0)
		return mem_printf("%016" PRIx64 "@%u#%u", key->stack_hash, key->lane, key->ordinal);
	return mem_printf("%016" PRIx64 "#%u", key->stack_hash, key->ordinal);
}

uint32_t event_log_key_context(struct event_log *log, const struct block_key *key)
{
	VEC_FOREACH (&log->contexts, entry) {
		struct log_context row;

		if (log_context_row(&log->reader, entry->context, &row) &&
		    row.stack_hash == key->stack_hash && row.lane == key->lane)
			return entry->context;
	}
	return 0;
}

/* Many small pieces in one blob. */
