/*
 * Libraries that are loaded with RTLD_DEEPBIND: they find libc's malloc and free before ours.
 *
 * A block with guards that such a library frees is no block to libc, which ends the process; one
 * that it allocates is unknown here. So the slots through which it and what it brought call the
 * allocator are turned to our hooks, once it is loaded. All else that it binds to stays as the
 * program wanted it (docs/design/allocators.md).
 *
 * Its constructors have run by then. What they allocated libc's free takes as ever.
 */
#include <dlfcn.h>
#include <link.h>
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "agent/arch/x86_64.h"
#include "agent/core/agent.h"
#include "agent/core/real.h"

extern void *_Znwm(size_t size), *_Znam(size_t size);
extern void *_ZnwmRKSt9nothrow_t(size_t size, const void *tag);
extern void *_ZnamRKSt9nothrow_t(size_t size, const void *tag);
extern void _ZdlPv(void *ptr), _ZdaPv(void *ptr);

/* A function as a number: 0 where there is none behind ours. */
#define NUMBER(function) ((uint64_t)(uintptr_t)(function))

static uint64_t ours_for(uint64_t theirs)
{
	const struct {
		uint64_t theirs, ours;
	} pairs[] = {
		{ NUMBER(real.malloc), NUMBER(malloc) },
		{ NUMBER(real.free), NUMBER(free) },
		{ NUMBER(real.calloc), NUMBER(calloc) },
		{ NUMBER(real.realloc), NUMBER(realloc) },
		{ NUMBER(real.memalign), NUMBER(memalign) },
		{ NUMBER(real.aligned_alloc), NUMBER(aligned_alloc) },
		{ NUMBER(real.posix_memalign), NUMBER(posix_memalign) },
		{ NUMBER(real.valloc), NUMBER(valloc) },
		{ NUMBER(real.pvalloc), NUMBER(pvalloc) },
		{ NUMBER(real.malloc_usable_size), NUMBER(malloc_usable_size) },
		{ NUMBER(real.reallocarray), NUMBER(reallocarray) },
		{ NUMBER(real.new_plain), NUMBER(_Znwm) },
		{ NUMBER(real.new_array), NUMBER(_Znam) },
		{ NUMBER(real.new_nothrow), NUMBER(_ZnwmRKSt9nothrow_t) },
		{ NUMBER(real.new_array_nothrow), NUMBER(_ZnamRKSt9nothrow_t) },
		{ NUMBER(real.delete_plain), NUMBER(_ZdlPv) },
		{ NUMBER(real.delete_array), NUMBER(_ZdaPv) },
		/* What it loads itself, what it starts, and what it does to signals. */
		{ NUMBER(real_dlopen), NUMBER(dlopen) },
		{ NUMBER(real.pthread_create), NUMBER(pthread_create) },
		{ NUMBER(real.sigaction), NUMBER(sigaction) },
		{ NUMBER(real.execve), NUMBER(execve) },
		{ NUMBER(real.exit_now), NUMBER(_exit) },
	};
	size_t i;

	for (i = 0; theirs && i < sizeof(pairs) / sizeof(pairs[0]); i++)
		if (pairs[i].theirs == theirs)
			return pairs[i].ours;
	return 0;
}

/* What is read-only once it is relocated. */
struct relro {
	uint64_t low, high;
};

static void slot_turn(uint64_t *slot, const struct relro *relro)
{
	uint64_t ours = ours_for(*slot), page = (uint64_t)slot & ~(PAGE - 1);
	bool sealed = (uint64_t)slot >= relro->low && (uint64_t)slot < relro->high;

	if (!ours || (sealed && raw_syscall3(SYS_mprotect, page, PAGE, PROT_READ | PROT_WRITE)))
		return;
	__atomic_store_n(slot, ours, __ATOMIC_RELEASE);
	if (sealed)
		(void)raw_syscall3(SYS_mprotect, page, PAGE, PROT_READ);
}

static void slots_turn(uint64_t base, uint64_t at, uint64_t bytes, const struct relro *relro)
{
	const Elf64_Rela *rela = (const void *)at;
	uint64_t i;

	for (i = 0; i < bytes / sizeof(*rela); i++)
		switch (ELF64_R_TYPE(rela[i].r_info)) {
		case R_X86_64_JUMP_SLOT:
		case R_X86_64_GLOB_DAT:
		case R_X86_64_64:
			if (ELF64_R_SYM(rela[i].r_info))
				slot_turn((uint64_t *)(base + rela[i].r_offset), relro);
			break;
		default:
			break;
		}
}

/* A slot that holds libc's function, in whatever library, was bound past us: with our names in
 * front of all others there is no other way to it. */
static int library_turn(struct dl_phdr_info *info, size_t size, void *unused)
{
	uint64_t tags[DT_JMPREL + 1] = { 0 }, base = info->dlpi_addr;
	struct relro relro = { 0, 0 };
	const Elf64_Dyn *dynamic = NULL;
	unsigned i;

	(void)size;
	(void)unused;
	for (i = 0; i < info->dlpi_phnum; i++) {
		const Elf64_Phdr *phdr = &info->dlpi_phdr[i];

		if (phdr->p_type == PT_DYNAMIC)
			dynamic = (const void *)(base + phdr->p_vaddr);
		if (phdr->p_type == PT_GNU_RELRO) {
			relro.low = (base + phdr->p_vaddr) & ~(PAGE - 1);
			relro.high = (base + phdr->p_vaddr + phdr->p_memsz) & ~(PAGE - 1);
		}
		if (phdr->p_type == PT_LOAD && agent.text_low >= base + phdr->p_vaddr &&
		    agent.text_low < base + phdr->p_vaddr + phdr->p_memsz)
			return 0; /* ourselves */
	}
	/* The loader has put addresses in place of offsets. */
	for (; dynamic && dynamic->d_tag != DT_NULL; dynamic++)
		if ((uint64_t)dynamic->d_tag <= DT_JMPREL)
			tags[dynamic->d_tag] = dynamic->d_un.d_val;
	/* Not those of the vDSO, which nobody relocates. */
	if (tags[DT_RELA] >= base && base)
		slots_turn(base, tags[DT_RELA], tags[DT_RELASZ], &relro);
	if (tags[DT_JMPREL] >= base && base)
		slots_turn(base, tags[DT_JMPREL], tags[DT_PLTRELSZ], &relro);
	return 0;
}

/* Asked by dlopen, with RTLD_DEEPBIND set: the mode to go on with; 0: deepbind_open(). Whoever
 * gives a bare name has it looked up by his own RUNPATH, which only libc's dlopen can, called by
 * himself: then the flag is left out. */
HIDDEN int deepbind_mode(const char *file, int mode);
HIDDEN int deepbind_mode(const char *file, int mode)
{
	if (agent_switch.ids == AGENT_IDS_OFF || !file || !agent_owns_process_sigsafe())
		return mode;
	if (strchr(file, '/'))
		return 0;
	return agent_ids_guarded() ? mode & ~RTLD_DEEPBIND : mode;
}

HIDDEN void *deepbind_open(const char *file, int mode);
HIDDEN void *deepbind_open(const char *file, int mode)
{
	/* All slots are bound now, so that they can be told by what they hold. */
	void *library = real_dlopen(file, (mode & ~RTLD_LAZY) | RTLD_NOW);

	/* It lacks functions that it hopes never to call, or cannot be loaded at all. */
	if (!library)
		return real_dlopen(file, agent_ids_guarded() ? mode & ~RTLD_DEEPBIND : mode);
	(void)dl_iterate_phdr(library_turn, NULL);
	return library;
}
