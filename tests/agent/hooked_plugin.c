/*
 * A library that is loaded later; its constructor already uses what is hooked.
 */
#include <stdio.h>

static volatile unsigned long sink;

__attribute__((noinline)) unsigned long plugin_get(unsigned long size)
{
	sink += size;
	return 0xd00000 + size * 64;
}

__attribute__((constructor)) static void begin(void)
{
	printf("constructor %lx\n", plugin_get(77));
}
