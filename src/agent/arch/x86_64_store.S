/*
 * Into a copied instruction and out of it: see x86_64_store.h.
 *
 * void arch_store_enter(struct run *run): offsets are those of struct run in x86_64_store.c. All
 * registers are the target's while the copy runs, rsp too; so nothing may be pushed there, and no
 * signal may come (the handler has them blocked).
 */
	.text
	.globl arch_store_enter
	.hidden arch_store_enter
	.type arch_store_enter, @function
arch_store_enter:
	.cfi_startproc
	push %rbp
	push %rbx
	push %r12
	push %r13
	push %r14
	push %r15
	push %rdi
	mov %rsp, 136(%rdi)
	lea arch_store_leave(%rip), %rax
	mov %rax, 144(%rdi)
	mov 152(%rdi), %rcx
	test %rcx, %rcx
	jz 1f
	mov 160(%rdi), %eax
	mov 164(%rdi), %edx
	xrstor64 (%rcx)
1:	pushq 128(%rdi)
	popfq
	mov 0(%rdi), %r8
	mov 8(%rdi), %r9
	mov 16(%rdi), %r10
	mov 24(%rdi), %r11
	mov 32(%rdi), %r12
	mov 40(%rdi), %r13
	mov 48(%rdi), %r14
	mov 56(%rdi), %r15
	mov 72(%rdi), %rsi
	mov 80(%rdi), %rbp
	mov 88(%rdi), %rbx
	mov 96(%rdi), %rdx
	mov 104(%rdi), %rax
	mov 112(%rdi), %rcx
	mov 120(%rdi), %rsp
	jmp *176(%rdi)
	.cfi_endproc
	.size arch_store_enter, . - arch_store_enter

/* rdi and rsp have been saved by the copy's tail; rsp is ours again. */
	.type arch_store_leave, @function
arch_store_leave:
	mov (%rsp), %rdi
	mov %r8, 0(%rdi)
	mov %r9, 8(%rdi)
	mov %r10, 16(%rdi)
	mov %r11, 24(%rdi)
	mov %r12, 32(%rdi)
	mov %r13, 40(%rdi)
	mov %r14, 48(%rdi)
	mov %r15, 56(%rdi)
	mov %rsi, 72(%rdi)
	mov %rbp, 80(%rdi)
	mov %rbx, 88(%rdi)
	mov %rdx, 96(%rdi)
	mov %rax, 104(%rdi)
	mov %rcx, 112(%rdi)
	pushfq
	popq 128(%rdi)
	cld
	cmpq $0, 168(%rdi)
	je 2f
	mov 152(%rdi), %rcx
	mov 160(%rdi), %eax
	mov 164(%rdi), %edx
	xsave64 (%rcx)
2:	pop %rdi
	pop %r15
	pop %r14
	pop %r13
	pop %r12
	pop %rbx
	pop %rbp
	ret
	.size arch_store_leave, . - arch_store_leave

	.section .note.GNU-stack,"",@progbits
