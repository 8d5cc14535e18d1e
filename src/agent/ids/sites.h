/*
 * The places that a thread allocates from: struct thread_site, which came behind which, and how
 * several ways to one place are kept apart.
 */
#ifndef REDHAND_AGENT_SITES_H
#define REDHAND_AGENT_SITES_H

#include <stdbool.h>
#include <stdint.h>

#include "agent/ids/context.h"

/* Offset of a word that says nothing: the return address itself, which is the place's own. */
#define SITES_NO_WORD 8u

/* Remembers the context of this call: the stack words that tell it lie at these offsets. fixed: the
 * first of them does for every call that returns there, so the return address may become a wrapper.
 */
void sites_learn(struct thread *self, struct caller caller,
		 const uint16_t offset[THREAD_SITE_WORDS], bool fixed, uint32_t context);

/* What sites were recognised by may be no longer there: all are learned again. */
void sites_forget(struct thread *self);

/* It may be misleading, for those whose context goes through one of these: `through` says by
 * context. */
void sites_forget_through(struct thread *self, const uint32_t *through, uint32_t bits);

#endif
