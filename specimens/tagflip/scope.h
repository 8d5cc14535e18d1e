/* The scopes of a training step: no-grad, autocast, profile. */
#ifndef TAGFLIP_SCOPE_H
#define TAGFLIP_SCOPE_H

#include "object.h"

extern struct type no_grad_type;
extern struct type autocast_type;
extern struct type profile_type;

void scopes_init(void);

/* The interpreter's way in and out of a scope. */
int scope_enter(struct object *self);
int scope_exit(struct object *self);

/* The part of leaving a scope that compiled code leaves to C: the state from before is back, the
 * attributes are gone, the slot is not reset yet. */
void scope_restore(struct object *self);

/* Asks for a note on a later instance of the type. */
void scope_note(struct type *type);

#endif
