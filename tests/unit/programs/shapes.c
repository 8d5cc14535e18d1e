/*
 * Functions whose code is known to the byte, for the planner of hooks.
 */
#include <stdio.h>

#define FUNCTION(name, body)                                                                       \
	__asm__(".text\n.p2align 4\n.type " #name ", @function\n" #name ":\n.cfi_startproc\n" body \
		"\n.cfi_endproc\n.size " #name ", .-" #name "\n.p2align 4\n");

FUNCTION(loops_into_entry, "push %rbx\n 1: mov %rdi, %rbx\n dec %rdi\n jne 1b\n pop %rbx\n ret")
FUNCTION(loops_to_entry, "dec %rdi\n nopl 8(%rax)\n jne loops_to_entry\n mov %rdi, %rax\n ret")
FUNCTION(has_garbage, "push %rbx\n .byte 0x06, 0x07\n pop %rbx\n ret")
FUNCTION(only_returns, "ret")
FUNCTION(never_returns, "push %rbx\n mov %rdi, %rbx\n xor %eax, %eax\n ud2")
FUNCTION(other_function, "mov %rdi, %rax\n nopl 8(%rax)\n ret")
FUNCTION(calls_other, "sub $8, %rsp\n call other_function\n add $8, %rsp\n ret")
FUNCTION(jumps_to_other, "add $1, %rdi\n nopl 8(%rax)\n jmp other_function")
FUNCTION(own_piece, "mov %rdi, %rax\n nopl 8(%rax)\n ret")
FUNCTION(jumps_to_own, "add $1, %rdi\n nopl 8(%rax)\n jmp own_piece")
FUNCTION(through_pointer, "mov 8(%rdi), %rax\n nopl 8(%rax)\n jmp *%rax")
FUNCTION(unfollowed, "movslq (%rsi,%rdi,4), %rax\n add %rsi, %rax\n jmp *%rax\n nop\n ret")
FUNCTION(after_mark, "endbr64\n mov %rdi, %rax\n nopl 8(%rax)\n ret")
FUNCTION(entered_from_outside,
	 "push %rbx\n mov %rdi, %rbx\nentered_there: mov %rbx, %rax\n pop %rbx\n ret")
FUNCTION(enters_another, "nopl 8(%rax)\n jmp entered_there")
FUNCTION(short_return, "test %rdi, %rdi\n je 1f\n xor %eax, %eax\n 1: ret\n push %rax\n ud2")

extern unsigned long calls_other(unsigned long), jumps_to_other(unsigned long);
extern unsigned long jumps_to_own(unsigned long);

static inline __attribute__((always_inline)) unsigned long always_inlined(unsigned long n)
{
	return n * 3 + 1;
}

__attribute__((noinline)) unsigned long own_function(unsigned long n)
{
	return always_inlined(n) + calls_other(n);
}

static unsigned long chosen(unsigned long n)
{
	return n;
}

static unsigned long (*choose(void))(unsigned long)
{
	return chosen;
}

unsigned long chooses(unsigned long) __attribute__((ifunc("choose")));

int main(void)
{
	printf("%lu\n", own_function(3) + jumps_to_other(1) + jumps_to_own(2) + chooses(1));
	return 0;
}
