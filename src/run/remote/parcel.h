#pragma once

#include "base/err.h"
#include "run/remote/link.h"

/*
 * Files that travel: what a trial left to its case, what the user ships to the workers.
 *
 * An entry is a directory or a file, named from the top; what is in a file follows in pieces, each
 * compressed by itself; holes stay holes. Links, fifos and devices stay where they are. Nothing of
 * what comes is believed: no name leads out of the directory, nothing there is overwritten, and
 * there are limits.
 */
struct parcel_sink {
	/* A frame to be sent. May wait until there is room; negative: no more. */
	int (*frame)(void *ctx, enum frame_type type, const struct strbuf *payload);
	void *ctx;
};

/* Sends `name` below `dir` as `as` (NULL: what is in that directory, but not itself) and all below
 * it. Files that cannot be read are left out. */
int parcel_send(const struct parcel_sink *sink, uint64_t attempt, int dir, const char *name,
		const char *as);

struct parcel {
	int dir;		 /* where it is put; the caller's */
	int file;		 /* the one that comes; -1 */
	uint64_t size;		 /* its bytes; what does not come is zero */
	uint64_t entries, bytes; /* so far */
};

void parcel_init(struct parcel *parcel, int dir);
void parcel_deinit(struct parcel *parcel);

/* Puts a frame (FRAME_ENTRY or FRAME_DATA, without its attempt) into place. -EBADMSG: no honest
 * worker sends such. */
int parcel_put(struct parcel *parcel, enum frame_type type, const char *bytes, size_t len,
	       struct err *err);
/* May an entry have this name? */
bool parcel_name_is_safe(const char *name);
