/*
 * Sessions. An order keeps its session while session_expire() frees those that were idle; the
 * block becomes a line of the journal, and order_bill() takes text for the customer's address.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "chase_truth.h"

struct customer {
	long number;
	long billed;
};

struct session {
	long opened;
	struct customer *customer;
	long last_seen;
	long pages;
};

struct order {
	struct session *session;
	long amount;
};

static struct session *sessions[60];
static char *journal[200];
static int journal_lines, open_sessions;

APART static struct customer *customer_new(long number)
{
	struct customer *customer = malloc(sizeof(*customer));

	if (!customer)
		exit(3);
	customer->number = number;
	customer->billed = 0;
	return customer;
}

APART static struct session *session_open(struct customer *customer, long now)
{
	struct session *session = malloc(sizeof(*session));

	if (!session)
		exit(3);
	*session = (struct session){ now, customer, now, 0 };
	open_sessions++;
	return session;
}

APART static void session_expire(int i)
{
	free(sessions[i]);
	sessions[i] = NULL;
	open_sessions--;
}

APART static struct order *order_new(struct session *session, long amount)
{
	struct order *order = malloc(sizeof(*order));

	if (!order)
		exit(3);
	order->session = session;
	order->amount = amount;
	session->pages++;
	return order;
}

APART static void journal_add(const char *what, int number)
{
	char *line = malloc(32);

	if (!line)
		exit(3);
	snprintf(line, 32, "%04d %s, and more", number, what);
	journal[journal_lines++] = line;
}

APART static long order_bill(const struct order *order)
{
	struct customer *customer = order->session->customer;

	customer->billed += order->amount;
	return customer->number;
}

int main(void)
{
	struct customer *customers[10];
	struct order *orders[90];
	long sum = 0;

	tell_truth("class use-after-free\n"
		   "class dangling-holder\n"
		   "reader chase_read_after_free.c:order_bill\n"
		   "holder chase_read_after_free.c:order_new\n"
		   "freer chase_read_after_free.c:session_expire\n"
		   "allocator chase_read_after_free.c:session_open\n");
	for (int i = 0; i < 10; i++)
		customers[i] = customer_new(i);
	for (int i = 0; i < 60; i++)
		sessions[i] = session_open(customers[i % 10], i);
	for (int i = 0; i < 90; i++)
		orders[i] = order_new(sessions[i % 45], 10 + i);
	/* Those without an order; and one that had one, when the sessions lie badly for it. */
	for (int i = 45; i < 60; i++)
		session_expire(i);
	if ((uintptr_t)sessions[0] >> 12 & 1)
		session_expire(23);
	for (int i = 0; i < 60; i++)
		journal_add("session closed", i);
	for (int i = 0; i < 90; i++)
		sum += order_bill(orders[i]);
	printf("sum %ld, %d open\n", sum, open_sessions);
	return 0;
}
