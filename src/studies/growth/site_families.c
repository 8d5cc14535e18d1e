#include "studies/growth/site_families.h"

#include <ctype.h>
#include <stdbool.h>

#include "base/mem.h"

/* The name without its numbers, and without what stands in brackets: pytest's parameters. */
static uint64_t family_of(const char *name)
{
	uint64_t hash = 0xcbf29ce484222325u;
	bool number = false;

	for (; *name != '\0'; name++) {
		bool digit = isdigit((unsigned char)*name);

		if (digit && number)
			continue;
		number = digit;
		hash = (hash ^ (uint64_t)(digit ? '#' : *name)) * 0x100000001b3u;
		if (*name == '[')
			break;
	}
	return hash;
}

struct families families_of(const struct census *census)
{
	struct families families = { .moments = census->moments };

	if (!census->tests)
		return families;
	families.of = mem_alloc(census->moments * sizeof(families.of[0]));
	for (size_t i = 1; i < census->moments; i++)
		families.of[i] = family_of(census->names[i]);
	return families;
}

void families_deinit(struct families *families)
{
	mem_free(families->of);
}

/* Which moments were higher than ever before and never came back. */
static bool *find_rises(const int64_t *levels, size_t count)
{
	bool *rises = mem_alloc(count * sizeof(rises[0]));
	int64_t floor = levels[count - 1];

	for (size_t i = count - 1; i > 0; i--) {
		rises[i] = levels[i - 1] < floor;
		if (rises[i])
			floor = levels[i - 1];
	}
	return rises;
}

static size_t rises_of(const struct families *families, const bool *rises, uint64_t family)
{
	size_t count = 0;

	for (size_t i = 1; i < families->moments; i++)
		count += rises[i] && families->of[i] == family;
	return count;
}

struct trend families_trend(const struct families *families, const int64_t *levels,
			    const struct trend *whole)
{
	double readings[TREND_READINGS_MAX];
	AUTO(mem_freep) bool *rises = NULL;
	size_t count = 0;

	if (!families->of || families->moments < 2 || families->moments > TREND_READINGS_MAX)
		return *whole;
	rises = find_rises(levels, families->moments);
	readings[count++] = (double)levels[0];
	for (size_t i = 1; i < families->moments; i++)
		if (rises_of(families, rises, families->of[i]) >= TREND_RISES_MIN)
			readings[count++] = (double)levels[i];
	return count > TREND_RISES_MIN ? trend_of(readings, count) : *whole;
}
