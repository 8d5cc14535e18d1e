/*
 * Timers. timer_cancel() frees a timer that the due list still has; wheel_turn() later writes the
 * time of its ringing into what is a subscription by then.
 */
#include <stdio.h>
#include <stdlib.h>

#include "chase_truth.h"

struct timer {
	long period;
	long rang_at;
	int id;
};

struct subscriber {
	const char *name;
	long told;
};

struct subscription {
	long topic;
	struct subscriber *subscriber; /* where a timer has rang_at */
	int id;
};

static struct timer *due[64];
static struct subscription *subscriptions[200];
static int due_count, subscription_count, timers;

APART static struct timer *timer_start(int id, long period)
{
	struct timer *timer = malloc(sizeof(*timer));

	if (!timer)
		exit(3);
	timer->id = id;
	timer->period = period;
	timer->rang_at = 0;
	timers++;
	return timer;
}

APART static void due_add(struct timer *timer)
{
	due[due_count++ % 64] = timer;
}

APART static void timer_cancel(struct timer *timer)
{
	free(timer);
	timers--;
}

APART static struct subscriber *subscriber_new(const char *name)
{
	struct subscriber *subscriber = calloc(1, 48);

	if (!subscriber)
		exit(3);
	subscriber->name = name;
	return subscriber;
}

APART static void subscribe(struct subscriber *subscriber, long topic)
{
	struct subscription *subscription = malloc(sizeof(*subscription));

	if (!subscription)
		exit(3);
	subscription->topic = topic;
	subscription->subscriber = subscriber;
	subscription->id = subscription_count;
	subscriptions[subscription_count++] = subscription;
}

APART static void wheel_turn(long now)
{
	for (int i = 0; i < due_count; i++)
		due[i]->rang_at = now;
	due_count = 0;
}

APART static long publish(void)
{
	long told = 0;

	for (int i = 0; i < subscription_count; i++)
		told += ++subscriptions[i]->subscriber->told;
	return told;
}

int main(void)
{
	struct subscriber *names[3];
	struct timer *active[40];

	tell_truth("class write-after-free\n"
		   "writer chase_write_after_free.c:wheel_turn\n"
		   "holder chase_write_after_free.c:due_add\n"
		   "freer chase_write_after_free.c:timer_cancel\n"
		   "allocator chase_write_after_free.c:timer_start\n");
	for (int i = 0; i < 3; i++)
		names[i] = subscriber_new("name");
	for (int i = 0; i < 60; i++)
		subscribe(names[i % 3], i);
	for (int i = 0; i < 40; i++) {
		active[i] = timer_start(i, 10 * i);
		if (i % 3 == 0)
			due_add(active[i]);
	}
	wheel_turn(100);
	for (int i = 0; i < 40; i += 4)
		due_add(active[i]);
	timer_cancel(active[24]);
	for (int i = 0; i < 60; i++)
		subscribe(names[i % 3], 1000 + i);
	wheel_turn(2200);
	printf("told %ld, %d timers\n", publish(), timers);
	return 0;
}
