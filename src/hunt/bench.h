#pragma once

#include "debuginfo/types.h"
#include "hunt/chase.h"
#include "hunt/observations/own_allocator.h"
#include "hunt/observations/watchset.h"
#include "model/heap.h"
#include "read/reading.h"

/*
 * The bench of those experiments that ask who did it: trials of one series, round after round, each
 * with a plan of its own. What is known of the crash, and what each experiment has seen so far.
 * Private to hunt/.
 */

#define PROOFS 2u     /* trials in which whoever did it was caught in the act */
#define LEVELS_MAX 4u /* steps of the backtrack that are watched */

/* What a failing trial showed at one level. */
/* A pointer to what is no longer there. */
struct dangling_pointer {
	bool stale;		   /* it was stored before its target was born */
	struct block_life *target; /* the freed block that it leads to */
	bool exact;
	bool frame; /* it is no block but the frame of a function that has returned */
};

struct observation {
	uint64_t trial;
	bool watched, since_birth;
	bool covered;		  /* the watch lay there, whether or not it tells */
	bool healthy;		  /* what stands there is a pointer to a live block */
	bool let_go;		  /* … and no longer the one that was used: that was a copy */
	bool by_key, same_block;  /* watched by its key; and that led to it */
	bool exact;		  /* the write was seen in the very block */
	bool followed;		  /* an allocator of the program's own was followed, too */
	struct log_watch_row row; /* how it was watched */
	struct victim victim;
	uint64_t birth_value;	    /* what was there when the watch began */
	struct evidence write;	    /* kind EVIDENCE_WRITE; write NULL: nobody was caught */
	struct evidence race;	    /* race NULL: none */
	struct source_place source; /* of the write, where it copied */
	struct home home;
	struct block_life *in; /* the victim's block */
	bool recycled;	       /* another kind of block had the home's place before */
	struct dangling_pointer dangling;
	char *mistaken; /* key of a freed block that had the place later; the crash names it */
	struct log_block former;
};

struct bench;

/*
 * A round: trials with one plan, until what they should show has been seen. One row for each
 * experiment that has rounds, beside the experiment.
 */
struct round_ops {
	unsigned int id;	/* of its trials in the case: never given to another */
	enum observer observer; /* on watched pages: OBSERVE_WATCH */
	bool planned;		/* its trials have bench->items in their plans */
	bool may_pages;		/* watched pages, if bench->homes.pages says so */
	bool pages;		/* always */
	/* Trials of it that are stored already are read again. Not where trials that pass tell
	 * something, too: those have left no log. */
	bool replays;
	bool same_hashes; /* Python's hashes of strings are the same in all of its trials */
	/* A trial has ended, whether it failed or not. NULL: nothing to see. */
	void (*read_any)(struct bench *bench, bool passed);
	/* It failed in the way that is chased. NULL: nothing to see. */
	void (*read_failing)(struct bench *bench);
	bool (*enough)(struct bench *bench);
	/* How many more of those trials that it waits for will be enough, at best; `seen` is how
	 * often they came so far. NULL, or 0: cannot be told. */
	uint64_t (*missing)(const struct bench *bench, struct rate *seen);
};

struct level {
	VEC(struct observation) observations; /* one per failing trial */
};

struct race;

/* refcount.c: an object that counts its references and was used after the last had been given
 * back. Stacks are those of the first trial that showed each. */
struct release {
	char *key; /* of the object; NULL: none is looked for */
	uint64_t size;
	int64_t offset;	       /* of the count, once it was caught */
	uint64_t caught;       /* failing trials in which the last reference was seen to go */
	struct stack born;     /* where it was made */
	struct stack last;     /* where that reference went */
	struct said account;   /* its count over its life */
	struct evidence touch; /* EVIDENCE_FREED_USE: the first access afterwards; or empty */
	struct watchset held;  /* what still pointed to it at the crash: globals, words of blocks */
	size_t first_holder, holder; /* which watches those are, and the one that is told */
	struct stack stored;	     /* who put the pointer there */
	uint64_t stores;	     /* failing trials in which that was seen */
	bool read_there; /* whoever touched the object first had the pointer from there */
};

/* A mapped file that a register led to when a trial died. */
struct touched_file {
	uint64_t device, inode, realtime_ns;
};

/* The running round. */
struct round {
	const struct round_ops *ops;
	uint64_t stage, next;		  /* its first position, and the next */
	uint64_t trials, failed, watched; /* of this round: all, failing ones, victim watched */
	uint64_t missed;		  /* failing ones that hit another of the kind */
	uint64_t quiet_max;		  /* trials after which it is hidden; 0: any number */
	/* Of the trial that is being read, until it is known whether it failed. */
	struct reading *reading;
	uint64_t number;
	int signal;
	bool pending;
};

/* look.c: the first crash, and its reading; before there is one, an empty one and NULL. */
struct start {
	bool found;
	bool moved; /* crashes that were never met before are taken for the same failure: */
	unsigned int strangers; /* so many came in a row */
	bool strayed;		/* … and what is chased was seen once only: it ends there */
	uint64_t count;		/* crashes seen meanwhile */
	uint64_t alike;		/* of these, at the same instruction as the first */
	int signal;		/* of the first */
	const struct crash_reading *first;
	struct reading *reading;
	struct signature kin; /* of the crash that is read, where it is not what is chased; id "" */
	uint64_t look_max;    /* trials until it is given up that it crashes; 0: all */
	unsigned int rounds;  /* how often it was run until it crashed, or that was given up */
	unsigned int looks;   /* how often guards were asked then, and showed nothing */
};

struct spent {
	uint64_t trials;   /* of request->limits.trials */
	uint64_t replayed; /* of those, found in the case */
	double since_s;
};

/* homes.c */
struct homes {
	struct level levels[LEVELS_MAX + 4];
	bool numbers[LEVELS_MAX]; /* homes of the crash that were not read: what stands there is
				   * never an address */
	uint64_t key_right, key_tried; /* failing trials */
	uint64_t key_led;	       /* of these, the watch lay where it failed */
	bool said_stored;	       /* who stored a pointer, where more cannot be told */
	bool other_way;		       /* to watch them, when this one leads to few victims */
	bool pages;		       /* they are watched on pages, any number of blocks */
	uint64_t stride; /* between places in a block that failing trials had it from; 0: one place
			  */
	bool no_frames;	 /* hooks on functions with variables seem to hide it */
	unsigned int harmless;
	bool watched;	/* the homes were watched, one way after the other */
	bool followed;	/* …and where their values came from */
	bool concluded; /* what was seen there is evidence now */
};

/* guards.c: why blocks get guards; each reason holds once. */
enum guards_reason {
	GUARDS_NO_CRASH,     /* it does not crash: is memory damaged all the same? */
	GUARDS_NO_BACKTRACK, /* the crash does not say where its value came from */
	GUARDS_ELSEWHERE,    /* the block that the crash names is hardly the one that it means */
	GUARDS_AMBIGUOUS,    /* what was caught can be read in two ways, or nobody was */
	GUARDS_OVERRUN,	     /* the caught store may have run out of another block */
	GUARDS_NOBODY,	     /* nothing else has explained it */
	GUARDS_REASONS,
};

struct guards {
	unsigned int asked;	   /* bit for each enum guards_reason */
	uint64_t caught;	   /* who damaged what they found, in so many trials */
	uint64_t before, max;	   /* caught before this round; trials for each in it */
	double damage_rate;	   /* of trials, in how many the first finding was; 0: unknown */
	struct evidence_list seen; /* until it is told */
	size_t findings;
	double trial_s; /* that a trial takes, side by side with others; 0: unknown */
	/* They changed nothing: every trial died of the same plain fault in the same function, with
	 * garbage in new blocks and poison in freed ones. */
	bool same_fault;
};

/* neighbours.c */
struct neighbours {
	struct type_variables known; /* of the program, once they have been read */
	bool read;
	size_t words;	    /* that could be watched, as they are counted */
	struct home holder; /* left_frames.c: the variable that led into a frame that was left */
};

/* allocator_probe.c */
struct bench_probe {
	struct allocator_probe probe;
	struct own_allocator own;
};

struct bench {
	const struct chase_request *request;
	struct chase_result *ret;
	struct runner runner;
	struct symbols *symbols;
	struct hook_planner *hooks;
	struct strbuf items; /* of the plan */
	struct round round;
	struct start start;
	struct spent spent;
	struct watchset watchset;
	struct homes homes;
	struct guards guards;
	struct release release;
	uint64_t accounts; /* over_release.c: trials whose count of references was followed */
	VEC(struct touched_file) files;
	struct bench_probe probe;
	struct neighbours neighbours;
	struct race *race; /* while words are looked at */
	uint64_t filled; /* failing and other trials that showed whether it goes with what stands in
			    blocks */
	bool told;	 /* guards have shown whose doing it is: the homes are not asked */
};

/* bench.c */
void bench_say(struct bench *bench, const struct said *said);
void bench_say_values(struct bench *bench, const char *id, struct said_value *values);
#define BENCH_SAY(bench, id, ...)   \
	bench_say_values(bench, id, \
			 (struct said_value[]){ { 0 }, ##__VA_ARGS__, { .kind = SAID_KINDS } })

int bench_begin_plan(struct bench *bench, struct err *err);
int bench_plan(struct bench *bench, struct err *err); /* of bench->watchset */
bool bench_hidden(const struct bench *bench);	      /* by the watch: bench->round.quiet_max */
uint64_t bench_trials_left(const struct bench *bench);
bool bench_may_go_on(const struct bench *bench);
/* A trial that is stored already; the caller closes it. */
struct reading *bench_reading_of(struct bench *bench, uint64_t trial, int signal);
/* The trial that is being read from now on. */
void bench_take_reading(struct bench *bench, struct reading *reading);
/* What it died of; NULL: of no crash, or there is no record of it. */
const struct crash *bench_crash(struct bench *bench);
void bench_count(struct bench *bench, bool failed, bool wanted);
/* Of a stored trial: do these signatures (ids, separated by a space) show what is chased? In the
 * order in which the trials ended. */
bool bench_shows(struct bench *bench, const char *signatures);
bool bench_enough(struct bench *bench);
uint64_t
bench_wanted(const struct bench *bench); /* failing trials, where each is proof by itself */
/* There is a way back from the crash, and somebody can have written there. */
bool bench_worth_watching(const struct bench *bench);
/* The crash says too little by itself. */
bool bench_wants_guards(const struct bench *bench);
bool bench_is_nobody(const struct bench *bench); /* the judge accuses nobody */
/* The homes have nothing more to say, or never had. */
bool bench_settled(const struct bench *bench);
/* Every trial so far died of a fault that needs no damaged memory. */
bool bench_plain_fault(const struct bench *bench);
/* Where the first crash was: crash_place(). */
void bench_first_place(const struct bench *bench, struct strbuf *sb);
/* How often it failed as it is chased, before and on the bench. */
void bench_rate(const struct bench *bench, uint64_t *trials, uint64_t *failed);

int bench_open(struct bench *bench, struct case_store *cs, const struct chase_request *request,
	       struct chase_result *ret, struct err *err);
/* bench->ret has it all. */
void bench_close(struct bench *bench);

/* rounds.c: until it is enough. */
int round_run(struct bench *bench, const struct round_ops *ops, struct err *err);

/* The rounds, beside their experiments. */
extern const struct round_ops look_round, homes_round, shut_round;

/* look.c: the trial in bench->round.reading died of what is chased. */
void look_read(struct bench *bench);
bool look_gives_up(const struct bench *bench);

/* homes.c: when nothing is left to ask about them, or nothing can be asked any more (`over`), what
 * was seen there becomes evidence. */
void homes_settle(struct bench *bench, bool over);
void homes_forget(struct bench *bench);
/* Somebody was caught putting the value to where it was copied from. */
bool homes_caught_source(const struct bench *bench);
/* The watchset once more. What was seen before counts until it has been seen again. */
int run_again(struct bench *bench, struct err *err);
/* Where the home is the same in every run, whichever block it is, and how it is watched. */
bool home_is_named(const struct backtrack_step *step, enum locate_by *ret);
/* A variable that is not worth a hook on its function. */
bool home_left_out(const struct bench *bench, unsigned int level);
/* The level whose home tells; -1: none. */
int telling_level(const struct bench *bench);
/* From how many other places the bad value of a trial may have been read. */
unsigned int twins_left(const struct bench *bench, const struct backtrack *backtrack,
			const struct backtrack_step *step);
/* Was a victim of that trial watched, at one of the first levels? */
bool was_watched(const struct bench *bench, uint64_t trial, unsigned int levels);
/* All that was caught there is how a pointer to a live block came to its place. */
bool is_healthy(const struct level *level);
bool level_bends(const struct level *level);
bool homes_one_of_many(const struct bench *bench);
/* The home that the value was copied from, in most trials; NULL. */
const struct observation *copied_from(const struct level *level);

/* allocator_probe.c: may what was caught look otherwise, if the program has an allocator of its
 * own?
 */
bool probe_may_tell(const struct bench *bench);

/* guards.c: why it should be asked for guards now; GUARDS_REASONS: no reason. */
enum guards_reason guards_reason(const struct bench *bench);
/* What trials with guards of any experiment found is kept: bench->guards.seen, and how many
 * findings tell why it fails. */
struct heap_report;
/* Its trials count, but for those that failed in another way; what they could have shown becomes
 * evidence. */
int guards_count(struct bench *bench, const struct series_identity *identity,
		 struct heap_report *report, struct experiment_made *made, struct err *err);
int guards_take(struct bench *bench, const struct series_identity *identity,
		struct heap_report *report, struct err *err);
/* What they showed becomes evidence. */
void guards_adopt(struct bench *bench);
/* The watchset's bytes, with guards. */
int watch_damage(struct bench *bench, struct err *err);

/* The request of a heap_run() as the guards have it; its settings, which the caller frees. */
struct heap_request;
char *guards_request(const struct bench *bench, struct heap_request *ret);
/* So many that the failure will come at least once. */
unsigned int guards_trials(const struct bench *bench);

/* neighbours.c: a crash or a wrong result that no block explains; the variables are read then. */
bool neighbours_unexplained(struct bench *bench);
/* Where the program lies in the process of that log; NULL: it is not there. */
const struct mapping *neighbours_program(const struct bench *bench, const struct hit *caught);

/* random_fill.c: about freed blocks, or new ones. */
#define TOSS_P 0.01 /* who is suspected less is let alone */
/* Coins about freed blocks or new ones; the caller frees what it returns, after the trials. */
char *random_fill_request(struct heap_request *ret, const char *settings, bool fresh);
int random_fill_run(struct bench *bench, bool fresh, struct heap_report *report, struct err *err);
/* Is there time for it? Else what it would take is told. */
bool random_fill_worth(struct bench *bench, bool fresh);

/* shut.c: freed blocks of these contexts are shut: who touches one is seen in bench->guards.seen.
 * The watchset is used for it. */
void shut_begin(struct bench *bench);
void shut_add(struct bench *bench, const char *context);
int shut_run(struct bench *bench, bool *ret_told, struct err *err);

/* fill_freed.c: a wrong value and no damage, with or without a crash. */
bool fill_applies(const struct bench *bench);
struct inquiry;
struct price;
void fill_price(const struct inquiry *inq, struct price *ret); /* random_fill.c */

/* from_evidence.c */
bool lead_is_crash(const struct evidence *evidence); /* then its trial is the start */
/* Where a pointer had been loaded from that led astray though nothing crashed; NULL. */
const struct home *lead_strayed(const struct evidence *evidence);

/* watched_trial.c: the trial in bench->round.reading. */
void read_failing(struct bench *bench);
void read_passing(struct bench *bench);
/* What that trial showed at a level; NULL: nothing. */
const struct observation *observation_of(const struct bench *bench, unsigned int level,
					 uint64_t trial);

/* instances.c: the object at this address is another one than before, it got the field's value when
 * it was made, and what that leads to is as it was made, too: nobody spoiled anything there, and
 * the difference to what was seen at this address before is none. */
void see_instances(struct bench *bench, const struct crash_reading *crashed,
		   const struct trial_hits *log, struct event_log *in,
		   const struct watch_spec *spec);

/* store_history.c: what the writer of an observation did there before becomes evidence. */
void see_store_history(struct bench *bench, const struct trial_hits *log,
		       const struct event_log *in, const struct observation *observation,
		       const struct watchset_result *result);

/* Did it store the address of a block, or move a pointer out of its block? */
void see_pointer(const struct trial_hits *log, const struct event_log *in,
		 const struct watchset_result *result, struct write_seen *write);
/* The how manieth is it in its block's life? Of one that was watched from its birth. */
void see_first(const struct trial_hits *log, const struct event_log *in,
	       const struct watchset_result *result, struct write_seen *write);
/* How was the field written before: whole, or in parts? */
void see_parts(const struct trial_hits *log, const struct event_log *in,
	       const struct watchset_result *result, struct symbols *symbols,
	       struct write_seen *write);

/* frames.c: a frame that a pointer led into when it was stored. */
struct frame_life {
	uint64_t low, end;
	struct stack stack; /* from its function on; the caller's to deinit */
};
/* Had its function returned when the crash came? False also when that cannot be told. */
bool frames_outlived(const struct crash_reading *crashed, const struct hit *stored, uint64_t value,
		     struct symbols *symbols, struct frame_life *ret);

/* truncation.c: what a crash had to do with mapped files; who cut them, as far as it is known by
 * now. */
enum cuts_state { CUTS_NONE, CUTS_UNKNOWN, CUTS_KNOWN };
void cuts_note(struct bench *bench, const struct crash_reading *crashed);
void cuts_settle(struct bench *bench);
enum cuts_state cuts_state(const struct bench *bench);
/* Are more crashes worth waiting for, because one of them will tell? */
bool cuts_wait(const struct bench *bench);

/* refcount.c: is one of the findings an object that was used after its end? */
void refcount_note(struct bench *bench, const struct heap_report *report);
/* An object of CPython's that was used after its end, and is found again in other trials; NULL. */
const struct block_life *refcount_object(const struct evidence_list *list);
void release_deinit(struct release *release);

/* to_evidence.c: a level's observations become a hop and its evidence, and are handed over. */
void tell_level(struct bench *bench, struct level *level, unsigned int number, enum hop_end end);
void level_deinit(struct level *level);
