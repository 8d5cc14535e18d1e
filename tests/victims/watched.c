/*
 * Known writes to known memory, for `redhand watch`: watched MODE.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct node {
	struct node *next;
	uint64_t value;
	uint32_t flags;
	uint32_t depth;
	uint64_t tag;
};

struct tally {
	int32_t steps;
	uint32_t flags;
	int64_t total;
};

struct tally tally;

/* As it is, or the compiler puts it into its caller. */
#define APART __attribute__((noinline, noclone))

APART struct node *node_new(uint64_t tag)
{
	struct node *node = malloc(sizeof(*node));

	memset(node, 0, sizeof(*node));
	node->tag = tag;
	return node;
}

APART void node_tag(struct node *node, uint64_t tag)
{
	node->tag = tag;
}

APART void node_untag(struct node *node)
{
	*(volatile uint8_t *)&node->tag &= 0xfe;
}

/* Eight bytes for the four of `depth`: the first half of the tag is among them. */
APART void node_wide(struct node *node)
{
	*(volatile uint64_t *)&node->depth = 7;
}

APART void tally_step(void)
{
	tally.steps++;
	tally.total += tally.steps;
}

APART void tally_mark(unsigned bit)
{
	tally.flags |= 1u << bit;
}

static int globals(void)
{
	for (int i = 0; i < 10; i++)
		tally_step();
	tally_mark(3);
	tally_mark(5);
	return 0;
}

static int nodes(void)
{
	struct node *list[3];

	for (int i = 0; i < 3; i++)
		list[i] = node_new(0x1001);
	node_tag(list[0], 0x2001);
	node_tag(list[1], 0x3001);
	node_untag(list[1]);
	node_wide(list[2]);
	for (int i = 0; i < 3; i++)
		free(list[i]);
	return 0;
}

/* Two objects at one address: nobody changes the tag. */
static int twice(void)
{
	for (int i = 0; i < 2; i++) {
		struct node *node = node_new(0x1001 + (uint64_t)i);

		node->value = 1;
		free(node);
	}
	return 0;
}

static int many(void)
{
	struct node *list[10];

	for (int i = 0; i < 10; i++)
		list[i] = node_new((uint64_t)i);
	for (int i = 0; i < 10; i++)
		node_tag(list[i], 100 + (uint64_t)i);
	return 0;
}

APART uint64_t *page_get(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT, 0644);
	uint64_t *page;

	if (fd < 0 || ftruncate(fd, 4096))
		exit(3);
	page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	return page;
}

/* Another process writes to the same file. */
static int outside(void)
{
	uint64_t *page = page_get("shared-page");

	page[0] = 1;
	puts("before");
	if (system("printf XYZ | dd of=shared-page conv=notrunc 2>/dev/null"))
		return 4;
	puts("after");
	return (page[0] & 0xffffff) == 0x5a5958 ? 0 : 5;
}

/* The same page once more in this process, written there. */
static int again(void)
{
	uint64_t *page = page_get("shared-page"), *second = page_get("shared-page");

	page[0] = 1;
	puts("before");
	second[0] = 2;
	puts("after");
	return page[0] == 2 ? 0 : 5;
}

struct reading {
	long count;
	const long *value;
};

APART struct reading *reading_new(const long *value)
{
	struct reading *self = calloc(1, sizeof(*self));

	if (!self)
		exit(3);
	self->value = value;
	return self;
}

APART long reading_last(const struct reading *self)
{
	return *self->value;
}

/* Written as a debugger writes: by no instruction that goes to its address. */
static int poked(void)
{
	static const long value = 0;
	struct reading *reading = reading_new(&value);
	int fd = open("/proc/self/mem", O_RDWR);
	uint64_t bad = 0x1230;

	if (fd < 0 || pwrite(fd, &bad, sizeof(bad), (off_t)&reading->value) != sizeof(bad))
		return 4;
	puts("after");
	return (int)reading_last(reading);
}

/* The kernel fills it. */
static int fills(void)
{
	int ends[2];

	if (pipe(ends) || write(ends[1], "ABCDEFGH", 8) != 8 ||
	    read(ends[0], &tally.total, sizeof(tally.total)) != sizeof(tally.total))
		return 4;
	puts("after");
	return 0;
}

static int fails(void)
{
	(void)globals();
	tally.total = -1;
	return 1;
}

/* Every second time. */
static int turns(void)
{
	if (unlink("turn") == 0)
		return fails();
	close(open("turn", O_CREAT | O_WRONLY, 0644));
	return globals();
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		int (*run)(void);
	} modes[] = { { "globals", globals }, { "nodes", nodes },     { "twice", twice },
		      { "many", many },	      { "outside", outside }, { "fails", fails },
		      { "turns", turns },     { "again", again },     { "fills", fills },
		      { "poked", poked } };

	for (size_t i = 0; argc > 1 && i < sizeof(modes) / sizeof(modes[0]); i++)
		if (!strcmp(argv[1], modes[i].name))
			return modes[i].run();
	return 64;
}
