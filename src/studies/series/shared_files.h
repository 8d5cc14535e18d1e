#pragma once

#include <stdint.h>
#include <time.h>

#include "base/vec.h"

/*
 * Files that more than one arm of a comparison wrote: what one arm leaves there may change how
 * often the other fails.
 *
 * While trials of one arm run, and no other's, whatever changes below the working directory and the
 * user's caches was most likely changed by them, if it happens again and again. That is looked at a
 * few times only: directories may be large.
 */
struct shared_file {
	char *path;
	uint32_t arms, often; /* a bit for each arm: it wrote to it, and more than once */
};

struct shared_files {
	const char *cwd;      /* where the command runs; NULL: here */
	const char *case_dir; /* redhand's own, left out */
	VEC(struct shared_file) list;
	struct timespec since;
	unsigned int looks;
};

void shared_files_deinit(struct shared_files *files);

/* From now on an arm has the machine to itself. */
void shared_files_begin(struct shared_files *files);

/* It was this one. */
void shared_files_end(struct shared_files *files, unsigned int arm);

/* Adds the paths that two or more arms wrote more than once. */
void shared_files_tell(const struct shared_files *files, struct strv *ret);
