/*
 * Requests to the tracer: wire/tracer_talk.h.
 */
#include <sys/syscall.h>

#include "wire/tracer_talk.h"

	.text
/* long tracer_ask_raw(request, rsi, rdx, rcx). The trap stops it in the tracer; where there is none,
 * the agent's own handler finds it here and answers -ENOTCONN (watch_ptrace.c). */
	.globl	tracer_ask_raw
	.hidden	tracer_ask_raw
	.type	tracer_ask_raw, @function
	.p2align 4
tracer_ask_raw:
	.cfi_startproc
	movabsq	$TRACER_MAGIC_A, %rax
	movabsq	$TRACER_MAGIC_B, %r8
	int3
	.globl	tracer_ask_behind
	.hidden	tracer_ask_behind
tracer_ask_behind:
	ret
	.cfi_endproc
	.size	tracer_ask_raw, . - tracer_ask_raw

/* A thread is sent here by the tracer, in the middle of anything: no stack is used, and the tracer
 * puts all registers back. */
	.globl	tracer_trap_repair
	.hidden	tracer_trap_repair
	.type	tracer_trap_repair, @function
	.p2align 4
tracer_trap_repair:
	movl	$SYS_rt_sigaction, %eax
	movl	$5, %edi			/* SIGTRAP */
	leaq	tracer_trap_action(%rip), %rsi
	xorl	%edx, %edx
	movl	$8, %r10d
	syscall
	movabsq	$TRACER_MAGIC_A, %rax
	movabsq	$TRACER_MAGIC_B, %r8
	movl	$TRACER_REPAIRED, %edi
	int3
	ud2
	.size	tracer_trap_repair, . - tracer_trap_repair

	.section .note.GNU-stack, "", @progbits
