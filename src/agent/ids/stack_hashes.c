#include "agent/ids/stack_hashes.h"

#include "agent/core/log.h"
#include "agent/core/memory.h"

#define CONTEXT_BITS 24u
#define CONTEXT_MASK ((1ull << CONTEXT_BITS) - 1)
#define GROUP 16u
#define GROUPS_MAX (THREAD_KEYS / GROUP)
#define GROUPS_BEHIND 8u

_Static_assert(GROUPS_MAX <= CONTEXT_MASK, "what chooses the group is not in the key");

/* The n-th to be looked at for this hash: those behind its own come only where there can be no more
 * groups. */
static uint64_t *group_of(struct thread *self, uint64_t hash, unsigned n)
{
	return &self->tables.keys[((hash + n) & (self->known.key_groups - 1)) * GROUP];
}

uint32_t stack_hashes_find(struct thread *self, uint64_t hash)
{
	unsigned n = 0, i;

	do {
		const uint64_t *group = group_of(self, hash, n);

		for (i = 0; i < GROUP && group[i]; i++)
			if (!((group[i] ^ hash) >> CONTEXT_BITS))
				return (uint32_t)(group[i] & CONTEXT_MASK);
	} while (i == GROUP && self->known.key_groups == GROUPS_MAX && ++n < GROUPS_BEHIND);
	return 0;
}

static bool group_add(uint64_t *group, uint64_t key)
{
	unsigned i;

	for (i = 0; i < GROUP; i++)
		if (!group[i]) {
			group[i] = key;
			return true;
		}
	return false;
}

/* Of each group, those whose hash has the next bit set move to the new half. The bit is in the log,
 * which the target may have scribbled on: then its key gets lost, and its stack a second context.
 */
static void stack_hashes_grow(struct thread *self)
{
	uint32_t groups = self->known.key_groups, g;
	unsigned i, kept;

	memory_populate_sigsafe((uint64_t)&self->tables.keys[groups * GROUP],
				groups * GROUP * sizeof(self->tables.keys[0]));
	for (g = 0; g < groups; g++) {
		uint64_t *near = &self->tables.keys[g * GROUP], *far = near + groups * GROUP;

		for (i = kept = 0; i < GROUP && near[i]; i++) {
			uint64_t key = near[i];

			near[i] = 0;
			if (log_map.contexts[key & CONTEXT_MASK].stack_hash & groups)
				(void)group_add(far, key);
			else
				near[kept++] = key;
		}
	}
	self->known.key_groups = 2 * groups;
}

bool stack_hashes_add(struct thread *self, uint64_t hash, uint32_t context)
{
	uint64_t key = (hash & ~CONTEXT_MASK) | context;
	unsigned n;

	while (!group_add(group_of(self, hash, 0), key)) {
		if (self->known.key_groups < GROUPS_MAX) {
			stack_hashes_grow(self);
			continue;
		}
		for (n = 1; n < GROUPS_BEHIND; n++)
			if (group_add(group_of(self, hash, n), key))
				return true;
		return false;
	}
	return true;
}
