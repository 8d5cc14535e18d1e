#include "agent/ids/sites.h"

#include "agent/core/memory.h"

/* Where this return address would be among the wrappers. */
static inline uint32_t wrapper_number(uint64_t return_address)
{
	return (uint32_t)return_address & ((1u << THREAD_WRAPPERS_BITS) - 1);
}

/* Return address and stack pointer; of a wrapper also the caller's return address. */
static uint64_t place_of(const struct thread *self, uint64_t return_address, uint64_t frame)
{
	uint64_t place = frame + return_address * 0x71bbcd88;
	uint32_t number = wrapper_number(return_address);

	if (self->tables.wrappers[number] == return_address) {
		uint64_t above = frame + self->tables.wrapper_offsets[number];

		/* Below the end of the stack, although nothing else can be there: another library
		 * may have come to the same address since. */
		if (likely(above < self->stack_high))
			place += *(const uint64_t *)above * 0x2545f490;
	}
	return place;
}

/* The first of the pair that it may be in. */
static inline struct thread_site *pair_of(struct thread *self, uint64_t place)
{
	/* Frames lie 16 bytes apart at least; a pair is 64 bytes. */
	uint64_t bytes = (place & self->fast.site_mask) * 4;

	return (struct thread_site *)((char *)self->tables.sites + bytes);
}

/* The place of the site behind a fork. */
static inline uint64_t fork_place(const struct thread_site *fork, uint64_t frame)
{
	uint64_t words = (uint64_t)fork->sum << 32 | context_sum(fork, 0, frame);
	uint64_t mixed = words * 0x9e3779b97f4a7c15ull;

	return mixed ^ mixed >> 32;
}

static struct thread_site *fork_in(struct thread_site *pair, uint64_t place)
{
	unsigned i;

	for (i = 0; i < 2; i++)
		if (pair[i].fork && pair[i].sum == (uint32_t)place)
			return &pair[i];
	return NULL;
}

/* By its place. NULL: not known. */
static struct thread_site *site_find(struct thread *self, uint64_t return_address, uint64_t frame)
{
	uint64_t place = place_of(self, return_address, frame);
	unsigned depth;

	for (depth = 0; depth <= THREAD_SITE_WORDS; depth++) {
		struct thread_site *pair = pair_of(self, place), *fork;

		if (context_site_is(&pair[0], return_address, frame))
			return &pair[0];
		if (context_site_is(&pair[1], return_address, frame))
			return &pair[1];
		fork = fork_in(pair, place);
		if (!fork)
			return NULL;
		place = fork_place(fork, frame);
	}
	return NULL;
}

/* Came behind the last one, and was not what was expected first. The second makes room for it; the
 * first stays until the second was right some eight times, so that two that come in turns do not
 * take each other's place every time. */
static void succession_learn(struct thread *self, struct thread_site *site)
{
	struct thread_site *last = self->fast.site_last;
	uint16_t number = (uint16_t)(site - self->tables.sites);

	if (!last->next || (last->other == number && self->fast.next_id % 8 == 0)) {
		last->other = last->next;
		last->next = number;
	} else {
		last->other = number;
	}
}

static uint64_t site_came(struct thread *self, struct thread_site *site)
{
	succession_learn(self, site);
	return context_follow(self, site);
}

static __attribute__((noinline)) uint64_t seek_by_place(struct thread *self,
							uint64_t return_address, uint64_t frame)
{
	struct thread_site *site = site_find(self, return_address, frame);

	return site ? site_came(self, site) : 0;
}

ARCH_KEPT(context_seek);

/* Short, and no register saved but those that its caller wants kept. */
uint64_t context_seek(struct thread *self, uint64_t return_address, uint64_t frame)
{
	struct thread_site *site = &self->tables.sites[self->fast.site_last->other];

	return context_site_is(site, return_address, frame)
		       ? site_came(self, site)
		       : seek_by_place(self, return_address, frame);
}

static bool wrapper_take(struct thread *self, uint64_t return_address, uint16_t offset)
{
	uint32_t number = wrapper_number(return_address);

	if (self->tables.wrappers[number])
		return false;
	self->tables.wrapper_offsets[number] = offset;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	self->tables.wrappers[number] = return_address;
	return true;
}

/* Reads `count` words. */
static void offsets_fill(struct thread_site *site, const uint16_t *offset, unsigned count)
{
	unsigned i;

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

static void fork_fill(struct thread_site *site, uint64_t place, const uint16_t *offset,
		      unsigned count)
{
	site->call = 0;
	site->follow = 0;
	site->fork = count;
	site->sum = (uint32_t)place;
	offsets_fill(site, offset, count);
}

/* One of the pair that this place is to have, which an old one leaves. */
static struct thread_site *site_take(struct thread *self, uint64_t place)
{
	uint32_t pairs = self->fast.site_mask / THREAD_SITE_BIT + 1;
	struct thread_site *pair;

	/* Places are spread over all of it: every page would be read first, and then written. */
	if (!self->known.sites_used)
		memory_populate_sigsafe((uint64_t)self->tables.wrappers,
					(uint64_t)&self->tables.sites[2 * pairs] -
						(uint64_t)self->tables.wrappers);
	if (++self->known.sites_used > pairs / 2 &&
	    2 * pairs < sizeof(self->tables.sites) / sizeof(*pair)) {
		/* Twice as many. Whose place has the next bit set is found no longer but by those
		 * that it followed, and learned again. */
		memory_populate_sigsafe((uint64_t)&self->tables.sites[2 * pairs],
					2ull * pairs * sizeof(*pair));
		self->fast.site_mask |= pairs * THREAD_SITE_BIT;
	}
	pair = pair_of(self, place);
	if (!pair[0].follow)
		return &pair[0];
	return pair[1].follow && self->known.sites_used % 2 ? &pair[0] : &pair[1];
}

/* A fork of this place, or a site of the same call by another way. */
static struct thread_site *site_at(struct thread *self, uint64_t place, uint64_t call)
{
	struct thread_site *pair = pair_of(self, place), *fork = fork_in(pair, place);
	unsigned i;

	for (i = 0; i < 2 && !fork; i++)
		if (pair[i].call == call)
			fork = &pair[i];
	return fork;
}

/* Every fork reads words that its place alone does not tell, so there are at most as many as
 * words. A site whose first offset is not this one's was made by another frame size at the same
 * place (alloca): it is written over. */
static unsigned words_alike(const struct thread_site *site, unsigned first, const uint16_t *offset,
			    unsigned count, unsigned most)
{
	unsigned same;

	for (same = 0; same < count && same < most; same++)
		if (offset_of(site, first + same) != offset[same])
			break;
	return same;
}

void sites_learn(struct thread *self, struct caller caller,
		 const uint16_t offset[THREAD_SITE_WORDS], bool fixed, uint32_t context)
{
	uint64_t frame = caller.frame, place = place_of(self, caller.return_address, frame);
	uint64_t call = context_call(caller.return_address, frame);
	struct thread_site *site;
	unsigned done = 0, count, same;

	while ((site = site_at(self, place, call))) {
		bool fork = site->fork != 0;
		unsigned first = fork ? 0 : done; /* a fork has its own words only */

		count = fork ? site->fork : THREAD_SITE_WORDS - done;
		same = words_alike(site, first, offset + done, count, THREAD_SITE_WORDS - done);
		if (!same || (!fork && same == count &&
			      context_sum(site, caller.return_address, frame) == site->sum))
			break;
		if (fixed && !done && wrapper_take(self, caller.return_address, offset[0])) {
			place = place_of(self, caller.return_address, frame);
			continue;
		}
		if (!fork || same < count)
			fork_fill(site, place, offset + done, same);
		place = fork_place(site, frame);
		done += same;
	}
	if (!site)
		site = site_take(self, place);
	site->call = 0; /* nobody's, until it is whole: a signal handler may look for it */
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	offsets_fill(site, offset, THREAD_SITE_WORDS);
	site->sum = context_sum(site, caller.return_address, frame);
	site->follow = context;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	site->call = call;
	(void)site_came(self, site);
}

static uint32_t sites_count(const struct thread *self)
{
	return self->known.sites_used ? 2 * (self->fast.site_mask / THREAD_SITE_BIT + 1)
				      : 0; /* untouched */
}

void sites_forget(struct thread *self)
{
	uint32_t count = sites_count(self), i;

	for (i = 0; i < count; i++)
		self->tables.sites[i].call = 0;
}

void sites_forget_through(struct thread *self, const uint32_t *through, uint32_t bits)
{
	uint32_t count = sites_count(self), i;

	for (i = 0; i < count; i++)
		if (self->tables.sites[i].call && through[self->tables.sites[i].context] & bits)
			self->tables.sites[i].call = 0;
}
