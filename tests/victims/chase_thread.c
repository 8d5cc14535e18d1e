/*
 * Each thread has six recent numbers and, behind them, a cache. One of them counts to eight.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "chase_truth.h"

struct cache {
	long used;
};

static __thread struct {
	int recent[6];
	struct cache *cache;
} mine;

APART static void recent_put(int at, int number)
{
	mine.recent[at] = number;
}

APART static void mine_init(void)
{
	mine.cache = calloc(1, sizeof(*mine.cache));
}

APART static long cache_use(void)
{
	return ++mine.cache->used;
}

static void *run(void *argument)
{
	int most = argument ? 8 : 6;

	mine_init();
	for (int i = 0; i < 40; i++) {
		recent_put(i % 6, i);
		cache_use();
	}
	for (int i = 0; i < most; i++)
		recent_put(i, 0x5151);
	return (void *)cache_use();
}

int main(void)
{
	pthread_t threads[3];

	tell_truth("class narrow-write\n"
		   "writer chase_thread.c:recent_put\n");
	for (long i = 0; i < 3; i++)
		if (pthread_create(&threads[i], NULL, run, i == 1 ? threads : NULL) != 0)
			return 3;
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	puts("done");
	return 0;
}
