/*
 * The way from a patched function of the target into the agent and back.
 *
 * A stub (stub.c writes it) ends up in hooked_gate with this on the stack:
 *
 *	rsp + 24   return address of the hooked function
 *	rsp + 16   rbp as its caller has it: so that rsp + 16 looks like the frame of a hook
 *	rsp + 8    number of the site
 *	rsp        where the stub goes on
 *
 * Every register and every flag is as it was when the gate is left: not only those that a call may
 * not change, since compilers know which others a local function leaves alone (-fipa-ra), and at an
 * exit some hold the result. Vector registers are not touched on the fast way (hooked_fast() is
 * compiled without them) and kept aside on the slow one.
 *
 * The unwind information leaves the stub out: to it, the gate was called by the hooked function's
 * caller. So a stack that is taken inside reads as if the function were one of ours, like malloc.
 */
#include "agent/hooks/hooked_limits.h"

/* Room for the vector registers on the stack, and what they hold into it; changes rax, rcx and rdx. To
 * `older` where the CPU has no XSAVE: FXSAVE is to do it there. */
	.macro	vectors_save older
	subq	$HOOKED_VECTOR_BYTES, %rsp
	andq	$-64, %rsp
	movq	hooked_vectors(%rip), %rax
	testq	%rax, %rax
	je	\older
	movq	%rax, %rdx
	shrq	$32, %rdx
	xorl	%ecx, %ecx		/* the header must be clean (Intel SDM, XRSTOR) */
	movq	%rcx, 512(%rsp)
	movq	%rcx, 520(%rsp)
	movq	%rcx, 528(%rsp)
	movq	%rcx, 536(%rsp)
	movq	%rcx, 544(%rsp)
	movq	%rcx, 552(%rsp)
	movq	%rcx, 560(%rsp)
	movq	%rcx, 568(%rsp)
	xsave	(%rsp)
	.endm

	.text
	.globl	hooked_gate
	.hidden	hooked_gate
	.type	hooked_gate, @function
	.p2align 4
hooked_gate:
	.cfi_startproc
	.cfi_def_cfa %rsp, 32
	.cfi_offset %rbp, -16
	pushq	%rbp
	.cfi_def_cfa %rsp, 40
	movq	%rsp, %rbp
	.cfi_def_cfa %rbp, 40
	pushq	%rax
	lahf
	seto	%al
	pushq	%rax			/* flags: al and ah */
	pushq	%rcx
	pushq	%rdx
	pushq	%rsi
	pushq	%rdi
	pushq	%r8
	pushq	%r9
	pushq	%r10
	pushq	%r11
	cld
	subq	$32, %rsp		/* struct hooked_call: the registers above are its end */
	movq	16(%rbp), %rax
	leaq	24(%rbp), %rcx
	movq	%rcx, (%rsp)		/* frame */
	movl	%eax, 8(%rsp)		/* site */
	movl	$0, 12(%rsp)		/* next action */
	movq	%rsp, %rdi
	/* Entry and exit of a function leave rsp 8 off a multiple of 16; others do not matter. */
	andq	$-16, %rsp
	call	hooked_fast
	testb	%al, %al
	je	1f
0:	leaq	-80(%rbp), %rsp
	popq	%r11
	popq	%r10
	popq	%r9
	popq	%r8
	popq	%rdi
	popq	%rsi
	popq	%rdx
	popq	%rcx
	popq	%rax
	addb	$127, %al		/* overflow again, if it was */
	sahf
	popq	%rax
	popq	%rbp
	.cfi_def_cfa %rsp, 32
	ret
	.cfi_def_cfa %rbp, 40
1:	leaq	-112(%rbp), %rdi
	vectors_save 2f
	call	hooked_slow
	movq	hooked_vectors(%rip), %rax
	movq	%rax, %rdx
	shrq	$32, %rdx
	xrstor	(%rsp)
	jmp	0b
2:	fxsave	(%rsp)
	call	hooked_slow
	fxrstor	(%rsp)
	jmp	0b
	.cfi_endproc
	.size	hooked_gate, .-hooked_gate

/*
 * The same way to a function that takes the place of the program's (builtin_malloc.h), with what builtin_gates has
 * for the number. It is called with the registers as they were and returns like the function itself:
 * all of them are kept, also those that any call may change, but for rax where it holds a result.
 */
	.globl	builtin_kept
	.hidden	builtin_kept
	.type	builtin_kept, @function
	.p2align 4
builtin_kept:
	.cfi_startproc
	.cfi_def_cfa %rsp, 32
	.cfi_offset %rbp, -16
	leaq	16(%rsp), %rbp		/* a frame like any other: rbp, return address */
	.cfi_def_cfa %rbp, 16
	pushq	%rax
	pushq	%rcx
	pushq	%rdx
	pushq	%rsi
	pushq	%rdi
	pushq	%r8
	pushq	%r9
	pushq	%r10
	pushq	%r11
	vectors_save 0f
	jmp	1f
0:	fxsave	(%rsp)
1:	movq	-32(%rbp), %rcx
	movq	-40(%rbp), %rdx
	movl	-8(%rbp), %eax
	leaq	builtin_gates(%rip), %r11
	call	*(%r11, %rax, 8)
	movl	-8(%rbp), %ecx
	cmpl	$HOOKED_OWN_FREE, %ecx
	je	2f
	cmpl	$HOOKED_OWN_GIVE, %ecx
	jae	2f
	movq	%rax, -24(%rbp)
2:	movq	hooked_vectors(%rip), %rax
	testq	%rax, %rax
	je	3f
	movq	%rax, %rdx
	shrq	$32, %rdx
	xrstor	(%rsp)
	jmp	4f
3:	fxrstor	(%rsp)
4:	leaq	-88(%rbp), %rsp
	popq	%r11
	popq	%r10
	popq	%r9
	popq	%r8
	popq	%rdi
	popq	%rsi
	popq	%rdx
	popq	%rcx
	popq	%rax
	movq	(%rbp), %rbp
	.cfi_def_cfa %rsp, 32
	ret
	.cfi_endproc
	.size	builtin_kept, .-builtin_kept

/*
 * Calls instead of jumps. A function that ends in a jump to another one returns when that one does;
 * to see it, the stub comes here, the other one is called, and the exit is hooked when it is back.
 * These calls lie in the agent and not in a stub because exceptions pass through them: here is unwind
 * information that says how.
 */
	.globl	hooked_tails
	.hidden	hooked_tails
	.p2align 5
hooked_tails:
	.cfi_startproc
	.set	tail, 0
	.rept	HOOKED_TAILS
	.cfi_def_cfa %rsp, 8
	subq	$8, %rsp
	.cfi_def_cfa %rsp, 16
	call	*hooked_tail_targets + 8 * tail(%rip)
	addq	$8, %rsp
	.cfi_def_cfa %rsp, 8
	pushq	%rbp
	.cfi_def_cfa %rsp, 16
	pushq	hooked_tail_sites + 8 * tail(%rip)
	.cfi_def_cfa %rsp, 24
	call	hooked_gate
	leaq	8(%rsp), %rsp
	.cfi_def_cfa %rsp, 16
	popq	%rbp
	.cfi_def_cfa %rsp, 8
	ret
	.p2align 6
	.set	tail, tail + 1
	.endr
	.cfi_endproc
	.section .note.GNU-stack, "", @progbits
