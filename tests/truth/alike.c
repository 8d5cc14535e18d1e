/* Many objects of one kind: each failing run hits another of them. And blocks that come and go
 * through wrappers. */
#include "truth.h"

/* Another number in each run. */
static unsigned int drawn(unsigned int n)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (unsigned int)(now.tv_nsec * 2654435761u >> 12) % n;
}

struct slot {
	int values[2];
	int (*run)(int);
	long used;
};

APART int twice(int x)
{
	return 2 * x;
}

APART void slot_set(struct slot *slot, int which, int value)
{
	slot->values[which] = value; /* guilty */
}

APART int slot_run(struct slot *slot, int x)
{
	return slot->run(x);
}

static int slots_fail(size_t count)
{
	struct slot *table = calloc(count, sizeof(*table));
	int sum = 0;

	for (size_t i = 0; i < count; i++)
		table[i].run = twice;
	for (size_t i = 0; i < count; i++)
		slot_set(&table[i], (int)i % 2, (int)i);
	if (!sometimes(3))
		slot_set(&table[drawn((unsigned int)count)], 2, 500);
	for (size_t i = 0; i < count; i++)
		sum += slot_run(&table[i], (int)i);
	return sum < 0;
}

/* Elements of an array in one block, fewer than there are watches, and more. */
static int row_few(void)
{
	return slots_fail(10);
}

static int row_many(void)
{
	return slots_fail(64);
}

struct tagged {
	char tag[8];
	const char *text;
	long uses;
};

APART void tag_set(struct tagged *row, const char *tag)
{
	volatile char *to = row->tag;

	while ((*to++ = *tag++)) /* guilty */
		;
}

APART size_t tag_show(const struct tagged *row)
{
	return strlen(row->text);
}

static int row_text(void)
{
	struct tagged *rows = calloc(12, sizeof(*rows));
	size_t sum = 0;

	for (int i = 0; i < 12; i++) {
		tag_set(&rows[i], "short");
		rows[i].text = "text";
	}
	if (sometimes(2))
		tag_set(&rows[drawn(12)], "a longer tag!!");
	for (int i = 0; i < 12; i++)
		sum += tag_show(&rows[i]);
	return sum != 48;
}

struct link {
	int values[4];
	struct link *next;
};

APART void link_set(struct link *link, int which, int value)
{
	link->values[which] = value; /* guilty */
}

APART long links_sum(const struct link *link)
{
	long sum = 0;

	for (; link; link = link->next)
		sum += link->values[0];
	return sum;
}

/* Blocks of their own, one of four hundred. */
static int crowd_link(void)
{
	struct link *all[400], *first = NULL;

	for (int i = 0; i < 400; i++) {
		all[i] = calloc(1, sizeof(*all[i]));
		all[i]->next = first;
		first = all[i];
	}
	for (int i = 0; i < 400; i++)
		link_set(all[i], i % 4, i);
	if (sometimes(2))
		link_set(all[drawn(400)], 4, 77);
	return links_sum(first) < 0;
}

struct item {
	int references;
	char name[20];
};

APART void memory_release(void *block)
{
	free(block);
	KEEP(block);
}

APART void item_destroy(struct item *item)
{
	item->name[0] = 0;
	memory_release(item);
	KEEP(item);
}

APART void item_unref(struct item *item)
{
	if (--item->references == 0)
		item_destroy(item);
	KEEP(item);
}

APART void *memory_alloc(size_t bytes)
{
	void *block = malloc(bytes);

	if (!block)
		abort();
	return block;
}

APART struct item *shelf_add(struct item **shelf, const char *name)
{
	struct item *item = memory_alloc(sizeof(*item));

	item->references = 1;
	strcpy(item->name, name);
	return *shelf = item;
}

APART void shelf_clear(struct item **shelf)
{
	item_unref(*shelf);
	*shelf = NULL;
}

APART int item_show(const struct item *item)
{
	return item->name[1]; /* guilty */
}

/* Freed behind three functions that hand the pointer on. */
static int wrapped_free(void)
{
	struct item *shelf, *kept = shelf_add(&shelf, "first");

	shelf_clear(&shelf);
	return item_show(kept) == 0x7f;
}

static const struct truth_case cases[] = {
	{ "row-few", "class narrow-write\nclass overflow\nwho slot_set\n", row_few },
	{ "row-many", "class narrow-write\nclass overflow\nwho slot_set\n", row_many },
	{ "row-text", "class narrow-write\nclass overflow\nwho tag_set\n", row_text },
	{ "crowd-link", "class narrow-write\nclass overflow\nwho link_set\n", crowd_link },
	{ "wrapped-free", "class use-after-free\nwho item_show\n", wrapped_free },
};

TRUTH_MAIN(cases)
