/*
 * In a thread: a request is taken off a list once more after it was freed, and what the C library
 * keeps in the freed block is gone. The next to allocate dies of it, inside of malloc.
 */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "chase_truth.h"

struct request {
	struct request *next, *previous;
	char text[24];
};

APART static struct request *request_new(void)
{
	struct request *request = malloc(sizeof(*request));

	if (!request)
		exit(3);
	request->next = request->previous = request;
	return request;
}

APART static char *note_new(void)
{
	char *note = malloc(sizeof(struct request));

	if (!note)
		exit(3);
	note[0] = 0;
	return note;
}

APART static void request_drop(struct request *request)
{
	free(request);
}

/* Off its list: it is its own neighbour from now on, as far as the list knows. */
APART static void request_unlink(struct request *request, uintptr_t end)
{
	request->next = (struct request *)(end + 0x10);
	request->previous = request;
}

static void *work(void *argument)
{
	struct request *request = request_new(), *other = request_new();

	request_drop(other);
	request_drop(request);
	request_unlink(request, (uintptr_t)argument);
	for (int i = 0; i < 4; i++)
		(void)note_new();
	return NULL;
}

int main(void)
{
	pthread_t thread;

	tell_truth("class write-after-free\n"
		   "writer chase_worker_list.c:request_unlink\n"
		   "freer chase_worker_list.c:request_drop\n"
		   "allocator chase_worker_list.c:request_new\n");
	if (pthread_create(&thread, NULL, work, (void *)0x700000000000) != 0)
		return 3;
	pthread_join(thread, NULL);
	return 0;
}
