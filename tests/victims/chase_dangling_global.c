/*
 * Settings that can be loaded again. `current` keeps the old ones when settings_reload() frees
 * them without choosing the new ones, which it forgets for a file without a name.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "chase_truth.h"

struct backend {
	const char *name;
	long calls;
};

struct settings {
	long version;
	long limit;
	struct backend *backend;
	const char *file;
};

static struct settings *current;
static struct settings *loaded[8];
static char *notes[400];
static int note_count, alive;

APART static struct backend *backend_new(const char *name)
{
	struct backend *backend = calloc(1, sizeof(*backend) + 40);

	if (!backend)
		exit(3);
	backend->name = name;
	return backend;
}

APART static struct settings *settings_load(const char *file, struct backend *backend, long version)
{
	struct settings *settings = malloc(sizeof(*settings));

	if (!settings)
		exit(3);
	*settings = (struct settings){ version, 10 * version, backend, file };
	alive++;
	return settings;
}

APART static void settings_use(struct settings *settings)
{
	current = settings;
}

APART static void settings_drop(struct settings *settings)
{
	free(settings);
	alive--;
}

APART static void note_add(int number)
{
	char *note = malloc(32);

	if (!note)
		exit(3);
	snprintf(note, 32, "note %02d: nothing new to tell", number % 100);
	notes[note_count++] = note;
}

APART static void settings_reload(int i, const char *file, struct backend *backend)
{
	struct settings *old = loaded[i];

	loaded[i] = settings_load(file, backend, old->version + 1);
	if (current == old && file)
		settings_use(loaded[i]);
	settings_drop(old);
	note_add(i);
}

APART static long work_do(void)
{
	current->backend->calls++;
	return current->limit;
}

int main(void)
{
	struct backend *backends[2] = { backend_new("file"), backend_new("net") };
	long done = 0;

	tell_truth("class dangling-holder\n"
		   "class use-after-free\n"
		   "holder chase_dangling_global.c:settings_use\n"
		   "freer chase_dangling_global.c:settings_drop\n"
		   "allocator chase_dangling_global.c:settings_load\n"
		   "reader chase_dangling_global.c:work_do\n");
	for (int i = 0; i < 8; i++)
		loaded[i] = settings_load("conf", backends[i % 2], i);
	/* Which one depends on where they lie, as in a table keyed by address. */
	settings_use(loaded[((uintptr_t)loaded[0] >> 12) % 3]);
	for (int round = 0; round < 40; round++) {
		for (int i = 0; i < 8; i++)
			settings_reload(i, round == 30 && i == 1 ? NULL : "conf", backends[i % 2]);
		done += work_do();
	}
	printf("done %ld, %d alive\n", done, alive);
	return 0;
}
