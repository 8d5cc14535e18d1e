#include "search/minimize/run_history.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void history_init(struct history *history, size_t words)
{
	*history = (struct history){ .words = words };
}

void history_deinit(struct history *history)
{
	for (size_t i = 0; i < history->count; i++)
		free(history->runs[i].set);
	free(history->runs);
	*history = (struct history){ 0 };
}

int history_add(struct history *history, const testset_word *set, enum run_kind kind)
{
	size_t bytes = history->words * sizeof(*set);
	testset_word *copy;

	if (history->count == history->room) {
		size_t room = history->room ? history->room * 2 : 64;
		struct history_run *runs = realloc(history->runs, room * sizeof(*runs));

		if (!runs)
			return -ENOMEM;
		history->runs = runs;
		history->room = room;
	}
	copy = malloc(bytes);
	if (!copy)
		return -ENOMEM;
	memcpy(copy, set, bytes);
	history->runs[history->count++] = (struct history_run){
		.set = copy,
		.size = (uint32_t)testset_count(set, history->words),
		.kind = kind,
	};
	return 0;
}

struct run_count history_exact(const struct history *history, const testset_word *set)
{
	struct run_count count = { 0 };

	for (size_t i = 0; i < history->count; i++) {
		const struct history_run *run = &history->runs[i];

		if (!testset_equal(run->set, set, history->words))
			continue;
		count.runs++;
		count.failed += run->kind != RUN_PASS;
	}
	return count;
}

struct run_count history_lacking(const struct history *history, const testset_word *set,
				 size_t test)
{
	struct run_count count = { 0 };
	size_t own_word = test / 64;
	testset_word own_bit = (testset_word)1 << (test % 64);

	for (size_t i = 0; i < history->count; i++) {
		const struct history_run *run = &history->runs[i];
		bool rest = !(run->set[own_word] & own_bit);

		for (size_t w = 0; rest && w < history->words; w++) {
			testset_word missing = set[w] & ~run->set[w];

			rest = !(w == own_word ? missing & ~own_bit : missing);
		}
		if (!rest)
			continue;
		count.runs++;
		count.failed += run->kind != RUN_PASS;
	}
	return count;
}
