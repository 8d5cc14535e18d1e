/*
 * The benchmark: a training step inside nested scopes, first interpreted, then compiled.
 *
 * tagflip [--variant NAME] [--warmup N] [--iterations N] [--slow-us N]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "jit.h"
#include "scope.h"

#define BATCH 1024
#define SMOOTHED 640 /* leading elements of a batch that are noisy */

struct options {
	enum variant variant;
	long warmup;
	long iterations;
	long slow_us;
};

static float batch[BATCH];
static float weights[BATCH];

static struct object *enter(struct type *type)
{
	const struct code *code = jit_code(type);
	struct object *scope = object_new(type);

	atomic_fetch_add_explicit(&type->calls, 1, memory_order_relaxed);
	if (code->enter(scope) < 0) {
		fprintf(stderr, "tagflip: cannot enter %s\n", type->name);
		exit(1);
	}
	return scope;
}

static void leave(struct object *scope)
{
	(void)jit_code(scope->type)->exit(scope);
	object_decref(scope);
}

/* Fills the next batch with new numbers. */
static void load_batch(long step)
{
	uint32_t state = (uint32_t)step * 2654435761u + 1;

	for (int i = 0; i < BATCH; i++) {
		state = state * 1664525u + 1013904223u;
		batch[i] = (float)(state >> 8) / 16777216.0f;
	}
	for (int i = 1; i < SMOOTHED; i++)
		batch[i] = 0.75f * batch[i] + 0.25f * batch[i - 1];
}

static float forward(void)
{
	float total = 0;

	for (int layer = 1; layer <= 2; layer++) {
		for (int i = 0; i < BATCH; i++)
			total += batch[i] * weights[i / layer];
	}
	return total;
}

static void spin_us(long us)
{
	struct timespec start, now;

	clock_gettime(CLOCK_MONOTONIC, &start);
	do {
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while ((now.tv_sec - start.tv_sec) * 1000000000L + (now.tv_nsec - start.tv_nsec) <
		 us * 1000);
}

static double bench(long iterations, long slow_us)
{
	double total = 0;

	for (long i = 0; i < iterations; i++) {
		struct object *no_grad, *autocast, *profile;

		load_batch(i);
		if (slow_us > 0)
			spin_us(slow_us);
		no_grad = enter(&no_grad_type);
		autocast = enter(&autocast_type);
		profile = enter(&profile_type);
		total += (double)forward();
		leave(profile);
		leave(autocast);
		leave(no_grad);
	}
	return total;
}

static int usage(void)
{
	fputs("usage: tagflip [--variant NAME] [--warmup N] [--iterations N] [--slow-us N]\n"
	      "variants:",
	      stderr);
	for (int i = 0; i < VARIANT_COUNT; i++)
		fprintf(stderr, " %s", variant_names[i]);
	fputc('\n', stderr);
	return 2;
}

static int options_parse(int argc, char **argv, struct options *ret)
{
	for (int i = 1; i + 1 < argc; i += 2) {
		const char *value = argv[i + 1];

		if (strcmp(argv[i], "--warmup") == 0) {
			ret->warmup = strtol(value, NULL, 10);
		} else if (strcmp(argv[i], "--iterations") == 0) {
			ret->iterations = strtol(value, NULL, 10);
		} else if (strcmp(argv[i], "--slow-us") == 0) {
			ret->slow_us = strtol(value, NULL, 10);
		} else if (strcmp(argv[i], "--variant") == 0) {
			int variant = 0;

			while (variant < VARIANT_COUNT &&
			       strcmp(variant_names[variant], value) != 0)
				variant++;
			if (variant == VARIANT_COUNT)
				return -1;
			ret->variant = (enum variant)variant;
		} else {
			return -1;
		}
	}
	return argc % 2 == 1 ? 0 : -1;
}

int main(int argc, char **argv)
{
	struct options options = { VARIANT_NARROW, 5000, 50000, 0 };
	double total;

	if (options_parse(argc, argv, &options) < 0)
		return usage();
	for (int i = 0; i < BATCH; i++)
		weights[i] = 1.0f / (float)(i + 1);
	scopes_init();
	if (jit_start(options.variant) < 0) {
		perror("tagflip: cannot start the compiler");
		return 2;
	}
	total = bench(options.warmup, options.slow_us);
	printf("warm-up done, %ld objects\n", no_grad_type.born);
	fflush(stdout);
	jit_force_compile(&no_grad_type);
	jit_force_compile(&autocast_type);
	jit_force_compile(&profile_type);
	total += bench(options.iterations, options.slow_us);
	jit_stop();
	printf("OK %.3f, tier %d\n", total, jit_code(&no_grad_type)->tier);
	return 0;
}
