#include "agent/sites.h"

#include "agent/memory.h"

/* A site that reads `count` words. */
static void site_fill(struct thread_site *site, uint64_t place, const uint16_t *offset,
		      unsigned count)
{
	unsigned i;

	site->place = place;
	for (i = 0; i < THREAD_SITE_WORDS; i++)
		site->offset[i] = i < count ? offset[i] : SITES_NO_WORD;
	/* One caller: the fast way stops there. */
	for (i = 1; i < THREAD_SITE_WORDS && site->offset[i] == SITES_NO_WORD;)
		i++;
	if (i == THREAD_SITE_WORDS)
		site->offset[1] = 0;
}

static unsigned offset_of(const struct thread_site *site, unsigned i)
{
	return i > 0 && !site->offset[1] ? SITES_NO_WORD : site->offset[i];
}

/* The place of the site behind a fork. */
static inline uint64_t fork_place(const struct thread_site *site, uint64_t frame)
{
	uint64_t mixed = (site->place ^ context_words(site, frame)) * 0x9e3779b97f4a7c15ull;

	return mixed ^ mixed >> 32;
}

static inline struct thread_site *site_known(const struct thread *self, uint64_t place)
{
	struct thread_site *pair = context_site((struct thread *)self, place);

	return pair[0].place == place ? &pair[0] : pair[1].place == place ? &pair[1] : NULL;
}

ARCH_KEPT(context_branch);

uint64_t context_branch(const struct thread *self, uint64_t place, uint64_t frame)
{
	const struct thread_site *site;
	unsigned depth;

	for (depth = 0; depth <= THREAD_SITE_WORDS && (site = site_known(self, place)); depth++) {
		if (!(site->context & THREAD_SITE_FORK))
			return context_words(site, frame) == site->words ? site->context : 0;
		place = fork_place(site, frame);
	}
	return 0;
}

static bool wrapper_take(struct thread *self, uint64_t return_address, uint16_t offset)
{
	uint32_t number = context_wrapper(return_address);

	if (self->wrappers[number])
		return false;
	self->wrapper_offsets[number] = offset;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	self->wrappers[number] = return_address;
	return true;
}

/* Twice as many pairs: of each, what has the next bit of its place set moves. A signal handler may
 * come in between and find a place without its site; it is turned away by the guard all the same. */
static void sites_grow(struct thread *self)
{
	uint32_t pairs = self->site_mask / THREAD_SITE_BIT + 1, bit = pairs * THREAD_SITE_BIT, i;

	memory_populate_sigsafe((uint64_t)&self->sites[2 * pairs],
				2ull * pairs * sizeof(self->sites[0]));
	for (i = 0; i < pairs; i++) {
		struct thread_site *near = &self->sites[2 * i], *far = near + 2 * pairs;

		if (near[1].place & bit) {
			*far = near[1];
			near[1].place = 0;
		}
		if (near[0].place & bit) {
			far[1] = far[0];
			far[0] = near[0];
			near[0] = near[1];
			near[1].place = 0;
		}
	}
	self->site_mask |= bit;
}

/* The first of the pair that this place is to have: the one before it stays as the second. */
static struct thread_site *site_take(struct thread *self, uint64_t place)
{
	uint32_t pairs = self->site_mask / THREAD_SITE_BIT + 1;
	struct thread_site *site;

	if (++self->sites_used > pairs / 2 && 2 * pairs < sizeof(self->sites) / sizeof(*site))
		sites_grow(self);
	site = context_site(self, place);
	site[1] = site[0];
	return site;
}

/* Every fork reads words that its place alone does not tell, so there are at most as many as
 * words. A site whose first offset is not this one's was made by another frame size at the same
 * place (alloca): it is written over. */
void sites_learn(struct thread *self, struct caller caller,
		 const uint16_t offset[THREAD_SITE_WORDS], bool fixed, uint32_t context)
{
	uint64_t place = context_place(self, caller), frame = caller.frame;
	struct thread_site *site;
	unsigned done = 0, count, same;

	while ((site = site_known(self, place))) {
		bool fork = (site->context & THREAD_SITE_FORK) != 0;

		count = fork ? site->context & ~THREAD_SITE_FORK : THREAD_SITE_WORDS - done;
		for (same = 0; same < count && done + same < THREAD_SITE_WORDS; same++)
			if (offset_of(site, same) != offset[done + same])
				break;
		if (!same || (!fork && same == count && context_words(site, frame) == site->words))
			break;
		if (fixed && !done && wrapper_take(self, caller.return_address, offset[0])) {
			place = context_place(self, caller);
			continue;
		}
		if (!fork || same < count) {
			site_fill(site, place, offset + done, same);
			site->context = THREAD_SITE_FORK | same;
			site->words = ~context_words(site, frame);
		}
		place = fork_place(site, frame);
		done += same;
	}
	if (!site)
		site = site_take(self, place);
	site_fill(site, place, offset + done, THREAD_SITE_WORDS - done);
	site->words = context_words(site, frame);
	site->context = context;
}
