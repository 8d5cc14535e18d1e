/*
 * A race whose window is some fifty nanoseconds wide, with an allocation in it: two threads keep a
 * spare buffer between them without a lock. For the tests of --chaos: left alone it hardly ever
 * fails, with threads held back at allocations often.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct buffer {
	char *bytes;
	struct buffer *self; /* NULL: given up */
};

struct note {
	char text[40];
};

#define ROUNDS 40
#define ROUNDS_MOST 4000

static struct buffer *spare;
static int done[2]; /* atomic: rounds of each thread */
static volatile unsigned long sink;

static struct note *note_new(const char *what, int round)
{
	struct note *note = malloc(sizeof(*note));

	strcpy(note->text, what);
	note->text[39] = (char)round;
	return note;
}

static __attribute__((noinline)) struct buffer *buffer_new(void)
{
	struct buffer *buffer = malloc(sizeof(*buffer));

	buffer->bytes = malloc(64);
	buffer->self = buffer;
	return buffer;
}

/* Both threads may take the same one. */
static __attribute__((noinline)) struct buffer *spare_take(int round)
{
	struct buffer *buffer = spare;
	struct note *note;

	if (!buffer)
		return buffer_new();
	note = note_new("the spare one is taken", round);
	spare = NULL;
	sink += (unsigned char)note->text[39];
	free(note);
	return buffer;
}

static __attribute__((noinline)) void buffer_drop(struct buffer *buffer)
{
	if (buffer->self != buffer)
		abort();
	buffer->self = NULL;
	free(buffer->bytes);
	free(buffer);
}

static __attribute__((noinline)) void spare_give(struct buffer *buffer)
{
	if (spare)
		buffer_drop(buffer);
	else
		spare = buffer;
}

/* Something else, with allocations of its own. */
static __attribute__((noinline)) void work(int round)
{
	for (int i = 0; i < 12; i++) {
		struct note *note = note_new("work", i);

		for (int n = 0; n < 4000; n++)
			sink += (unsigned long)n;
		memset(note, round, sizeof(*note));
		free(note);
	}
}

/* On busy cores one thread may be through before the other has begun: it goes on until both are. */
static int goes_on(int self, int round)
{
	__atomic_store_n(&done[self], round, __ATOMIC_RELAXED);
	return round < ROUNDS ||
	       (round < ROUNDS_MOST && __atomic_load_n(&done[!self], __ATOMIC_RELAXED) < ROUNDS);
}

static void *run(void *arg)
{
	for (int round = 0; goes_on((int)(long)arg, round); round++) {
		struct buffer *buffer;

		work(round);
		buffer = spare_take(round);
		memset(buffer->bytes, round, 64);
		work(round);
		spare_give(buffer);
	}
	return arg;
}

int main(void)
{
	pthread_t threads[2];

	spare = buffer_new();
	for (long i = 0; i < 2; i++)
		if (pthread_create(&threads[i], NULL, run, (void *)i) != 0)
			return 3;
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
