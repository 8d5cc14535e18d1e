/*
 * Two readers put what they find into one list. Neither vector_push() nor vector_grow() takes a
 * lock: when both grow it at once, the later one's copy lacks what the earlier one has added since.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "chase_truth.h"

struct finding {
	long line;
	long column;
};

struct vector {
	struct finding **items;
	size_t count, capacity;
};

static struct vector found;

static void wait_us(long us)
{
	nanosleep(&(struct timespec){ 0, us * 1000 }, NULL);
}

/* Up to `most`; the time is mixed, or two threads that begin together would wait alike. */
static unsigned some_us(unsigned most)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return ((unsigned)now.tv_nsec * 2654435761u >> 8) % most;
}

APART static struct finding *finding_new(long line)
{
	struct finding *finding = malloc(sizeof(*finding));

	if (!finding)
		exit(3);
	finding->line = line;
	finding->column = line % 80;
	return finding;
}

/* The quota is asked for before a list becomes longer. */
APART static void quota_ask(size_t count)
{
	char *request = malloc(100);

	if (!request)
		exit(3);
	snprintf(request, 100, "grow to %zu", count);
	wait_us(700);
	free(request);
}

APART static void vector_grow(struct vector *vector)
{
	size_t capacity = vector->capacity ? 2 * vector->capacity : 8;
	struct finding **items = calloc(capacity, sizeof(*items));

	if (!items)
		exit(3);
	for (size_t i = 0; i < vector->count; i++)
		items[i] = vector->items[i];
	quota_ask(capacity);
	free(vector->items);
	vector->items = items;
	vector->capacity = capacity;
}

APART static void vector_push(struct vector *vector, struct finding *finding)
{
	if (vector->count == vector->capacity)
		vector_grow(vector);
	vector->items[vector->count++] = finding;
}

APART static long vector_total(const struct vector *vector)
{
	long total = 0;

	for (size_t i = 0; i < vector->count; i++)
		total += vector->items[i]->line;
	return total;
}

static void *reader(void *arg)
{
	for (int i = 0; i < 10; i++) {
		struct finding *finding = finding_new(i);

		wait_us(some_us(16000));
		vector_push(&found, finding);
		free(finding_new(-i));
	}
	return arg;
}

int main(void)
{
	struct vector own = { 0 };
	pthread_t threads[2];

	tell_truth("class race\n"
		   "writer chase_vector_growth.c:vector_grow\n"
		   "writer chase_vector_growth.c:vector_push\n"
		   "allocator chase_vector_growth.c:vector_grow\n");
	for (int i = 0; i < 100; i++)
		vector_push(&own, finding_new(i));
	for (int i = 0; i < 2; i++)
		if (pthread_create(&threads[i], NULL, reader, NULL) != 0)
			return 3;
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	printf("total %ld\n", vector_total(&found) + vector_total(&own));
	return 0;
}
