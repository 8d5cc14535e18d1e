/*
 * void arch_on_stack(void *top, void (*work)(void *arg), void *arg): calls work(arg) with the stack
 * pointer at `top`. Unwinders find the way back by rbp.
 */
	.text
	.globl arch_on_stack
	.hidden arch_on_stack
	.type arch_on_stack, @function
	.balign 16
arch_on_stack:
	.cfi_startproc
	push %rbp
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset %rbp, 0
	mov %rsp, %rbp
	.cfi_def_cfa_register %rbp
	mov %rdi, %rsp
	and $-16, %rsp
	mov %rdx, %rdi
	call *%rsi
	mov %rbp, %rsp
	.cfi_def_cfa_register %rsp
	pop %rbp
	.cfi_adjust_cfa_offset -8
	.cfi_restore %rbp
	ret
	.cfi_endproc
	.size arch_on_stack, . - arch_on_stack

	.section .note.GNU-stack,"",@progbits
