/*
 * What can go wrong around redhand, preloaded into it: 196-mishaps compiles it. Programs under test
 * are left alone: only processes whose name begins with "redhand" count.
 *
 * MISHAP=full:N     from the Nth write to a file on, the disk is full
 * MISHAP=memory:N   the Nth allocation fails, but for those of elfutils, which does not look
 * MISHAP=clock:N    from the Nth look on, the clock is ten days behind
 * MISHAP_COUNT=FILE how many there were, at the end
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);

enum { FULL, MEMORY, CLOCK, KINDS };
static const char *const names[KINDS] = { "full", "memory", "clock" };
static long at[KINDS];
static long *counts; /* shared: slots are forked */
static int ours;

static struct {
	uintptr_t low, high;
} careless[4];

static int find_careless(struct dl_phdr_info *info, size_t size, void *ctx)
{
	int *count = ctx;

	if (!strstr(info->dlpi_name, "libdw") && !strstr(info->dlpi_name, "libelf"))
		return 0;
	for (int i = 0; i < info->dlpi_phnum && *count < 4; i++)
		if (info->dlpi_phdr[i].p_type == PT_LOAD && info->dlpi_phdr[i].p_flags & PF_X) {
			careless[*count].low = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
			careless[*count].high = careless[*count].low + info->dlpi_phdr[i].p_memsz;
			++*count;
		}
	return 0;
}

__attribute__((constructor)) static void start(void)
{
	int count = 0;

	const char *wish = getenv("MISHAP");
	char comm[32] = "";
	int fd = open("/proc/self/comm", O_RDONLY);

	(void)!read(fd, comm, sizeof(comm) - 1);
	(void)close(fd);
	counts = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	for (int i = 0; wish && i < KINDS; i++)
		if (!strncmp(wish, names[i], strlen(names[i])))
			at[i] = atol(wish + strlen(names[i]) + 1);
	(void)dl_iterate_phdr(find_careless, &count);
	ours = strncmp(comm, "redhand", 7) == 0;
}

__attribute__((destructor)) static void end(void)
{
	const char *path = getenv("MISHAP_COUNT");
	FILE *out = ours && path ? fopen(path, "w") : NULL;

	ours = 0;
	if (!out)
		return;
	fprintf(out, "%ld %ld %ld\n", counts[FULL], counts[MEMORY], counts[CLOCK]);
	fclose(out);
}

static long now_at(int kind)
{
	return __atomic_add_fetch(&counts[kind], 1, __ATOMIC_RELAXED);
}

static int full(int fd)
{
	struct stat st;

	if (!ours || fd <= 2 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return 0;
	if (now_at(FULL) < at[FULL] || !at[FULL])
		return 0;
	errno = ENOSPC;
	return 1;
}

ssize_t write(int fd, const void *bytes, size_t len)
{
	return full(fd) ? -1 : syscall(SYS_write, fd, bytes, len);
}

ssize_t pwrite(int fd, const void *bytes, size_t len, off_t offset)
{
	return full(fd) ? -1 : syscall(SYS_pwrite64, fd, bytes, len, offset);
}

ssize_t pwrite64(int fd, const void *bytes, size_t len, off_t offset)
{
	return full(fd) ? -1 : syscall(SYS_pwrite64, fd, bytes, len, offset);
}

int fallocate(int fd, int mode, off_t offset, off_t len)
{
	return full(fd) ? -1 : (int)syscall(SYS_fallocate, fd, mode, offset, len);
}

static int no_memory(void *caller)
{
	for (int i = 0; i < 4; i++)
		if ((uintptr_t)caller >= careless[i].low && (uintptr_t)caller < careless[i].high)
			return 0;
	if (!ours || now_at(MEMORY) != at[MEMORY])
		return 0;
	errno = ENOMEM;
	return 1;
}

void *malloc(size_t size)
{
	return no_memory(__builtin_return_address(0)) ? NULL : __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
	return no_memory(__builtin_return_address(0)) ? NULL : __libc_calloc(count, size);
}

void *realloc(void *ptr, size_t size)
{
	return no_memory(__builtin_return_address(0)) ? NULL : __libc_realloc(ptr, size);
}

int clock_gettime(clockid_t clock, struct timespec *ret)
{
	int r = (int)syscall(SYS_clock_gettime, clock, ret);

	if (ours && clock == CLOCK_REALTIME && now_at(CLOCK) >= at[CLOCK] && at[CLOCK])
		ret->tv_sec -= 10 * 86400;
	return r;
}
