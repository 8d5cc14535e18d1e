/*
 * A connection that two threads share. connection_get() and connection_put() count its users
 * without a lock and log it in between: when two counts cross, it is closed too early.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "chase_truth.h"

struct peer {
	long address;
	long requests;
};

struct connection {
	long opened;
	struct peer *peer;
	int users;
	long bytes;
};

struct record {
	char text[32]; /* as large as a connection */
};

static struct connection *shared;
static __thread struct record *records[16];
static __thread unsigned record_count, closed;

/* What the log's disk takes. */
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

/* The last sixteen are kept. */
APART static void record_add(const char *what, int users)
{
	struct record *record = malloc(sizeof(*record));

	if (!record)
		exit(3);
	snprintf(record->text, sizeof(record->text), "%s: has %d users now", what, users);
	free(records[record_count % 16]);
	records[record_count++ % 16] = record;
	wait_us(300);
}

APART static struct connection *connection_open(long address)
{
	struct connection *connection = malloc(sizeof(*connection));

	if (!connection)
		exit(3);
	connection->peer = calloc(1, 64);
	connection->peer->address = address;
	connection->opened = 1;
	connection->users = 1;
	connection->bytes = 0;
	return connection;
}

APART static void connection_close(struct connection *connection)
{
	free(connection->peer);
	free(connection);
	closed++;
}

APART static void connection_get(struct connection *connection)
{
	int users = connection->users + 1;

	record_add("get", users);
	connection->users = users;
}

APART static void connection_put(struct connection *connection)
{
	int users = connection->users - 1;

	record_add("put", users);
	connection->users = users;
	if (users == 0)
		connection_close(connection);
}

APART static void connection_send(struct connection *connection, long bytes)
{
	connection->peer->requests++;
	connection->bytes += bytes;
}

static void *client(void *arg)
{
	for (int i = 0; i < 3; i++) {
		wait_us(some_us(8000));
		connection_get(shared);
		for (int n = 0; n < 20; n++)
			connection_send(shared, n);
		wait_us(some_us(1000));
		connection_put(shared);
	}
	return arg;
}

int main(void)
{
	pthread_t threads[2];

	tell_truth("class race\n"
		   "class use-after-free\n"
		   "class dangling-holder\n"
		   "class write-after-free\n"
		   "writer chase_refcount.c:connection_get\n"
		   "writer chase_refcount.c:connection_put\n"
		   "freer chase_refcount.c:connection_close\n"
		   "allocator chase_refcount.c:connection_open\n");
	for (int i = 0; i < 60; i++)
		connection_put(connection_open(i));
	shared = connection_open(0x7f000001);
	for (int i = 0; i < 2; i++)
		if (pthread_create(&threads[i], NULL, client, NULL) != 0)
			return 3;
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	connection_send(shared, 1);
	printf("%ld bytes\n", shared->bytes);
	connection_put(shared);
	printf("%u closed here\n", closed);
	return 0;
}
