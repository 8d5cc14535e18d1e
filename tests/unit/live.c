#include "live.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "arch/arch.h"
#include "arch/x86_64.h"
#include "base/mem.h"
#include "base/strbuf.h"

#define STACK_BYTES (256 * 1024)

static ssize_t child_read(pid_t pid, taddr address, void *buf, size_t len)
{
	struct iovec to = { buf, len }, from = { (void *)(uintptr_t)address, len };

	return process_vm_readv(pid, &to, 1, &from, 1, 0);
}

static void take_registers(struct live *live)
{
	struct registers *r = &live->snapshot.registers;
	struct user_regs_struct u;

	assert_int_equal(ptrace(PTRACE_GETREGS, live->pid, NULL, &u), 0);
	r->value[X86_64_RAX] = u.rax;
	r->value[X86_64_RDX] = u.rdx;
	r->value[X86_64_RCX] = u.rcx;
	r->value[X86_64_RBX] = u.rbx;
	r->value[X86_64_RSI] = u.rsi;
	r->value[X86_64_RDI] = u.rdi;
	r->value[X86_64_RBP] = u.rbp;
	r->value[X86_64_RSP] = u.rsp;
	r->value[X86_64_R8] = u.r8;
	r->value[X86_64_R9] = u.r9;
	r->value[X86_64_R10] = u.r10;
	r->value[X86_64_R11] = u.r11;
	r->value[X86_64_R12] = u.r12;
	r->value[X86_64_R13] = u.r13;
	r->value[X86_64_R14] = u.r14;
	r->value[X86_64_R15] = u.r15;
	r->value[X86_64_RIP] = u.rip;
	r->value[X86_64_RFLAGS] = u.eflags;
	r->value[X86_64_FS_BASE] = u.fs_base;
	r->value[X86_64_GS_BASE] = u.gs_base;
	r->known = (1u << X86_64_REGISTERS) - 1;
}

static void take_mappings(struct live *live)
{
	AUTO(mem_freep) char *name = mem_printf("/proc/%d/maps", (int)live->pid);
	FILE *maps = fopen(name, "re");
	char line[4352];

	assert_non_null(maps);
	while (fgets(line, sizeof(line), maps)) {
		struct mapping m = { 0 };
		unsigned long start, end, offset;
		char perms[5];
		int path_at = 0;

		if (sscanf(line, "%lx-%lx %4s %lx %*s %*s %n", &start, &end, perms, &offset,
			   &path_at) < 4)
			continue;
		line[strcspn(line, "\n")] = '\0';
		m.start = start;
		m.end = end;
		m.file_offset = offset;
		m.perms = (perms[0] == 'r' ? MAPPING_READ : 0) |
			  (perms[1] == 'w' ? MAPPING_WRITE : 0) |
			  (perms[2] == 'x' ? MAPPING_EXEC : 0) |
			  (perms[3] == 's' ? MAPPING_SHARED : 0);
		live->paths = mem_resize(live->paths, live->path_count + 1, sizeof(char *));
		live->paths[live->path_count++] = mem_strdup(path_at ? line + path_at : "");
		if (path_at && line[path_at])
			m.path = live->paths[live->path_count - 1];
		live->mappings =
			mem_resize(live->mappings, live->snapshot.mapping_count + 1, sizeof(m));
		live->mappings[live->snapshot.mapping_count++] = m;
	}
	(void)fclose(maps);
	live->snapshot.mappings = live->mappings;
}

static void take_stack(struct live *live)
{
	taddr low = live->snapshot.registers.value[X86_64_RSP] - 128;
	const struct mapping *mapping = snapshot_mapping(&live->snapshot, low + 128);
	size_t want = STACK_BYTES;
	ssize_t got;

	live->stack = mem_alloc(STACK_BYTES);
	if (!mapping)
		return;
	if (low < mapping->start)
		low = mapping->start;
	if (mapping->end - low < want)
		want = (size_t)(mapping->end - low);
	got = child_read(live->pid, low, live->stack, want);
	if (got > 0)
		live->snapshot.stack = (struct piece){ low, live->stack, (size_t)got };
}

bool live_record(struct live *live, taddr address, size_t len)
{
	uint8_t *bytes = mem_alloc(len);

	if (child_read(live->pid, address, bytes, len) != (ssize_t)len) {
		mem_free(bytes);
		return false;
	}
	if (live->snapshot.piece_count == live->pieces_room) {
		live->pieces_room = live->pieces_room * 2 + 16;
		live->pieces = mem_resize(live->pieces, live->pieces_room, sizeof(*live->pieces));
	}
	live->pieces[live->snapshot.piece_count++] = (struct piece){ address, bytes, len };
	live->snapshot.pieces = live->pieces;
	return true;
}

bool live_read_recording(void *arg, taddr address, void *buf, size_t len)
{
	struct live *live = arg;

	return live_record(live, address, len) &&
	       child_read(live->pid, address, buf, len) == (ssize_t)len;
}

static void read_output(int fd, char **ret)
{
	struct strbuf text = { 0 };
	char buf[4096];
	ssize_t n;

	/* The child is stopped and never closes its end: take what is there. */
	while ((n = read(fd, buf, sizeof(buf))) > 0)
		strbuf_add(&text, buf, (size_t)n);
	if (!text.data)
		strbuf_adds(&text, "");
	*ret = strbuf_take(&text);
}

void live_start(struct live *live, const char *const argv[])
{
	int out[2], status;

	*live = (struct live){ 0 };
	assert_int_equal(pipe2(out, O_NONBLOCK), 0);
	live->pid = fork();
	assert_true(live->pid >= 0);
	if (live->pid == 0) {
		(void)dup2(out[1], 1);
		(void)close(out[0]);
		(void)close(out[1]);
		(void)ptrace(PTRACE_TRACEME, 0, NULL, NULL);
		(void)execv(argv[0], (char *const *)argv);
		_exit(127);
	}
	(void)close(out[1]);
	for (;;) {
		int deliver = 0;

		assert_int_equal(waitpid(live->pid, &status, 0), live->pid);
		if (!WIFSTOPPED(status))
			fail_msg("'%s' ended with wait status %#x", argv[0], status);
		live->signal = WSTOPSIG(status);
		if (live->signal == SIGUSR1 || live->signal == SIGALRM || live->signal == SIGCHLD)
			deliver = live->signal;
		else if (live->signal != SIGTRAP)
			break;
		assert_int_equal(ptrace(PTRACE_CONT, live->pid, NULL, (void *)(intptr_t)deliver),
				 0);
	}
	live->snapshot.pid = live->pid;
	live->snapshot.tid = live->pid;
	take_registers(live);
	take_mappings(live);
	take_stack(live);
	(void)live_record(live, live->snapshot.registers.value[X86_64_RIP] - 64, 128);
	read_output(out[0], &live->output);
	(void)close(out[0]);
}

void live_stop(struct live *live)
{
	int status;

	(void)kill(live->pid, SIGKILL);
	(void)waitpid(live->pid, &status, 0);
	for (size_t i = 0; i < live->snapshot.piece_count; i++)
		mem_free((void *)(uintptr_t)live->pieces[i].bytes);
	for (size_t i = 0; i < live->path_count; i++)
		mem_free(live->paths[i]);
	mem_free(live->pieces);
	mem_free(live->mappings);
	mem_free(live->paths);
	mem_free(live->stack);
	mem_free(live->output);
	*live = (struct live){ 0 };
}
