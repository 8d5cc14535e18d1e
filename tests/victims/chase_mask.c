/*
 * Nodes whose link has two flags in its lowest bits. node_unmark() clears one with a mask of
 * 32 bits, and the upper half of the link goes with it.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "chase_truth.h"

#define MARKED 1u
#define PINNED 2u

struct node {
	long value;
	uint64_t link; /* address of the next node, and the flags */
};

static struct node *root;

APART static struct node *node_new(long value, struct node *next)
{
	struct node *node = malloc(sizeof(*node));

	if (!node)
		exit(3);
	node->value = value;
	node->link = (uintptr_t)next;
	return node;
}

APART static struct node *node_next(const struct node *node)
{
	return (struct node *)(uintptr_t)(node->link & ~(uint64_t)(MARKED | PINNED));
}

APART static void node_mark(struct node *node)
{
	node->link |= MARKED;
}

APART static void node_pin(struct node *node)
{
	node->link |= PINNED;
}

APART static void node_unpin(struct node *node)
{
	node->link &= ~(uint64_t)PINNED;
}

APART static void node_unmark(struct node *node)
{
	node->link &= ~MARKED;
}

APART static long list_sum(void)
{
	long sum = 0;

	for (struct node *node = root; node; node = node_next(node))
		sum += node->value;
	return sum;
}

int main(void)
{
	struct node *nodes[240];

	tell_truth("class narrow-write\n"
		   "writer chase_mask.c:node_unmark\n"
		   "allocator chase_mask.c:node_new\n");
	for (int i = 0; i < 240; i++) {
		root = node_new(i, root);
		nodes[i] = root;
		if (i % 3 == 0)
			node_mark(root);
		if (i % 4 == 0)
			node_pin(root);
	}
	printf("sum %ld\n", list_sum());
	for (int i = 0; i < 240; i += 8)
		node_unpin(nodes[i]);
	node_unmark(nodes[171]);
	printf("sum %ld\n", list_sum());
	return 0;
}
