/*
 * Two failures: a test that fails in every run, and a signal in one of three. Where blocks end with
 * their pages, as fences put them, there is no signal: a trial with fences shows the first failure
 * and never the second.
 */
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define BYTES 48u
#define PAGE 4096u

int main(void)
{
	char *block = malloc(BYTES);
	struct timespec now;

	if (!block)
		return 4;
	clock_gettime(CLOCK_REALTIME, &now);
	printf("[ RUN      ] Suite.Always\n[  FAILED  ] Suite.Always (0 ms)\n[ RUN      ] Suite.Other\n");
	fflush(stdout);
	if (now.tv_nsec / 1000 % 3 == 0 && (uintptr_t)block % PAGE != 0 &&
	    ((uintptr_t)block + BYTES) % PAGE != 0)
		(void)raise(SIGSEGV);
	printf("[       OK ] Suite.Other (0 ms)\n");
	free(block);
	return 1;
}
