#pragma once

#include "model/crash.h"
#include "model/family.h"
#include "model/rate_seen.h"
#include "model/said.h"
#include "model/signature.h"
#include "model/trial.h"

/*
 * What a series of trials has shown: the product of `repro` and `compare`,
 * ready to be printed. Everything in it is owned by it.
 */

/* The two log lines between which a failing trial ended. */
struct window {
	char *last; /* last breadcrumb of the failing trials */
	char *next; /* what runs that got further print after it; NULL when none was seen */
	uint64_t count;
	uint64_t trial; /* an example */
};

struct signature_summary {
	struct signature signature;
	struct rate rate;
	bool always;		    /* every run that could show it did */
	uint64_t trial;		    /* an example */
	VEC(struct window) windows; /* most frequent first; at most a few are kept */
	uint64_t places;	    /* how many different ones there were */
	struct crash *crash;	    /* of the example, as an observer saw it; NULL when none did */
};

struct signature_summaries {
	VEC(struct signature_summary) list; /* intermittent ones first, frequent ones first */
};

void signature_summaries_deinit(struct signature_summaries *summaries);

/* One machine of several. */
struct node_summary {
	char *node; /* "": this machine */
	struct rate rate;
	double p; /* as that of a slot */
};

struct slot_summary {
	unsigned int slot;
	struct rate rate;
	double p; /* Fisher's exact test against all other slots, corrected for their number */
};

/* An address that failing trials died of. */
struct fault_address {
	uint64_t address;
	enum fault_class fault;
	uint64_t count;
};

struct arm_count {
	char *name;
	struct rate rate;
};

struct resource_use {
	double wall_mean_s, wall_max_s;
	double user_mean_s, system_mean_s;
	uint64_t peak_kib;
};

struct series_summary {
	struct rate rate;    /* of the intermittent failures where there are any, else of all */
	bool intermittent;   /* which of the two it is */
	uint64_t failed_any; /* trials with any failure at all */
	uint64_t clean_runs_for_99; /* 0: nothing failed, so there is no rate to base it on */
	uint64_t clean_runs_at_low; /* the same if the rate is only where its interval begins */
	double clean_bound; /* nothing failed: the rate is below this with 95 % confidence */
	struct signature_summaries signatures;
	struct failure_families families; /* of these */
	VEC(struct node_summary) nodes;	  /* none when all trials ran here */
	int odd_node;			  /* as odd_slot */
	VEC(struct slot_summary) slots;
	int odd_slot; /* index into slots; -1 when no slot differs significantly */
	uint64_t crashes, crash_places;	  /* trials that were cut short, in how many places */
	bool buffered;			  /* output seems to have been lost in a stdio buffer */
	uint64_t leftovers;		  /* trials that left processes behind */
	VEC(struct fault_address) faults; /* frequent ones first; of some failing trials */
	struct resource_use use;
};

void series_summary_deinit(struct series_summary *summary);

struct repro_result {
	struct series_summary summary;
	const char *case_dir;
	char *const *program;
	uint64_t wanted;      /* trials asked for; 0 = until another limit */
	uint64_t earlier;     /* trials that were there already */
	bool program_changed; /* the case has trials of another build of the program, not counted */
	unsigned int jobs;
	double seconds; /* this run of redhand */
	bool interrupted;
};

/* How long the trials of an arm took that passed, beside those of the first arm. */
struct arm_times {
	uint64_t trials;
	double median_s;
	bool compared;		    /* the rest means something */
	double ratio, low, high, p; /* to the first arm's, with 95 %; p Holm-corrected */
};

/* What is below it is a difference. */
#define COMPARE_ALPHA 0.05

struct arm_summary {
	const char *name;
	struct rate rate;
	struct arm_times times;
	double p; /* against the first arm, Holm-corrected when there are more than two */
	double difference, difference_low, difference_high; /* against the first arm */
};

struct compare_result {
	VEC(struct arm_summary) arms;
	struct signature_summaries signatures;
	double p; /* the smallest of them */
	uint64_t seed;
	struct strv shared;	 /* files that two or more arms wrote */
	bool stopped_early;	 /* the sequential test had its answer before the last trial */
	struct said stop_reason; /* nothing unless stopped early */
	const char *case_dir;
	char *const *program;
	uint64_t wanted, earlier; /* trials per arm; trials in all that were there already */
	bool program_changed;	  /* as above */
	double seconds;
	bool interrupted;
};

void compare_result_deinit(struct compare_result *result);
