#pragma once

#include "hunt/bench.h"
#include "hunt/experiment.h"
#include "hunt/hunt.h"
#include "model/summary.h"
#include "studies/series/bystanders.h"
#include "studies/series/compare.h"

/*
 * An inquiry: what a hunt or a chase has found out so far, and how it runs its trials. Private to
 * hunt/.
 *
 *	inquiry.c           the two commands: where an inquiry begins
 *	strategist.c        which experiment is next
 *	questions.c         what is asked, and what a question needs before and after
 *	budget.c            what there is to spend
 *	choices.c           each choice in the case: why, its price, what it brought
 *	comparison.c        settings tried against each other
 *	conclude.c          the verdict, a sentinel
 *	bench.c, rounds.c   trials of those experiments that ask who did it
 */

/* How trials are run from now on: what the experiments so far have decided. */
struct how {
	struct hunt_look plain, close;
	char *plain_settings, *close_settings, *minimize_settings; /* texts of the identities */
	unsigned int jobs;
	char *const *program;
	const struct strv *env;
	struct strv short_program, short_env; /* what these point to, when the list is shorter */
	char short_list[24]; /* what tells it from other lists; "" while there is none */
	struct series_id minimal_series; /* 0: no shorter list was found */
};

/* What was learnt about the failure. */
struct known_under_ids {
	bool hide_it;
	bool unusable;		 /* … and nothing brings it out again under them */
	struct rate rate;	 /* where that is another than target_rate; trials 0 */
	uint64_t clean;		 /* trials that did not fail, before it was known that it fails */
	uint64_t trial;		 /* a failing one; 0: none */
	struct series_id series; /* that it is of, in… */
	unsigned int arm;
	struct series_id failed; /* trials of it failed, and none crashed */
};

struct known {
	struct series_summary summary;		/* of the command as it is run now */
	const struct signature_summary *target; /* in it; NULL: it never failed */
	struct target match;	  /* what is hunted, as later trials are asked for it */
	struct bystanders others; /* what else was met as it is run */
	struct rate rate;	  /* of all that comes and goes, as later stages run it */
	struct rate target_rate;  /* of these, what is hunted */
	struct rate beside_ids;	  /* the same, in turns with trials under ids */
	bool too_slow;		  /* no trial ended in the time that the budget leaves to one */
	bool agent_hides_it;	  /* whatever is put into the program */
	/* Trials that got in each other's way, with all before them. Since then they run one at a
	 * time. 0: none did. */
	uint64_t clashed;
	struct known_under_ids ids;
	bool reported;	    /* a sanitizer in the program has told what is wrong */
	bool chased;	    /* the chase came to its end */
	bool guarded;	    /* it was run with guards around blocks */
	double guarded_s;   /* … each took so long, side by side */
	bool fenced;	    /* … with fences */
	bool damaged;	    /* … which found damage, though nothing has ever crashed */
	bool fails_guarded; /* … or made it fail, and nothing else did: it goes with what blocks
			     * hold */
	bool plain_fault;   /* all trials died of the same plain fault, guards or not */
	double trial_s;	    /* that a trial takes */
};

struct spending {
	double since_s;
	struct trial_budget budget;
	uint64_t ran;	     /* trials of this hunt, those of earlier runs included */
	uint64_t ran_failed; /* of these */
};

/* What the strategist did. */
struct strategy {
	uint64_t done; /* bit for each of experiments[] */
	uint64_t told; /* the same: why it was left out */
	enum question question;
	bool begun; /* the question was shown */
	unsigned int chosen;
};

struct who;

struct inquiry {
	struct case_store *cs;
	const struct hunt_request *request; /* NULL: a chase */
	struct hunt_result *ret;
	struct err *err;
	const char *asking; /* the question's name, for decisions */
	struct spending spending;
	struct strategy strategy;
	struct how how;
	struct known known;
	struct bench *bench; /* while it is asked who did it; else NULL */
	struct who *who;
	uint64_t outcome; /* what each trial with guards showed to the outside; 0: not the same */
	struct evidence_list evidence;
};

/* strategist.c: runs the experiments of a question, the best first, until none applies. */
int strategist_ask(struct inquiry *inq, enum question question);
/* The price of so many failures, at the rate that is known, under an observer that slows it down so
 * many times. */
void price_of_failures(const struct inquiry *inq, double failures, double slower,
		       struct price *ret);
void price_of_trials(const struct inquiry *inq, double trials, double slower, struct price *ret);

/* questions.c */
struct question_ops {
	const char *name; /* in the case: "rate" */
	double share;	  /* of the budget, the most that it may take */
	/* Before the first of its experiments; false: the question does not arise. NULL: none. */
	bool (*begin)(struct inquiry *inq, struct said *why, int *ret_r);
	/* Before each choice: what was seen so far becomes evidence. NULL: nothing to do. */
	void (*between)(struct inquiry *inq);
	/* Afterwards, whatever came of it (`r`); returns what did. NULL: nothing to do. */
	int (*end)(struct inquiry *inq, int r);
};
extern const struct question_ops questions[QUESTIONS];
void question_show(struct inquiry *inq, enum question question);
/* All of them, from the first to the verdict. */
int questions_ask(struct inquiry *inq);

/* reported.c: what sanitizers said in the failing trials that there are becomes evidence. */
int reported_look(struct inquiry *inq);

/* choices.c: runs it as a choice of this experiment, which is stored when it is made, and what it
 * brought when it has ended. `price` NULL: the experiment's own. */
int choice_run(struct inquiry *inq, const struct experiment_ops *ops, const struct price *price,
	       int (*run)(struct inquiry *inq));

/* inquiry.c: a series of trials, as they are run now. */
struct series_request hunt_series(const struct inquiry *inq, const struct hunt_look *look);

/* Stores a statement about a question, and shows it: DECIDE() about the one that is asked. */
int decide(struct inquiry *inq, const char *stage, const struct said *said);
int decide_values(struct inquiry *inq, const char *stage, const char *id,
		  struct said_value *values);
#define DECIDE(inq, id, ...) DECIDE_IN(inq, (inq)->asking, id, ##__VA_ARGS__)
#define DECIDE_IN(inq, stage, id, ...) \
	decide_values(inq, stage, id,  \
		      (struct said_value[]){ { 0 }, ##__VA_ARGS__, { .kind = SAID_KINDS } })

double hunt_seconds_left(const struct inquiry *inq); /* of the whole budget; 1e9 without one */
bool hunt_over(const struct inquiry *inq);
bool inquiry_over(const struct inquiry *inq); /* of a hunt's budget, or of a chase's */
bool inquiry_firm(const struct inquiry *inq); /* by what was seen so far (questions.c) */

/* From now on at most this part of the budget, and never more than there is. */
void hunt_allow(struct inquiry *inq, double share);

/* Trials that the case had already count, too. */
void hunt_count(struct inquiry *inq, uint64_t trials, uint64_t failed, uint64_t earlier);

/* At most so many as the budget has. */
uint64_t hunt_trials(const struct inquiry *inq, uint64_t most);

bool hunt_crashes(const struct inquiry *inq); /* what is hunted is a crash */
bool signature_crashes(const struct signature *s);
/* Every run shows it, and there were some: of two runs that crash both that is not said. */
bool hunt_every_run(const struct inquiry *inq, const struct signature_summary *s);
bool hunt_always(const struct inquiry *inq); /* so what is hunted */

/* Of whatever comes and goes, where no closer look tells failures apart. */
const struct rate *hunt_rate_of_all(const struct inquiry *inq);

/* Seconds that so many trials take on so many slots, as they were measured. */
double hunt_takes(const struct inquiry *inq, uint64_t trials, unsigned int slots);

/* experiments/failure_rate.c: runs the command as it is run now, in a series of its own, until it
 * is clear what it does; decides what the target is. */
int rate_measure(struct inquiry *inq);
/* The crash that a chase began with does not come again: which one does? */
int rate_again(struct inquiry *inq);
/* What never failed before has in a comparison: what was seen there is what is known of it. */
int rate_take(struct inquiry *inq, struct series_id series);

#define ARMS_MAX 4u

/* Arms of a comparison, as `redhand compare` takes them: "alone:jobs=1". */
struct arms_request {
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

struct arms_outcome {
	struct rate arms[ARMS_MAX];
	uint64_t example[ARMS_MAX]; /* a trial that showed it; 0: none did */
	/* With `target`: the crash that no series had met, most frequent in the arm; "": none. */
	char stranger[ARMS_MAX][SIGNATURE_ID_LEN + 1];
	struct series_id series;
	bool interrupted;
};

/* Runs them in turns; the series is one of `compare`. */
int hunt_compare(struct inquiry *inq, const struct arms_request *asked, struct arms_outcome *ret);

/* experiments/settings.c: the line of this name in the settings of whatever is run from now on. */
void settings_adopt(struct inquiry *inq, const char *name, const char *line);

/* Fisher's two-sided p for two rates. */
double attempt_p(const struct rate *a, const struct rate *b);

/* experiments/ids.c: a line about how often it failed with an observer (id of its words) and
 * without.
 */
int observers_tell_effect(struct inquiry *inq, const char *observer, const struct rate *without,
			  const struct rate *with);
/* The chase's own trials under ids have not failed: are they what hides it? Then what is left. */
int observers_drop_ids(struct inquiry *inq, const struct rate *seen);

/* experiments/crash_record.c: what the crash's own record says becomes evidence, where no closer
 * look has. */
void hit_tell_record(struct inquiry *inq);

/* experiments/machine.c: of several machines the one that failures keep to, where more trials have
 * shown it since that was asked. */
int machine_tell_node(struct inquiry *inq);

/* experiments/guards_first.c: some trials with guards around blocks: what they find damaged becomes
 * evidence. */
int hit_look_for_damage(struct inquiry *inq);

/* What one arm of such trials showed becomes evidence, and that they were made; without what was
 * found in trials that failed in another way only: that is about another failure. Adds to
 * `ret_damage` how many pieces are damage. */
struct heap_report;
int hit_take(struct inquiry *inq, const struct series_identity *identity, unsigned int arm,
	     struct heap_report *report, struct experiment_made *made, size_t *ret_damage);

/* The same command under another observer ("observe 4:heap\n", as settings have it); what is left
 * to say is how many trials. Returns the settings, which must outlive the request. */
struct heap_request;
char *hit_heap_request(const struct inquiry *inq, const char *observe, struct heap_request *ret);

/* experiments/fences.c: the same with fences. */
int fences_look(struct inquiry *inq);
/* The crash used a pointer that it had read outside of a block: fences tell whether it did. */
bool fences_first(const struct inquiry *inq);

/* who.c: before, while and after it is asked. */
bool who_begin(struct inquiry *inq, struct said *why, int *ret_r);
void who_between(struct inquiry *inq);
int who_end(struct inquiry *inq, int r);

/* conclude.c */
int conclude(struct inquiry *inq, int r);
