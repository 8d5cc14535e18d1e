/*
 * Tickets, as many as there happen to be; ticket_void() takes the address of one for a number of 32
 * bits. No run has the bad one at the same place in line, and no function on the stack of the crash
 * is given it: only what the blocks have in common leads to it. With a small number as its argument
 * there are so many different numbers of tickets, and the place in line is the same now and then.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "chase_truth.h"

struct ticket {
	struct ticket *earlier;
	long *price;
	long seat;
};

static struct ticket *newest;
static long prices[4] = { 5, 7, 9, 11 };

APART static void ticket_sell(long seat)
{
	struct ticket *ticket = malloc(sizeof(*ticket));

	if (!ticket)
		exit(3);
	ticket->price = &prices[seat % 4];
	ticket->seat = seat;
	ticket->earlier = newest;
	newest = ticket;
}

APART static void ticket_void(struct ticket *ticket)
{
	*(unsigned int *)((char *)&ticket->price + 4) = 0;
}

int main(int argc, char **argv)
{
	long spread = argc > 1 ? atol(argv[1]) : 89;
	struct timespec now;
	struct ticket *bad;
	long total = 0, count;

	tell_truth("class narrow-write\n"
		   "writer chase_context.c:ticket_void\n"
		   "allocator chase_context.c:ticket_sell\n");
	clock_gettime(CLOCK_MONOTONIC, &now);
	count = 10 + now.tv_nsec / 1000 % spread;
	for (long seat = 0; seat < count; seat++)
		ticket_sell(seat);
	bad = newest;
	for (long i = 0; i < now.tv_nsec / 1000 % 3; i++)
		bad = bad->earlier;
	ticket_void(bad);
	for (struct ticket *ticket = newest; ticket; ticket = ticket->earlier)
		total += *ticket->price;
	printf("total %ld\n", total);
	return 0;
}
