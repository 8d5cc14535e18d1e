/*
 * libc's syscall(), which programs use to go past libc.
 *
 * Some of its calls are ours to know of: what is done to handlers and masks (signals.c), what may
 * put a filter on calls (sandbox.c), and what may cut a file (hooks_file.c). All others go on as if
 * we were not here, without a frame on the stack: a child that shares it may return from here before
 * its parent does (vfork, clone with CLONE_VM).
 */
	.text
	.globl syscall
	.type syscall, @function
	.balign 16
syscall:
	endbr64
	cmp $LAST, %rdi
	ja 1f
	lea ways(%rip), %rax
	movzbl (%rax,%rdi), %eax
	test %eax, %eax
	jz 1f
	cmp $2, %eax
	jb signals_syscall
	je sandbox_syscall
	jmp file_syscall
1:	jmp *real_syscall(%rip)
	.size syscall, . - syscall

/* By number: 1 signals.c, 2 sandbox.c, 3 hooks_file.c. */
	.set LAST, 437
	.macro way number, to
	.org ways + \number
	.byte \to
	.endm
	.section .rodata
	.balign 16
ways:
	way 2, 3   /* open */
	way 13, 1  /* rt_sigaction */
	way 14, 1  /* rt_sigprocmask */
	way 76, 3  /* truncate */
	way 77, 3  /* ftruncate */
	way 85, 3  /* creat */
	way 157, 2 /* prctl */
	way 257, 3 /* openat */
	way 285, 3 /* fallocate */
	way 304, 3 /* open_by_handle_at */
	way 317, 2 /* seccomp */
	way LAST, 3 /* openat2 */

	.section .note.GNU-stack,"",@progbits
