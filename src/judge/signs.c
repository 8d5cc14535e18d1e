#include "judge/signs.h"

#include "base/vec.h"

#define CORE_P 0.001
#define FLIPS 3
#define SITES 3

struct flips {
	VEC(const struct home *) homes;
	uint64_t bits, last_trial;
};

static void note_flip(struct flips *flips, const struct evidence *e, const struct home *home,
		      uint64_t changed, struct host_signs *signs)
{
	bool known = false;

	/* One bit, and one flip per trial: what a trial shows twice, it shows once. */
	if (__builtin_popcountll(changed) != 1 || e->trial == flips->last_trial)
		return;
	flips->last_trial = e->trial;
	signs->bit_flips++;
	VEC_FOREACH (&flips->homes, seen)
		known |= home_same(*seen, home);
	if (!known)
		VEC_PUSH(&flips->homes, home);
	flips->bits |= changed;
}

void signs_count_flips(const struct evidence_list *list, struct host_signs *signs)
{
	struct flips flips = { 0 };

	VEC_FOREACH (&list->list, e) {
		if (!e->failing)
			continue;
		if (e->kind == EVIDENCE_WATCH && e->watch->victim_watched &&
		    e->watch->since_birth && e->watch->value_known && e->watch->hits == 0)
			note_flip(&flips, e, &e->watch->home,
				  e->watch->value ^ e->watch->birth_value, signs);
		if (e->kind == EVIDENCE_OUTSIDE && !e->outside->gap && e->outside->kernel_writes)
			note_flip(&flips, e, &e->outside->home, e->outside->old ^ e->outside->new,
				  signs);
	}
	signs->flip_homes = (unsigned int)flips.homes.count;
	signs->flip_bits = (unsigned int)__builtin_popcountll(flips.bits);
	VEC_DEINIT(&flips.homes);
}

bool signs_flips(const struct host_signs *signs)
{
	return signs->bit_flips >= FLIPS && (signs->flip_homes > 1 || signs->flip_bits > 1);
}

bool signs_signals(const struct host_signs *signs)
{
	return signs->segv > 0 && signs->bus > 0 && signs->ill > 0 && signs->sites >= SITES;
}

bool signs_node(const struct host_signs *signs)
{
	return signs->node[0] != '\0' && signs->node_p < CORE_P;
}

bool signs_core(const struct host_signs *signs)
{
	return signs->core >= 0 && signs->core_p < CORE_P;
}
