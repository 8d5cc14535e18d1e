/* Programs that look guilty and are not. Nobody may be accused, whether they fail or not. */
#include <malloc.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#include "truth.h"

static int bad_input(void)
{
	fputs("cannot open 'x'\n", stderr);
	return 1;
}

static int flaky_exit(void)
{
	return sometimes(3);
}

static int flaky_abort(void)
{
	if (sometimes(3)) {
		fputs("the other side hung up\n", stderr);
		abort();
	}
	return 0;
}

static int failed_check(void)
{
	fputs("FAIL: expected 4, got 5\n", stderr);
	return 1;
}

/* Objects of a pool are written when they are given back, and given out again. */
static int pool(void)
{
	struct piece {
		struct piece *next;
		long data[3];
	} *all = calloc(32, sizeof(*all)), *list = NULL;

	for (int round = 0; round < 5; round++) {
		for (int i = 0; i < 32; i++) {
			memset(&all[i], 0xdd, sizeof(all[i]));
			all[i].next = list;
			list = &all[i];
		}
		while (list) {
			struct piece *p = list;

			list = p->next;
			p->data[0] = round;
			KEEP(p);
		}
	}
	free(all);
	return 0;
}

static int xor_list(void)
{
	uintptr_t a[3], *volatile p = a;

	a[0] = (uintptr_t)&a[1];
	a[1] = (uintptr_t)&a[0] ^ (uintptr_t)&a[2];
	a[2] = (uintptr_t)&a[1];
	return p[0] != (uintptr_t)&a[1];
}

struct message {
	char text[24];
	char *more; /* what does not fit there */
};

APART void message_set(struct message *m, const char *text)
{
	m->more = strlen(text) < sizeof(m->text) ? NULL : strdup(text);
	memcpy(m->text, text, strnlen(text, sizeof(m->text) - 1) + 1);
}

/* Text up to the last byte before a pointer; the program says that it does not like it. */
static int full_text(void)
{
	struct message *m = calloc(1, sizeof(*m));

	message_set(m, "twenty-three characters");
	KEEP(m);
	fprintf(stderr, "rejected: %s\n", m->more ? m->more : m->text);
	free(m->more);
	free(m);
	return 1;
}

APART size_t full_words(const char *line, char **ret)
{
	struct {
		char word[8];
		char *rest;
	} parts;

	parts.rest = strdup(line + 7);
	memcpy(parts.word, line, 7);
	parts.word[7] = 0;
	*ret = parts.rest;
	return strlen(parts.word) + strlen(parts.rest);
}

/* A word that fills its place in a frame, beside a pointer that a call returned; then abort(). */
static int full_frame(void)
{
	char *rest;

	if (full_words("PROPFIND /index", &rest) == 15) {
		free(rest);
		fputs("this verb is not known\n", stderr);
		abort();
	}
	return 0;
}

struct window {
	volatile int *base; /* of an array whose first element is number `low` */
	long low;
};

APART void window_move(struct window *w, long by)
{
	w->base -= by;
	w->low += by;
}

/* A pointer that leads far out of its block, where it is never followed to. */
static int biased(void)
{
	int *numbers = calloc(100, sizeof(*numbers)), sum = 0;
	struct window *w = calloc(1, sizeof(*w));

	w->base = numbers;
	window_move(w, 5000);
	for (long i = w->low; i < w->low + 100; i++)
		sum += w->base[i];
	free(numbers);
	free(w);
	return sum;
}

static int tagged(void)
{
	uintptr_t *slot = malloc(sizeof(*slot));
	char *text = strdup("tagged");

	*slot = (uintptr_t)text | 1;
	KEEP(slot);
	*slot |= UINT64_C(1) << 60;
	KEEP(slot);
	text = (char *)(*slot & ~(UINT64_C(1) << 60 | 1));
	free(text);
	free(slot);
	return 0;
}

static int usable(void)
{
	for (size_t n = 1; n < 200; n += 7) {
		char *p = malloc(n);

		memset(p, 1, malloc_usable_size(p));
		KEEP(p);
		free(p);
	}
	return 0;
}

static int grows(void)
{
	char *p = NULL;

	for (size_t n = 1; n < 5000; n += 13) {
		p = realloc(p, n);
		p[n - 1] = 1;
		KEEP(p);
	}
	free(p);
	return 0;
}

static int overlap(void)
{
	char *p = malloc(100);

	memset(p, 'a', 100);
	memmove(p + 1, p, 99);
	KEEP(p);
	memmove(p, p + 50, 50);
	KEEP(p);
	free(p);
	return 0;
}

struct counted {
	int count;
	char text[20];
};

APART void unref(struct counted *c)
{
	if (--c->count == 0)
		free(c);
}

static int counted(void)
{
	for (int i = 0; i < 200; i++) {
		struct counted *c = calloc(1, sizeof(*c));

		c->count = 3;
		KEEP(c);
		unref(c);
		unref(c);
		unref(c);
	}
	return 0;
}

/* Zeros that calloc left are meant. */
static int zeros(void)
{
	long *p = calloc(64, sizeof(*p)), sum = 0;

	for (int i = 0; i < 64; i++)
		sum += p[i];
	free(p);
	return sum != 0;
}

/* The address of a freed block is compared, not followed. */
static int compared(void)
{
	char *a = malloc(40), *b = a;

	KEEP(b);
	free(a);
	a = malloc(40);
	KEEP(a);
	printf("%d\n", a == b);
	free(a);
	return 0;
}

static sigjmp_buf back;

static void on_fault(int signo)
{
	(void)signo;
	siglongjmp(back, 1);
}

/* Faults that the program expects. */
static int probes(void)
{
	char *page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int faults = 0;

	signal(SIGSEGV, on_fault);
	for (int i = 0; i < 5; i++) {
		if (sigsetjmp(back, 1) == 0)
			(void)*(volatile char *)(page + i);
		else
			faults++;
	}
	return faults != 5;
}

struct question {
	char *page;
	long answer;
};

/* The kernel is asked whether something is there; that nothing is, is an answer. Then it gives up
 * for another reason. */
static int asks_kernel(void)
{
	struct question *q = calloc(1, sizeof(*q));
	int pair[2];

	if (pipe(pair) != 0)
		return 0;
	q->page = (char *)(UINT64_C(1) << 46) - 8192;
	KEEP(q);
	q->answer = write(pair[1], q->page, 1);
	fprintf(stderr, "no colour for this terminal (%ld)\n", q->answer);
	free(q);
	return 1;
}

static long shared;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *adds(void *arg)
{
	for (int i = 0; i < 2000; i++) {
		pthread_mutex_lock(&lock);
		shared++;
		pthread_mutex_unlock(&lock);
		free(malloc(10 + (size_t)i % 300));
	}
	return arg;
}

static int threads(void)
{
	pthread_t t[4];

	for (int i = 0; i < 4; i++)
		pthread_create(&t[i], NULL, adds, NULL);
	for (int i = 0; i < 4; i++)
		pthread_join(t[i], NULL);
	return shared != 8000;
}

static int children(void)
{
	char *p = malloc(100);
	int status = 0;

	for (int i = 0; i < 3; i++) {
		pid_t pid = fork();

		if (pid == 0) {
			free(p);
			_exit(0);
		}
		(void)waitpid(pid, &status, 0);
	}
	free(p);
	return status;
}

/* A union under two names. */
static int pun(void)
{
	union {
		double number;
		uint64_t bits;
		void *pointer;
	} *u = malloc(sizeof(*u));

	u->number = 1.5;
	KEEP(u);
	u->bits &= ~UINT64_C(1);
	KEEP(u);
	u->pointer = u;
	KEEP(u);
	free(u);
	return 0;
}

/* Padding and the rest of a buffer are read and written by whole words. */
static int padded(void)
{
	struct {
		char a;
		long b;
	} *s = malloc(sizeof(*s) * 4), *t = malloc(sizeof(*s) * 4);

	for (int i = 0; i < 4; i++) {
		s[i].a = 1;
		s[i].b = i;
	}
	KEEP(s);
	memcpy(t, s, sizeof(*s) * 4);
	KEEP(t);
	free(s);
	free(t);
	return 0;
}

static int unmapped(void)
{
	for (int i = 0; i < 10; i++) {
		char *p = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
			       0);

		memset(p, 1, 8192);
		munmap(p, 8192);
	}
	return 0;
}

/* A text without its end, and functions that are told how long it is. */
static int unended(void)
{
	char *p = malloc(16);
	int same;

	memset(p, 'x', 16);
	KEEP(p);
	printf("%.16s\n", p);
	same = strnlen(p, 16) == 16 && memchr(p, 'y', 16) == NULL;
	free(p);
	return !same;
}

static int handled_null(void)
{
	char *p = getenv("TRUTH_HAS_NO_SUCH_VARIABLE");

	return p ? p[0] != 0 : 0;
}

#define NOBODY "class none\n"

/* Whole words are read, and only the bytes of the text are taken: the last word is its own as
 * malloc rounds up. */
APART uint32_t words_hash(const char *text, size_t len)
{
	uint32_t hash = 0;

	for (size_t i = 0; i < len; i += 4) {
		uint32_t word = *(const volatile uint32_t *)(const void *)(text + i);

		if (len - i < 4)
			word &= (1u << 8 * (len - i)) - 1;
		hash = (hash ^ word) * 16777619u;
	}
	return hash;
}

static int reads_words(void)
{
	char *text = strdup("seventeen letters");

	KEEP(text);
	printf("%u\n", words_hash(text, 18));
	free(text);
	return 0;
}

/* ---- a sparse set: what it reads of unset memory is checked before it counts ---- */

struct sparse {
	unsigned count, *dense, *places;
};

static int sparse_has(const struct sparse *s, unsigned value)
{
	unsigned at = s->places[value];

	return at < s->count && s->dense[at] == value;
}

static int sparse_set(void)
{
	struct sparse s = { 0, malloc(400), malloc(400) };

	for (unsigned i = 0; i < 50; i++)
		if (!sparse_has(&s, i * 7 % 40)) {
			s.dense[s.count] = i * 7 % 40;
			s.places[i * 7 % 40] = s.count++;
		}
	printf("%u %d\n", s.count, sparse_has(&s, 90));
	free(s.dense);
	free(s.places);
	return 0;
}

/* ---- now and then it prints something else, by the clock ---- */

static int prints_clock(void)
{
	struct timespec now;
	int *numbers = malloc(64);

	clock_gettime(CLOCK_REALTIME, &now);
	for (int i = 0; i < 16; i++)
		numbers[i] = i;
	printf("%d %d\n", numbers[3], now.tv_nsec / 1000 % 16 == 0);
	free(numbers);
	return 0;
}

static const struct truth_case cases[] = {
	{ "bad-input", NOBODY, bad_input },
	{ "flaky-exit", NOBODY, flaky_exit },
	{ "flaky-abort", NOBODY, flaky_abort },
	{ "failed-check", NOBODY, failed_check },
	{ "pool", NOBODY, pool },
	{ "xor-list", NOBODY, xor_list },
	{ "full-text", NOBODY, full_text },
	{ "full-frame", NOBODY, full_frame },
	{ "biased", NOBODY, biased },
	{ "tagged", NOBODY, tagged },
	{ "usable", NOBODY, usable },
	{ "grows", NOBODY, grows },
	{ "overlap", NOBODY, overlap },
	{ "counted", NOBODY, counted },
	{ "zeros", NOBODY, zeros },
	{ "compared", NOBODY, compared },
	{ "probes", NOBODY, probes },
	{ "asks-kernel", NOBODY, asks_kernel },
	{ "threads", NOBODY, threads },
	{ "children", NOBODY, children },
	{ "pun", NOBODY, pun },
	{ "padded", NOBODY, padded },
	{ "unmapped", NOBODY, unmapped },
	{ "unended", NOBODY, unended },
	{ "handled-null", NOBODY, handled_null },
	{ "reads-words", NOBODY, reads_words },
	{ "sparse-set", NOBODY, sparse_set },
	{ "prints-clock", NOBODY, prints_clock },
};

TRUTH_MAIN(cases)
