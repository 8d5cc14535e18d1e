/*
 * Memory protection keys, used the way the page observer uses them: a page
 * that may be read but not written, a store that faults, the key opened for
 * that one instruction in the saved frame, and closed again by a single step.
 * x86-64: PKRU, the trap flag and the XSAVE area are spelled out.
 */
#include "doctor/probe.h"

#include <cpuid.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

/* Linux arch/x86/include/uapi/asm/sigcontext.h: the frame's floating-point area carries its own
 * description at offset 464, and the XSAVE header starts at 512. */
#define FRAME_MAGIC_AT 464
#define FRAME_FEATURES_AT 472
#define FRAME_SIZE_AT 480
#define FRAME_HEADER_AT 512
#define FRAME_MAGIC 0x46505853u
#define FEATURE_PKRU (1ull << 9)

#define TRAP_FLAG 0x100

static struct {
	int key;
	uint32_t pkru_at; /* offset of PKRU in the frame's XSAVE area */
	volatile sig_atomic_t faults, steps;
	volatile sig_atomic_t lost; /* the handler could not open the key */
	int code;
} state;

static unsigned int key_bits(void)
{
	return 3u << (2 * state.key);
}

/* PKRU in the saved frame, or NULL when the frame does not have it. */
static char *saved_pkru(ucontext_t *uc)
{
	char *area = (char *)uc->uc_mcontext.fpregs;
	uint64_t features, present;
	uint32_t magic, size;

	if (!area)
		return NULL;
	memcpy(&magic, area + FRAME_MAGIC_AT, sizeof(magic));
	memcpy(&features, area + FRAME_FEATURES_AT, sizeof(features));
	memcpy(&size, area + FRAME_SIZE_AT, sizeof(size));
	if (magic != FRAME_MAGIC || !(features & FEATURE_PKRU) || state.pkru_at + 4 > size)
		return NULL;
	/* A feature not marked present is restored to its initial value, not from the area. */
	memcpy(&present, area + FRAME_HEADER_AT, sizeof(present));
	present |= FEATURE_PKRU;
	memcpy(area + FRAME_HEADER_AT, &present, sizeof(present));
	return area + state.pkru_at;
}

static void on_fault(int sig, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;
	char *at = saved_pkru(uc);
	uint32_t pkru;

	state.code = info->si_code;
	state.faults++;
	if (info->si_code != SEGV_PKUERR || !at) {
		/* Returning would fault for ever; with the key gone from the page the store
		 * passes, and the probe can tell. */
		state.lost = 1;
		(void)mprotect((void *)((uintptr_t)info->si_addr & ~4095ul), 4096,
			       PROT_READ | PROT_WRITE);
		(void)pkey_mprotect((void *)((uintptr_t)info->si_addr & ~4095ul), 4096,
				    PROT_READ | PROT_WRITE, 0);
		return;
	}
	memcpy(&pkru, at, sizeof(pkru));
	pkru &= ~key_bits();
	memcpy(at, &pkru, sizeof(pkru));
	uc->uc_mcontext.gregs[REG_EFL] |= TRAP_FLAG;
}

static void on_step(int sig, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;
	char *at = saved_pkru(uc);
	uint32_t pkru;

	state.steps++;
	uc->uc_mcontext.gregs[REG_EFL] &= ~TRAP_FLAG;
	if (!at)
		return;
	memcpy(&pkru, at, sizeof(pkru));
	pkru |= (uint32_t)PKEY_DISABLE_WRITE << (2 * state.key);
	memcpy(at, &pkru, sizeof(pkru));
}

static void catch_signals(void)
{
	struct sigaction fault = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO },
			 step = { .sa_sigaction = on_step, .sa_flags = SA_SIGINFO };

	(void)sigaction(SIGSEGV, &fault, NULL);
	(void)sigaction(SIGTRAP, &step, NULL);
}

static void say_refused(struct finding *finding, int error)
{
	unsigned int a, b, c = 0, d;
	bool cpu_has = __get_cpuid_count(7, 0, &a, &b, &c, &d) && (c & bit_PKU);

	if (cpu_has) {
		probe_say(finding, FINDING_NO,
			  "the CPU has protection keys, the kernel does not "
			  "give one (%s)",
			  strerror(error));
		probe_enable(finding, "use a kernel with CONFIG_X86_INTEL_MEMORY_PROTECTION_KEYS "
				      "and without 'nopku', outside of a sandbox that forbids "
				      "pkey_alloc");
	} else {
		probe_say(finding, FINDING_NO, "the CPU offers no protection keys (%s)",
			  strerror(error));
		probe_enable(finding, "use a machine with them (Intel servers since Skylake, AMD "
				      "since Zen 3); on a virtual machine have the host pass 'pku' "
				      "through");
	}
}

void probe_pkey(struct finding *finding)
{
	volatile uint64_t *page;
	unsigned int a, b, c, d;

	state.key = pkey_alloc(0, 0);
	if (state.key < 0) {
		say_refused(finding, errno);
		return;
	}
	if (__get_cpuid_count(0xd, 9, &a, &b, &c, &d))
		state.pkru_at = b;
	page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (page == MAP_FAILED ||
	    pkey_mprotect((void *)(uintptr_t)page, 4096, PROT_READ | PROT_WRITE, state.key) < 0 ||
	    pkey_set(state.key, PKEY_DISABLE_WRITE) < 0) {
		say_refused(finding, errno);
		return;
	}
	catch_signals();
	/* Twice: the second store must find the key closed again. The read in between is free. */
	page[0] = 1;
	page[1] = page[0] + 1;
	if (state.faults == 0) {
		probe_say(finding, FINDING_NO,
			  "a key could be set, but a store went through without a fault");
		probe_enable(finding,
			     "the virtual machine or emulator does not implement keys: use "
			     "another one");
	} else if (state.lost || state.faults != 2 || state.steps != 2 || page[1] != 2) {
		probe_say(finding, FINDING_NO,
			  "a store faulted (code %d), but the key could not be opened for that one "
			  "instruction: %d faults and %d single steps for two stores",
			  state.code, (int)state.faults, (int)state.steps);
		probe_enable(finding, "use a kernel that saves PKRU in the signal frame, and no "
				      "debugger around redhand");
	} else {
		probe_say(finding, FINDING_OK,
			  "two stores into a locked page faulted, were let through one instruction "
			  "at a time, and reads cost nothing");
	}
}
