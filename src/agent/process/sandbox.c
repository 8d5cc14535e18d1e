#include "agent/process/sandbox.h"

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>

#include "agent/arch/x86_64.h"
#include "agent/core/agent.h"
#include "agent/core/feature.h"
#include "agent/core/log.h"
#include "agent/core/memory.h"
#include "agent/core/modules.h"
#include "agent/core/real.h"
#include "agent/core/retire.h"
#include "agent/core/signals.h"

#ifndef PR_SET_SYSCALL_USER_DISPATCH
#define PR_SET_SYSCALL_USER_DISPATCH 59
#define PR_SYS_DISPATCH_ON 1
#endif

#define LIBC_ROOM (120u << 10) /* what malloc takes from its heap, not by a mapping */

/* What hooks and the record of a crash are made of. */
static const int needed[] = {
	SYS_getpid,
	SYS_gettid,
	SYS_rt_sigaction,
	SYS_rt_sigprocmask,
	SYS_rt_tgsigqueueinfo,
	SYS_openat,
	SYS_close,
	SYS_read,
	SYS_pwrite64,
	SYS_ftruncate,
	SYS_mmap,
	SYS_munmap,
	SYS_mprotect,
	SYS_madvise,
	SYS_newfstatat,
	SYS_prctl,
	SYS_arch_prctl,
	SYS_process_vm_readv,
	SYS_sigaltstack,
	SYS_prlimit64,
	SYS_getdents64,
};

/* What watched pages and fences are made of besides: an error is as bad as death there. */
static const int needed_by_faults[] = {
	SYS_rt_sigreturn, SYS_madvise, SYS_process_madvise, SYS_mprotect,
	SYS_mremap,	  SYS_gettid,  SYS_rt_sigprocmask,
};

/* ---- what a filter answers --------------------------------------------------------------------
 */

static uint32_t alu(uint16_t code, uint32_t a, uint32_t b)
{
	switch (BPF_OP(code)) {
	case BPF_ADD:
		return a + b;
	case BPF_SUB:
		return a - b;
	case BPF_MUL:
		return a * b;
	case BPF_DIV:
		return b ? a / b : 0;
	case BPF_MOD:
		return b ? a % b : 0;
	case BPF_AND:
		return a & b;
	case BPF_OR:
		return a | b;
	case BPF_XOR:
		return a ^ b;
	case BPF_LSH:
		return b < 32 ? a << b : 0;
	case BPF_RSH:
		return b < 32 ? a >> b : 0;
	default:
		return -a; /* BPF_NEG */
	}
}

static bool jumps(uint16_t code, uint32_t a, uint32_t b)
{
	switch (BPF_OP(code)) {
	case BPF_JEQ:
		return a == b;
	case BPF_JGT:
		return a > b;
	case BPF_JGE:
		return a >= b;
	default:
		return a & b; /* BPF_JSET */
	}
}

static uint32_t operand_of(const struct sock_filter *load, const uint32_t *memory)
{
	if (BPF_MODE(load->code) == BPF_LEN)
		return sizeof(struct seccomp_data);
	return BPF_MODE(load->code) == BPF_MEM ? memory[load->k % BPF_MEMWORDS] : load->k;
}

/* Classic BPF as seccomp has it (kernel/seccomp.c, seccomp_check_filter): jumps lead forward only,
 * so it ends. What the kernel would not take is told as allowed: the kernel says no to it. */
static uint32_t filter_answer(const struct sock_filter *code, size_t count,
			      const struct seccomp_data *data)
{
	uint32_t a = 0, x = 0, memory[BPF_MEMWORDS] = { 0 };
	size_t at;

	for (at = 0; at < count; at++) {
		const struct sock_filter *one = &code[at];
		uint32_t operand = BPF_SRC(one->code) == BPF_X ? x : one->k;

		switch (BPF_CLASS(one->code)) {
		case BPF_LD:
			if (BPF_MODE(one->code) == BPF_ABS && one->k <= sizeof(*data) - 4)
				memcpy(&a, (const char *)data + one->k, 4);
			else
				a = operand_of(one, memory);
			break;
		case BPF_LDX:
			x = operand_of(one, memory);
			break;
		case BPF_ST:
			memory[one->k % BPF_MEMWORDS] = a;
			break;
		case BPF_STX:
			memory[one->k % BPF_MEMWORDS] = x;
			break;
		case BPF_ALU:
			a = alu(one->code, a, operand);
			break;
		case BPF_JMP:
			if (BPF_OP(one->code) == BPF_JA)
				at += one->k;
			else
				at += jumps(one->code, a, operand) ? one->jt : one->jf;
			break;
		case BPF_RET:
			return BPF_RVAL(one->code) == BPF_A ? a : one->k;
		default: /* BPF_MISC */
			if (BPF_MISCOP(one->code) == BPF_TAX)
				x = a;
			else
				a = x;
		}
	}
	return SECCOMP_RET_ALLOW;
}

static bool answer_kills(uint32_t answer)
{
	uint32_t action = answer & SECCOMP_RET_ACTION_FULL;

	return action == SECCOMP_RET_KILL_PROCESS || action == SECCOMP_RET_KILL_THREAD ||
	       action == SECCOMP_RET_TRAP;
}

static bool answer_refuses(uint32_t answer)
{
	return answer_kills(answer) || (answer & SECCOMP_RET_ACTION_FULL) == SECCOMP_RET_ERRNO;
}

/* What the arguments would be is not looked at. */
static bool filter_kills(uint64_t program)
{
	struct seccomp_data data = { .arch = AUDIT_ARCH_X86_64 };
	struct sock_fprog filter;
	size_t bytes, i;

	if (memory_read_sigsafe(&filter, program, sizeof(filter)) != sizeof(filter))
		return false;
	bytes = filter.len * sizeof(*filter.filter);
	if (memory_readable_sigsafe((uint64_t)filter.filter, bytes) != bytes)
		return false;
	for (i = 0; i < sizeof(needed) / sizeof(needed[0]); i++) {
		data.nr = needed[i];
		if (answer_kills(filter_answer(filter.filter, filter.len, &data)))
			return true;
	}
	/* Of a trap at a watched word there is no other way back than the first of them. */
	for (i = 0; i < (agent.faults ? sizeof(needed_by_faults) / sizeof(needed_by_faults[0])
				      : agent.watches != 0);
	     i++) {
		data.nr = needed_by_faults[i];
		if (answer_refuses(filter_answer(filter.filter, filter.len, &data)))
			return true;
	}
	return false;
}

/* ---- on the way in ----------------------------------------------------------------------------
 */

/* Blocks that lay elsewhere until now are libc's from here on. It asks for memory, and for a random
 * number, when it is used first: it is to have room as if it had had the blocks. */
static void libc_prepare(void)
{
	void *one = real.malloc(LIBC_ROOM), *other = real.malloc(LIBC_ROOM);

	real.free(other);
	real.free(one);
}

/* What needs system calls to go on is given up while they are to be had, and what is known by now
 * is written down. */
static void step_back(void)
{
	FEATURES_TELL(end.leave);
	if (agent.faults)
		libc_prepare();
	signals_give_back();
}

/* Returns whether the agent is about to leave. */
static bool entering(bool kills)
{
	int saved = errno;
	bool leaving = kills && !agent.sandboxed;

	if (agent_switch.crash && agent_owns_process_sigsafe()) {
		/* There may be no opening of files in there. */
		log_publish_sigsafe();
		modules_refresh_sigsafe();
		if (leaving)
			step_back();
	} else {
		leaving = false;
	}
	errno = saved;
	return leaving;
}

static void entered(bool leaving, bool success, int option)
{
	if (!leaving)
		return;
	if (success) {
		agent.sandboxed = option == PR_SET_SECCOMP ? AGENT_LEFT_FOR_GOOD : AGENT_LEFT_IMAGE;
		agent_retire_sigsafe(option ? LOG_RETIRED_SANDBOX : LOG_RETIRED_TRACED);
	} else {
		signals_take_over();
	}
}

/* Who has system calls told by SIGSYS (Wine) is told of our handler's, too, and of its way back,
 * before his own has a chance to let them through: that kills. It ends with the image. */
static bool option_kills(int option, uint64_t mode, uint64_t program)
{
	if (option == PR_SET_SYSCALL_USER_DISPATCH)
		return mode == PR_SYS_DISPATCH_ON;
	return mode == SECCOMP_MODE_STRICT ||
	       (mode == SECCOMP_MODE_FILTER && filter_kills(program));
}

static bool option_matters(int option)
{
	return option == PR_SET_SECCOMP || option == PR_SET_SYSCALL_USER_DISPATCH;
}

void sandbox_traced(void)
{
	if (agent.faults)
		entered(entering(true), true, 0);
}

EXPORT int prctl(int option, ...)
{
	unsigned long a, b, c, d;
	bool leaving = false;
	va_list list;
	int r, saved;

	va_start(list, option);
	a = va_arg(list, unsigned long);
	b = va_arg(list, unsigned long);
	c = va_arg(list, unsigned long);
	d = va_arg(list, unsigned long);
	va_end(list);
	if (!option_matters(option))
		return real.prctl(option, a, b, c, d);
	leaving = entering(option_kills(option, a, b));
	r = real.prctl(option, a, b, c, d);
	saved = errno;
	entered(leaving, r == 0, option);
	errno = saved;
	return r;
}

HIDDEN long sandbox_syscall(long number, long a, long b, long c, long d, long e, long f)
{
	bool leaving = false;
	long r;
	int saved;

	if (number == SYS_seccomp && a <= SECCOMP_SET_MODE_FILTER)
		leaving = entering(a == SECCOMP_SET_MODE_STRICT || filter_kills((uint64_t)c));
	else if (number == SYS_prctl && option_matters((int)a))
		leaving = entering(option_kills((int)a, (uint64_t)b, (uint64_t)c));
	r = real_syscall(number, a, b, c, d, e, f);
	saved = errno;
	/* With SECCOMP_FILTER_FLAG_NEW_LISTENER it is a descriptor. */
	entered(leaving, r >= 0 && !(number == SYS_prctl && r != 0),
		number == SYS_prctl ? (int)a : PR_SET_SECCOMP);
	errno = saved;
	return r;
}
