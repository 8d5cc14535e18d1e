/*
 * A thousand notes are alive. Long after they were made one of them, another in every run, gets a
 * text appended that needs two bytes more than it has; it shows when all are thrown away.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "chase_truth.h"

#define NOTES 1000
#define ROOM 24

static char *notes[NOTES];

APART static char *note_new(const char *text)
{
	char *note = malloc(ROOM);

	if (!note)
		exit(3);
	memcpy(note, text, strlen(text) + 1);
	return note;
}

APART static void note_append(char *note, const char *text)
{
	size_t used = strlen(note);

	memcpy(note + used, text, strlen(text) + 1);
}

APART static void notes_drop(void)
{
	for (int i = 0; i < NOTES; i++)
		free(notes[i]);
	puts("dropped");
}

int main(void)
{
	struct timespec now;

	tell_truth("class overflow\n"
		   "writer chase_late.c:note_append\n"
		   "allocator chase_late.c:note_new\n");
	clock_gettime(CLOCK_REALTIME, &now);
	srand((unsigned int)(now.tv_nsec / 1000));
	for (int i = 0; i < NOTES; i++)
		notes[i] = note_new("fifteen letters");
	for (int i = 0; i < NOTES; i += 7)
		note_append(notes[i], " and");
	/* 15 or 19 letters, 10 more and a NUL: the size of the block behind loses its lowest byte.
	 */
	note_append(notes[rand() % (NOTES - 1)], " and more.");
	notes_drop();
	return 0;
}
