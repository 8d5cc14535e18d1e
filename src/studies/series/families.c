/*
 * From signatures to families of failures (model/family.h).
 */
#include "studies/series/families.h"

#include <string.h>

#include "search/stats/rate.h"

/* So many failures, and this share of all, are frequent. */
#define FREQUENT 3u
#define FREQUENT_SHARE 0.1

static bool shows(const struct failure_family *family, const char *ids)
{
	char id[SIGNATURE_ID_LEN + 1];

	for (const char *at = ids; (at = signature_next_id(at, id)) != NULL;)
		if (family_has(family, id))
			return true;
	return false;
}

/* Trials are counted, not signatures: one trial may show several members. */
static void count_trials(struct failure_family *family, const struct tally *tally)
{
	uint64_t failed = 0;

	VEC_FOREACH (&tally->counts, c)
		failed += shows(family, c->signatures) ? c->count : 0;
	family->rate = rate_wilson(tally->trials, failed, RATE_CONFIDENCE);
}

/* Names the allocation of the block that the faulting instruction used, or got its bad value from:
 * the key up to the ordinal. NULL: unknown, as without allocation ids. */
static char *block_of(const struct signature_summary *s)
{
	if (s->crash)
		VEC_FOREACH (&s->crash->blocks, block)
			if (block->telling && block->key)
				return mem_strndup(block->key, strcspn(block->key, "#"));
	return NULL;
}

static bool belongs(const struct failure_family *family, const struct signature_summary *s)
{
	AUTO(mem_freep) char *block = block_of(s);

	return family_takes(family, &s->signature) ||
	       (block && family->block && strcmp(block, family->block) == 0);
}

static void add_member(struct failure_family *family, const struct signature_summary *s)
{
	struct signature copy;

	signature_copy(&copy, &s->signature);
	VEC_PUSH(&family->members, copy);
	VEC_PUSH(&family->counts, s->rate.failed);
	if (family->trial == 0)
		family->trial = s->trial;
	if (!family->block)
		family->block = block_of(s);
}

static bool told_apart(const struct failure_family *a, const struct failure_family *b,
		       uint64_t failed)
{
	const char *one = family_test(a), *other = family_test(b);
	double least = FREQUENT_SHARE * (double)failed;

	return one && other && strcmp(one, other) != 0 && a->rate.failed >= FREQUENT &&
	       b->rate.failed >= FREQUENT && (double)a->rate.failed >= least &&
	       (double)b->rate.failed >= least;
}

static void merge(struct failure_families *families, size_t into, size_t from)
{
	struct failure_family *a = &families->list.items[into], *b = &families->list.items[from];

	VEC_FOREACH (&b->members, member)
		VEC_PUSH(&a->members, *member);
	VEC_FOREACH (&b->counts, count)
		VEC_PUSH(&a->counts, *count);
	b->members.count = 0; /* they are the other's now */
	failure_family_deinit(b);
	memmove(b, b + 1, (families->list.count - from - 1) * sizeof(*b));
	families->list.count--;
}

static void merge_what_cannot_be_told(struct failure_families *families, const struct tally *tally,
				      uint64_t failed)
{
	for (size_t i = 0; i < families->list.count; i++)
		for (size_t k = i + 1; k < families->list.count;) {
			if (told_apart(&families->list.items[i], &families->list.items[k],
				       failed)) {
				k++;
				continue;
			}
			merge(families, i, k);
			count_trials(&families->list.items[i], tally);
		}
}

void families_group(const struct signature_summaries *signatures, const struct tally *tally,
		    struct failure_families *ret)
{
	uint64_t failed = 0;
	bool others = false;

	VEC_FOREACH (&signatures->list, s)
		others |= !s->always;
	/* Frequent ones come first, so that they name their families. */
	VEC_FOREACH (&signatures->list, s) {
		struct failure_family *found = NULL;

		if (s->always && others)
			continue;
		failed += s->rate.failed;
		VEC_FOREACH (&ret->list, family)
			if (!found && belongs(family, s))
				found = family;
		if (!found) {
			VEC_PUSH(&ret->list, (struct failure_family){ 0 });
			found = &ret->list.items[ret->list.count - 1];
		}
		add_member(found, s);
	}
	VEC_FOREACH (&ret->list, family)
		count_trials(family, tally);
	merge_what_cannot_be_told(ret, tally, failed);
}
