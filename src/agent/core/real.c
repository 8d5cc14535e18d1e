#include "agent/core/real.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <string.h>

#include "agent/arch/x86_64.h"
#include "agent/core/agent.h"
#include "agent/core/text.h"

_Alignas(16) unsigned char early_arena[EARLY_BYTES];
static size_t early_used;
static uint64_t early_blocks;

/* Each block has its size in the 16 bytes before it. Nothing is ever given back: dlsym needs a
 * few hundred bytes, once. Only the main thread exists this early. */
static void *early_malloc(size_t size)
{
	size_t span = ((size + 15) & ~(size_t)15) + 16;
	unsigned char *at;

	if (size > EARLY_BYTES || span > EARLY_BYTES - early_used)
		return NULL;
	at = early_arena + early_used;
	memcpy(at, &size, sizeof(size));
	early_used += span;
	early_blocks++;
	return at + 16;
}

static void *early_calloc(size_t count, size_t size)
{
	size_t total;

	if (__builtin_mul_overflow(count, size, &total))
		return NULL;
	return early_malloc(total); /* .bss: zero, and never used twice */
}

static void *early_realloc(void *ptr, size_t size)
{
	void *moved = early_malloc(size);
	size_t old;

	if (!moved || !ptr)
		return moved;
	old = early_size(ptr);
	memcpy(moved, ptr, old < size ? old : size);
	return moved;
}

static void *early_memalign(size_t align, size_t size)
{
	unsigned char *at = early_malloc(size + align);

	if (!at || align <= 16)
		return at;
	at = (unsigned char *)(((uintptr_t)at + align - 1) & ~(uintptr_t)(align - 1));
	memcpy(at - 16, &size, sizeof(size));
	return at;
}

static void early_free(void *ptr)
{
	(void)ptr;
}

size_t early_size(const void *ptr)
{
	size_t size;

	memcpy(&size, (const unsigned char *)ptr - 16, sizeof(size));
	return size;
}

uint64_t early_count(void)
{
	return early_blocks;
}

bool builtin_replaced;

struct real real = {
	.malloc = early_malloc,
	.free = early_free,
	.calloc = early_calloc,
	.realloc = early_realloc,
	.memalign = early_memalign,
	.aligned_alloc = early_memalign,
};

/* What may be missing is asked for by weak references: a dlsym that fails allocates its message,
 * and where our malloc is not in front that is an allocation in the target's heap. */
#define WEAK __attribute__((weak, visibility("default")))
extern WEAK char PyMem_GetAllocator[], PyMem_SetAllocator[], _PyRuntime[], Py_Version[];
extern WEAK char _PyThreadState_UncheckedGet[]; /* up to 3.12 */
extern WEAK char PyThreadState_GetUnchecked[];	/* since 3.13 */
/* Only in builds without the interpreter's lock (Include/refcount.h). */
extern WEAK char _Py_MergeZeroLocalRefcount[];
extern WEAK char __asan_init[], __tsan_init[], __msan_init[], __hwasan_init[];

#define NEXT(type, name, arguments, symbol) *(void **)(&found.name) = dlsym(RTLD_NEXT, symbol);

/* What an address lies in: dladdr() would look through all symbols for its name, which takes longer
 * than most processes have to be there. */
struct library_at {
	uint64_t address;
	uint64_t number;  /* 0: the program, as far as is known */
	const char *name; /* NULL: in none */
};

/* The linker's own marks around us. */
extern const char __ehdr_start[] __attribute__((visibility("hidden")));
extern const char _end[] __attribute__((visibility("hidden")));

static bool is_sanitized(void)
{
	return __asan_init || __tsan_init || __msan_init || __hwasan_init;
}

static int library_holds(struct dl_phdr_info *info, size_t size, void *data)
{
	struct library_at *library = data;
	const ElfW(Phdr) *ph = info->dlpi_phdr, *end = ph + info->dlpi_phnum;

	(void)size;
	for (; ph < end; ph++)
		if (ph->p_type == PT_LOAD &&
		    library->address - info->dlpi_addr - ph->p_vaddr < ph->p_memsz) {
			library->name = info->dlpi_name ? info->dlpi_name : "";
			return 1;
		}
	library->number++;
	return 0;
}

/* Asked in the constructor only. */
static struct library_at library_of(const void *address)
{
	struct library_at library = { .address = (uint64_t)address };
	Dl_info info;

	/* ThreadSanitizer stands before dl_iterate_phdr(), and is not ready yet. */
	if (!is_sanitized())
		(void)dl_iterate_phdr(library_holds, &library);
	else if (dladdr(address, &info))
		library.name = info.dli_fname;
	return library;
}

/* Is this address in the C++ run-time library? */
static bool in_cxx_library(void *address)
{
	struct library_at library = library_of(address);
	const char *name;

	if (!address || !library.name)
		return false;
	name = strrchr(library.name, '/');
	name = name ? name + 1 : library.name;
	return text_after(name, "libstdc++.so") || text_after(name, "libc++");
}

/* One that the program brings itself may do as it likes: it is called, whatever the others are. */
static bool all_in_cxx_library(const struct real *found)
{
	void *const *at = (void *const *)&found->new_plain;
	void *const *last = (void *const *)&found->delete_array_aligned_nothrow;

	for (; at <= last; at++)
		if (*at && !in_cxx_library(*at))
			return false;
	return true;
}

/* Does the program find our function by this name, and not one of its own? */
static bool is_ours(const char *name)
{
	void *address = dlsym(RTLD_DEFAULT, name);

	return (uint64_t)address - (uint64_t)__ehdr_start < (uint64_t)_end - (uint64_t)__ehdr_start;
}

/* Has the program a function of this name inside? An address in it alone does not say so: where a
 * program that is not position-independent takes the address of a function, all others get that of
 * its entry in the linker's table, too (gABI, function addresses). */
static bool is_inside(const char *name, const struct r_debug *loader)
{
	void *address = dlsym(RTLD_DEFAULT, name), *map = NULL, *symbol = NULL;
	Dl_info info;

	return address && loader && !library_of(address).number &&
	       dladdr1(address, &info, &map, RTLD_DL_LINKMAP) && map == loader->r_map &&
	       dladdr1(address, &info, &symbol, RTLD_DL_SYMENT) && symbol &&
	       ((const ElfW(Sym) *)symbol)->st_shndx != SHN_UNDEF;
}

static void resolve_new(struct real *ret, void *from)
{
	struct real found = *ret;

	if (!dlsym(from, "_Znwm"))
		return;
#define FROM(type, name, arguments, symbol) *(void **)(&found.name) = dlsym(from, symbol);
	REAL_NEW(FROM)
#undef FROM
	*(void **)(&found.throw_bad_alloc) = dlsym(from, "_ZSt17__throw_bad_allocv");
	found.plain_new = all_in_cxx_library(&found);
	found.hooked_new =
		is_ours("_Znwm") && is_ours("_Znam") && is_ours("_ZdlPv") && is_ours("_ZdaPv");
	*ret = found;
}

/* What may not be there. A dlsym that fails allocates its message, and a malloc of the program's
 * own may call any of our hooks when it is first used: what was found so far is behind them by now.
 * Only our own malloc goes on with the early arena. */
static void resolve_doubtful(struct real *ret)
{
	struct real found = *ret;

	found.malloc = real.malloc;
	found.free = real.free;
	found.calloc = real.calloc;
	found.realloc = real.realloc;
	found.memalign = real.memalign;
	found.aligned_alloc = real.aligned_alloc;
	real = found;
	found = *ret;
	*(void **)(&found.abort_message) = dlsym(RTLD_DEFAULT, "__abort_msg");
	if (agent_crash_only) {
		*ret = found;
		return;
	}
	REAL_LATE(NEXT)
	*ret = found;
	resolve_new(ret, RTLD_NEXT);
}

/* Until libc's is found. */
static long syscall_plain(long number, long a, long b, long c, long d, long e, long f)
{
	long r = raw_syscall6(number, a, b, c, d, e, f);

	if (r >= 0 || r < -4095)
		return r;
	errno = (int)-r;
	return -1;
}

void *(*real_dlopen)(const char *, int);
long (*real_syscall)(long, long, long, long, long, long, long) = syscall_plain;

bool real_resolve(void)
{
	struct real found = real;
	struct library_at behind;
	void *next_syscall;

	REAL_FIRST(NEXT)
	*(void **)(&found.python_get_allocator) = PyMem_GetAllocator;
	*(void **)(&found.python_set_allocator) = PyMem_SetAllocator;
	found.python_unlocked = _Py_MergeZeroLocalRefcount != NULL;
	found.loader = dlsym(RTLD_DEFAULT, "_r_debug");
	found.python_runtime = _PyRuntime;
	found.python_version = (const void *)Py_Version;
	*(void **)(&found.python_thread_state) = _PyThreadState_UncheckedGet
							 ? _PyThreadState_UncheckedGet
							 : PyThreadState_GetUnchecked;
	found.sanitized = is_sanitized();
	if (!agent_crash_only) {
		REAL_WHOLE(NEXT)
	}
	found.past_us = !agent_crash_only && is_inside("malloc", found.loader);
	behind = library_of(*(void **)&found.malloc);
	found.glibc_malloc = !found.past_us && behind.name && strstr(behind.name, "/libc.so");
	if (!found.malloc || !found.free || !found.calloc || !found.realloc || !found.sigaction ||
	    !found.pthread_create)
		return false;
	*(void **)(&real_dlopen) = dlsym(RTLD_NEXT, "dlopen");
	next_syscall = dlsym(RTLD_NEXT, "syscall");
	if (next_syscall)
		*(void **)(&real_syscall) = next_syscall;
	resolve_doubtful(&found);
	real = found;
	return true;
}

void real_resolve_new(void)
{
	void *library;

	if (real.new_plain || agent_crash_only)
		return;
	library = dlopen("libstdc++.so.6", RTLD_LAZY | RTLD_NOLOAD);
	if (!library)
		return;
	resolve_new(&real, library);
	real.dlclose(library);
}

void *early_leave(void *ptr, size_t size)
{
	size_t old = early_size(ptr);
	void *moved = real.malloc(size);

	if (moved)
		memcpy(moved, ptr, old < size ? old : size);
	return moved;
}
