#include "agent/crash/fault_record.h"

#include <asm/prctl.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>

#include "agent/arch/x86_64.h"
#include "agent/core/agent.h"
#include "agent/core/clock.h"
#include "agent/core/feature.h"
#include "agent/core/log.h"
#include "agent/core/maps.h"
#include "agent/core/memory.h"
#include "agent/core/modules.h"
#include "agent/core/real.h"
#include "agent/core/secret.h"
#include "agent/core/signals.h"
#include "agent/core/start.h"
#include "agent/core/text.h"
#include "agent/core/thread.h"
#include "agent/crash/jit_code.h"
#include "agent/crash/value_search.h"
#include "agent/ids/blocks.h"
#include "agent/ids/history.h"
#include "agent/python/interpreter.h"
#include "wire/guard_word.h"

#define RETURNED_BYTES 4096u
#define STACK_MORE (448u << 10)
#define STACK_OUTER (64u << 10)
#define RED_ZONE 128u /* psABI 3.2.2: below rsp, still in use */
#define CODE_BEFORE 96u
#define CODE_BYTES 192u
#define FULL_PROVISIONAL 4u /* faults the target handles itself that get a full record */
#define MAPS_BYTES (1u << 20)
#define FILES_MAX 2048u
#define THREADS_MAX 512u
#define SEEN_MAX 1024u
#define STACK_WORDS 512u
#define NEAR_MAX 4u
#define POISON_REACH 4096u /* as far as offsets of fields go */
#define REACH_FAR (64ull << 20)
#define REACH_NEAR (128ull << 10)
#define ABORT_BYTES 1024u
#define VALUES 2048u
#define LOOKUP_CPU_NS 2000000u /* for words of memory and stack; registers come first */
#define HANDLER_REACH (256ull << 10)
#define DESCRIPTORS 8u
#define GUARD_REACH (1ull << 20) /* a frame larger than that begins elsewhere in the stack */
#define FRAME_REACH (1ull << 30)
#define STACK_PAGES 65536u
#define BEYOND_BYTES 4096u /* behind a block's end; further only for the fault itself */

/* Too large for an alternate stack of the target's, which may have 8 KiB. One crash at a time has
 * it; a second thread that crashes meanwhile does without maps, files, names and blocks. */
static struct {
	uint32_t taken; /* atomic */
	char maps[MAPS_BYTES];
	struct maps_buffer walk;
	struct log_file_size files[FILES_MAX];
	struct log_thread_name threads[THREADS_MAX];
	uint64_t words[STACK_WORDS];
	uint64_t seen[SEEN_MAX]; /* ids already written */
	uint32_t seen_count;
	uint64_t values[VALUES]; /* words already looked up, by hash; the last one of each */
	uint64_t cpu_limit_ns;	 /* on the thread's CPU clock: enough looked up */
	uint64_t near[NEAR_MAX]; /* freed blocks that a register was made out of the poison of */
	unsigned near_count;
	const uint64_t *gregs; /* of the crash */
	char last_path[4200];
	struct stat last_stat;
	bool last_found;
} scratch;

static void maps_write(struct log_writer *writer)
{
	size_t have = 0;
	long fd, got;

	fd = maps_open_sigsafe();
	if (fd < 0)
		return;
	while (have < MAPS_BYTES) {
		got = raw_syscall3(SYS_read, fd, scratch.maps + have, MAPS_BYTES - have);
		if (got <= 0)
			break;
		have += (size_t)got;
	}
	(void)raw_syscall1(SYS_close, fd);
	log_blob_sigsafe(writer, LOG_BLOB_MAPS, 0, 0, scratch.maps, have);
}

#define FDS_LOOKED_AT 256

/* Who mapped a file often has it open still. */
static bool file_look_open(uint64_t inode, struct stat *ret)
{
	for (long fd = 0; fd < FDS_LOOKED_AT; fd++)
		if (!raw_syscall4(SYS_newfstatat, fd, "", ret, AT_EMPTY_PATH) &&
		    S_ISREG(ret->st_mode) && ret->st_ino == inode)
			return true;
	return false;
}

/* The file as its name finds it, or, when another one has the name now or nobody, through the
 * mapping, which takes CAP_CHECKPOINT_RESTORE (proc(5)), or through a descriptor. */
static bool file_look(const struct maps_line *line, struct stat *ret)
{
	char link[80];
	struct text text;

	if (!raw_syscall4(SYS_newfstatat, AT_FDCWD, line->path, ret, 0) &&
	    ret->st_ino == line->inode)
		return true;
	text_begin(&text, link, sizeof(link));
	text_add(&text, "/proc/self/map_files/");
	text_add_number(&text, line->low, 16);
	text_add(&text, "-");
	text_add_number(&text, line->high, 16);
	if (!raw_syscall4(SYS_newfstatat, AT_FDCWD, link, ret, 0) ||
	    file_look_open(line->inode, ret))
		return true;
	return !raw_syscall4(SYS_newfstatat, AT_FDCWD, line->path, ret, 0);
}

static void files_write(struct log_writer *writer)
{
	struct maps_walk walk;
	struct maps_line line;
	uint32_t count = 0;

	if (!maps_begin_sigsafe(&walk, &scratch.walk))
		return;
	scratch.last_path[0] = 0;
	while (count < FILES_MAX && maps_next_sigsafe(&walk, &line)) {
		struct log_file_size *file = &scratch.files[count];

		if (!line.inode || line.path[0] != '/')
			continue;
		if (strcmp(line.path, scratch.last_path) != 0) {
			memcpy(scratch.last_path, line.path, strlen(line.path) + 1);
			scratch.last_found = file_look(&line, &scratch.last_stat);
		}
		memset(file, 0, sizeof(*file));
		file->map_low = line.low;
		file->map_bytes = line.high - line.low;
		file->file_offset = line.offset;
		file->size = -1;
		if (scratch.last_found) {
			file->size = scratch.last_stat.st_size;
			file->device = scratch.last_stat.st_dev;
			file->inode = scratch.last_stat.st_ino;
			file->same_file = scratch.last_stat.st_ino == line.inode;
		}
		count++;
	}
	maps_end_sigsafe(&walk);
	log_blob_sigsafe(writer, LOG_BLOB_FILES, 0, 0, scratch.files,
			 count * sizeof(scratch.files[0]));
}

static void thread_name_read(struct log_thread_name *thread, const char *tid)
{
	char path[64];
	struct text text;
	const char *at = tid;

	memset(thread, 0, sizeof(*thread));
	thread->tid = (uint32_t)text_number(&at, tid + strlen(tid), 10);
	text_begin(&text, path, sizeof(path));
	text_add(&text, "/proc/self/task/");
	text_add(&text, tid);
	text_add(&text, "/comm");
	if (maps_text_sigsafe(path, thread->name, sizeof(thread->name)))
		thread->name[strcspn(thread->name, "\n")] = 0;
}

static void threads_write(struct log_writer *writer)
{
	char *entries = scratch.walk.bytes; /* files_write is done with it */
	uint32_t count = 0;
	long fd, got, at;

	fd = raw_syscall4(SYS_openat, AT_FDCWD, "/proc/self/task",
			  O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	if (fd < 0)
		return;
	while ((got = raw_syscall3(SYS_getdents64, fd, entries, sizeof(scratch.walk.bytes))) > 0)
		for (at = 0; at < got;) {
			const struct dirent64 *entry = (const void *)(entries + at);

			at += entry->d_reclen;
			if (entry->d_name[0] != '.' && count < THREADS_MAX)
				thread_name_read(&scratch.threads[count++], entry->d_name);
		}
	(void)raw_syscall1(SYS_close, fd);
	log_blob_sigsafe(writer, LOG_BLOB_THREADS, 0, 0, scratch.threads,
			 count * sizeof(scratch.threads[0]));
}

static bool seen_before(uint64_t id)
{
	uint32_t i;

	for (i = 0; i < scratch.seen_count; i++)
		if (scratch.seen[i] == id)
			return true;
	if (scratch.seen_count < SEEN_MAX)
		scratch.seen[scratch.seen_count++] = id;
	return false;
}

/* Registers and the fault address are always told; a stack word only if its block is news. */
static void value_write(struct log_writer *writer, enum log_block_via via, uint64_t where,
			uint64_t value)
{
	bool near = via == LOG_VIA_STACK || via == LOG_VIA_MEMORY;
	const struct loaded_module *module;
	struct block_view views[4];
	struct log_block record;
	unsigned space, count, i;

	if (value < 0x10000 || value >> 47)
		return;
	/* Code of a file: whoever had a block here before it was mapped has nothing to do with it.
	 */
	module = module_find_sigsafe(value);
	if (module && module->identity)
		return;
	for (space = 0; space < BLOCKS_SPACES; space++) {
		count = block_find_sigsafe((enum block_space)space, value,
					   near ? REACH_NEAR : REACH_FAR, views, near ? 2 : 4);
		for (i = 0; i < count; i++) {
			if (views[i].relation == LOG_BEYOND &&
			    (near || (via != LOG_VIA_FAULT &&
				      value - views[i].start - views[i].size >= BEYOND_BYTES)))
				continue;
			if (seen_before(views[i].block.id) && near)
				continue;
			memset(&record, 0, sizeof(record));
			record.via = (uint16_t)via;
			record.where = where;
			record.value = value;
			block_describe_sigsafe(&views[i], &record);
			(void)log_append_sigsafe(writer, LOG_BLOCK, &record, sizeof(record), NULL,
						 0);
		}
	}
}

static bool looked_up(uint64_t value)
{
	uint64_t *at = &scratch.values[(value * 0x9e3779b97f4a7c15ull) >> 53];

	if (*at == value)
		return true;
	*at = value;
	return false;
}

static void words_write(struct log_writer *writer, enum log_block_via via, uint64_t from,
			size_t bytes)
{
	size_t i, have;

	from &= ~(uint64_t)7;
	if (bytes > sizeof(scratch.words))
		bytes = sizeof(scratch.words);
	have = memory_read_sigsafe(scratch.words, from, bytes);
	for (i = 0; i < have / 8 && scratch.seen_count < SEEN_MAX; i++) {
		if (i % 16 == 0 && clock_ns_sigsafe(CLOCK_THREAD_CPUTIME_ID) > scratch.cpu_limit_ns)
			return;
		if (!looked_up(scratch.words[i]))
			value_write(writer, via, from + i * 8, scratch.words[i]);
	}
}

/* The freed block whose poison this is. One that lives has been given out since: whoever has it now
 * was not read. */
static const struct block *poison_owner(uint64_t value, uint64_t *ret_start)
{
	const struct block *block;

	if (!canary_decode(blocks_state.seed, value, CANARY_POISON, ret_start))
		return NULL;
	block = block_at_sigsafe(BLOCKS_HEAP, *ret_start);
	return block && block->state == LOG_BLOCK_FREED ? block : NULL;
}

/* A register that holds the poison of a freed block, or a field's address that was made out of it:
 * it was read from there. */
static void poison_write_value(struct log_writer *writer, unsigned greg, uint64_t value)
{
	struct log_block record = { .via = LOG_VIA_POISON, .where = greg, .value = value };
	struct block_view view = { .relation = LOG_INSIDE };
	const struct block *block = NULL;
	uint64_t off = 0;

	if (value >> 62 != 2)
		return;
	for (; !block && off < POISON_REACH; off++)
		block = poison_owner(value - off, &view.start);
	if (!block)
		return;
	if (off > 1 && scratch.near_count < NEAR_MAX)
		scratch.near[scratch.near_count++] = view.start;
	view.block = *block;
	view.size = block_size(block);
	block_describe_sigsafe(&view, &record);
	(void)log_append_sigsafe(writer, LOG_BLOCK, &record, sizeof(record), NULL, 0);
}

static void blocks_write(struct log_writer *writer, const struct log_crash *crash)
{
	unsigned i;

	log_map.header->epoch_rest = history_uncounted_sigsafe() + 1;
	scratch.seen_count = scratch.near_count = 0;
	scratch.gregs = crash->gregs;
	memset(scratch.values, 0, sizeof(scratch.values));
	scratch.cpu_limit_ns = clock_ns_sigsafe(CLOCK_THREAD_CPUTIME_ID) + LOOKUP_CPU_NS;
	if (crash->fault_address && !(crash->flags & LOG_CRASH_SENT))
		value_write(writer, LOG_VIA_FAULT, 0, crash->fault_address);
	for (i = 0; i <= LOG_GREG_RIP; i++)
		value_write(writer, LOG_VIA_REGISTER, i, crash->gregs[i]);
	for (i = 0; blocks_state.guards && i <= LOG_GREG_RIP; i++)
		poison_write_value(writer, i, crash->gregs[i]);
	for (i = 0; i < LOG_GREG_RSP; i++)
		if (crash->gregs[i] >= 0x10000 && !(crash->gregs[i] >> 47))
			words_write(writer, LOG_VIA_MEMORY, crash->gregs[i],
				    agent.plan.register_window_bytes);
	/* A function that calls nobody keeps its variables below the stack pointer. */
	words_write(writer, LOG_VIA_STACK, crash->gregs[LOG_GREG_RSP] - RED_ZONE, STACK_WORDS * 8);
}

/* The kernel's word: the one that the thread keeps of itself lies right behind its variables, and
 * whoever runs over those damages it. */
static uint64_t fs_base_sigsafe(void)
{
	uint64_t base = 0;

	return raw_syscall2(SYS_arch_prctl, ARCH_GET_FS, &base) ? arch_fs_base() : base;
}

/* The latest fault that a handler of the target was given. Many handlers say something and raise it
 * again: then this is the crash, and the signal that is deadly only ends it. Too large for a signal
 * stack that is nearly used up. */
static struct {
	uint64_t record; /* its number; 0 while it is written */
	struct log_crash crash;
} handed_on;

static void handed_on_keep(uint64_t record, const struct log_crash *crash)
{
	__atomic_store_n(&handed_on.record, 0, __ATOMIC_RELAXED);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	memcpy(&handed_on.crash, crash, sizeof(*crash));
	__atomic_store_n(&handed_on.record, record, __ATOMIC_RELEASE);
}

static const struct log_crash *crash_behind(const struct log_crash *crash)
{
	bool again = (crash->flags & LOG_CRASH_SENT) && crash->follows &&
		     crash->follows == __atomic_load_n(&handed_on.record, __ATOMIC_ACQUIRE);

	return again ? &handed_on.crash : crash;
}

/* A handler that was left by a jump leaves its mark behind: then the stack is elsewhere, or above
 * it, or others have written where the mark was. */
bool crash_in_handler_sigsafe(uint64_t rsp)
{
	const struct thread *self = thread_self;
	uint64_t mark;

	return self && self->signals.handler_frame - rsp < HANDLER_REACH &&
	       memory_read_sigsafe(&mark, self->signals.handler_frame, 8) == 8 &&
	       mark == SIGNALS_HANDLER_MARK(self->signals.handler_frame);
}

static void crash_fill(struct log_crash *crash, int signo, const siginfo_t *info,
		       const ucontext_t *context, uint32_t flags, const struct sigaction *action)
{
	struct thread *self = thread_self;
	unsigned i;

	memset(crash, 0, sizeof(*crash));
	crash->signo = signo;
	crash->code = info->si_code;
	crash->error = info->si_errno;
	crash->flags = flags;
	if (info->si_code <= 0) {
		crash->flags |= LOG_CRASH_SENT;
		crash->sender_pid = (uint32_t)info->si_pid;
		crash->sender_uid = (uint32_t)info->si_uid;
	} else {
		crash->fault_address = (uint64_t)info->si_addr;
	}
	if (signo == SIGSYS)
		crash->syscall_number = (uint32_t)info->si_syscall;
	for (i = 0; i < LOG_GREGS; i++)
		crash->gregs[i] = (uint64_t)context->uc_mcontext.gregs[i];
	crash->fs_base = fs_base_sigsafe();
	crash->realtime_ns = clock_ns_sigsafe(CLOCK_REALTIME);
	crash->tid = (uint32_t)raw_syscall0(SYS_gettid);
	crash->lane = UINT32_MAX;
	(void)raw_syscall2(SYS_prctl, PR_GET_NAME, crash->thread_name);
	crash->previous_action = action->sa_handler == SIG_DFL	 ? 0
				 : action->sa_handler == SIG_IGN ? 1
								 : 2;
	crash->previous_handler = crash->previous_action == 2 ? (uint64_t)action->sa_handler : 0;
	if (!self) {
		crash->flags |= LOG_CRASH_NO_LANE;
		return;
	}
	crash->lane = self->lane;
	crash->stack_high = self->stack_high;
	crash->follows = self->signals.last_crash;
	crash->allocations = self->fast.next_id;
	if (self->fast.busy)
		crash->flags |= LOG_CRASH_IN_AGENT;
	if (crash_in_handler_sigsafe(crash->gregs[LOG_GREG_RSP]))
		crash->flags |= LOG_CRASH_IN_HANDLER;
}

/* Where to read when the stack pointer is deep below its stack: the frame is many megabytes, and
 * its caller somewhere in the stack. Where the frame pointer says, or else the outermost part. */
static uint64_t stack_below(const struct log_crash *crash)
{
	uint64_t rbp = crash->gregs[REG_RBP], low = crash->stack_high & ~4095ull;
	uint64_t slice = agent.plan.stack_slice_bytes;
	unsigned read;

	for (read = 0; read < STACK_PAGES && memory_readable_sigsafe(low - 1, 1); read++)
		low -= 4096;
	if (rbp >= low && rbp < crash->stack_high)
		return rbp - low < RETURNED_BYTES ? low : rbp - RETURNED_BYTES;
	return crash->stack_high - low < slice ? low : crash->stack_high - slice;
}

/* From the red zone up. When the stack pointer itself is in the guard page (overflow by a large
 * frame), the stack begins at the next readable page above. */
static void stack_write(struct log_writer *writer, const struct log_crash *crash)
{
	uint64_t rsp = crash->gregs[LOG_GREG_RSP], rip = crash->gregs[LOG_GREG_RIP];
	/* After a return to nowhere, what it returned from is all that tells which function it was.
	 */
	uint64_t from = rsp - (memory_readable_sigsafe(rip, 1) ? RED_ZONE : RETURNED_BYTES);
	unsigned tried;

	if (!memory_readable_sigsafe(from, 1))
		from = rsp;
	if (crash->stack_high > rsp && crash->stack_high - rsp < FRAME_REACH &&
	    !memory_readable_sigsafe(rsp, 1) && !memory_readable_sigsafe(rsp + GUARD_REACH, 1))
		from = stack_below(crash);
	for (tried = 0; tried < 4096 && !memory_readable_sigsafe(from, 1); tried++)
		from = (from & ~4095ull) + 4096;
	(void)log_memory_sigsafe(writer, LOG_BLOB_STACK, 0, from, agent.plan.stack_slice_bytes);
}

/* What lies above the first slice. One array in one function is as large as the slice, and then its
 * callers are above: a good deal more of the stack, and its outermost part, where whatever lies
 * between is stepped over by a rule that needs none of its bytes. */
static void stack_rest_write(struct log_writer *writer, const struct log_crash *crash)
{
	uint64_t rsp = crash->gregs[LOG_GREG_RSP], high = crash->stack_high;
	uint64_t from = rsp + agent.plan.stack_slice_bytes - RETURNED_BYTES, outer;

	if (!high)
		return;
	/* On a stack for signals: what the handler interrupted is on the thread's own. */
	if (high <= rsp || high - rsp > FRAME_REACH) {
		outer = high & ~4095ull;
		while (high - outer < STACK_MORE && memory_readable_sigsafe(outer - 4096, 1))
			outer -= 4096;
		(void)log_memory_sigsafe(writer, LOG_BLOB_STACK, LOG_STACK_OUTER, outer,
					 high - outer);
		return;
	}
	if (from >= high)
		return;
	from += log_memory_sigsafe(writer, LOG_BLOB_STACK, LOG_STACK_MORE, from,
				   high - from < STACK_MORE ? high - from : STACK_MORE);
	outer = high - from < STACK_OUTER ? from : high - STACK_OUTER;
	if (outer < high)
		(void)log_memory_sigsafe(writer, LOG_BLOB_STACK, LOG_STACK_OUTER, outer,
					 high - outer);
}

static void code_write(struct log_writer *writer, uint64_t rip)
{
	uint64_t from = rip - CODE_BEFORE;

	if (!memory_readable_sigsafe(from, 1))
		from = rip & ~4095ull;
	(void)log_memory_sigsafe(writer, LOG_BLOB_CODE, 0, from,
				 rip - from + CODE_BYTES - CODE_BEFORE);
}

static void abort_write(struct log_writer *writer)
{
	unsigned char text[ABORT_BYTES];
	uint64_t message = 0;
	uint32_t size;
	size_t have;

	if (!real.abort_message ||
	    memory_read_sigsafe(&message, (uint64_t)real.abort_message, 8) != 8 || !message)
		return;
	if (memory_read_sigsafe(&size, message, 4) != 4)
		return;
	have = memory_read_sigsafe(text, message + 4, sizeof(text));
	if (have)
		log_blob_sigsafe(writer, LOG_BLOB_ABORT, 0, message + 4, text,
				 strnlen((const char *)text, have));
}

static void memory_write(struct log_writer *writer, const struct log_crash *crash)
{
	unsigned i;

	for (i = 0; i < LOG_GREG_RSP; i++)
		if (crash->gregs[i] >= 0x1000 && !(crash->gregs[i] >> 47))
			(void)log_memory_sigsafe(writer, LOG_BLOB_MEMORY, i, crash->gregs[i],
						 agent.plan.register_window_bytes);
	if (!(crash->flags & LOG_CRASH_SENT) && !(crash->fault_address >> 47))
		(void)log_memory_sigsafe(writer, LOG_BLOB_FAULT_MEMORY, 0,
					 crash->fault_address & ~63ull, 128);
}

static void details_write(struct log_writer *writer, const struct log_crash *crash)
{
	uint32_t none = 0;

	if (!__atomic_compare_exchange_n(&scratch.taken, &none, 1, false, __ATOMIC_ACQUIRE,
					 __ATOMIC_RELAXED))
		return;
	if (agent_switch.ids)
		blocks_write(writer, crash);
	if (!(crash->flags & LOG_CRASH_SENT) || (crash->signo == SIGABRT && block_misfreed.pointer))
		value_search_write_sigsafe(writer, crash);
	maps_write(writer);
	files_write(writer);
	threads_write(writer);
	interpreter_write_sigsafe(writer, crash);
	__atomic_store_n(&scratch.taken, 0, __ATOMIC_RELEASE);
}

/* Instructions whose faults the target's handler came back from, as those of a runtime that tests
 * for NULL by them (Java) do by the million: they are counted and no more. Should the handler end
 * the process for once, it does so by abort() as a rule, which is recorded with the stack below it.
 * A count that is lost or another's does no harm. */
#define HABITS 256u
#define HABIT_FAULTS 16u

static struct {
	uint64_t rip;
	uint32_t count;
} habits[HABITS];

static unsigned habit_of(uint64_t rip)
{
	return (unsigned)(rip * 0x9e3779b97f4a7c15ull >> 56) % HABITS;
}

void crash_survived_sigsafe(uint64_t rip)
{
	unsigned at = habit_of(rip);

	if (habits[at].rip != rip) {
		habits[at].count = 0;
		habits[at].rip = rip;
	}
	habits[at].count++;
}

static bool is_habit(uint64_t rip)
{
	unsigned at = habit_of(rip);

	return habits[at].rip == rip && habits[at].count >= HABIT_FAULTS;
}

/* What the slots hold: which fault, and where the note of its end goes. */
static struct {
	uint64_t record;
	uint64_t note_at;
} light_slots[2];

_Static_assert(sizeof(struct log_record) + sizeof(struct log_crash_diverted) <= LOG_SLOT_NOTE,
	       "a slot keeps room for it");

static void light_keep(const struct log_writer *writer)
{
	unsigned at = (writer->slot_end / LOG_SLOT_BYTES) & 1;

	light_slots[at].note_at = writer->slot_end;
	__atomic_store_n(&light_slots[at].record, writer->owner, __ATOMIC_RELEASE);
}

void crash_handled_sigsafe(uint64_t record, const struct log_crash_diverted *to)
{
	struct log_writer writer;
	unsigned i;

	if (!record || !agent_switch.crash ||
	    (thread_self && thread_self->signals.survived == record))
		return;
	if (thread_self)
		thread_self->signals.survived = record;
	log_writer_init_sigsafe(&writer, LOG_TO_EVENTS);
	for (i = 0; i < 2; i++)
		if (__atomic_load_n(&light_slots[i].record, __ATOMIC_ACQUIRE) == record) {
			writer.place = LOG_TO_SLOT;
			writer.slot_at = light_slots[i].note_at;
			writer.slot_end = writer.slot_at + LOG_SLOT_NOTE;
		}
	writer.owner = record;
	(void)log_append_sigsafe(&writer, LOG_CRASH_HANDLED, to, to ? sizeof(*to) : 0, NULL, 0);
}

#define OTHER_WAIT_STEPS 1000u /* of a millisecond */

/* The first thread that dies has the word. One that dies while the first is still writing would end
 * the process under it, and with a record of its own that lacks what the first holds; so it
 * waits for the end, but not for ever: the first may have run into the damage. */
static void let_first_finish(void)
{
	static uint32_t first; /* atomic */
	struct timespec step = { 0, 1000000 };
	uint32_t self = (uint32_t)raw_syscall0(SYS_gettid), none = 0, i;

	if (__atomic_compare_exchange_n(&first, &none, self, false, __ATOMIC_RELAXED,
					__ATOMIC_RELAXED) ||
	    none == self)
		return;
	for (i = 0; i < OTHER_WAIT_STEPS; i++)
		(void)raw_syscall2(SYS_nanosleep, (long)&step, 0);
}

/* A program that has lost track of its descriptors has none left for its own end to be told with.
 * The limit is raised while that is written. Where it is not to be raised, the last
 * descriptors are closed, for this thread only if there are others: what the process had open, it
 * is about to lose. True: the limit is to be restored. */
static bool descriptors_grant(struct rlimit *ret_old)
{
	struct rlimit more;
	long fd = raw_syscall4(SYS_openat, AT_FDCWD, "/", O_PATH | O_CLOEXEC, 0);

	if (fd >= 0)
		(void)raw_syscall1(SYS_close, fd);
	if (fd != -EMFILE || raw_syscall4(SYS_prlimit64, 0, RLIMIT_NOFILE, NULL, ret_old))
		return false;
	more = *ret_old;
	more.rlim_cur += DESCRIPTORS;
	if (more.rlim_max < more.rlim_cur)
		more.rlim_max = more.rlim_cur; /* for the superuser only */
	if (!raw_syscall4(SYS_prlimit64, 0, RLIMIT_NOFILE, &more, NULL))
		return true;
	/* Two: one for the trial's directory, one for the log. */
	if (ret_old->rlim_cur > 1 && !raw_syscall1(SYS_unshare, CLONE_FILES)) {
		(void)raw_syscall1(SYS_close, ret_old->rlim_cur - 1);
		(void)raw_syscall1(SYS_close, ret_old->rlim_cur - 2);
	}
	return false;
}

static void descriptors_restore(const struct rlimit *old)
{
	(void)raw_syscall4(SYS_prlimit64, 0, RLIMIT_NOFILE, old, NULL);
}

/* Where the record goes. False: nowhere. */
static bool writer_choose(struct log_writer *writer, const struct log_crash *crash)
{
	if (crash->flags & LOG_CRASH_LIGHT) {
		log_drop_sigsafe(LOG_DROP_FAULT_LIGHT);
		/* Handlers that try what can be read: the slots are for what they are there for. */
		if (crash->flags & LOG_CRASH_IN_HANDLER || is_habit(crash->gregs[LOG_GREG_RIP]))
			return false;
		log_writer_init_sigsafe(writer, LOG_TO_SLOT);
	} else if (crash->flags & LOG_CRASH_FINAL) {
		log_writer_init_sigsafe(writer, LOG_TO_RESERVE);
	} else {
		__atomic_fetch_add(&log_map.header->forwarded_faults, 1, __ATOMIC_RELAXED);
		log_writer_init_sigsafe(writer, LOG_TO_EVENTS);
	}
	return true;
}

/* What a light record does without. */
static void full_write(struct log_writer *writer, const struct log_crash *crash,
		       const ucontext_t *context)
{
	bool final = crash->flags & LOG_CRASH_FINAL;

	if (context->uc_mcontext.fpregs)
		log_blob_sigsafe(writer, LOG_BLOB_XSTATE, 0, 0, context->uc_mcontext.fpregs, 512);
	/* Once with what matters most, in case the rest runs into the damage. */
	if (final)
		log_save_sigsafe();
	stack_rest_write(writer, crash);
	details_write(writer, crash);
	if (final) {
		jit_code_write_sigsafe(writer->owner);
		log_save_sigsafe();
	}
}

static void parts_write(struct log_writer *writer, const struct log_crash *crash,
			const ucontext_t *context)
{
	bool light = crash->flags & LOG_CRASH_LIGHT;

	if (light)
		light_keep(writer);
	if (thread_self)
		thread_self->signals.last_crash = writer->owner;
	stack_write(writer, crash);
	code_write(writer, crash->gregs[LOG_GREG_RIP]);
	if (!light)
		memory_write(writer, crash);
	if (crash->signo == SIGABRT)
		abort_write(writer);
	if (!light)
		full_write(writer, crash, context);
}

static void record_end(struct log_writer *writer, const struct log_crash *crash, uint64_t started)
{
	bool forwarded = crash->flags & LOG_CRASH_FORWARDED, sent = crash->flags & LOG_CRASH_SENT;
	struct log_crash_done done = { .write_ns = clock_ns_sigsafe(CLOCK_MONOTONIC) - started,
				       .blobs = writer->blobs,
				       .blocks = writer->blocks };

	(void)log_append_sigsafe(writer, LOG_CRASH_DONE, &done, sizeof(done), NULL, 0);
	if (forwarded && !sent)
		handed_on_keep(writer->owner, crash);
	/* The handler may never come back, nor the process come here again: a second fault in there
	 * ends it in the kernel, and so does abort(). */
	if (forwarded && (!sent || crash->signo == SIGABRT))
		log_publish_sigsafe();
	if (crash->flags & LOG_CRASH_FINAL) {
		log_save_sigsafe();
		FEATURES_TELL(end.crashed, crash_behind(crash), scratch.near,
			      crash->flags & LOG_CRASH_LIGHT ? 0 : scratch.near_count);
	}
}

static uint64_t record_make(uint64_t started, const struct log_crash *crash,
			    const ucontext_t *context)
{
	struct log_crash told = *crash;
	struct log_writer writer;

	if (!writer_choose(&writer, crash))
		return 0;
	if (crash->flags & LOG_CRASH_FINAL) {
		FEATURES_TELL(end.crashing);
		/* Who made no context has not told yet where modules lie: hooks are placed by that.
		 */
		if (agent_switch.ids || agent.plan.flags & PLAN_NO_BLOCKS)
			(void)modules_generation_sigsafe();
	}
	secret_hide_registers_sigsafe(told.gregs, sizeof(told.gregs), 8);
	if (!log_begin_sigsafe(&writer, LOG_CRASH, &told, sizeof(told)))
		return 0;
	parts_write(&writer, crash, context);
	record_end(&writer, crash, started);
	return writer.owner;
}

uint64_t crash_record_sigsafe(int signo, const siginfo_t *info, const ucontext_t *context,
			      uint32_t flags, const struct sigaction *action)
{
	uint64_t started = clock_ns_sigsafe(CLOCK_MONOTONIC), owner;
	struct log_crash crash;
	struct rlimit limit;
	bool granted = false;

	if (flags & LOG_CRASH_FINAL)
		(void)agent_adopt_orphan_sigsafe();
	if (!agent_switch.crash || !agent_owns_process_sigsafe())
		return 0;
	if (flags & LOG_CRASH_FINAL) {
		let_first_finish();
		granted = descriptors_grant(&limit);
	}
	if (flags & LOG_CRASH_FORWARDED && __atomic_load_n(&log_map.header->forwarded_faults,
							   __ATOMIC_RELAXED) >= FULL_PROVISIONAL)
		flags |= LOG_CRASH_LIGHT;
	crash_fill(&crash, signo, info, context, flags, action);
	owner = record_make(started, &crash, context);
	if (granted)
		descriptors_restore(&limit);
	return owner;
}

void crash_exiting_sigsafe(void)
{
	if (thread_self && !crash_in_handler_sigsafe((uint64_t)__builtin_frame_address(0)))
		crash_handled_sigsafe(thread_self->signals.last_crash, NULL);
}
