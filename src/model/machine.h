#pragma once

#include "base/mem.h"

/*
 * Where a trial ran, when that was not this machine: texts as the node itself told them, "" for
 * what it did not know.
 */
struct machine {
	char *node;	 /* its name */
	char *cores;	 /* that the worker may use: "0-3" */
	char *cpu;	 /* model */
	char *microcode; /* revision */
	char *kernel;	 /* release */
	char *gpu;	 /* what the worker may see of them: "0", "0,1" */
};

static inline void machine_deinit(struct machine *machine)
{
	mem_free(machine->node);
	mem_free(machine->cores);
	mem_free(machine->cpu);
	mem_free(machine->microcode);
	mem_free(machine->kernel);
	mem_free(machine->gpu);
}
