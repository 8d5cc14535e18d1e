#pragma once

#include <stddef.h>

#include "model/snapshot.h"

/* The mappings of a process, out of the text of /proc/PID/maps. Owns the paths. A zeroed struct is
 * an empty list. */
struct mappings {
	struct mapping *items; /* in the order of the text */
	size_t count;
	size_t room;
};

/* Appends every line that reads like one of maps, and passes over the others (a record may be cut
 * or damaged). "\012" in a path becomes the newline that it stands for. Returns how many lines were
 * passed over. */
size_t mappings_parse(struct mappings *mappings, const char *text, size_t len);
void mappings_deinit(struct mappings *mappings);
