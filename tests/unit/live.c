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
#include "arch/x86_64_cpu.h"
#include "base/fd.h"
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

	assert_int_equal(ptrace(PTRACE_GETREGS, live->snapshot.tid, NULL, &u), 0);
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
	AUTO(mem_freep) char *text = NULL;
	struct err err;
	size_t len;

	assert_int_equal(file_read(name, 1 << 20, &text, &len, &err), 0);
	mappings_deinit(&live->maps);
	assert_int_equal(mappings_parse(&live->maps, text, len), 0);
	live->mappings = live->maps.items;
	live->snapshot.mappings = live->mappings;
	live->snapshot.mapping_count = live->maps.count;
}

static void take_stack(struct live *live)
{
	taddr low = live->snapshot.registers.value[X86_64_RSP] - 128;
	const struct mapping *mapping = NULL;
	size_t want = STACK_BYTES;
	ssize_t got;

	live->stack = mem_alloc(STACK_BYTES);
	/* After an overflow the pointer stands a little below what is mapped. */
	for (size_t i = 0; i < live->snapshot.mapping_count && !mapping; i++)
		if (live->mappings[i].end > low + 128 && (live->mappings[i].perms & MAPPING_WRITE))
			mapping = &live->mappings[i];
	if (!mapping || mapping->start > low + 65536)
		return;
	if (low < mapping->start)
		low = mapping->start;
	if (mapping->end - low < want)
		want = (size_t)(mapping->end - low);
	got = child_read(live->pid, low, live->stack, want);
	if (got > 0)
		live->snapshot.stack = (struct piece){ low, live->stack, (size_t)got };
}

void live_set_path(struct mapping *mapping, const char *path)
{
	mem_free((char *)mapping->path);
	mapping->path = path ? mem_strdup(path) : NULL;
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

bool live_read(void *arg, taddr address, void *buf, size_t len)
{
	struct live *live = arg;

	return child_read(live->pid, address, buf, len) == (ssize_t)len;
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

static void take_all(struct live *live)
{
	take_registers(live);
	take_mappings(live);
	take_stack(live);
	(void)live_record(live, live->snapshot.registers.value[X86_64_RIP] - 64, 128);
}

static void run_to_signal(struct live *live, const char *name)
{
	bool traced = false;
	int status;

	for (;;) {
		int deliver = 0;
		pid_t tid = waitpid(-1, &status, __WALL);

		assert_true(tid > 0);
		if (!WIFSTOPPED(status)) {
			if (tid == live->pid)
				fail_msg("'%s' ended with wait status %#x", name, status);
			continue; /* a thread, or a leftover of an earlier child */
		}
		if (!traced)
			assert_int_equal(ptrace(PTRACE_SETOPTIONS, tid, NULL,
						(void *)(intptr_t)PTRACE_O_TRACECLONE),
					 0);
		traced = true;
		live->signal = WSTOPSIG(status);
		live->snapshot.tid = tid;
		if (live->signal == SIGILL || live->signal == SIGCHLD)
			deliver = live->signal;
		else if (live->signal != SIGTRAP && live->signal != SIGSTOP)
			return;
		assert_int_equal(ptrace(PTRACE_CONT, tid, NULL, (void *)(intptr_t)deliver), 0);
	}
}

void live_step_into(struct live *live, const char *mapping)
{
	const struct mapping *at = NULL;
	int status;

	for (unsigned int steps = 0; steps < 1000000; steps++) {
		assert_int_equal(ptrace(PTRACE_SINGLESTEP, live->snapshot.tid, NULL, NULL), 0);
		assert_int_equal(waitpid(live->snapshot.tid, &status, __WALL), live->snapshot.tid);
		assert_true(WIFSTOPPED(status) && WSTOPSIG(status) == SIGTRAP);
		take_registers(live);
		at = snapshot_mapping(&live->snapshot, live->snapshot.registers.value[X86_64_RIP]);
		if (at && at->path && strcmp(at->path, mapping) == 0)
			break;
		at = NULL;
	}
	assert_non_null(at);
	mem_free(live->stack);
	take_all(live);
}

void live_start(struct live *live, const char *const argv[])
{
	int out[2];

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
	live->snapshot.pid = live->pid;
	run_to_signal(live, argv[0]);
	take_all(live);
	read_output(out[0], &live->output);
	(void)close(out[0]);
}

void live_stop(struct live *live)
{
	pid_t tid;
	int status;

	(void)kill(live->pid, SIGKILL);
	/* Its threads come first, the process last. */
	while ((tid = waitpid(-1, &status, __WALL)) > 0)
		if (tid == live->pid && !WIFSTOPPED(status))
			break;
	for (size_t i = 0; i < live->snapshot.piece_count; i++)
		mem_free((void *)(uintptr_t)live->pieces[i].bytes);
	mem_free(live->pieces);
	mappings_deinit(&live->maps);
	mem_free(live->stack);
	mem_free(live->output);
	*live = (struct live){ 0 };
}
