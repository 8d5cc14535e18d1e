#include <stdlib.h>

#include "types.h"

struct local { /* another one than in types_b.c */
	int before;
	int value;
};

struct container {
	long count;
	struct statement *first;
	point_t origin;
};

struct opaque;
extern struct opaque *opaque_new(void);

struct container the_container;
static volatile int counter;
int shared_table[16];
_Thread_local int per_thread = 3;
static struct local a_local;

static inline __attribute__((always_inline)) void bump(struct statement *s, int by)
{
	s->kind += by; /* line of bump */
}

__attribute__((noinline)) struct statement *statement_new(struct container *container, int kind)
{
	struct statement *s = calloc(1, sizeof(*s));

	if (__builtin_expect(!s, 0))
		abort();
	s->container = container;
	s->kind = kind;
	bump(s, 2);
	return s;
}

__attribute__((noinline)) int statement_kind(const struct statement *s, spot where)
{
	bump((struct statement *)s, counter++);
	return s->kind + (int)where->x + a_local.value;
}

/* A part that is seldom run, and so is moved away by -O2. */
__attribute__((noinline)) int divide(int a, int b)
{
	if (b == 0) {
		shared_table[3]++;
		abort();
	}
	return a / b;
}

extern int other(void);

int main(int argc, char **argv)
{
	static const point_t here = { 1, 2 };
	struct statement *s = statement_new(&the_container, argc);

	(void)argv;
	the_container.first = s;
	the_container.origin = here;
	return statement_kind(s, &here) + divide(7, argc) + other() + per_thread +
	       (opaque_new() == NULL);
}
