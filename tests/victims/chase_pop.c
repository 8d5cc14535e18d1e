/*
 * Two threads take from one list without a lock: when both read the same head, they take, use and
 * free the same node.
 */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#include "chase_truth.h"

struct node {
	struct node *next;
	long value;
};

static struct node *volatile head;

APART static void list_push(long value)
{
	struct node *node = malloc(sizeof(*node));

	if (!node)
		exit(3);
	node->value = value;
	node->next = head;
	head = node;
}

APART static long list_pop(void)
{
	struct node *node = head;
	long value;

	if (!node)
		return 0;
	sched_yield();
	value = node->value;
	head = node->next;
	free(node);
	return value;
}

static void *taker(void *arg)
{
	long *total = arg;

	for (int i = 0; i < 400; i++)
		*total += list_pop();
	return arg;
}

int main(void)
{
	long totals[2] = { 0 };
	pthread_t threads[2];

	tell_truth("class race\n"
		   "class double-free\n"
		   "class use-after-free\n"
		   "class dangling-holder\n"
		   "writer chase_pop.c:list_pop\n"
		   "freer chase_pop.c:list_pop\n"
		   "allocator chase_pop.c:list_push\n");
	for (int i = 0; i < 1000; i++)
		list_push(i);
	for (int i = 0; i < 2; i++)
		if (pthread_create(&threads[i], NULL, taker, &totals[i]) != 0)
			return 3;
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	printf("total %ld\n", totals[0] + totals[1]);
	return 0;
}
