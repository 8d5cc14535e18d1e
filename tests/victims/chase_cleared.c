/*
 * A connection is closed as it should be: its peer is freed, and the field that led there is
 * cleared. A late packet uses it all the same. An error in the logic; whoever cleared the field did
 * no wrong.
 */
#include <stdio.h>
#include <stdlib.h>

#include "chase_truth.h"

struct peer {
	long credit;
};

struct connection {
	long number;
	struct peer *peer;
};

APART static struct connection *connection_open(long number)
{
	struct connection *connection = malloc(sizeof(*connection));

	if (!connection)
		exit(3);
	connection->number = number;
	connection->peer = calloc(1, sizeof(*connection->peer));
	return connection;
}

APART static void connection_close(struct connection *connection)
{
	free(connection->peer);
	connection->peer = NULL;
}

APART static long connection_credit(const struct connection *connection)
{
	return connection->peer->credit;
}

int main(void)
{
	struct connection *connections[12];
	long sum = 0;

	tell_truth("class null-pointer\n"
		   "class not-caught\n"
		   "reader chase_cleared.c:connection_credit\n");
	for (int i = 0; i < 12; i++)
		connections[i] = connection_open(i);
	for (int i = 0; i < 12; i++)
		sum += connection_credit(connections[i]);
	connection_close(connections[5]);
	connection_close(connections[9]);
	sum += connection_credit(connections[9]);
	printf("%ld\n", sum);
	return 0;
}
