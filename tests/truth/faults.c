/* Plain faults: every run shows them, and memory is whole. */
#include "truth.h"

struct entry {
	char name[16];
	struct entry *next;
};
static struct entry *table[8];

APART void define(const char *name)
{
	struct entry *e = calloc(1, sizeof(*e));

	strcpy(e->name, name);
	e->next = table[name[0] % 8];
	table[name[0] % 8] = e;
}

APART struct entry *find(const char *name)
{
	for (struct entry *e = table[name[0] % 8]; e; e = e->next)
		if (strcmp(e->name, name) == 0)
			return e;
	return NULL;
}

APART long use(const char *name)
{
	struct entry *e = find(name);

	return e->name[0] + (long)e->next; /* guilty */
}

static int null_returned(void)
{
	define("alpha");
	return use("alpha") + use("gamma") > 0;
}

struct connection {
	int fd;
	char *peer;
	long sent;
};

APART void hang_up(struct connection *c)
{
	free(c->peer);
	c->peer = NULL;
}

APART int peer_of(const struct connection *c)
{
	return c->peer[0]; /* guilty */
}

static int null_cleared(void)
{
	struct connection *c = calloc(1, sizeof(*c));

	c->peer = strdup("localhost");
	KEEP(c);
	hang_up(c);
	return peer_of(c);
}

static int null_called(void)
{
	int (*volatile hook)(void) = NULL;

	return hook(); /* guilty */
}

struct grid {
	int width, tiles;
};

APART struct grid *grid_load(const char *tiles)
{
	struct grid *g = malloc(sizeof(*g));

	g->width = 100;
	g->tiles = (int)strtol(tiles, NULL, 10);
	KEEP(g);
	return g;
}

APART int per_tile(const struct grid *g)
{
	return g->width / g->tiles; /* guilty */
}

static int divide_field(void)
{
	return per_tile(grid_load("x"));
}

APART long rows_of(const char *text)
{
	long rows = 0;

	for (; *text; text++)
		rows += *text == '\n';
	return rows;
}

APART long mean(const char *text, long sum)
{
	return sum / rows_of(text); /* guilty */
}

static int divide_returned(void)
{
	return (int)mean("no rows", 40);
}

struct ring {
	struct ring *next;
	long value;
};

APART long ring_sum(const struct ring *r)
{
	volatile char pad[64];

	pad[0] = 1;					      /* guilty */
	return r ? r->value + ring_sum(r->next) + pad[0] : 0; /* guilty */
}

static int deep(void)
{
	struct ring *r = calloc(1, sizeof(*r));

	r->next = r;
	KEEP(r);
	return ring_sum(r) == 1;
}

APART int pick(int kind)
{
	switch (kind) {
	case 0:
		return 4;
	case 1:
		return 5;
	default:
		__builtin_trap(); /* guilty */
	}
}

static int trapped(void)
{
	int kind = 7;

	KEEP(kind);
	return pick(kind);
}

static const struct truth_case cases[] = {
	{ "null-returned", "class null-pointer\nwho use\n", null_returned },
	{ "null-cleared", "class null-pointer\nwho peer_of\n", null_cleared },
	{ "divide-field", "class division-by-zero\nwho per_tile\n", divide_field },
	{ "divide-returned", "class division-by-zero\nwho mean\n", divide_returned },
	{ "deep", "class stack-exhausted\nwho ring_sum\n", deep },
	{ "trapped", "class illegal-instruction\nwho pick\n", trapped },
	{ "null-called", "class null-pointer\nwho null_called\n", null_called },
};

TRUTH_MAIN(cases)
