/*
 * A worker takes its jobs in batches, into an array on its stack. jobs_cancel() frees those that
 * are not done yet, and cannot know of the array.
 */
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>

#include "chase_truth.h"

struct kind {
	long weight;
	long done;
};

struct job {
	int id;
	int done;
	struct kind *kind;
	struct job *next;
	long cost;
};

static struct job *queue;
static sem_t taken, go;
static char *reasons[64];
static int reason_count, cancelled;
static struct job *by_id[120];

APART static struct kind *kind_new(long weight)
{
	struct kind *kind = calloc(1, 64);

	if (!kind)
		exit(3);
	kind->weight = weight;
	return kind;
}

APART static struct job *job_new(int id, struct kind *kind)
{
	struct job *job = malloc(sizeof(*job));

	if (!job)
		exit(3);
	*job = (struct job){ id, 0, kind, queue, 10 };
	queue = job;
	by_id[id] = job;
	return job;
}

APART static int batch_take(struct job **batch, int most)
{
	int count = 0;

	while (queue && count < most) {
		batch[count++] = queue;
		queue = queue->next;
	}
	return count;
}

APART static long job_run(struct job *job)
{
	long cost = ++job->kind->done * job->kind->weight;

	job->done = 1;
	return cost;
}

static void *worker(void *arg)
{
	struct job *batch[16];
	long *cost = arg;
	int count;

	while ((count = batch_take(batch, 16)) > 0) {
		sem_post(&taken);
		sem_wait(&go);
		for (int i = 0; i < count; i++)
			*cost += job_run(batch[i]);
	}
	sem_post(&taken);
	return NULL;
}

APART static void reason_add(int id)
{
	char *reason = malloc(40);

	if (!reason)
		exit(3);
	snprintf(reason, 40, "job %03d is not needed any longer", id);
	reasons[reason_count++] = reason;
}

APART static void jobs_cancel(int from, int to)
{
	for (int id = from; id < to; id++)
		if (!by_id[id]->done) {
			free(by_id[id]);
			by_id[id] = NULL;
			cancelled++;
		}
}

int main(void)
{
	struct kind *kinds[2] = { kind_new(3), kind_new(5) };
	pthread_t thread;
	long cost = 0;

	tell_truth("class dangling-holder\n"
		   "class use-after-free\n"
		   "holder chase_dangling_stack.c:batch_take\n"
		   "freer chase_dangling_stack.c:jobs_cancel\n"
		   "allocator chase_dangling_stack.c:job_new\n"
		   "reader chase_dangling_stack.c:job_run\n");
	sem_init(&taken, 0, 0);
	sem_init(&go, 0, 0);
	for (int id = 0; id < 120; id++)
		job_new(id, kinds[id % 2]);
	if (pthread_create(&thread, NULL, worker, &cost) != 0)
		return 3;
	for (int batch = 0; batch < 8; batch++) {
		sem_wait(&taken);
		/* The fifth batch has 40 to 55: too late for one of them. */
		if (batch == 4) {
			jobs_cancel(50, 51);
			for (int id = 0; id < 20; id++)
				reason_add(id);
		}
		sem_post(&go);
	}
	pthread_join(thread, NULL);
	printf("cost %ld, %d cancelled\n", cost, cancelled);
	return 0;
}
