/*
 * Gates: places outside of which system calls of the target are told to us first (calls.h).
 *
 * A gate makes the system call that the registers say and goes on where its word in
 * arch_gate_targets says, which is behind the instruction that made the call in the target's own
 * code. No register is touched and no stack is needed, so it does for clone, vfork and sigreturn as
 * for all others. As many as call.c has ARCH_GATES.
 *
 * arch_call makes a call in which a thread may wait, and says that it was made: by a store behind it,
 * and until that store by being at arch_call_made.
 *
 * arch_sigreturn is what handlers of ours return to. Its bytes are those of libc's: unwinders know
 * signal frames by them, gdb by the name as well (and would find wrong rules, if there were any for
 * this address).
 */
	.section .bss.arch_gate_targets, "aw", @nobits
	.globl arch_gate_targets
	.hidden arch_gate_targets
	.balign 4096
arch_gate_targets:
	.skip 8 * 2048

	.text
	.globl arch_gates
	.hidden arch_gates
	.type arch_gates, @function
	.balign 64
arch_gates:
	.set i, 0
	.rept 2048
	syscall
	jmp *(arch_gate_targets + 8 * i)(%rip)
	.set i, i + 1
	.endr
	.size arch_gates, . - arch_gates

	/* rdi: six arguments, rsi: number, rdx: becomes 1 */
	.globl arch_call
	.hidden arch_call
	.type arch_call, @function
	.balign 64
arch_call:
	.cfi_startproc
	push %rbx
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset %rbx, 0
	mov %rdx, %rbx
	mov %rsi, %rax
	mov %rdi, %r11
	mov (%r11), %rdi
	mov 8(%r11), %rsi
	mov 16(%r11), %rdx
	mov 24(%r11), %r10
	mov 32(%r11), %r8
	mov 40(%r11), %r9
	syscall
	.globl arch_call_made
	.hidden arch_call_made
arch_call_made:
	movl $1, (%rbx)
	pop %rbx
	.cfi_adjust_cfa_offset -8
	.cfi_restore %rbx
	ret
	.cfi_endproc
	.size arch_call, . - arch_call

	.balign 64
	nop
	.globl arch_sigreturn
	.hidden arch_sigreturn
	.type arch_sigreturn, @function
arch_sigreturn:
	mov $15, %rax
	syscall
	.size arch_sigreturn, . - arch_sigreturn
	.balign 16

	.section .note.GNU-stack,"",@progbits
