/* Stores that go where they should not, and frees that are wrong. */
#include "truth.h"

APART char *text_new(size_t len)
{
	char *text = malloc(len);

	KEEP(text);
	return text;
}

APART void fill(volatile char *to, size_t len, char with)
{
	for (size_t i = 0; i < len; i++)
		to[i] = with; /* guilty */
}

static int over_loop(void)
{
	char *a = text_new(24), *b = text_new(24);

	strcpy(b, "alpha");
	fill(a, 40, 'x');
	KEEP(b);
	return strcmp(b, "alpha") != 0;
}

static int over_by_one(void)
{
	char *a = text_new(20);

	fill(a, 21, 0);
	puts("done");
	free(a);
	return 0;
}

APART void clear(char *to, size_t len)
{
	memset(to, 'x', len); /* guilty */
	KEEP(to);
}

static int over_memset(void)
{
	char *a = text_new(24), *b = text_new(24);

	strcpy(b, "alpha");
	clear(a, 40);
	KEEP(b);
	return strcmp(b, "alpha") != 0;
}

APART void copy(char *to, const char *from, size_t len)
{
	memcpy(to, from, len); /* guilty */
	KEEP(to);
}

static int over_copies(void)
{
	char *from = text_new(40000), *to[4];

	fill(from, 40000, 7);
	for (int i = 0; i < 4; i++)
		to[i] = text_new(8192);
	for (int i = 0; i < 4; i++)
		copy(to[i], from, 8300);
	for (int i = 0; i < 4; i++)
		free(to[i]);
	free(from);
	return 0;
}

APART void path_add(char *path, const char *name)
{
	strcat(path, "/");
	strcat(path, name); /* guilty */
	KEEP(path);
}

static int over_strcat(void)
{
	char *path = text_new(16);

	strcpy(path, "/usr/share");
	path_add(path, "redistribution");
	puts(path);
	free(path);
	return 0;
}

APART void mark(uint32_t *words, int at)
{
	uint32_t *word = words + at;

	KEEP(word);
	*word = (*word & ~0xfc000000u) | 15u << 26; /* guilty */
}

static int over_last_byte(void)
{
	uint32_t *words = (uint32_t *)text_new(8);

	words[0] = words[1] = 1;
	mark(words, 2);
	printf("%u\n", words[0]);
	free(words);
	return 0;
}

APART void shift(volatile char *text)
{
	volatile char *in = text + 8, *out = text;

	while (*in)
		*out++ = *in++; /* guilty */
	*out = 0;
}

static int over_shift(void)
{
	char *text = text_new(7);

	strcpy(text, "/* bla");
	shift(text);
	puts("done");
	free(text);
	return 0;
}

APART void put(volatile long *at, long index, long value)
{
	at[index] = value; /* guilty */
}

static int before_start(void)
{
	long *cells = (long *)text_new(64);

	for (long i = 7; i >= -1; i--)
		put(cells, i, i);
	printf("%ld\n", cells[0]);
	free(cells);
	return 0;
}

static int over_besides(void)
{
	char *a = text_new(24);

	fputs("bad input\n", stderr);
	fill(a, 26, 1);
	free(a);
	return 1;
}

struct node {
	char body[256];
	struct node *prev, *next;
	char tail[400];
};

static struct node head = { .prev = &head, .next = &head };

APART void append(struct node *n)
{
	n->prev = head.prev;
	n->next = &head;
	head.prev->next = n; /* guilty */
	head.prev = n;
}

static int after_free_link(void)
{
	for (int i = 0; i < 300; i++) {
		struct node *n = calloc(1, sizeof(*n));

		append(n);
		if (i != 150) {
			n->prev->next = n->next;
			n->next->prev = n->prev;
		}
		free(n);
		KEEP(n);
	}
	puts("done");
	return 0;
}

struct timer {
	long due, fired;
	void *owner;
};

APART void fire(struct timer *t)
{
	t->fired++; /* guilty */
	KEEP(t);
}

static int after_free_count(void)
{
	struct timer *t = calloc(1, sizeof(*t)), *kept = t;

	KEEP(kept);
	free(t);
	fire(kept);
	puts("fired");
	return 0;
}

APART void drop(void *what)
{
	free(what); /* guilty */
	KEEP(what);
}

static int free_twice(void)
{
	char *a = text_new(40), *b = a;

	KEEP(b);
	drop(a);
	drop(text_new(60));
	drop(b);
	return 0;
}

static int free_inside(void)
{
	char *a = text_new(40);

	strcpy(a, "  text");
	while (*a == ' ')
		a++;
	drop(a);
	return 0;
}

/* ---- references ---- */

struct object {
	int count, kind;
	void *data;
};

APART struct object *object_new(int kind)
{
	struct object *o = malloc(sizeof(*o));

	o->count = 1;
	o->kind = kind;
	KEEP(o);
	return o;
}

APART struct object *object_get(struct object *o)
{
	o->count++;
	return o;
}

APART void object_put(struct object *o)
{
	if (--o->count == 0) {
		free(o);
		KEEP(o);
	}
}

APART void user(struct object *o)
{
	struct object *mine = object_get(o);

	mine->kind++;
	object_put(mine);
	KEEP(mine);
}

APART void consume(struct object *o)
{
	KEEP(o);
	object_put(o); /* guilty */
	KEEP(o);
}

static int counted_once_more(void)
{
	struct object *o = object_new(1);

	for (int i = 0; i < 3; i++)
		user(o);
	consume(o);
	object_put(o);
	puts("done");
	return 0;
}

APART int compare(struct object *a, struct object *key)
{
	int same = a->kind == key->kind;

	object_put(a);
	object_put(key); /* guilty */
	KEEP(a);
	return same;
}

static int counted_key(void)
{
	struct object *a = object_new(1), *key = object_new(2);
	int same = 0;

	for (int i = 0; i < 2; i++)
		same += compare(object_get(a), key);
	object_put(key);
	printf("%d\n", same);
	return 0;
}

/* A number, and no count: it was never 1, and nobody counts it. */
APART void lower(struct object *o)
{
	o->count -= 1; /* guilty */
	KEEP(o);
}

static int lowered_late(void)
{
	struct object *o = object_new(1), *kept = o;

	o->count = 7;
	KEEP(kept);
	free(o);
	lower(kept);
	puts("done");
	return 0;
}

static int over_sometimes(void)
{
	char *a = text_new(24), *b = text_new(24);

	strcpy(b, "alpha");
	fill(a, sometimes(3) ? 40 : 24, 'x');
	KEEP(b);
	return strcmp(b, "alpha") != 0;
}

/* ---- lengths that are below zero ---- */

struct packet {
	unsigned short length; /* with a header of four bytes */
	char body[60];
};

APART char *body_copy(const struct packet *p)
{
	char *body = malloc(64);
	int length = p->length - 4;

	memcpy(body, p->body, (size_t)length); /* guilty */
	KEEP(body);
	return body;
}

APART struct packet *packet_new(unsigned short length)
{
	struct packet *p = calloc(1, sizeof(*p));

	p->length = length;
	KEEP(p);
	return p;
}

static int copy_negative(void)
{
	char *first = body_copy(packet_new(20)), *second = body_copy(packet_new(3));

	printf("%d\n", first[0] + second[0]);
	free(first);
	free(second);
	return 0;
}

struct line {
	long used;
	char text[200];
};

APART void word_drop(struct line *line, long at, long length)
{
	memmove(line->text + at, line->text + at + length, /* guilty */
		(size_t)(line->used - at - length));
	line->used -= length;
	KEEP(line);
}

/* The last word is dropped twice: what is left behind it is less than nothing. */
static int move_negative(void)
{
	struct line *before = calloc(1, sizeof(*before)), *line = calloc(1, sizeof(*line));

	line->used = sprintf(line->text, "one two three four five six seven");
	word_drop(line, 28, 5);
	word_drop(line, 28, 5);
	puts(line->text);
	free(line);
	free(before);
	return 0;
}

/* ---- beyond the end at once ---- */

struct journal {
	char *text;
	size_t used, room;
};

APART void journal_add(struct journal *j, const char *text, int number)
{
	j->used += (size_t)snprintf(j->text + j->used, j->room - j->used, /* guilty */
				    "line %d of the journal: %s\n", number, text);
}

/* What snprintf() would have written is counted: then there is more room than ever. */
static int over_leap(void)
{
	struct journal j = { malloc(256), 0, 256 };
	char *names[8];
	size_t sum = 0;

	for (int i = 0; i < 8; i++)
		names[i] = strdup("a name beside it");
	for (int i = 0; i < 14; i++)
		journal_add(&j, "something", i);
	for (int i = 0; i < 8; i++) {
		sum += strlen(names[i]);
		free(names[i]);
	}
	free(j.text);
	return sum == 0;
}

APART void score_set(long *scores, int player, long score)
{
	((volatile long *)scores)[player] = score; /* guilty */
}

/* A number from another table: it lies in the middle of a neighbour's block. */
static int over_far(void)
{
	long *scores = calloc(10, sizeof(*scores));
	char *names[6];
	size_t sum = 0;

	for (int i = 0; i < 6; i++) {
		names[i] = calloc(1, 40);
		strcpy(names[i], "a player");
	}
	score_set(scores, 4, 12);
	score_set(scores, 11, 13);
	for (int i = 0; i < 6; i++) {
		sum += strlen(names[i]);
		free(names[i]);
	}
	free(scores);
	return sum == 0;
}

static const struct truth_case cases[] = {
	{ "over-loop", "class overflow\nwho fill\n", over_loop },
	{ "over-by-one", "class overflow\nwho fill\n", over_by_one },
	{ "over-memset", "class overflow\nwho clear\n", over_memset },
	{ "over-copies", "class overflow\nwho copy\n", over_copies },
	{ "over-strcat", "class overflow\nwho path_add\n", over_strcat },
	{ "over-last-byte", "class overflow\nwho mark\n", over_last_byte },
	{ "over-shift", "class overflow\nclass over-read\nwho shift\n", over_shift },
	{ "over-besides", "class overflow\nwho fill\n", over_besides },
	{ "over-sometimes", "class overflow\nwho fill\n", over_sometimes },
	{ "copy-negative", "class overflow\nwho body_copy\n", copy_negative },
	{ "move-negative", "class overflow\nwho word_drop\n", move_negative },
	{ "over-leap", "class overflow\nwho journal_add\n", over_leap },
	{ "over-far", "class overflow\nwho score_set\n", over_far },
	{ "before-start", "class underflow\nwho put\n", before_start },
	{ "after-free-link",
	  "class write-after-free\nclass dangling-holder\nwho append\nwho after_free_link\n",
	  after_free_link },
	{ "after-free-count", "class write-after-free\nclass use-after-free\nwho fire\n",
	  after_free_count },
	{ "counted-once-more", "class over-release\nwho consume\n", counted_once_more },
	{ "counted-key", "class over-release\nwho compare\n", counted_key },
	{ "lowered-late", "class write-after-free\nwho lower\n", lowered_late },
	{ "free-twice", "class double-free\nwho drop\nwho free_twice\n", free_twice },
	{ "free-inside", "class invalid-free\nwho drop\n", free_inside },
};

TRUTH_MAIN(cases)
