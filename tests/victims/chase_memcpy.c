/*
 * Packets for a queue. packet_pack() copies the payload behind a header that packet_reserve() did
 * not count.
 */
#include <stdio.h>
#include <stdlib.h>

#include "chase_truth.h"

#define HEADER 24

struct route {
	const char *host;
	long sent;
};

struct entry {
	struct route *route;
	unsigned char *packet;
	size_t len;
	struct entry *next;
};

static struct entry *queue, **queue_end = &queue;

APART static struct route *route_new(const char *host)
{
	struct route *route = calloc(1, sizeof(*route));

	if (!route)
		exit(3);
	route->host = host;
	return route;
}

APART static unsigned char *packet_reserve(size_t payload)
{
	unsigned char *packet = malloc(payload < 104 ? 104 + HEADER : payload);

	if (!packet)
		exit(3);
	return packet;
}

APART static void packet_pack(struct entry *entry, const char *payload, size_t len)
{
	memset(entry->packet, 0, HEADER);
	entry->packet[0] = (unsigned char)len;
	memcpy(entry->packet + HEADER, payload, len);
	entry->len = HEADER + len;
}

APART static struct entry *entry_new(struct route *route, size_t payload)
{
	unsigned char *packet = packet_reserve(payload);
	struct entry *entry = malloc(sizeof(*entry));

	if (!entry)
		exit(3);
	entry->route = route;
	entry->packet = packet;
	entry->len = 0;
	entry->next = NULL;
	*queue_end = entry;
	queue_end = &entry->next;
	return entry;
}

APART static long queue_flush(void)
{
	long bytes = 0;

	while (queue) {
		struct entry *entry = queue;

		entry->route->sent++;
		for (size_t i = 0; i < entry->len; i++)
			bytes += entry->packet[i];
		queue = entry->next;
		free(entry->packet);
		free(entry);
	}
	queue_end = &queue;
	return bytes;
}

int main(void)
{
	struct route *routes[3] = { route_new("alpha"), route_new("beta"), route_new("gamma") };
	static char text[400];
	long bytes;

	tell_truth("class overflow\n"
		   "writer chase_memcpy.c:packet_pack\n"
		   "allocator chase_memcpy.c:packet_reserve\n");
	for (size_t i = 0; i < sizeof(text); i++)
		text[i] = (char)('a' + i % 26);
	for (int i = 0; i < 240; i++) {
		/* One payload is longer than usual. */
		size_t len = i == 177 ? 200 : 20 + (size_t)(i % 40);

		packet_pack(entry_new(routes[i % 3], len), text, len);
		if (i % 9 == 0)
			routes[i % 2] = route_new("spare");
	}
	bytes = queue_flush();
	printf("bytes %ld\n", bytes);
	return 0;
}
