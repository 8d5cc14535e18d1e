#pragma once

#include <stdbool.h>

#include "debuginfo/space.h"
#include "model/frame.h"

/*
 * Functions that ended in a jump.
 *
 * A compiler that optimises lets `void drop(p) { …; free(p); }` jump to free: drop() has no frame
 * of its own, and the stack shows free called by drop's caller. But the call instruction there
 * still names drop(). Where it calls a function that has no frame, and that function can leave by a
 * jump, the function is put back into the stack, with the flag FRAME_TAIL.
 */
void tails_insert(struct space *space, struct stack *stack);

/* May the call that ends at the return address `back` have led to the function around `inside`,
 * perhaps by others that jumped on? False only when its code says otherwise. */
bool tails_may_lead(struct space *space, taddr back, taddr inside);
