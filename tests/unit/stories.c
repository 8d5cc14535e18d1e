/*
 * All stories, file by file. See verdict_stories.h.
 */
#include "verdict_stories.h"

static const struct {
	const struct story *list;
	const size_t *count;
} tables[] = {
	{ stories_write, &stories_write_count }, { stories_free, &stories_free_count },
	{ stories_value, &stories_value_count }, { stories_fault, &stories_fault_count },
	{ stories_pairs, &stories_pairs_count },
};

const struct story *story_next(const struct story *last)
{
	for (size_t i = 0; i < ARRAY_SIZE(tables); i++) {
		const struct story *first = tables[i].list, *end = first + *tables[i].count;

		if (!last)
			return first;
		if (last >= first && last < end - 1)
			return last + 1;
		if (last == end - 1)
			return i + 1 < ARRAY_SIZE(tables) ? tables[i + 1].list : NULL;
	}
	return NULL;
}

const struct story *story_find(const char *name)
{
	EACH_STORY (story)
		if (strcmp(story->name, name) == 0)
			return story;
	fail_msg("no story is called %s", name);
	return NULL;
}

void tell_story(struct evidence_list *list, const char *name)
{
	story_find(name)->make(list);
}
