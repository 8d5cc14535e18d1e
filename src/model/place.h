#pragma once

#include "base/mem.h"

/*
 * Where a trial ran, when that was not this machine: texts as the node itself told them, "" for
 * what it did not know.
 */
struct place {
	char *node;	 /* its name */
	char *cores;	 /* that the worker may use: "0-3" */
	char *cpu;	 /* model */
	char *microcode; /* revision */
	char *kernel;	 /* release */
	char *gpu;	 /* what the worker may see of them: "0", "0,1" */
};

static inline void place_deinit(struct place *place)
{
	mem_free(place->node);
	mem_free(place->cores);
	mem_free(place->cpu);
	mem_free(place->microcode);
	mem_free(place->kernel);
	mem_free(place->gpu);
}
