#include "cache.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KERNEL_SLOTS 12
#define RUNTIME_SLOTS 4
#define LOG_FLUSH 40

struct log_line {
	struct log_line *next;
	char text[];
};

static struct params *all_params;
static struct kernel kernels[KERNEL_SLOTS];
static unsigned long kernel_clock;
static int compiled;
static struct segmentation *runtimes[RUNTIME_SLOTS];
static int next_runtime;
static struct log_line *log_lines;
static int log_count;

static void log_flush(void)
{
	while (log_lines) {
		struct log_line *next = log_lines->next;

		free(log_lines);
		log_lines = next;
	}
	log_count = 0;
}

/* Kept for a bug report; too old lines are of no use to anybody. */
static void log_add(const char *fusion, int group, const char *what)
{
	char text[96];
	struct log_line *line;
	int length;

	if (log_count == LOG_FLUSH)
		log_flush();
	length = snprintf(text, sizeof(text), "%s.%d %s", fusion, group, what);
	line = xcalloc(1, sizeof(*line) + (size_t)length + 1);
	strncpy(line->text, text, (size_t)length);
	line->next = log_lines;
	log_lines = line;
	log_count++;
}

const struct params *params_for(enum scheduler scheduler, long extent)
{
	int size_class = extent < 64 ? 0 : extent < 1024 ? 1 : 2;
	struct params *params;

	for (params = all_params; params; params = params->next) {
		if (params->scheduler == scheduler && params->size_class == size_class)
			return params;
	}
	params = xcalloc(1, sizeof(*params));
	params->scheduler = scheduler;
	params->size_class = size_class;
	params->block = 32 << size_class;
	params->unroll = scheduler == SCHEDULER_REDUCTION ? 8 : 4;
	params->next = all_params;
	all_params = params;
	return params;
}

static unsigned long kernel_key(const struct segmentation *segmentation, const struct group *group,
				const struct params *params)
{
	unsigned long key = 14695981039346656037UL;

	(void)segmentation;
	key = (key ^ (unsigned long)group->scheduler) * 1099511628211UL;
	key = (key ^ (unsigned long)params->size_class) * 1099511628211UL;
	for (int i = 0; i < group->expr_count; i++) {
		key = (key ^ (unsigned long)group->exprs[i]->kind) * 1099511628211UL;
		key = (key ^ (unsigned long)group->exprs[i]->input_count) * 1099511628211UL;
	}
	return key;
}

static char *kernel_compile(const struct group *group, const struct params *params)
{
	size_t size = 128 + 64 * (size_t)group->expr_count;
	char *code = xcalloc(1, size);

	snprintf(code, size, "kernel<%d, %d>(%d exprs)", params->block, params->unroll,
		 group->expr_count);
	compiled++;
	return code;
}

const struct kernel *kernel_for(const struct segmentation *segmentation, const struct group *group,
				long extent)
{
	const struct params *params = params_for(group->scheduler, extent);
	unsigned long key = kernel_key(segmentation, group, params);
	struct kernel *victim = &kernels[0];

	for (int i = 0; i < KERNEL_SLOTS; i++) {
		if (kernels[i].code && kernels[i].key == key) {
			kernels[i].used_at = ++kernel_clock;
			return &kernels[i];
		}
		if (kernels[i].used_at < victim->used_at)
			victim = &kernels[i];
	}
	free(victim->code);
	victim->key = key;
	victim->code = kernel_compile(group, params);
	victim->used_at = ++kernel_clock;
	log_add(segmentation->fusion->name, group->id, victim->code);
	return victim;
}

const struct segmentation *runtime_compile(struct fusion *fusion, const struct val *result)
{
	struct segmentation *segmentation = segmentation_new(fusion);
	long extent = segmentation_infer(segmentation, result);

	for (const struct group *group = segmentation->groups; group; group = group->next) {
		if (group->scheduler != SCHEDULER_EVALUATOR)
			(void)kernel_for(segmentation, group, extent);
		log_add(segmentation->fusion->name, group->id, "launched");
	}
	segmentation_free(runtimes[next_runtime]);
	runtimes[next_runtime] = segmentation;
	next_runtime = (next_runtime + 1) % RUNTIME_SLOTS;
	return segmentation;
}

int kernels_cached(void)
{
	int count = 0;

	for (int i = 0; i < KERNEL_SLOTS; i++)
		count += kernels[i].code != NULL;
	return count;
}

int kernels_compiled(void)
{
	return compiled;
}

void cache_clear(void)
{
	for (int i = 0; i < KERNEL_SLOTS; i++) {
		free(kernels[i].code);
		kernels[i] = (struct kernel){ 0 };
	}
	for (int i = 0; i < RUNTIME_SLOTS; i++) {
		segmentation_free(runtimes[i]);
		runtimes[i] = NULL;
	}
	while (all_params) {
		struct params *next = all_params->next;

		free(all_params);
		all_params = next;
	}
	log_flush();
}
