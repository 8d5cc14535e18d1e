/*
 * The compiler driver: compiles a fusion from a text file and shows what became of it.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "parse.h"
#include "passes.h"
#include "runtime.h"

static void usage(void)
{
	printf("Usage: presegmentc [options] FILE\n\n"
	       "Compiles the fusion in FILE ('-' for standard input).\n\n"
	       "%s"
	       "  --list-passes            show the passes in their order\n"
	       "  --help                   show this\n",
	       cache_options_help);
}

static int wrong(const char *what)
{
	fprintf(stderr, "presegmentc: %s\n", what);
	return 2;
}

static void print_runtime(const struct runtime *rt)
{
	for (int i = 0; i < rt->norder; i++) {
		const struct op *op = &rt->fusion->ops[rt->order[i]];

		printf("%%%d = %s", rt->order[i], op_kind_name(op->kind));
		for (int k = 0; k < 2 && op->in[k] >= 0; k++)
			printf(" %%%d", op->in[k]);
		printf(" [");
		for (int k = 0; k < op->shape.rank; k++)
			printf("%s%lld", k ? " " : "", (long long)op->shape.extent[k]);
		printf("]%s\n", op->alias ? " alias" : "");
	}
	printf("scheduler %s, %u segment(s), vectorize %u, unroll %u\n",
	       scheduler_name((enum scheduler)rt->schedule.scheduler), rt->schedule.segments,
	       rt->schedule.vectorize, rt->schedule.unroll);
}

static int compile(const char *file, const struct cache_options *options)
{
	FILE *in = strcmp(file, "-") == 0 ? stdin : fopen(file, "r");
	struct compiler compiler = { .device = compiler_device() };
	struct runtime *rt;
	struct fusion *f;
	struct diag diag;
	int r;

	if (!in) {
		diag_set(&diag, 0, "cannot open '%s': %s", file, strerror(errno));
		return wrong(diag.text);
	}
	r = fusion_parse(in, file, &f, &diag);
	if (in != stdin)
		fclose(in);
	if (r < 0)
		return wrong(diag.text);
	if (options->mode != CACHE_OFF &&
	    cache_open(options, compiler.device, &compiler.cache, &diag) < 0)
		fprintf(stderr, "presegmentc: %s; going on without\n", diag.text);
	r = runtime_new(&compiler, f, SCHED_COUNT, &rt, &diag);
	if (r == 0) {
		print_runtime(rt);
		runtime_free(rt);
	} else {
		fprintf(stderr, "presegmentc: %s\n", diag.text);
	}
	cache_close(compiler.cache);
	return r < 0 ? 1 : 0;
}

int main(int argc, char **argv)
{
	struct cache_options options;
	const char *file = NULL;
	struct diag diag;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (cache_options_init(&options, &diag) < 0)
		return wrong(diag.text);
	for (int i = 1; i < argc; i++) {
		int r = cache_options_parse(&options, argv, &i, &diag);

		if (r < 0)
			return wrong(diag.text);
		if (r > 0)
			continue;
		if (strcmp(argv[i], "--help") == 0) {
			usage();
			return 0;
		}
		if (strcmp(argv[i], "--list-passes") == 0) {
			for (int k = 0; presegmenter_pass_name(k); k++)
				printf("%s\n", presegmenter_pass_name(k));
			return 0;
		}
		if (file || (argv[i][0] == '-' && argv[i][1]))
			return wrong("wrong usage, try --help");
		file = argv[i];
	}
	if (!file)
		return wrong("no file given, try --help");
	return compile(file, &options);
}
