#include "run/traced_registers.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/ptrace.h>
#include <sys/user.h>

/* Intel SDM volume 3, chapter "Debug registers". */
#define STATUS 6
#define CONTROL 7
#define STATUS_CAUSES 0xful
#define ON_WRITE 1ul

static long poke(pid_t tid, unsigned int n, uint64_t value)
{
	return ptrace(PTRACE_POKEUSER, tid,
		      offsetof(struct user, u_debugreg) + n * sizeof(unsigned long), value) < 0
		       ? -errno
		       : 0;
}

static unsigned long length_code(uint32_t bytes)
{
	return bytes == 8 ? 2 : bytes - 1;
}

/* One that is off has length 1: the kernel checks the alignment of its address all the same. */
static unsigned long control_of(const struct register_aim aims[TRACER_REGISTERS])
{
	unsigned long control = 0;

	for (unsigned int i = 0; i < TRACER_REGISTERS; i++) {
		control |= ON_WRITE << (16 + 4 * i);
		if (aims[i].bytes > 0)
			control |= 1ul << (2 * i) | length_code(aims[i].bytes) << (18 + 4 * i);
	}
	return control;
}

static bool any_on(const struct register_aim aims[TRACER_REGISTERS])
{
	for (unsigned int i = 0; i < TRACER_REGISTERS; i++)
		if (aims[i].bytes > 0)
			return true;
	return false;
}

static long control_write(pid_t tid, const struct register_aim aims[TRACER_REGISTERS])
{
	return poke(tid, CONTROL, any_on(aims) ? control_of(aims) : 0);
}

int debug_registers_set(pid_t tid, struct debug_registers *now,
			const struct register_aim wanted[TRACER_REGISTERS])
{
	bool off = false, on = false;
	long r = 0;

	/* With another length, a register is off while its address changes. */
	for (unsigned int i = 0; i < TRACER_REGISTERS; i++) {
		struct register_aim *aim = &now->aims[i];

		if (aim->bytes == wanted[i].bytes)
			continue;
		off |= aim->bytes > 0;
		on |= wanted[i].bytes > 0;
		aim->bytes = 0;
	}
	if (off)
		r = control_write(tid, now->aims);
	for (unsigned int i = 0; r == 0 && i < TRACER_REGISTERS; i++) {
		struct register_aim *aim = &now->aims[i];

		if (wanted[i].bytes == 0 || aim->address == wanted[i].address)
			continue;
		r = poke(tid, i, wanted[i].address);
		if (r == 0)
			aim->address = wanted[i].address;
	}
	if (r == 0 && on)
		r = control_write(tid, wanted);
	for (unsigned int i = 0; r == 0 && i < TRACER_REGISTERS; i++)
		now->aims[i].bytes = wanted[i].bytes;
	return (int)r;
}

int debug_registers_cause(pid_t tid)
{
	long status;

	errno = 0;
	status = ptrace(PTRACE_PEEKUSER, tid,
			offsetof(struct user, u_debugreg) + STATUS * sizeof(unsigned long), NULL);
	if (errno != 0 || !((unsigned long)status & STATUS_CAUSES))
		return -1;
	(void)poke(tid, STATUS, 0);
	return __builtin_ctzl((unsigned long)status & STATUS_CAUSES);
}
