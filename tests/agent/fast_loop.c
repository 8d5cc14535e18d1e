/*
 * fast_loop THREADS PAIRS: malloc and free, nothing else; prints nanoseconds per pair and thread.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static long pairs;

static void *run(void *argument)
{
	long i;

	for (i = 0; i < pairs; i++) {
		void *volatile block = malloc(48);

		free(block);
	}
	return argument;
}

int main(int argc, char **argv)
{
	pthread_t threads[64];
	struct timespec begin, end;
	int count, i;

	if (argc != 3)
		return 2;
	count = atoi(argv[1]);
	pairs = atol(argv[2]);
	clock_gettime(CLOCK_MONOTONIC, &begin);
	for (i = 1; i < count && i < 64; i++)
		pthread_create(&threads[i], NULL, run, NULL);
	run(NULL);
	for (i = 1; i < count && i < 64; i++)
		pthread_join(threads[i], NULL);
	clock_gettime(CLOCK_MONOTONIC, &end);
	printf("%.2f\n",
	       ((double)(end.tv_sec - begin.tv_sec) * 1e9 + (double)(end.tv_nsec - begin.tv_nsec)) /
		       (double)pairs / count);
	return 0;
}
