/*
 * Gates: places outside of which system calls of the target are told to us first (calls.h).
 *
 * A gate makes the system call that the registers say and goes on where its word in
 * arch_gate_targets says, which is behind the instruction that made the call in the target's own
 * code. No register is touched and no stack is needed, so it does for clone, vfork and sigreturn as
 * for all others. As many as call.c has ARCH_GATES.
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
