#include <stdlib.h>

#include "types.h"

struct local {
	long before[2];
	long value;
};

struct opaque {
	char name[12];
	int hidden;
};

static volatile long counter = 5;
static struct local b_local;

struct opaque *opaque_new(void)
{
	return calloc(1, sizeof(struct opaque));
}

int other(void)
{
	b_local.value += counter;
	return (int)b_local.value;
}
