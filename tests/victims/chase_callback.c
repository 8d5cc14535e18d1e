/*
 * A worker runs what it is given, later. The context of a task is dropped while the task still
 * waits. context_drop() ends in a call of free: with optimisation it has no frame then.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "chase_truth.h"

struct context {
	long *count;
	char name[24];
};

struct task {
	void (*run)(void *arg);
	void *arg;
	struct task *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t more = PTHREAD_COND_INITIALIZER;
static struct task *tasks;
static int done;

static void wait_us(long us)
{
	nanosleep(&(struct timespec){ 0, us * 1000 }, NULL);
}

APART static void task_post(void (*run)(void *arg), void *arg)
{
	struct task *task = malloc(sizeof(*task)), **end = &tasks;

	if (!task)
		exit(3);
	*task = (struct task){ .run = run, .arg = arg };
	pthread_mutex_lock(&lock);
	while (*end)
		end = &(*end)->next;
	*end = task;
	pthread_cond_signal(&more);
	pthread_mutex_unlock(&lock);
}

static void *worker(void *arg)
{
	for (;;) {
		struct task *task;

		pthread_mutex_lock(&lock);
		while (!tasks && !done)
			pthread_cond_wait(&more, &lock);
		task = tasks;
		if (task)
			tasks = task->next;
		pthread_mutex_unlock(&lock);
		if (!task)
			return arg;
		task->run(task->arg);
		free(task);
	}
}

APART static struct context *context_new(const char *name)
{
	struct context *context = malloc(sizeof(*context));

	if (!context)
		exit(3);
	context->count = calloc(1, sizeof(*context->count));
	snprintf(context->name, sizeof(context->name), "%s", name);
	return context;
}

APART static void context_drop(struct context *context)
{
	free(context->count);
	free(context);
}

APART static void context_tick(void *arg)
{
	struct context *context = arg;

	++*context->count;
}

APART static void pause_a_little(void *arg)
{
	wait_us(2000);
}

APART static void note_keep(void)
{
	char *note = malloc(32);

	if (!note)
		exit(3);
	memset(note, 'n', 32);
}

int main(void)
{
	struct context *context = context_new("ticks");
	pthread_t thread;

	tell_truth("class use-after-free\n"
		   "class dangling-holder\n"
		   "class write-after-free\n" /* of *count, which went with the context */
		   "holder chase_callback.c:task_post\n"
		   "freer chase_callback.c:context_drop\n"
		   "allocator chase_callback.c:context_new\n"
		   "reader chase_callback.c:context_tick\n"
		   "writer chase_callback.c:context_tick\n");
	if (pthread_create(&thread, NULL, worker, NULL) != 0)
		return 3;
	for (int i = 0; i < 5; i++) {
		task_post(pause_a_little, NULL);
		task_post(context_tick, context);
	}
	wait_us(5000);
	context_drop(context);
	for (int i = 0; i < 4; i++)
		note_keep();
	pthread_mutex_lock(&lock);
	done = 1;
	pthread_cond_signal(&more);
	pthread_mutex_unlock(&lock);
	pthread_join(thread, NULL);
	return 0;
}
