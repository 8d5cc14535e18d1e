#pragma once

#include <stdint.h>
#include <stdio.h>

#include "case/case.h"
#include "scratch.h"

/*
 * Cases for unit tests: trials made of a few numbers and words.
 */

/* What one trial of a fixture is. */
struct made_trial {
	uint64_t number, position;
	unsigned int arm, slot;
	int signal, exit_status;   /* both 0: it passed */
	const char *test;	   /* part of the signature */
	const char *last_crumb;	   /* NULL: nothing was printed */
	const char *const *crumbs; /* NULL-terminated: the order to learn, or NULL */
	bool kept, more;
};

/* The series with these settings, of one and the same program. */
static inline int made_series(struct case_store *cs, const char *settings, struct series_id *ret,
			      struct err *err)
{
	struct series_found found;
	int r = case_series(cs,
			    &(struct series_identity){ .command = "repro",
						       .settings = settings,
						       .program = "build 1" },
			    5, &found, err);

	if (r == 0)
		*ret = found.id;
	return r;
}

static inline void made_signature(const struct made_trial *made, struct signature *ret)
{
	*ret = (struct signature){
		.kind = made->signal ? FAILURE_SIGNAL : FAILURE_EXIT,
		.signal = made->signal,
		.exit_status = made->signal ? -1 : made->exit_status,
		.test = made->test ? mem_strdup(made->test) : NULL,
	};
	signature_seal(ret);
}

static inline int add_made(struct case_store *cs, struct series_id series,
			   const struct made_trial *made, struct err *err)
{
	AUTO(signatures_deinit) struct signatures signatures = { 0 };
	AUTO(trial_end_deinit)
	struct trial_end end = {
		.exit_status = made->signal ? -1 : made->exit_status,
		.signal = made->signal,
		.wall_ns = 1000 * made->number,
		.user_ns = 500,
		.system_ns = 200,
		.peak_kib = 100 + made->number,
		.stdout_bytes = 10,
		.last_crumb = made->last_crumb ? mem_strdup(made->last_crumb) : NULL,
	};

	for (size_t i = 0; made->crumbs && made->crumbs[i] && made->crumbs[i + 1]; i++)
		VEC_PUSH(&end.pairs, ((struct crumb_pair){ mem_strdup(made->crumbs[i]),
							   mem_strdup(made->crumbs[i + 1]) }));
	if (made->signal || made->exit_status) {
		struct signature s;

		made_signature(made, &s);
		VEC_PUSH(&signatures.list, s);
	}
	return case_add_trial(cs,
			      &(struct trial_record){
				      .number = { made->number },
				      .series = series,
				      .position = made->position,
				      .arm = made->arm,
				      .slot = made->slot,
				      .end = &end,
				      .signatures = &signatures,
				      .kept = made->kept,
				      .more = made->more,
			      },
			      err);
}

/* trials/NUMBER with a file in it. */
static inline void make_trial_dir(const struct case_store *cs, uint64_t number)
{
	char name[64];

	(void)snprintf(name, sizeof(name), "%llu", (unsigned long long)number);
	(void)mkdirat(case_trials_dir(cs), name, 0755);
	(void)snprintf(name, sizeof(name), "%llu/stdout", (unsigned long long)number);
	(void)mknodat(case_trials_dir(cs), name, S_IFREG | 0644, 0);
}

static inline bool trial_dir_there(const struct case_store *cs, uint64_t number)
{
	char name[64];

	(void)snprintf(name, sizeof(name), "%llu", (unsigned long long)number);
	return faccessat(case_trials_dir(cs), name, F_OK, 0) == 0;
}
