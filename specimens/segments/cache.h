/*
 * What the compiler keeps between fusions: launch parameters, compiled kernels, the segmentations
 * that ran last, and a log of what was compiled.
 */
#ifndef SEGMENTS_CACHE_H
#define SEGMENTS_CACHE_H

#include "segmenter.h"

struct params {
	enum scheduler scheduler;
	int size_class; /* small, medium or large */
	int block;
	int unroll;
	struct params *next;
};

struct kernel {
	unsigned long key;
	char *code;
	unsigned long used_at;
};

/* Launch parameters for a scheduler and an extent, computed once. */
const struct params *params_for(enum scheduler scheduler, long extent);

/* The compiled kernel of a group, from the cache if it is there. */
const struct kernel *kernel_for(const struct segmentation *segmentation, const struct group *group,
				long extent);

/* Segments a fusion, which it takes over, and compiles all groups. The segmentation is kept until
 * some others have been compiled. */
const struct segmentation *runtime_compile(struct fusion *fusion, const struct val *result);

/* Figures for the summary. */
int kernels_cached(void);
int kernels_compiled(void);

/* Gives back everything that is kept. */
void cache_clear(void);

#endif
