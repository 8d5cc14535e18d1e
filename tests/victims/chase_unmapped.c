/*
 * A view is mapped, unmapped and not mapped again before it is read. The address was right when it
 * was stored.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "chase_truth.h"

#define BYTES 8192u

static char *view;

APART static void view_open(void)
{
	view = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

APART static void view_close(void)
{
	munmap(view, BYTES);
}

APART static long view_sum(void)
{
	long sum = 0;

	for (size_t i = 0; i < BYTES; i += 512)
		sum += view[i];
	return sum;
}

int main(void)
{
	void *block = malloc(100);

	tell_truth("class not-caught\n"
		   "reader chase_unmapped.c:view_sum\n");
	view_open();
	printf("%ld %d\n", view_sum(), block != NULL);
	view_close();
	printf("%ld\n", view_sum());
	return 0;
}
