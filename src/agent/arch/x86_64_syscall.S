/*
 * libc's syscall(), which programs use to go past libc.
 *
 * Four of its calls are ours to know of: what is done to handlers and masks (signals.c), and what
 * may put a filter on calls (sandbox.c). All others go on as if we were not here, without a frame on
 * the stack: a child that shares it may return from here before its parent does (vfork, clone with
 * CLONE_VM).
 */
	.text
	.globl syscall
	.type syscall, @function
	.balign 16
syscall:
	endbr64
	cmp $13, %rdi /* rt_sigaction */
	je 1f
	cmp $14, %rdi /* rt_sigprocmask */
	je 1f
	cmp $157, %rdi /* prctl */
	je 2f
	cmp $317, %rdi /* seccomp */
	je 2f
	jmp *real_syscall(%rip)
1:	jmp signals_syscall
2:	jmp sandbox_syscall
	.size syscall, . - syscall

	.section .note.GNU-stack,"",@progbits
