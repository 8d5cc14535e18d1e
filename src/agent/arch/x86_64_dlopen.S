/*
 * dlopen, which looks at who calls it: whose RUNPATH counts, and in which name space.
 *
 * So it is jumped to without a frame of ours on the stack. Only with RTLD_DEEPBIND are we asked
 * (deepbind.c): for the mode to go on with, or 0 when it is to be done there.
 */
	.text
	.globl dlopen
	.type dlopen, @function
	.balign 16
dlopen:
	.cfi_startproc
	endbr64
	test $8, %esi /* RTLD_DEEPBIND */
	jnz 1f
	jmp *real_dlopen(%rip)
1:	push %rdi
	.cfi_adjust_cfa_offset 8
	push %rsi
	.cfi_adjust_cfa_offset 8
	sub $8, %rsp
	.cfi_adjust_cfa_offset 8
	call deepbind_mode
	add $8, %rsp
	.cfi_adjust_cfa_offset -8
	pop %rsi
	.cfi_adjust_cfa_offset -8
	pop %rdi
	.cfi_adjust_cfa_offset -8
	test %eax, %eax
	jz 2f
	mov %eax, %esi
	jmp *real_dlopen(%rip)
2:	jmp deepbind_open
	.cfi_endproc
	.size dlopen, . - dlopen

	.section .note.GNU-stack,"",@progbits
