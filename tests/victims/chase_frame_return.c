/*
 * Options are registered by their address. options_extra() registers one that is its own variable,
 * and returns; later the place belongs to others.
 */
#include <stdio.h>
#include <stdlib.h>

#include "chase_truth.h"

struct option {
	const char *name;
	long *target;
};

static struct option *registered[8];
static unsigned int count;
static long level;

APART static void option_register(struct option *option)
{
	registered[count++] = option;
}

APART static void options_standard(void)
{
	static struct option standard = { "level", &level };

	option_register(&standard);
}

APART static void options_extra(const char *name)
{
	struct option extra = { name, &level };

	option_register(&extra);
}

APART static long work(long seed)
{
	volatile long numbers[40];

	for (int i = 0; i < 40; i++)
		numbers[i] = seed + i;
	return numbers[17];
}

APART static void option_apply(unsigned int number, long value)
{
	*registered[number]->target = value;
}

int main(void)
{
	void *block = malloc(9);
	long noise;

	tell_truth("class dangling-holder\n"
		   "holder chase_frame_return.c:option_register\n"
		   "reader chase_frame_return.c:option_apply\n");
	options_standard();
	options_extra("verbose");
	noise = work(7);
	for (unsigned int i = 0; i < count; i++)
		option_apply(i, i);
	printf("%ld %ld %d\n", noise, level, block != NULL);
	return 0;
}
