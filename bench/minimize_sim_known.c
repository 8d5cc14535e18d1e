#include "minimize_sim_known.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct oracle {
	struct world *w;
	double beta;	   /* accepted chance to take a failing list for a passing one */
	bool to_the_end;   /* make all repeats even after a failure */
	uint32_t *list;	   /* scratch, w->n */
	struct memo *memo; /* or NULL */
};

/* ddmin meets the same list again and again; it is asked only once. */
struct memo {
	struct {
		uint64_t key; /* hash of the list; 0: free */
		bool failed;
	} cells[1 << 14];
	size_t used;
};

static uint64_t hash_list(const uint32_t *list, size_t count)
{
	uint64_t hash = 0x9e3779b97f4a7c15u;

	for (size_t i = 0; i < count; i++) {
		hash = (hash ^ list[i]) * 0xbf58476d1ce4e5b9u;
		hash ^= hash >> 29;
	}
	return hash ? hash : 1;
}

/* Does the list fail, as far as that many repeats tell? With false failures as rare
 * as one in a thousand, a sequential test accepts at the first failure and gives up
 * after as many passes as fixed repeats would take. */
static bool run_often(const struct oracle *o, const uint32_t *list, size_t count)
{
	size_t repeats = (size_t)ceil(log(o->beta) / log1p(-o->w->rate) - 1e-9);
	bool failed = false;

	for (size_t i = 0; i < repeats && (o->to_the_end || !failed); i++) {
		enum world_outcome outcome = world_run(o->w, list, count);

		while (outcome == WORLD_OTHER)
			outcome = world_run(o->w, list, count);
		failed = failed || outcome == WORLD_TARGET;
	}
	return failed;
}

static bool fails(const struct oracle *o, const uint32_t *list, size_t count)
{
	size_t room = sizeof(o->memo->cells) / sizeof(o->memo->cells[0]), at;
	uint64_t key = hash_list(list, count);

	if (!o->memo)
		return run_often(o, list, count);
	for (at = key % room; o->memo->cells[at].key; at = (at + 1) % room)
		if (o->memo->cells[at].key == key)
			return o->memo->cells[at].failed;
	if (o->memo->used++ > room / 2)
		return run_often(o, list, count);
	o->memo->cells[at].key = key;
	o->memo->cells[at].failed = run_often(o, list, count);
	return o->memo->cells[at].failed;
}

/* The list without positions [from, to). */
static size_t without(const struct oracle *o, const uint32_t *list, size_t count, size_t from,
		      size_t to)
{
	memcpy(o->list, list, from * sizeof(*list));
	memcpy(o->list + from, list + to, (count - to) * sizeof(*list));
	return count - (to - from);
}

static size_t all(const struct world *w, uint32_t *list)
{
	for (size_t i = 0; i < w->n; i++)
		list[i] = (uint32_t)i;
	return w->n;
}

static size_t ddmin(const struct oracle *o, uint32_t *list)
{
	size_t count = all(o->w, list), parts = 2;

	if (fails(o, list, 0))
		return 0;
	while (count >= 2) {
		bool shrunk = false;

		for (size_t i = 0; i < parts && !shrunk; i++) {
			size_t from = i * count / parts, to = (i + 1) * count / parts;

			if (!fails(o, list + from, to - from))
				continue;
			memmove(list, list + from, (to - from) * sizeof(*list));
			count = to - from;
			parts = 2;
			shrunk = true;
		}
		for (size_t i = 0; i < parts && parts > 2 && !shrunk; i++) {
			size_t from = i * count / parts, to = (i + 1) * count / parts;
			size_t rest = without(o, list, count, from, to);

			if (!fails(o, o->list, rest))
				continue;
			memcpy(list, o->list, rest * sizeof(*list));
			count = rest;
			parts = parts > 3 ? parts - 1 : 2;
			shrunk = true;
		}
		if (shrunk)
			continue;
		if (parts >= count)
			break;
		parts = 2 * parts < count ? 2 * parts : count;
	}
	return count;
}

static size_t chunks(const struct oracle *o, uint32_t *list)
{
	size_t count = all(o->w, list), size = 1;

	while (size * 2 < count)
		size *= 2;
	for (;;) {
		bool removed = false;

		for (size_t i = 0; i < count;) {
			size_t to = i + size < count ? i + size : count;
			size_t rest = without(o, list, count, i, to);

			if (fails(o, o->list, rest)) {
				memcpy(list, o->list, rest * sizeof(*list));
				count = rest;
				removed = true;
			} else {
				i += size;
			}
		}
		if (size > 1)
			size /= 2;
		else if (!removed)
			return count;
	}
}

/* The list without the tests of one half; keeps order. */
static size_t minus(const struct oracle *o, const uint32_t *list, size_t count,
		    const uint32_t *gone, size_t n_gone)
{
	size_t rest = 0;

	for (size_t i = 0; i < count; i++) {
		bool keep = true;

		for (size_t j = 0; j < n_gone; j++)
			keep = keep && gone[j] != list[i];
		if (keep)
			o->list[rest++] = list[i];
	}
	return rest;
}

/* rspec --bisect: leave out one half or the other; if both are needed, go down into
 * each of them. */
static void bisect(const struct oracle *o, uint32_t *list, size_t *count, const uint32_t *part,
		   size_t size)
{
	size_t half = (size + 1) / 2;

	if (size <= 1)
		return;
	for (int side = 0; side < 2; side++) {
		const uint32_t *gone = side ? part + half : part, *kept = side ? part : part + half;
		size_t n_gone = side ? size - half : half, n_kept = size - n_gone;
		size_t rest = minus(o, list, *count, gone, n_gone);

		if (!fails(o, o->list, rest))
			continue;
		rest = minus(o, list, *count, gone, n_gone);
		memcpy(list, o->list, rest * sizeof(*list));
		*count = rest;
		bisect(o, list, count, kept, n_kept);
		return;
	}
	bisect(o, list, count, part, half);
	bisect(o, list, count, part + half, size - half);
}

static size_t with_oracle(struct world *w, uint32_t *list, double beta, bool to_the_end,
			  size_t (*method)(const struct oracle *, uint32_t *))
{
	struct oracle o = { .w = w, .beta = beta, .to_the_end = to_the_end };
	size_t count;

	o.list = calloc(w->n, sizeof(*o.list));
	o.memo = method == ddmin ? calloc(1, sizeof(*o.memo)) : NULL;
	if (!o.list || (method == ddmin && !o.memo))
		abort();
	count = method(&o, list);
	free(o.memo);
	free(o.list);
	return count;
}

static size_t rspec(const struct oracle *o, uint32_t *list)
{
	size_t count = all(o->w, list);
	uint32_t *part;

	if (fails(o, list, 0))
		return 0;
	part = calloc(count, sizeof(*part));
	if (!part)
		abort();
	all(o->w, part);
	bisect(o, list, &count, part, o->w->n);
	free(part);
	return count;
}

size_t known_ddmin_repeats(struct world *w, uint32_t *list)
{
	return with_oracle(w, list, 0.01, true, ddmin);
}

size_t known_ddmin_sprt(struct world *w, uint32_t *list)
{
	return with_oracle(w, list, 0.01, false, ddmin);
}

size_t known_rspec_sprt(struct world *w, uint32_t *list)
{
	return with_oracle(w, list, 0.01, false, rspec);
}

size_t known_chunks(struct world *w, uint32_t *list)
{
	return with_oracle(w, list, 0.05, false, chunks);
}
