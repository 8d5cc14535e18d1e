/*
 * Innocent: intrusive lists. Links point into the middle of blocks, the heads are on a stack and
 * in a global, iteration runs over a head as if it were an element, elements unlink themselves and
 * free themselves while being walked over; `last_seen` keeps the address of a freed one, to
 * compare.
 */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include "chase_truth.h"

struct link {
	struct link *next, *prev;
};

struct task {
	long priority;
	char name[20];
	struct link by_age;
	struct link by_priority;
	long runs;
};

#define TASK(link, member) ((struct task *)((char *)(link)-offsetof(struct task, member)))

static struct link by_age = { &by_age, &by_age };
static const struct task *last_seen;
static int reused, task_count;

APART static void link_insert(struct link *before, struct link *link)
{
	link->next = before;
	link->prev = before->prev;
	before->prev->next = link;
	before->prev = link;
}

/* The neighbours are made to meet; the link itself keeps pointing to them. */
APART static void link_remove(struct link *link)
{
	link->next->prev = link->prev;
	link->prev->next = link->next;
}

APART static struct task *task_new(struct link *ranked, int number)
{
	struct task *task = malloc(sizeof(*task));
	struct link *at = ranked->next;

	if (!task)
		exit(3);
	reused += task == last_seen;
	task->priority = number * 7919 % 101;
	task->runs = 0;
	task_count++;
	snprintf(task->name, sizeof(task->name), "task %d", number);
	link_insert(&by_age, &task->by_age);
	while (TASK(at, by_priority)->priority < task->priority && at != ranked)
		at = at->next;
	link_insert(at, &task->by_priority);
	return task;
}

APART static void task_end(struct task *task)
{
	link_remove(&task->by_age);
	link_remove(&task->by_priority);
	last_seen = task;
	free(task);
	task_count--;
}

APART static long tasks_run(struct link *ranked, long below)
{
	struct link *next;
	long runs = 0;

	for (struct link *link = ranked->next; link != ranked; link = next) {
		struct task *task = TASK(link, by_priority);

		next = link->next;
		runs += ++task->runs;
		if (task->priority < below)
			task_end(task);
	}
	return runs;
}

int main(void)
{
	/* The head has a task's priority before it: the walk may look there before it sees the end.
	 */
	struct task head = { .priority = -1 };
	struct link *ranked = &head.by_priority;
	long runs = 0;

	tell_truth("class none\n");
	ranked->next = ranked->prev = ranked;
	for (int round = 0; round < 8; round++) {
		for (int i = 0; i < 40; i++)
			task_new(ranked, 40 * round + i);
		runs += tasks_run(ranked, 12 * round);
	}
	runs += tasks_run(ranked, 1000);
	printf("runs %ld, %s\n", runs, reused ? "addresses came back" : "no address came back");
	return by_age.next == &by_age && task_count == 0 ? 0 : 4;
}
