#include "doctor/memtest.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <sys/sysinfo.h>

#include "base/now.h"

#define CORES_MOST 64
#define BYTES_LEAST (1u << 20)
#define PATTERNS 6
#define STRIDE 65536u /* words between two looks at the clock */

/* What one core does. */
struct part {
	const struct memtest_request *request;
	uint64_t *words;
	size_t count;
	int core;
	double end_s;
	uint64_t passes, errors;
};

/* All bits set and clear, neighbours that differ, and every word another one: a bad cell, a bad
 * line and a bad address line each show in one of them. */
static uint64_t pattern(unsigned int which, size_t at)
{
	uint64_t mixed = ((uint64_t)at + 1) * 0x9e3779b97f4a7c15u;

	switch (which) {
	case 0:
		return 0;
	case 1:
		return UINT64_MAX;
	case 2:
		return at % 2 ? 0xaaaaaaaaaaaaaaaau : 0x5555555555555555u;
	case 3:
		return at % 2 ? 0x5555555555555555u : 0xaaaaaaaaaaaaaaaau;
	case 4:
		return mixed ^ (mixed >> 29);
	default:
		return ~(mixed ^ (mixed >> 29));
	}
}

/* Through volatile: what is read back must come from memory, not from what the compiler knows. Both
 * stop when the time is up; fill() says how far it came. */
static size_t fill(struct part *part, unsigned int which)
{
	volatile uint64_t *words = part->words;
	size_t i = 0;

	for (; i < part->count && (i % STRIDE != 0 || clock_s() < part->end_s); i++)
		words[i] = pattern(which, i);
	return i;
}

static uint64_t differing(const struct part *part, unsigned int which, size_t filled)
{
	const volatile uint64_t *words = part->words;
	uint64_t errors = 0;

	for (size_t i = 0; i < filled && (i % STRIDE != 0 || clock_s() < part->end_s); i++)
		errors += words[i] != pattern(which, i);
	return errors;
}

static void *test_part(void *ctx)
{
	struct part *part = ctx;
	const struct memtest_request *request = part->request;
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(part->core, &set);
	(void)pthread_setaffinity_np(pthread_self(), sizeof(set), &set);
	for (unsigned int which = 0; clock_s() < part->end_s; which = (which + 1) % PATTERNS) {
		size_t filled = fill(part, which);

		if (request->meanwhile)
			request->meanwhile(request->meanwhile_ctx, part->words, filled);
		part->errors += differing(part, which, filled);
		part->passes++;
	}
	return NULL;
}

static size_t bytes_to_test(void)
{
	struct sysinfo info;
	size_t free;

	if (sysinfo(&info) < 0)
		return BYTES_LEAST;
	free = (size_t)info.freeram * info.mem_unit / 4;
	return free < MEMTEST_BYTES_MOST ? free : MEMTEST_BYTES_MOST;
}

static unsigned int cores_to_use(int cores[CORES_MOST])
{
	unsigned int count = 0;
	cpu_set_t set;

	if (sched_getaffinity(0, sizeof(set), &set) == 0)
		for (int i = 0; i < CPU_SETSIZE && count < CORES_MOST; i++)
			if (CPU_ISSET(i, &set))
				cores[count++] = i;
	if (count == 0)
		cores[count++] = 0;
	return count;
}

static void test_all(struct part *parts, unsigned int count, struct memtest_result *ret)
{
	pthread_t threads[CORES_MOST];
	bool started[CORES_MOST];

	for (unsigned int i = 0; i < count; i++)
		started[i] = pthread_create(&threads[i], NULL, test_part, &parts[i]) == 0;
	for (unsigned int i = 0; i < count; i++) {
		if (!started[i])
			continue;
		(void)pthread_join(threads[i], NULL);
		ret->cores++;
		ret->bytes += parts[i].count * sizeof(uint64_t);
		ret->passes += parts[i].passes;
		ret->errors += parts[i].errors;
		if (parts[i].errors > 0 && ret->core < 0)
			ret->core = parts[i].core;
	}
}

int memtest_run(const struct memtest_request *request, struct memtest_result *ret)
{
	struct memtest_result result = { .core = -1 };
	struct part parts[CORES_MOST];
	int cores[CORES_MOST];
	unsigned int count = cores_to_use(cores);
	size_t bytes = request->bytes > 0 ? request->bytes : bytes_to_test();
	double started_s = clock_s();
	size_t per_part;
	void *memory;

	if (bytes < BYTES_LEAST)
		return -ENOMEM;
	memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (memory == MAP_FAILED)
		return -ENOMEM;
	per_part = bytes / sizeof(uint64_t) / count;
	for (unsigned int i = 0; i < count; i++)
		parts[i] = (struct part){ .request = request,
					  .words = (uint64_t *)memory + i * per_part,
					  .count = per_part,
					  .core = cores[i],
					  .end_s = started_s + request->seconds };
	test_all(parts, count, &result);
	(void)munmap(memory, bytes);
	result.seconds = clock_s() - started_s;
	*ret = result;
	return 0;
}
