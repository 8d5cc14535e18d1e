#include "run/expected_tests.h"

#include <string.h>

#include "base/hash.h"
#include "base/strbuf.h"
#include "model/test_name.h"

static uint64_t hash_name(const char *name)
{
	AUTO(strbuf_deinit) struct strbuf spelled = { 0 };
	uint64_t h;

	test_name_spell(name, &spelled);
	h = hash_bytes(HASH_START, strbuf_str(&spelled), spelled.len);
	return h ^ h >> 29;
}

void test_names_init(struct test_names *names, const struct strv *list)
{
	*names = (struct test_names){ .room = 16 };
	while (names->room < 2 * list->count)
		names->room *= 2;
	names->slots = mem_alloc(names->room * sizeof(names->slots[0]));
	for (size_t i = 0; i < list->count; i++) {
		struct strbuf sb = { 0 };
		size_t at;

		strbuf_add_printable(&sb, list->items[i], strlen(list->items[i]));
		at = hash_name(strbuf_str(&sb)) & (names->room - 1);
		while (names->slots[at] != 0)
			at = (at + 1) & (names->room - 1);
		names->slots[at] = (uint32_t)i + 1;
		strv_take(&names->names, strbuf_take(&sb));
	}
}

void test_names_deinit(struct test_names *names)
{
	strv_deinit(&names->names);
	mem_free(names->slots);
	names->slots = NULL;
}

size_t test_names_find(const struct test_names *names, const char *name)
{
	size_t at = hash_name(name) & (names->room - 1);

	for (; names->slots[at] != 0; at = (at + 1) & (names->room - 1))
		if (test_name_same(names->names.items[names->slots[at] - 1], name))
			return names->slots[at] - 1;
	return TEST_NAMES_NONE;
}

void wanted_begin(struct wanted *w, const struct test_names *names, const struct wanted_list *list,
		  struct trial_end *end)
{
	wanted_deinit(w);
	*w = (struct wanted){ .end = end, .list = list };
	if (!names || list->tests.count == 0)
		return;
	w->names = names;
	w->place = mem_alloc((names->names.count + 1) * sizeof(w->place[0]));
	for (size_t i = 0; i < list->tests.count; i++)
		if (list->tests.items[i] < names->names.count)
			w->place[list->tests.items[i]] = (uint32_t)i + 1;
}

void wanted_deinit(struct wanted *w)
{
	mem_free(w->place);
	*w = (struct wanted){ 0 };
}

static void started(struct wanted *w, size_t test)
{
	uint32_t place = w->place[test];

	if (place == w->end->started + 1)
		w->end->started++;
	else if (place == 0 || place > w->end->started)
		w->end->strayed = true;
}

void wanted_event(struct wanted *w, enum test_event event, const char *name)
{
	size_t test;

	if (!w->names)
		return;
	test = test_names_find(w->names, name);
	if (test == TEST_NAMES_NONE)
		return;
	if (event == TEST_STARTED) {
		started(w, test);
		return;
	}
	if (w->place[test] == w->list->tests.count && w->end->started == w->list->tests.count)
		w->end->came_through = true;
	if (event == TEST_PASSED && w->list->stop_after == test + 1)
		w->over = true;
}

enum test_event wanted_mark(const struct wanted *w, const char *line, size_t len,
			    const char **ret_name)
{
	static const char signs[] = "+=-";
	static const enum test_event events[] = { TEST_STARTED, TEST_PASSED, TEST_FAILED };
	const char *sign = len > 2 && line[0] != '\0' ? strchr(signs, line[0]) : NULL;
	size_t number = 0;

	if (!sign || line[1] != ' ' || !w->names)
		return TEST_NONE;
	for (size_t i = 2; i < len; i++) {
		if (line[i] < '0' || line[i] > '9' || i > 10)
			return TEST_NONE;
		number = number * 10 + (size_t)(line[i] - '0');
	}
	if (number >= w->names->names.count)
		return TEST_NONE;
	*ret_name = w->names->names.items[number];
	return events[sign - signs];
}
