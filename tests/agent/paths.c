/*
 * paths THREADS: a block from each of 4,096 stacks, ROUNDS times over; then the same in other
 * threads, one after the other; then in a thread of a forked child.
 */
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define WAYS 4096u
#define DEPTH 6u
#define ROUNDS 3

static void a(unsigned way, unsigned depth);
static void b(unsigned way, unsigned depth);
static void c(unsigned way, unsigned depth);
static void d(unsigned way, unsigned depth);

/* Two bits of `way` per call; what follows a call keeps it from becoming a jump. */
#define FORK(name)                                                               \
	static __attribute__((noinline)) void name(unsigned way, unsigned depth) \
	{                                                                        \
		if (!depth) {                                                    \
			void *volatile block = malloc(24);                       \
                                                                                 \
			free(block);                                             \
			return;                                                  \
		}                                                                \
		switch (way & 3) {                                               \
		case 0:                                                          \
			a(way >> 2, depth - 1);                                  \
			break;                                                   \
		case 1:                                                          \
			b(way >> 2, depth - 1);                                  \
			break;                                                   \
		case 2:                                                          \
			c(way >> 2, depth - 1);                                  \
			break;                                                   \
		default:                                                         \
			d(way >> 2, depth - 1);                                  \
			break;                                                   \
		}                                                                \
		__asm__ volatile("" ::: "memory");                               \
	}

FORK(a)
FORK(b)
FORK(c)
FORK(d)

static void *rounds(void *argument)
{
	unsigned round, way;

	for (round = 0; round < ROUNDS; round++)
		for (way = 0; way < WAYS; way++)
			a(way, DEPTH);
	return argument;
}

static void in_thread(void)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, rounds, NULL))
		abort();
	pthread_join(thread, NULL);
}

int main(int argc, char **argv)
{
	int threads = argc > 1 ? atoi(argv[1]) : 0, status = 1;
	pid_t child;

	rounds(NULL);
	while (threads-- > 0)
		in_thread();
	child = fork();
	if (!child) {
		in_thread();
		return 0;
	}
	waitpid(child, &status, 0);
	return status != 0;
}
