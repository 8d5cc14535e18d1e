/*
 * What a sanitizer cannot name: damage within one block, of a single bit, by emitted code, inside
 * the program's own allocator, and events in the wrong order.
 */
#include <pthread.h>
#include <stdarg.h>
#include <sys/mman.h>

#include "truth.h"

/* ---- within a block ---- */

struct card {
	char name[16];
	char *title;
	long seen[4];
	struct card *next;
	uint32_t count;
	uint32_t flags;
};

static struct card *cards[40];

APART struct card *card_new(int i)
{
	struct card *c = calloc(1, sizeof(*c));

	c->title = malloc(24);
	sprintf(c->title, "card %d", i);
	c->next = i > 0 ? cards[i - 1] : c;
	cards[i] = c;
	return c;
}

APART void cards_make(void)
{
	for (int i = 0; i < 40; i++)
		(void)card_new(i);
}

APART size_t cards_use(void)
{
	size_t sum = 0;

	for (int i = 0; i < 40; i++)
		sum += strlen(cards[i]->title) + cards[i]->next->count;
	return sum;
}

APART void name_set(struct card *c, const char *name)
{
	volatile char *to = c->name;

	while ((*to++ = *name++) != 0) /* guilty */
		;
}

static int field_name(void)
{
	cards_make();
	name_set(cards[12], "a name that is long");
	return cards_use() == 0;
}

APART void seen_add(struct card *c, int at, long when)
{
	volatile long *seen = c->seen;

	seen[at] = when; /* guilty */
}

static int field_index(void)
{
	cards_make();
	for (int i = 0; i < 5; i++)
		seen_add(cards[9], i, 1000 + i);
	return cards_use() == 0;
}

APART void flag_set(struct card *c)
{
	*(volatile uint64_t *)&c->next |= UINT64_C(1) << 52; /* guilty */
}

static int bit_set(void)
{
	cards_make();
	flag_set(cards[21]);
	return cards_use() == 0;
}

APART void flag_clear(struct card *c)
{
	*(volatile uint64_t *)&c->title &= ~(UINT64_C(1) << 44 | UINT64_C(1) << 46); /* guilty */
}

static int bit_cleared(void)
{
	cards_make();
	flag_clear(cards[22]);
	return cards_use() == 0;
}

APART void count_store(struct card *c, uint64_t value)
{
	*(volatile uint64_t *)((char *)&c->next + 4) = value; /* guilty */
}

/* Eight bytes for a field of four, four bytes too early: half of the link is gone. */
static int wide_store(void)
{
	cards_make();
	count_store(cards[30], 77);
	return cards_use() == 0;
}

APART void half_store(struct card *c, uint32_t value)
{
	*((volatile uint32_t *)&c->title + 1) = value; /* guilty */
}

static int half_pointer(void)
{
	cards_make();
	half_store(cards[5], 0x41414141);
	return cards_use() == 0;
}

static int field_sometimes(void)
{
	cards_make();
	if (sometimes(3))
		half_store(cards[5], 0x41414141);
	return cards_use() == 0;
}

static int bit_sometimes(void)
{
	cards_make();
	if (sometimes(3))
		flag_set(cards[21]);
	return cards_use() == 0;
}

APART void mark_toggle(void *marks, unsigned int bit)
{
	((volatile uint32_t *)marks)[bit / 32] ^= 1u << bit % 32; /* guilty */
}

/* The marks are the last word of the card; the bit is counted from the wrong end. */
static int bit_flipped(void)
{
	cards_make();
	mark_toggle(&cards[14]->next, 51);
	return cards_use() == 0;
}

APART void times_copy(struct card *c, const long *from, size_t bytes)
{
	memcpy(c->seen, from, bytes); /* guilty */
	KEEP(c);
}

/* Five for the room of four. */
static int copy_within(void)
{
	static const long times[] = { 11, 12, 13, 14, 15 };
	size_t bytes = sizeof(times);

	KEEP(bytes);
	cards_make();
	times_copy(cards[3], times, bytes);
	return cards_use() == 0;
}

APART void seen_bump(struct card *c, signed char kind)
{
	((volatile long *)c->seen)[kind] += 4096; /* guilty */
}

/* A negative index, from a letter that is not ASCII. */
static int index_negative(void)
{
	cards_make();
	for (int i = 0; i < 9; i++)
		seen_bump(cards[8], "aabbcabb\xff"[i] < 0 ? -1 : 1);
	return cards_use() == 0;
}

APART void word_add(void *record, int word, long amount)
{
	((volatile long *)record)[word] += amount; /* guilty */
}

/* Words are counted from 1 here, and from 0 there: what was to be counted is a link, and it leads
 * to another page of the heap from then on. */
static int word_wrong(void)
{
	cards_make();
	word_add(cards[6], offsetof(struct card, seen) / sizeof(long) - 1, 4096);
	return cards_use() == 0;
}

static struct {
	char *names[4];
	long counts[4];
} shelf;

APART void shelf_count(int row)
{
	((volatile long *)shelf.counts)[row] += 4096; /* guilty */
}

APART size_t shelf_use(void)
{
	size_t sum = 0;

	for (int i = 0; i < 4; i++)
		sum += strlen(shelf.names[i]);
	return sum;
}

/* A row that was not found is -1: the last of the names is led elsewhere. */
static int shelf_negative(void)
{
	for (int i = 0; i < 4; i++)
		shelf.names[i] = strdup("a name");
	for (int i = 0; i < 40; i++)
		(void)calloc(1, 1000);
	for (int i = 2; i >= -1; i--)
		shelf_count(i);
	return shelf_use() == 0;
}

APART void bytes_swap(volatile uint64_t *word)
{
	*word = __builtin_bswap64(*word); /* guilty */
}

/* Of a record that is turned to the other byte order, the pointer is turned, too. */
static int swapped(void)
{
	cards_make();
	for (int i = 0; i < 4; i++)
		bytes_swap((uint64_t *)&cards[16]->seen[i]);
	bytes_swap((uint64_t *)&cards[16]->next);
	return cards_use() == 0;
}

/* ---- within a frame, and between variables ---- */

APART void word_take(volatile char *to, const char *line)
{
	while (*line && *line != ' ')
		*to++ = *line++; /* guilty */
	*to = 0;		 /* guilty */
}

APART size_t greeting(const char *name)
{
	struct {
		char name[16];
		const char *more;
	} all;

	all.more = ", and welcome";
	word_take(all.name, name);
	return strlen(all.name) + strlen(all.more);
}

/* Told by printf(), which takes its arguments from memory: there is no way back through its code.
 */
APART int greeting_print(const char *name)
{
	struct {
		char name[16];
		const char *more;
	} all;

	all.more = ", and welcome";
	word_take(all.name, name);
	return printf("%s%s\n", all.name, all.more) < 0;
}

static int frame_printed(void)
{
	return greeting_print("somebody.with.a.long.name");
}

/* The program's own words to the same end. */
APART void card_log(const char *format, ...)
{
	char line[120];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(line, sizeof(line), format, arguments);
	va_end(arguments);
	fputs(line, stdout);
}

static int field_printed(void)
{
	cards_make();
	name_set(cards[12], "a name that is much too long");
	card_log("%d: %s is called %s\n", 12, cards[12]->name, cards[12]->title);
	return 0;
}

static int frame_text(void)
{
	return greeting("Bartholomew-Augustus and") == 0;
}

APART size_t request_length(const char *line)
{
	char *root = strdup("/srv/www");
	struct {
		char verb[8];
		char *path;
	} request;

	request.path = root;
	word_take(request.verb, line);
	return strlen(request.path) + strlen(request.verb);
}

/* The pointer beside it came from a call. */
static int frame_returned(void)
{
	return request_length("PROPPATCHING /index") == 0;
}

static int levels[8] = { 1 };
static const char *title = "a title";

APART void level_set(int i, int level)
{
	((volatile int *)levels)[i] = level; /* guilty */
}

/* One row that belongs to `levels` and the next variable of the data segment. */
static int global_next(void)
{
	long between = (const char *)&title - (const char *)levels;

	KEEP(title);
	for (int i = 0; i < 8; i++)
		level_set(i, 1000 + i);
	level_set((int)(between / (long)sizeof(int)), 1200);
	return strlen(title) == 0;
}

/* ---- nothing faults: the kernel says EFAULT ---- */

struct stream {
	char mode[8];
	char *buffer;
	size_t used;
};

APART void mode_set(struct stream *s, const char *mode)
{
	volatile char *to = s->mode;

	while ((*to++ = *mode++) != 0) /* guilty */
		;
}

APART int stream_flush(const struct stream *s)
{
	return write(1, s->buffer, s->used) == (ssize_t)s->used ? 0 : 3;
}

static int efault_write(void)
{
	struct stream *s = calloc(1, sizeof(*s));

	s->buffer = calloc(1, 64);
	s->used = (size_t)sprintf(s->buffer, "some output\n");
	mode_set(s, "w+, buffered");
	return stream_flush(s);
}

static struct {
	int lines[4];
	char *text;
} input;

APART void line_seen(int line, int times)
{
	((volatile int *)input.lines)[line] = times; /* guilty */
}

APART int input_read(int fd)
{
	return read(fd, input.text, 16) < 0 ? 4 : 0;
}

/* Counts, two rows too far, make a pointer lead nowhere. */
static int efault_read(void)
{
	int fd = open("/proc/self/comm", O_RDONLY | O_CLOEXEC);

	input.text = calloc(1, 16);
	for (int i = 0; i < 6; i++)
		line_seen(i, 1 << 13);
	return input_read(fd);
}

/* ---- one word, two meanings ---- */

struct value {
	int tag; /* 0: number, 1: text */
	union {
		long number;
		char *text;
	};
};

struct sheet {
	char title[24];
	struct value cells[4][3];
	long rows;
};

APART struct sheet *sheet_new(void)
{
	struct sheet *s = calloc(1, sizeof(*s));

	for (int i = 0; i < 12; i++) {
		s->cells[i / 3][i % 3].tag = i % 3 == 0;
		if (i % 3 == 0)
			s->cells[i / 3][0].text = strdup("a heading");
	}
	KEEP(s);
	return s;
}

APART size_t sheet_width(const struct sheet *s)
{
	size_t width = 0;

	for (int i = 0; i < 12; i++)
		if (s->cells[i / 3][i % 3].tag == 1)
			width += strlen(s->cells[i / 3][i % 3].text);
	return width;
}

APART void number_set(struct value *v, long number)
{
	((volatile struct value *)v)->number = number; /* guilty */
}

/* A number, where the tag says text. */
static int wrong_variant(void)
{
	struct sheet *s = sheet_new();

	number_set(&s->cells[2][0], 1200);
	return sheet_width(s) == 0;
}

APART void row_set(struct value *row, int count, long number)
{
	for (int i = 1; i < count; i++)
		((volatile struct value *)row)[i].number = number + i; /* guilty */
}

/* One cell too many: the first of the next row. */
static int row_over(void)
{
	struct sheet *s = sheet_new();

	row_set(s->cells[1], 4, 70);
	return sheet_width(s) == 0;
}

/* ---- pointers that are freed later ---- */

struct note {
	unsigned char seen[8];
	char *text, *at;
};

APART struct note *note_new(const char *text)
{
	struct note *n = calloc(1, sizeof(*n));

	n->text = strdup(text);
	n->at = n->text;
	KEEP(n);
	return n;
}

APART void note_free(struct note *n)
{
	free(n->text);
	free(n);
}

APART void note_skip(struct note *n)
{
	while (*n->text == ' ')
		n->text++; /* guilty */
}

/* The owner's own pointer is moved on while the text is read. */
static int pointer_moved(void)
{
	struct note *n = note_new("  a note that begins with blanks");

	n->at = NULL;
	note_skip(n);
	puts(n->text);
	note_free(n);
	return 0;
}

/* Back by one character too many, to before the block. */
APART void note_unget(struct note *n)
{
	n->at--; /* guilty */
}

static int pointer_before(void)
{
	struct note *n = note_new("a note");

	n->text = NULL;
	n->at++;
	note_unget(n);
	note_unget(n);
	free(n->at);
	return 0;
}

APART void note_read(struct note *n)
{
	while (*n->at && *n->at != ' ')
		n->at++;
}

APART void note_end(struct note *n)
{
	free(n->at); /* guilty */
	free(n);
}

/* What was moved never was a block of malloc's: the free is wrong. */
static int cursor_static(void)
{
	static char text[] = "words that lie among variables";
	struct note *n = calloc(1, sizeof(*n));

	n->at = text;
	KEEP(n);
	note_read(n);
	note_end(n);
	return 0;
}

/* The block's own address is in the frame of a function. */
static int cursor_kept(void)
{
	char *volatile kept = strdup("a note of some words");
	struct note *n = calloc(1, sizeof(*n));

	n->at = kept;
	KEEP(n);
	note_read(n);
	note_end(n);
	free(kept);
	return 0;
}

APART void note_count(struct note *n, size_t what)
{
	((volatile unsigned char *)n->seen)[what]++; /* guilty */
}

/* A count too far: it adds to the pointer behind. */
static int count_over(void)
{
	struct note *n = note_new("a note");

	n->at = NULL;
	for (size_t i = 0; i <= sizeof(n->seen); i++)
		note_count(n, i);
	note_free(n);
	return 0;
}

APART void number_add(struct value *v, long number)
{
	((volatile struct value *)v)->number += number; /* guilty */
}

/* A number is added where the tag says text. */
static int variant_added(void)
{
	struct sheet *s = sheet_new();

	number_add(&s->cells[3][0], 24);
	free(s->cells[3][0].text);
	return 0;
}

APART void note_close(struct note *n)
{
	free(n->at); /* guilty */
}

/* A cursor may well be moved: who frees it is wrong. */
static int cursor_freed(void)
{
	struct note *n = note_new("a note of some words");

	KEEP(n);
	while (*n->at != ' ')
		n->at++;
	puts(n->text);
	note_close(n);
	return 0;
}

/* ---- emitted code ---- */

typedef void (*emitted)(void *at);

/* mov qword ptr [rdi+OFFSET], VALUE; ret */
APART emitted emit_store(int32_t offset, int32_t value)
{
	static const uint8_t store[] = { 0x48, 0xc7, 0x87, 0, 0, 0, 0, 0, 0, 0, 0, 0xc3 };
	uint8_t *code =
		mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	memcpy(code, store, sizeof(store));
	memcpy(code + 3, &offset, 4);
	memcpy(code + 7, &value, 4);
	(void)!mprotect(code, 4096, PROT_READ | PROT_EXEC);
	return (emitted)(uintptr_t)code;
}

static int emitted_field(void)
{
	emitted code = emit_store(offsetof(struct card, title), 0x4141);

	cards_make();
	code(cards[17]); /* guilty */
	return cards_use() == 0;
}

static int emitted_over(void)
{
	emitted code = emit_store(64, 7);
	char *p = malloc(64);

	KEEP(p);
	code(p); /* guilty */
	puts("done");
	free(p);
	return 0;
}

static int emitted_freed(void)
{
	emitted code = emit_store(16, 7);
	char *p = malloc(64);

	KEEP(p);
	free(p);
	KEEP(p);
	code(p); /* guilty */
	puts("done");
	return 0;
}

/* mov dword ptr [rdi+OFFSET], VALUE; ret */
APART emitted emit_half(int8_t offset, int32_t value)
{
	static const uint8_t store[] = { 0xc7, 0x47, 0, 0, 0, 0, 0, 0xc3 };
	uint8_t *code =
		mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	memcpy(code, store, sizeof(store));
	memcpy(code + 2, &offset, 1);
	memcpy(code + 3, &value, 4);
	(void)!mprotect(code, 4096, PROT_READ | PROT_EXEC);
	return (emitted)(uintptr_t)code;
}

static int emitted_half(void)
{
	emitted code = emit_half(offsetof(struct card, next) + 4, 0x5151);

	cards_make();
	code(cards[11]); /* guilty */
	return cards_use() == 0;
}

/* ---- an allocator of the program's own ---- */

struct job {
	struct job *link;
	const char *name;
	long left;
};
static struct job *pool, *free_jobs;

APART struct job *job_take(const char *name)
{
	struct job *j = free_jobs;

	if (!pool) {
		pool = calloc(64, sizeof(*pool));
		for (int i = 0; i < 63; i++)
			pool[i].link = &pool[i + 1];
		j = free_jobs = pool;
	}
	free_jobs = j->link;
	j->link = NULL;
	j->name = name;
	j->left = 3;
	return j;
}

APART void job_put(struct job *j)
{
	j->link = free_jobs;
	free_jobs = j;
}

APART void job_cancel(struct job *j)
{
	j->name = (const char *)0x17; /* guilty */
}

APART size_t job_run(const struct job *j)
{
	return strlen(j->name);
}

/* Cancelled after it was put back; by then another has it. */
static int pool_stale(void)
{
	struct job *a = job_take("first"), *b;

	job_put(a);
	b = job_take("second");
	job_cancel(a);
	return job_run(b) == 0;
}

APART void job_fill(struct job *jobs, int count)
{
	volatile struct job *to = jobs;

	for (uintptr_t i = 0; i < (uintptr_t)count; i++)
		to[i].name = (const char *)(i + 1); /* guilty */
}

/* One piece of the pool too far. */
static int pool_over(void)
{
	struct job *a = job_take("first"), *b = job_take("second");

	job_fill(a, 2);
	return job_run(b) == 0;
}

/* Pieces one behind the other, and never given back. */
struct arena {
	char *at, *end;
};

APART void *arena_take(struct arena *a, size_t size)
{
	void *piece = a->at;

	a->at += (size + 7) & ~(size_t)7;
	return a->at <= a->end ? piece : NULL;
}

struct person {
	char *name;
	long age;
};

APART void text_put(volatile char *to, const char *from)
{
	for (; *from; from++)
		*to++ = *from; /* guilty */
	*to = 0;	       /* guilty */
}

APART size_t name_length(const struct person *p)
{
	return strlen(p->name);
}

/* A text that is longer than its piece, before a person. */
static int arena_over(void)
{
	struct arena a = { .at = malloc(4096) };
	char *text;
	struct person *p;

	a.end = a.at + 4096;
	text = arena_take(&a, 8);
	p = arena_take(&a, sizeof(*p));
	p->name = arena_take(&a, 16);
	strcpy(p->name, "somebody");
	KEEP(p);
	text_put(text, "twelve bytes");
	return name_length(p) == 0;
}

/* ---- the order of events ---- */

struct settings {
	char *name;
	long level;
};
static struct settings *current;

APART void settings_drop(void)
{
	free(current->name); /* guilty */
	free(current);	     /* guilty */
}

APART size_t settings_use(const struct settings *s)
{
	return strlen(s->name) + (size_t)s->level; /* guilty */
}

static void *worker(void *started)
{
	struct settings *mine = current;

	KEEP(mine);
	*(volatile int *)started = 1;
	usleep(sometimes(3) ? 4000 : 0);
	return (void *)settings_use(mine);
}

static int order_drop(void)
{
	volatile int started = 0;
	pthread_t thread;

	current = malloc(sizeof(*current));
	current->name = strdup("a name of some length");
	current->level = 2;
	pthread_create(&thread, NULL, worker, (void *)&started);
	while (!started)
		;
	usleep(2000);
	settings_drop();
	for (int i = 0; i < 8; i++)
		memset(malloc(sizeof(*current)), 0x41, sizeof(*current));
	pthread_join(thread, NULL);
	return 0;
}

static long *samples;
static size_t sample_count, sample_room;

APART long *sample_add(long value)
{
	if (sample_count == sample_room) {
		sample_room = sample_room ? sample_room * 2 : 4;
		samples = realloc(samples, sample_room * sizeof(*samples));
	}
	samples[sample_count] = value;
	return &samples[sample_count++];
}

APART void first_bump(long *first)
{
	*(volatile long *)first += 1; /* guilty */
}

/* A pointer from before the array moved. */
static int order_moved(void)
{
	long *first = sample_add(0);

	for (int i = 1; i < 40; i++) {
		(void)sample_add(i);
		(void)strdup("something else");
	}
	first_bump(first);
	return samples[0] != 1;
}

struct chunk {
	int ids[4];
	struct chunk *next;
};

APART void ids_put(struct chunk *chunk, int count)
{
	for (int i = 0; i < count; i++)
		chunk->ids[i] = i + 1000; /* guilty */
}

APART long chunks_sum(const struct chunk *chunk)
{
	long sum = 0;

	for (; chunk; chunk = chunk->next)
		sum += chunk->ids[0];
	return sum;
}

/* A list in one frame: the loop has left the element whose link was overwritten. */
static int frame_list(void)
{
	struct chunk last = { { 1, 2, 3, 4 }, NULL }, first = { { 1, 2, 3, 4 }, &last };

	ids_put(&first, 5);
	return chunks_sum(&first) == 0;
}

struct named {
	char name[8];
	struct named *next;
};

APART void name_copy(char *to, const char *from, size_t len)
{
	memcpy(to, from, len); /* guilty */
	KEEP(to);
}

APART long names_sum(const struct named *named)
{
	long sum = 0;

	for (; named; named = named->next)
		sum += named->name[0];
	return sum;
}

static int frame_copied(void)
{
	struct named last = { "last", NULL }, first = { "first", &last };

	name_copy(first.name, "abcdefghijk", 12);
	return names_sum(&first) == 0;
}

static const struct truth_case cases[] = {
	{ "field-name", "class narrow-write\nclass wide-write\nclass overflow\nwho name_set\n",
	  field_name },
	{ "field-index", "class narrow-write\nclass overflow\nwho seen_add\n", field_index },
	{ "bit-set", "class narrow-write\nwho flag_set\n", bit_set },
	{ "bit-cleared", "class narrow-write\nwho flag_clear\n", bit_cleared },
	{ "wide-store", "class wide-write\nwho count_store\n", wide_store },
	{ "half-pointer", "class narrow-write\nwho half_store\n", half_pointer },
	{ "field-sometimes", "class narrow-write\nwho half_store\n", field_sometimes },
	{ "emitted-field", "class narrow-write\nwho emitted_field\n", emitted_field },
	{ "emitted-over", "class overflow\nwho emitted_over\n", emitted_over },
	{ "emitted-freed", "class write-after-free\nclass use-after-free\nwho emitted_freed\n",
	  emitted_freed },
	{ "pool-stale", "class write-after-free\nclass narrow-write\nwho job_cancel\n",
	  pool_stale },
	{ "pool-over", "class narrow-write\nclass overflow\nwho job_fill\n", pool_over },
	{ "order-drop",
	  "class use-after-free\nclass dangling-holder\nclass race\nwho settings_use\nwho settings_drop\n",
	  order_drop },
	{ "order-moved",
	  "class write-after-free\nclass use-after-free\nclass dangling-holder\nwho first_bump\n",
	  order_moved },
	{ "bit-sometimes", "class narrow-write\nwho flag_set\n", bit_sometimes },
	{ "bit-flipped", "class narrow-write\nwho mark_toggle\n", bit_flipped },
	{ "copy-within", "class narrow-write\nclass wide-write\nclass overflow\nwho times_copy\n",
	  copy_within },
	{ "index-negative", "class narrow-write\nclass underflow\nwho seen_bump\n",
	  index_negative },
	{ "word-wrong", "class narrow-write\nwho word_add\n", word_wrong },
	{ "shelf-negative", "class narrow-write\nwho shelf_count\n", shelf_negative },
	{ "frame-text", "class narrow-write\nclass overflow\nwho word_take\n", frame_text },
	{ "frame-returned", "class narrow-write\nclass overflow\nwho word_take\n", frame_returned },
	{ "frame-list", "class narrow-write\nclass overflow\nwho ids_put\n", frame_list },
	{ "frame-copied", "class narrow-write\nclass wide-write\nclass overflow\nwho name_copy\n",
	  frame_copied },
	{ "global-next", "class narrow-write\nclass overflow\nwho level_set\n", global_next },
	{ "efault-write", "class narrow-write\nclass wide-write\nclass overflow\nwho mode_set\n",
	  efault_write },
	{ "efault-read", "class narrow-write\nclass overflow\nwho line_seen\n", efault_read },
	{ "swapped", "class narrow-write\nwho bytes_swap\n", swapped },
	{ "pointer-moved", "class invalid-free\nwho note_skip\n", pointer_moved },
	{ "count-over", "class narrow-write\nclass overflow\nwho note_count\n", count_over },
	{ "variant-added", "class narrow-write\nclass invalid-free\nwho number_add\n",
	  variant_added },
	{ "pointer-before", "class invalid-free\nclass narrow-write\nwho note_unget\n",
	  pointer_before },
	{ "cursor-static", "class invalid-free\nwho note_end\n", cursor_static },
	{ "cursor-kept", "class invalid-free\nwho note_end\n", cursor_kept },
	{ "cursor-freed", "class invalid-free\nwho note_close\n", cursor_freed },
	{ "wrong-variant", "class narrow-write\nwho number_set\n", wrong_variant },
	{ "row-over", "class narrow-write\nclass overflow\nwho row_set\n", row_over },
	{ "emitted-half", "class narrow-write\nwho emitted_half\n", emitted_half },
	{ "frame-printed", "class narrow-write\nclass overflow\nwho word_take\n", frame_printed },
	{ "field-printed", "class narrow-write\nclass overflow\nwho name_set\n", field_printed },
	{ "arena-over", "class narrow-write\nclass overflow\nwho text_put\n", arena_over },
};

TRUTH_MAIN(cases)
