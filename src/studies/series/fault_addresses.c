#include "studies/series/fault_addresses.h"

#include <signal.h>
#include <stdlib.h>

struct fault_gathering {
	struct {
		uint64_t trial;
		int signal;
	} runs[FAULTS_READ];
	size_t count;
};

static void gather(void *ctx, const struct run_row *row)
{
	struct fault_gathering *g = ctx;

	if (row->kept && (row->signal == SIGSEGV || row->signal == SIGBUS) &&
	    g->count < FAULTS_READ) {
		g->runs[g->count].trial = row->trial;
		g->runs[g->count++].signal = row->signal;
	}
}

static void count_address(const struct known_fault *fault, struct series_summary *ret)
{
	VEC_FOREACH (&ret->faults, f)
		if (f->address == fault->address) {
			f->count++;
			return;
		}
	VEC_PUSH(&ret->faults,
		 ((struct fault_address){
			 .address = fault->address, .fault = fault->fault, .count = 1 }));
}

static int by_count(const void *a, const void *b)
{
	const struct fault_address *x = a, *y = b;

	return ORDER(y->count, x->count) ?: ORDER(x->address, y->address);
}

int fault_addresses(struct case_store *cs, struct series_id series, struct readings *readings,
		    struct series_summary *ret, struct err *err)
{
	struct fault_gathering g = { 0 };
	int r = case_runs(cs, series, gather, &g, err);

	for (size_t i = 0; r == 0 && i < g.count; i++) {
		const struct known_fault *fault =
			readings_fault(readings, cs, g.runs[i].trial, g.runs[i].signal);

		if (fault)
			count_address(fault, ret);
	}
	VEC_SORT(&ret->faults, by_count);
	return r;
}
