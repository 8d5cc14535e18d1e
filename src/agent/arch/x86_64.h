/*
 * What the agent knows about the CPU: raw system calls, registers, call instructions.
 *
 * Raw calls, because libc's wrappers set errno, may be cancellation points, and may be hooked by
 * somebody else. All functions here are async-signal-safe.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/platform/x86.h>
#include <sys/syscall.h>
#include <sys/ucontext.h>

#include "wire/log_format.h"

#define PAGE 4096ull

static inline long raw_syscall6(long n, long a, long b, long c, long d, long e, long f)
{
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	long ret;

	/* psABI A.2.1: rcx and r11 are destroyed, result or -errno in rax. */
	__asm__ volatile("syscall"
			 : "=a"(ret)
			 : "a"(n), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return ret;
}

#define raw_syscall0(n) raw_syscall6(n, 0, 0, 0, 0, 0, 0)
#define raw_syscall1(n, a) raw_syscall6(n, (long)(a), 0, 0, 0, 0, 0)
#define raw_syscall2(n, a, b) raw_syscall6(n, (long)(a), (long)(b), 0, 0, 0, 0)
#define raw_syscall3(n, a, b, c) raw_syscall6(n, (long)(a), (long)(b), (long)(c), 0, 0, 0)
#define raw_syscall4(n, a, b, c, d) \
	raw_syscall6(n, (long)(a), (long)(b), (long)(c), (long)(d), 0, 0)

/* The registers an unwinder needs, at this very place; inlined into the caller. */
static inline __attribute__((always_inline)) void
arch_callee_registers(struct log_callee_registers *ret)
{
	__asm__ volatile("leaq 0f(%%rip), %%rax\n"
			 "0:\n\t"
			 "movq %%rax, 0(%0)\n\t"
			 "movq %%rsp, 8(%0)\n\t"
			 "movq %%rbp, 16(%0)\n\t"
			 "movq %%rbx, 24(%0)\n\t"
			 "movq %%r12, 32(%0)\n\t"
			 "movq %%r13, 40(%0)\n\t"
			 "movq %%r14, 48(%0)\n\t"
			 "movq %%r15, 56(%0)\n\t"
			 :
			 : "r"(ret)
			 : "rax", "memory");
}

#define ARCH_FLAG_AC \
	0x40000ull /* alignment check: misaligned accesses fault (SDM volume 3, 6.15) */

/* The kernel lets handlers run with the interrupted code's alignment checks, and nobody compiles
 * for them. True: they were on. */
static inline bool arch_alignment_relax_sigsafe(const ucontext_t *context)
{
	if (!((uint64_t)context->uc_mcontext.gregs[REG_EFL] & ARCH_FLAG_AC))
		return false;
	__builtin_ia32_writeeflags_u64(__builtin_ia32_readeflags_u64() & ~ARCH_FLAG_AC);
	return true;
}

static inline void arch_alignment_insist_sigsafe(void)
{
	__builtin_ia32_writeeflags_u64(__builtin_ia32_readeflags_u64() | ARCH_FLAG_AC);
}

/* In a loop that waits: lets the other thread of the core run. */
static inline void arch_relax(void)
{
	__builtin_ia32_pause();
}

/* Inlined, so that a fault in it is in our own code. */
static inline __attribute__((always_inline)) void arch_copy(void *to, const void *from,
							    uint64_t bytes)
{
	uint64_t words = bytes / 8, rest = bytes % 8;

	__asm__ volatile("rep movsq\n\t"
			 "movq %3, %%rcx\n\t"
			 "rep movsb"
			 : "+D"(to), "+S"(from), "+c"(words)
			 : "r"(rest)
			 : "memory");
}

/* A call in the middle of a hot path that has every register in use: only the result changes a
 * register. GCC saves more than needed around a call of a no_caller_saved_registers function, so
 * this goes around it. ARCH_KEPT(f) makes what arch_call_kept(f, ...) calls; f uses no vector
 * registers, and the caller has no red zone. */
#define ARCH_KEPT(function)                                                        \
	__asm__(".pushsection .text." #function "_kept,\"ax\",@progbits\n"         \
		".hidden " #function "_kept\n"                                     \
		".globl " #function "_kept\n"                                      \
		".type " #function "_kept,@function\n" #function "_kept:\n"        \
		".cfi_startproc\n"                                                 \
		"push %rax\n\tpush %rcx\n\tpush %rdx\n\tpush %rdi\n\t"             \
		"push %r8\n\tpush %r9\n\tpush %r10\n\tpush %r11\n\t"               \
		".cfi_adjust_cfa_offset 64\n\t"                                    \
		"mov %rcx, %rdi\n\tcall " #function "\n\tmov %rax, %rsi\n\t"       \
		"pop %r11\n\tpop %r10\n\tpop %r9\n\tpop %r8\n\t"                   \
		"pop %rdi\n\tpop %rdx\n\tpop %rcx\n\tpop %rax\n\t"                 \
		".cfi_adjust_cfa_offset -64\n\tret\n"                              \
		".cfi_endproc\n.size " #function "_kept, . - " #function "_kept\n" \
		".popsection")

#define arch_call_kept(function, a, b, c)                                 \
	({                                                                \
		uint64_t word_ = (b);                                     \
		__asm__ volatile("call " #function "_kept"                \
				 : "+S"(word_)                            \
				 : "c"((uint64_t)(a)), "d"((uint64_t)(c)) \
				 : "cc", "memory");                       \
		word_;                                                    \
	})

/* Adds to a counter and returns what it was, in one instruction: a signal handler on the same
 * thread comes before it or after it. No other thread may use the counter. */
static inline __attribute__((always_inline)) uint64_t arch_take(uint64_t *counter, uint64_t step)
{
	__asm__ volatile("xaddq %0, %1" : "+r"(step), "+m"(*counter)::"cc");
	return step;
}

static inline __attribute__((always_inline)) uint32_t arch_take_one(uint32_t *counter)
{
	uint32_t step = 1;

	__asm__ volatile("xaddl %0, %1" : "+r"(step), "+m"(*counter)::"cc");
	return step;
}

/* The same for a count of 16 bits, whose value nobody wants. */
static inline __attribute__((always_inline)) void arch_count(uint16_t *count, int16_t step)
{
	__asm__ volatile("addw %1, %0" : "+m"(*count) : "ri"(step) : "cc");
}

/* One instruction that mixes all bits of a word into a sum of 32: SSE 4.2, but no vector register.
 */
static inline __attribute__((always_inline)) uint64_t arch_mix(uint64_t sum, const uint64_t *word)
{
	__asm__("crc32q %1, %0" : "+r"(sum) : "rm"(*word) : "cc");
	return sum;
}

/* As the loader asked the CPU: the instruction takes a virtual machine some 20 microseconds. */
static inline bool arch_can_mix(void)
{
	enum { SSE_4_2 = 1 << 20 };

	return __x86_get_cpuid_feature_leaf(CPUID_INDEX_1)->active_array[2] & SSE_4_2;
}

/* Into a register first: a comparison of memory beside rip with a constant is two steps for the CPU
 * and a third for the jump, this is one and one. */
static inline __attribute__((always_inline)) uint32_t arch_loaded(uint32_t value)
{
	__asm__("" : "+r"(value));
	return value;
}

static inline __attribute__((always_inline)) uint64_t arch_rbp(void)
{
	uint64_t rbp;

	__asm__("movq %%rbp, %0" : "=r"(rbp));
	return rbp;
}

/* What lies at fs belongs to libc: its control block of the thread. 512 bytes of that are unused
 * since glibc 2.23, and stay there because others count on the block's size (tcbhead_t in glibc's
 * sysdeps/x86_64/nptl/tls.h). They are zero in a thread whose stack is new, and as they were left
 * in one that has the stack of another. */
#define ARCH_THREAD_SPARE 0x80
#define ARCH_THREAD_SPARE_BYTES 512
#define ARCH_OF_THREAD __seg_fs

/* A word of the thread's own variables. */
static inline __attribute__((always_inline)) uint64_t arch_fs_word(uint64_t offset)
{
	uint64_t word;

	__asm__ volatile("movq %%fs:(%1), %0" : "=r"(word) : "r"(offset) : "memory");
	return word;
}

/* Reads a word; where it cannot be read, the handler goes on at the label: arch_faults. */
#define arch_read_or(word, pointer, label)                  \
	__asm__ goto("1: movq %1, %0\n\t"                   \
		     ".pushsection arch_faults, \"a\"\n\t"  \
		     ".long 1b - ., %l[" #label "] - .\n\t" \
		     ".popsection"                          \
		     : "=r"(word)                           \
		     : "m"(*(const uint64_t *)(pointer))    \
		     :                                      \
		     : label)

struct arch_fault {
	int32_t at, resume; /* from themselves */
};

/* Where the section begins and ends: the linker's. */
extern const struct arch_fault arch_faults[] __asm__("__start_arch_faults")
	__attribute__((visibility("hidden")));
extern const struct arch_fault arch_faults_end[] __asm__("__stop_arch_faults")
	__attribute__((visibility("hidden")));

/* Where to go on behind a fault at this instruction; 0: nowhere. */
static inline uint64_t arch_fault_resume(uint64_t rip)
{
	const struct arch_fault *fault;

	for (fault = arch_faults; fault < arch_faults_end; fault++)
		if ((uint64_t)&fault->at + (uint64_t)(int64_t)fault->at == rip)
			return (uint64_t)&fault->resume + (uint64_t)(int64_t)fault->resume;
	return 0;
}

static inline uint64_t arch_fs_base(void)
{
	uint64_t base;

	__asm__("movq %%fs:0, %0" : "=r"(base)); /* psABI: the TCB's first word points to itself */
	return base;
}

/* Where our handlers return to: outside of it, the return would be told to us as well (told.h). */
void arch_sigreturn(void) __attribute__((visibility("hidden")));

/* Calls work(arg) with the stack pointer at `top`: x86_64_on_stack.S. */
void arch_on_stack(void *top, void (*work)(void *arg), void *arg);
