#include "agent/core/start.h"

#include <cpuid.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>

#include "agent/arch/x86_64.h"
#include "agent/core/agent.h"
#include "agent/core/clock.h"
#include "agent/core/feature.h"
#include "agent/core/lanes.h"
#include "agent/core/log.h"
#include "agent/core/maps.h"
#include "agent/core/memory.h"
#include "agent/core/modules.h"
#include "agent/core/real.h"
#include "agent/core/retire.h"
#include "agent/core/secret.h"
#include "agent/core/signals.h"
#include "agent/core/text.h"

/* The linker's own marks around our code. */
extern const char __ehdr_start[] __attribute__((visibility("hidden")));
extern const char etext[] __attribute__((visibility("hidden")));
extern const char __bss_start[] __attribute__((visibility("hidden")));
extern const char _end[] __attribute__((visibility("hidden")));

/* Copies NAME=value; false when it is not there or too long. Returns where the value starts. */
static const char *variable_copy(char **envp, const char *name, char *to, size_t cap)
{
	const char *value;
	struct text text;

	for (; *envp; envp++) {
		value = text_after(*envp, name);
		if (!value || *value != '=')
			continue;
		text_begin(&text, to, cap);
		text_add(&text, *envp);
		return text.cut ? NULL : to + (value + 1 - *envp);
	}
	return NULL;
}

/* The plan of whoever made the directory: another user may have been let in. */
static long plan_open(void)
{
	long directory = log_directory_sigsafe(), fd;
	struct stat theirs, ours;

	if (directory < 0)
		return directory;
	fd = raw_syscall4(SYS_openat, directory, WIRE_PLAN_NAME,
			  O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0);
	if (fd >= 0 &&
	    (raw_syscall2(SYS_fstat, directory, &theirs) || raw_syscall2(SYS_fstat, fd, &ours) ||
	     !S_ISREG(ours.st_mode) || ours.st_uid != theirs.st_uid)) {
		(void)raw_syscall1(SYS_close, fd);
		fd = -EPERM;
	}
	(void)raw_syscall1(SYS_close, directory);
	return fd;
}

/* No file: defaults. A file that does not verify: false. */
static bool plan_load(void)
{
	static _Alignas(8) unsigned char bytes[PLAN_BYTES_MAX + 8]; /* untouched beyond the plan */
	size_t have = 0;
	long fd, got;

	plan_init(&agent.plan, PLAN_OBSERVE_CRASH);
	fd = plan_open();
	if (fd < 0)
		return fd == -ENOENT;
	while (have < sizeof(bytes)) {
		got = raw_syscall3(SYS_read, fd, bytes + have, sizeof(bytes) - have);
		if (got <= 0)
			break;
		have += (size_t)got;
	}
	(void)raw_syscall1(SYS_close, fd);
	if (plan_check(bytes, have, &agent.plan) != PLAN_OK)
		return false;
	agent.items_refused = features_plan(bytes);
	return true;
}

/* The command line as /proc has it, without secrets. The words lie behind each other where the
 * kernel put them; who was forked asks it. Returns how long it is. */
static size_t command_line(char *const *argv, char *buffer, size_t cap)
{
	const char *start = argv ? argv[0] : NULL, *end = start;
	size_t bytes;

	if (start) {
		while (*argv++ == end && (size_t)(end - start) < cap)
			end += strlen(end) + 1;
		bytes = (size_t)(end - start) < cap ? (size_t)(end - start) : cap;
		memcpy(buffer, start, bytes);
	} else {
		bytes = maps_text_sigsafe("/proc/self/cmdline", buffer, cap);
	}
	buffer[bytes] = '\0';
	secret_hide_command(buffer, bytes);
	return bytes;
}

/* What this image is: for the tool, which sees only pids. `argv`: as it was started with, or NULL.
 */
static void image_record(uint64_t stack_high, char *const *argv)
{
	char command[4096];
	struct log_image image;
	struct log_writer writer;
	size_t bytes;
	long got;

	log_map.header->drops[LOG_DROP_PLAN_ITEM] = agent.items_refused;
	log_map.header->libc_cache = agent.libc_cache; /* of a child: what its parent has seen */
	memset(&image, 0, sizeof(image));
	image.start_realtime_ns = clock_ns_sigsafe(CLOCK_REALTIME);
	image.stack_high = stack_high;
	got = raw_syscall4(SYS_readlinkat, AT_FDCWD, "/proc/self/exe", command, sizeof(command));
	if (got > 0)
		memcpy(image.exe, command,
		       (size_t)got < sizeof(image.exe) ? (size_t)got : sizeof(image.exe) - 1);
	log_writer_init_sigsafe(&writer, LOG_TO_EVENTS);
	(void)log_begin_sigsafe(&writer, LOG_IMAGE, &image, sizeof(image));
	if (got >= (long)sizeof(image.exe))
		log_blob_sigsafe(&writer, LOG_BLOB_PATH, 0, 0, command, (size_t)got);
	bytes = command_line(argv, command, sizeof(command) - 1);
	if (bytes)
		log_blob_sigsafe(&writer, LOG_BLOB_COMMAND, 0, 0, command, bytes);
}

static bool with_ids(void)
{
	return agent.plan.observer >= PLAN_OBSERVE_IDS;
}

/* What is on is told by whom it concerns; those of blocks come last and so switch on the hooks. */
static void switch_on(void)
{
	agent_switch.here = 1;
	agent_switch.crash = 1;
	FEATURES_TELL(start.switch_on);
}

/* The child has a log of its own; until it is there, the wiped switch keeps every hook quiet. */
static void after_fork_in_child(void)
{
	unsigned i;

	if (!log_map.header || agent.sandboxed)
		return;
	if (!log_create()) {
		/* The parent's log is still mapped here: never touch it again. */
		log_map.header = NULL;
		return;
	}
	thread_after_fork();
	image_record(thread_self ? thread_self->stack_high : 0, NULL);
	if (with_ids()) {
		modules_forget();
		/* Most children exec at once: it is looked for code when a context is made. */
		modules_stale_sigsafe();
	}
	for (i = 0; i < features_count; i++)
		if (features[i].fork.forked && (with_ids() || !features[i].with_ids))
			features[i].fork.forked();
	switch_on();
}

/* Nobody told us of this process while it lived, so blocks, contexts and rings are its parent's: it
 * has a crash log as the observer of that name writes it, and nothing else. A child that shares its
 * parent's memory does not come here: its page is not wiped. */
bool agent_adopt_orphan_sigsafe(void)
{
	if (agent_switch.here || !log_map.header || agent_owns_process_sigsafe())
		return false;
	agent.plan.observer = PLAN_OBSERVE_CRASH;
	agent.plan.flags = 0;
	FEATURES_TELL(fork.orphaned);
	if (!log_create()) {
		log_map.header = NULL;
		return false;
	}
	if (thread_self) {
		thread_self->tid = (uint32_t)raw_syscall0(SYS_gettid);
		thread_self->signals.last_crash = thread_self->signals.survived = 0;
		thread_self->row = &log_map.threads[thread_self->lane];
	}
	agent_switch.here = 1;
	agent_switch.crash = 1;
	image_record(thread_self ? thread_self->stack_high : 0, NULL);
	return true;
}

static uint64_t end_of_environment(char **envp)
{
	while (*envp)
		envp++;
	return (uint64_t)(envp + 1);
}

static bool under_valgrind(void)
{
	return strstr(agent.preload, "/vgpreload_") != NULL;
}

/* qemu-user translates the target and keeps books of every page that it reserves: what costs
 * nothing elsewhere takes it gigabytes. It cannot do rseq, and its CPU says that it is one of
 * qemu's. */
static bool under_emulator(void)
{
	enum { TCG = 0x54474354 }; /* "TCGT"; the others go on: "CGTC", "GTCG" */
	unsigned eax, ebx, ecx, edx;

	if (raw_syscall4(SYS_rseq, NULL, 0, 0, 0) != -ENOSYS)
		return false;
	__cpuid(0x40000000, eax, ebx, ecx, edx);
	(void)eax;
	return ebx == TCG;
}

#define TIGHT_EVENTS_MIB 2u /* of a crash alone */

static void plan_shrink(void)
{
	agent.plan.thread_slots = 64;
	agent.plan.ring_records = 1024;
	agent.plan.context_rows = 16384;
	agent.plan.events_mib = 16;
}

void agent_unobserved(enum log_unobserved_why why)
{
	struct log_unobserved record = { .why = why };
	struct log_writer writer;
	char path[1024];
	long got;

	log_writer_init_sigsafe(&writer, LOG_TO_EVENTS);
	(void)log_begin_sigsafe(&writer, LOG_UNOBSERVED, &record, sizeof(record));
	got = raw_syscall4(SYS_readlinkat, AT_FDCWD, "/proc/self/exe", path, sizeof(path));
	if (got > 0)
		log_blob_sigsafe(&writer, LOG_BLOB_PATH, 0, 0, path, (size_t)got);
	log_save_sigsafe();
}

/* A sanitizer puts itself before memcpy too, and finds fault with a stack that is copied whole; it
 * has handlers of its own, and its reports are what the user built it for. Valgrind counts every
 * byte that is reserved, and breaks down at a crash that we look at. So the process is left to
 * them: hooks pass through, children are observed as ever. */
static void checked_note(enum log_unobserved_why why, char *const *argv)
{
	plan_init(&agent.plan, PLAN_OBSERVE_CRASH);
	if (!log_create())
		return;
	image_record(0, argv);
	agent_unobserved(why);
}

/* Our tables are not to make a core file longer. */
static void core_spare(void)
{
	uint64_t low = ((uint64_t)__bss_start + 4095) & ~4095ull, high = (uint64_t)_end & ~4095ull;

	if (low < high)
		(void)raw_syscall3(SYS_madvise, low, high - low, MADV_DONTDUMP);
}

/* The log is there, or will never be. A limit on address space or file size: less history is better
 * than none. */
static bool log_begin(void)
{
	if (agent.cramped)
		plan_shrink();
	/* What we took there the target would miss. */
	if (agent.tight) {
		agent.plan.observer = PLAN_OBSERVE_CRASH;
		agent.plan.flags = 0;
		agent.plan.events_mib = TIGHT_EVENTS_MIB;
	}
	if (log_create())
		return true;
	plan_shrink();
	return log_create();
}

static bool features_map(void)
{
	unsigned i;

	for (i = 0; i < features_count; i++)
		if (features[i].start.map && (with_ids() || !features[i].with_ids) &&
		    !features[i].start.map())
			return false;
	return true;
}

static void features_init(void)
{
	unsigned i;

	for (i = 0; i < features_count; i++)
		if (features[i].start.init && (with_ids() || !features[i].with_ids))
			features[i].start.init();
}

static void agent_start(char *const *argv, char **envp)
{
	agent.next_id = 1;
	agent.environment = envp;
	agent.user = (uint32_t)raw_syscall0(SYS_geteuid);
	agent.text_low = (uint64_t)__ehdr_start;
	agent.text_high = (uint64_t)etext;
	core_spare();
	if (real.sanitized || under_valgrind()) {
		checked_note(real.sanitized ? LOG_UNOBSERVED_SANITIZED : LOG_UNOBSERVED_VALGRIND,
			     argv);
		return;
	}
	if (!plan_load()) {
		plan_init(&agent.plan, PLAN_OBSERVE_CRASH);
		if (log_create())
			agent_retire_sigsafe(LOG_RETIRED_PLAN);
		return;
	}
	if (with_ids() && under_emulator()) {
		checked_note(LOG_UNOBSERVED_EMULATED, argv);
		return;
	}
	FEATURES_TELL(start.begin);
	if (!log_begin())
		return;
	image_record(end_of_environment(envp), argv);
	if (agent.tight)
		agent_unobserved(LOG_UNOBSERVED_LIMIT);
	if (!features_map() || !thread_init_main(end_of_environment(envp))) {
		agent_retire_sigsafe(LOG_RETIRED_MEMORY);
		return;
	}
	(void)pthread_atfork(NULL, NULL, after_fork_in_child);
	(void)raw_syscall3(SYS_madvise, &agent_switch, sizeof(agent_switch), MADV_WIPEONFORK);
	if (with_ids() && agent.watches) /* on places in modules */
		modules_refresh_sigsafe();
	else if (with_ids())
		modules_stale_sigsafe();
	signals_take_over();
	log_map.header->drops[LOG_DROP_EARLY] = early_count();
	features_init();
	switch_on();
}

/* DF_1_INITFIRST (linker flag) makes this the first constructor of all, before libc's own: the
 * environment comes as an argument, getenv does not work yet. */
__attribute__((constructor)) static void agent_load(int argc, char **argv, char **envp)
{
	const char *trial, *preload;
	struct text text;

	(void)argc;
	if (!real_resolve())
		return; /* no malloc behind ours: the early arena is all there is */
	trial = variable_copy(envp, WIRE_TRIAL_VARIABLE, agent.trial_entry,
			      sizeof(agent.trial_entry));
	if (!trial || trial[0] != '/')
		return;
	text_begin(&text, agent.trial, sizeof(agent.trial));
	text_add(&text, trial);
	preload = variable_copy(envp, "LD_PRELOAD", agent.preload, sizeof(agent.preload));
	if (text.cut || !preload)
		agent.preload[0] = 0;
	secret_start(argv, envp);
	if (!text.cut)
		agent_start(argv, envp);
}

/* How the image ended, when it ended by itself. */
void agent_exiting_sigsafe(uint32_t status, uint32_t how)
{
	struct log_exit record = { .status = status, .how = how };
	struct log_writer writer;

	if (!agent_switch.crash || !agent_owns_process_sigsafe() || log_map.header->exited)
		return;
	FEATURES_TELL(end.exiting);
	log_writer_init_sigsafe(&writer, LOG_TO_EVENTS);
	FEATURES_TELL(end.exited,
		      log_append_sigsafe(&writer, LOG_EXIT, &record, sizeof(record), NULL, 0));
	/* A handler of the target that ends the process instead of returning has hidden a crash. */
	if (log_map.header->forwarded_faults)
		log_publish_sigsafe();
	log_map.header->exit_status = status;
	log_map.header->exited = 1;
	log_map.header->state = LOG_STATE_EXITED;
}

/* First in, last out: after every other destructor. The status is not known here. */
__attribute__((destructor)) static void agent_unload(void)
{
	agent_exiting_sigsafe(UINT32_MAX, 1);
}
