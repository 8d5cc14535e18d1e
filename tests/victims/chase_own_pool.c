/*
 * Jobs that are made once and used again and again: job_take() hands them out, job_put() takes them
 * back. retry_expire() lets go of a job that has been put back by then: the next who takes it finds
 * it without its queue.
 */
#include <stdio.h>
#include <stdlib.h>

#include "chase_truth.h"

struct queue {
	const char *name;
	long ran;
};

struct job {
	long number;
	struct queue *queue; /* from its making on */
	long cost;
};

#define SPARE_MAX 32

static struct job *spare[SPARE_MAX]; /* a ring, oldest first */
static unsigned int spare_first, spare_count;
static struct job *retry; /* to be tried once more, until it expires */
static struct queue *queue;

APART static struct queue *queue_new(const char *name)
{
	struct queue *made = calloc(1, 40);

	if (!made)
		exit(3);
	made->name = name;
	return made;
}

APART static struct job *job_take(long number)
{
	struct job *job;

	if (spare_count < 6) {
		job = malloc(sizeof(*job));
		if (!job)
			exit(3);
		job->queue = queue;
	} else {
		job = spare[spare_first++ % SPARE_MAX];
		spare_count--;
	}
	job->number = number;
	return job;
}

APART static void job_put(struct job *job)
{
	spare[(spare_first + spare_count++) % SPARE_MAX] = job;
}

APART static void job_run(struct job *job)
{
	job->cost = job->number % 7;
	job->queue->ran += job->cost;
}

APART static void retry_later(struct job *job)
{
	retry = job;
}

APART static void retry_expire(void)
{
	if (retry)
		retry->queue = NULL;
	retry = NULL;
}

int main(void)
{
	tell_truth("class write-after-free\n"
		   "writer chase_own_pool.c:retry_expire\n"
		   "holder chase_own_pool.c:retry_later\n"
		   "freer chase_own_pool.c:job_put\n"
		   "allocator chase_own_pool.c:job_take\n");
	queue = queue_new("main");
	for (long i = 0; i < 400; i++) {
		struct job *first = job_take(i), *second = job_take(-i);

		job_run(first);
		job_run(second);
		if (i == 250)
			retry_later(second);
		job_put(first);
		job_put(second);
		if (i % 5 == 4)
			retry_expire();
	}
	printf("%s ran %ld\n", queue->name, queue->ran);
	return 0;
}
