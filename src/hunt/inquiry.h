#pragma once

#include "hunt/hunt.h"
#include "engine/series/bystanders.h"
#include "engine/series/compare.h"
#include "model/summary.h"

/*
 * The parts of a hunt. Private to hunt/.
 *
 *	hunt.c      the table of stages, and the way through it within the budget
 *	rate.c      1  does it fail?
 *	causes.c    2  what makes it fail?
 *	fewer.c     3  how little of it?
 *	observers.c 4  which observer does it stand?
 *	hit.c       5  what was hit?
 *	culprit.c   6  who did it?
 *	machine.c   7  is it the machine?
 *	conclude.c  8  verdict and sentinel
 *	attempt.c      settings tried against each other
 */
struct hunt {
	struct case_store *cs;
	const struct hunt_request *request;
	struct hunt_result *ret;
	struct err *err;
	double started_s;
	struct trial_budget budget;
	const char *stage;   /* the running one's name */
	uint64_t ran;	     /* trials of this hunt, those of earlier runs included */
	uint64_t ran_failed; /* of these */

	/* What the stages so far have decided. */
	struct hunt_look plain, close;				   /* as later stages run them */
	char *plain_settings, *close_settings, *minimize_settings; /* texts of the identities */
	unsigned int jobs;
	char *const *program;
	const struct strv *env;
	struct strv short_program, short_env; /* what these point to, when the list is shorter */
	char short_list[24]; /* what tells it from other lists; "" while there is none */
	struct series_id minimal_series;	/* 0: no shorter list was found */
	struct series_summary summary;		/* of the command as it is run now */
	const struct signature_summary *target; /* in it; NULL: it never failed */
	struct target match;	  /* what is hunted, as later trials are asked for it */
	struct bystanders others; /* what else was met as it is run */
	struct rate rate;	  /* of all that comes and goes, as later stages run it */
	struct rate target_rate;  /* of these, what is hunted */
	bool too_slow;		  /* no trial ended in the time that the budget leaves to one */
	bool agent_hides_it;	  /* whatever is put into the program */
	bool ids_hide_it;
	bool without_ids;	/* … and nothing brings it out again under them */
	struct rate close_rate; /* under ids, where that is another than target_rate; trials 0 */
	uint64_t ids_trial;	/* a failing one under ids; 0: none */
	bool chased;		/* the chase came to its end */
	bool guarded;		/* it was run with guards around blocks */
	double guarded_s;	/* … each took so long, side by side */
	bool damaged;		/* … which found damage, though nothing has ever crashed */
	struct evidence_list evidence;
};

struct stage {
	const char *name;  /* in the case: "rate" */
	const char *title; /* for people: "Does it fail?" */
	/* Of the budget, the most that it may take. */
	double share;
	/* Is there something to be learnt? If not, the reason goes into the case; without one, the
	 * question does not arise. NULL: always. */
	bool (*worth)(struct hunt *hunt, struct strbuf *why);
	/* Seconds that it will take, about; not begun when that is more than its share. NULL: as
	 * long as it is let. */
	double (*cost_s)(const struct hunt *hunt);
	/* Does it, and stores what it decided and why. */
	int (*run)(struct hunt *hunt);
};

/* Stores a line of the running stage and shows it. */
int decide(struct hunt *hunt, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* The same for another stage's. */
int decide_in(struct hunt *hunt, const char *stage, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

double hunt_seconds_left(const struct hunt *hunt); /* of the whole budget; 1e9 without one */
bool hunt_over(const struct hunt *hunt);

/* From now on at most this part of the budget, and never more than there is. */
void hunt_allow(struct hunt *hunt, double share);

/* Trials that the case had already count, too. */
void hunt_count(struct hunt *hunt, uint64_t trials, uint64_t failed, uint64_t earlier);

/* At most so many as the budget has. */
uint64_t hunt_trials(const struct hunt *hunt, uint64_t most);

bool hunt_crashes(const struct hunt *hunt); /* what is hunted is a crash */

/* Of whatever comes and goes, where no closer look tells failures apart. */
const struct rate *hunt_rate_of_all(const struct hunt *hunt);

/* Seconds that so many trials take on so many slots, as they were measured. */
double hunt_takes(const struct hunt *hunt, uint64_t trials, unsigned int slots);

/* Runs the command as it is run now, in a series of its own, until it is clear what it does;
 * decides what the target is. */
int rate_measure(struct hunt *hunt);

#define ARMS_MAX 4u

/* Arms of a comparison, as `redhand compare` takes them: "alone:jobs=1". */
struct attempt {
	const char *const *arms;
	unsigned int count;
	uint64_t trials; /* per arm */
	bool stop_early;
	bool target; /* what is hunted counts; else any crash, or whatever comes and goes */
	/* Enough is known when this arm has failed so often; failures 0: when all trials are run.
	 */
	unsigned int until_arm;
	uint64_t until_failures;
	const char *list; /* of a program with fewer tests, what tells it from others; NULL */
	char *const *program;
	const struct strv *env;
};

struct attempted {
	struct rate arms[ARMS_MAX];
	uint64_t example[ARMS_MAX]; /* a trial that showed it; 0: none did */
	/* With `target`: the crash that no series had met, most frequent in the arm; "": none. */
	char stranger[ARMS_MAX][SIGNATURE_ID_LEN + 1];
	bool interrupted;
};

/* Runs them in turns; the series is one of `compare`. */
int hunt_attempt(struct hunt *hunt, const struct attempt *attempt, struct attempted *ret);

/* Fisher's two-sided p for two rates. */
double attempt_p(const struct rate *a, const struct rate *b);

int stage_rate(struct hunt *hunt);

bool causes_worth(struct hunt *hunt, struct strbuf *why);
double causes_cost(const struct hunt *hunt);
int stage_causes(struct hunt *hunt);

bool fewer_worth(struct hunt *hunt, struct strbuf *why);
double fewer_cost(const struct hunt *hunt);
int stage_fewer(struct hunt *hunt);

bool observers_worth(struct hunt *hunt, struct strbuf *why);
double observers_cost(const struct hunt *hunt);
int stage_observers(struct hunt *hunt);

/* A line of the observers' about how often it failed with one and without. */
int observers_tell_effect(struct hunt *hunt, const char *observer, const struct rate *without,
			  const struct rate *with);

/* The chase's own trials under ids have not failed: are they what hides it? Then what is left. */
int observers_drop_ids(struct hunt *hunt, const struct rate *seen);

int stage_hit(struct hunt *hunt);

/* What the crash's own record says becomes evidence, where no closer look has. */
void hit_tell_record(struct hunt *hunt);

/* Some trials with guards around blocks: what they find damaged becomes evidence. */
int hit_look_for_damage(struct hunt *hunt);

bool culprit_worth(struct hunt *hunt, struct strbuf *why);
int stage_culprit(struct hunt *hunt);

bool machine_worth(struct hunt *hunt, struct strbuf *why);
int stage_machine(struct hunt *hunt);

int stage_conclude(struct hunt *hunt);
