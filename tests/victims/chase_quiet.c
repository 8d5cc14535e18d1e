/*
 * Nothing ever dies of it: a stack of numbers is popped below its start, and what is pushed next
 * lies in the blocks before it, where nobody looks again. Without optimisation the pointer that is
 * written through is not the stack's any more.
 */
#include <stdio.h>
#include <stdlib.h>

#include "chase_truth.h"

struct machine {
	int used;
	long *cells;
	long *locals;
	char *mark;
};

APART static long *cells_new(int count)
{
	long *cells = calloc((size_t)count, sizeof(*cells));

	if (!cells)
		exit(3);
	return cells;
}

APART static void machine_push(struct machine *machine, long value)
{
	machine->cells[machine->used++] = value;
}

APART static void machine_drop(struct machine *machine, int count)
{
	machine->used -= count;
}

APART static struct machine *machine_new(void)
{
	struct machine *machine = malloc(sizeof(*machine));

	if (!machine)
		exit(3);
	machine->used = 0;
	machine->locals = calloc(4, sizeof(long));
	machine->mark = malloc(8);
	machine->cells = cells_new(32);
	return machine;
}

int main(void)
{
	long sum = 0;

	tell_truth("class underflow\n"
		   "writer chase_quiet.c:machine_push\n"
		   "allocator chase_quiet.c:cells_new\n");
	for (int i = 0; i < 5; i++) {
		struct machine *machine = machine_new();

		for (int k = 0; k < 10; k++)
			machine_push(machine, 1000 + k);
		/* Down to 80 bytes before the start: just behind the locals, where all have guards.
		 */
		machine_drop(machine, i == 3 ? 20 : 10);
		for (int k = 0; k < 10; k++)
			machine_push(machine, 77777);
		sum += machine->used;
	}
	printf("%ld\n", sum);
	return 0;
}
