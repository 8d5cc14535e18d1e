/*
 * /proc/self/maps, read with raw calls into a buffer of our own. _sigsafe.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct maps_line {
	uint64_t low, high, offset, inode, device;
	bool readable, writable, executable, shared;
	const char *path; /* "" when there is none; ends in 0, good until the next line */
	const char *text; /* the whole line, not ended */
	size_t text_bytes;
};

/* Room for one read; lines that cross its end are moved to the front. */
struct maps_buffer {
	char bytes[16384];
	char path[4200];
};

struct maps_walk {
	struct maps_buffer *buffer;
	int fd;
	size_t at, have;
	bool end;
};

/* The beginning of a small file, as a text. Its length; 0: it cannot be read, or is empty. */
size_t maps_text_sigsafe(const char *path, char *to, size_t room);

/* Memory of a device may mind being read. What mmap() gave for MAP_SHARED and MAP_ANONYMOUS is
 * called /dev/zero and is ordinary memory. */
bool maps_is_device(const struct maps_line *line);

/* A descriptor, or a negative errno. */
long maps_open_sigsafe(void);

bool maps_begin_sigsafe(struct maps_walk *walk, struct maps_buffer *buffer);
/* The same of another process: `path` is its /proc/PID/maps. */
bool maps_begin_at_sigsafe(struct maps_walk *walk, struct maps_buffer *buffer, const char *path);
bool maps_next_sigsafe(struct maps_walk *walk, struct maps_line *ret);
void maps_end_sigsafe(struct maps_walk *walk);
