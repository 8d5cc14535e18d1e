#pragma once

#include "hunt/chase.h"
#include "hunt/observations/recycler.h"
#include "hunt/observations/stakeout.h"
#include "model/heap.h"
#include "read/reading.h"

/*
 * The parts of a chase. Private to hunt/.
 *
 *	chase.c	  what is run next, and when it is enough
 *	homes.c	  which homes are watched, and how they are found
 *	recycled.c  the same with an allocator of the program's own
 *	stage.c	  trials with one plan, those that are stored already first
 *	guards.c  trials with guards around blocks
 *	lead.c	  evidence instead of a crash
 *	race.c	  trials that show reads, too: two threads at one word
 *	toss.c	  trials in which what stands in blocks is left to chance
 *	readers.c who reads what was freed, where only a wrong value shows it
 *	unset.c	  who uses what nobody has written, where only a wrong value shows it
 *	sights.c  what a trial that was watched showed
 *	instances.c  two objects, one after the other, at one place
 *	habits.c  what a writer stored, and did at the same place before
 *	frames.c  pointers to variables of functions that have returned
 *	cuts.c	  mapped files that were made shorter, and by whom
 *	release.c who let go of an object that was used later
 *	telling.c what was seen, as evidence
 */

#define LEVELS_MAX 4u /* steps of the backtrack that are watched */

/* What a failing trial showed at one level. */
struct sight {
	uint64_t trial;
	bool watched, since_birth;
	bool healthy;		  /* what stands there is a pointer to a live block */
	bool let_go;		  /* … and no longer the one that was used: that was a copy */
	bool by_key, same_block;  /* watched by its key; and that led to it */
	bool followed;		  /* an allocator of the program's own was followed, too */
	struct log_watch_row row; /* how it was watched */
	struct victim victim;
	uint64_t birth_value;	    /* what was there when the watch began */
	struct evidence write;	    /* kind EVIDENCE_WRITE; write NULL: nobody was caught */
	struct evidence race;	    /* race NULL: none */
	struct source_place source; /* of the write, where it copied */
	struct home home;
	struct block_life *in;	   /* the victim's block */
	bool recycled;		   /* another kind of block had the home's place before */
	bool stale;		   /* the pointer there was stored before its target was born */
	struct block_life *target; /* the freed block that it leads to */
	bool target_exact;
	bool frame;	/* it is no block but the frame of a function that has returned */
	char *mistaken; /* key of a freed block that had the place later; the crash names it */
	struct log_block former;
};

enum stage_kind {
	STAGE_LOOK,    /* for the first crash */
	STAGE_AWAIT,   /* for whoever cut a mapped file */
	STAGE_WATCH,   /* homes */
	STAGE_SCOUT,   /* for an allocator of the program's own */
	STAGE_GUARD,   /* heap observer, with watches on what it found damaged */
	STAGE_RELEASE, /* the same, with watches on a count of references */
	STAGE_FENCE,   /* freed blocks of a context are shut */
	STAGE_RACE,    /* reads and writes of a few words */
	STAGE_LEAD,    /* the bytes of a piece of evidence */
};

struct level {
	VEC(struct sight) sights; /* one per failing trial */
};

struct race;

/* An object that counts its references and was used after the last had been given back. */
struct release {
	char *key;	   /* of the object; NULL: none is looked for */
	uint64_t caught;   /* failing trials in which the last reference was seen to go */
	struct stack last; /* where it went */
	char *account;	   /* its count over its life, in words */
};

/* A mapped file that a register led to when a trial died. */
struct touched_file {
	uint64_t device, inode, realtime_ns;
};

struct chase {
	const struct chase_request *request;
	struct chase_result *ret;
	struct runner runner;
	struct symbols *symbols;
	struct hook_planner *hooks;
	enum stage_kind kind;
	uint64_t stage, next; /* its first position, and the next */
	uint64_t used;	      /* of request->trials */
	uint64_t look_max;    /* of those, until it is given up that it crashes; 0: all */
	unsigned int looks;   /* how often that was given up and begun again */
	uint64_t replayed;    /* of those, found in the case */
	uint64_t guarded_caught;
	uint64_t guarded_before, guarded_max; /* caught before this round; trials for each in it */
	double damage_rate; /* of trials with guards, in how many the first finding was; 0: unknown
			     */
	struct evidence_list guarded; /* what the guards showed, until it is told */
	struct release release;
	VEC(struct touched_file) files;
	bool found;
	uint64_t found_count; /* crashes seen meanwhile */
	/* The first crash, and its reading; before there is one, an empty one and NULL. */
	const struct crash_reading *first;
	struct reading *first_reading;
	bool numbers[LEVELS_MAX]; /* homes of it that were not read: what stands there is never an
				   * address */
	struct stakeout stakeout;
	struct scout scout;
	struct recycler recycler;
	struct strbuf items; /* of the plan */
	struct level levels[LEVELS_MAX + 4];
	unsigned int level_count;
	/* Of this round: trials, failing ones, victim watched. */
	uint64_t round_trials, round_failed, round_watched;
	uint64_t key_right, key_tried; /* failing trials */
	bool said_stored;	       /* who stored a pointer, where more cannot be told */
	bool other_way;		       /* to watch them, when this one leads to few victims */
	bool pages;		       /* they are watched on pages, any number of blocks */
	bool no_frames;		       /* hooks on functions with variables seem to hide it */
	uint64_t quiet_max; /* trials of a round after which it is hidden; 0: any number */
	unsigned int harmless;
	size_t heap_findings;
	double guarded_s; /* that a trial with guards takes, side by side with others; 0: unknown */
	uint64_t tossed; /* failing and other trials that showed whether it goes with what stands in
			    blocks */
	/* Of the trial that is being read, until it is known whether it failed. */
	struct reading *reading;
	uint64_t number;
	int signal;
	bool pending;
	double started_s;
	struct race *race; /* while words are looked at */
};

/* chase.c */
void chase_say(struct chase *chase, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
int chase_begin_plan(struct chase *chase, struct err *err);
int chase_plan(struct chase *chase, struct err *err); /* of chase->stakeout */
bool chase_hidden(const struct chase *chase);	      /* by the watch: chase->quiet_max */
uint64_t chase_trials_left(const struct chase *chase);
bool chase_may_go_on(const struct chase *chase);
/* A trial that is stored already; the caller closes it. */
struct reading *chase_reading_of(struct chase *chase, uint64_t trial, int signal);
/* The trial that is being read from now on. */
void chase_take_reading(struct chase *chase, struct reading *reading);
/* What it died of; NULL: of no crash, or there is no record of it. */
const struct crash *chase_crash(struct chase *chase);
void chase_count(struct chase *chase, bool failed, bool wanted);
bool chase_enough(struct chase *chase);

/* stage.c: until chase_enough(). */
bool stage_has_plan(enum stage_kind kind);
int stage_run(struct chase *chase, enum stage_kind kind, struct err *err);

/* homes.c: watches the homes of chase->first, one way after the other, until the victim was among
 * them. */
int watch_homes(struct chase *chase, struct err *err);
/* The stakeout once more. What was seen before counts until it has been seen again. */
int run_again(struct chase *chase, struct err *err);
/* Watches the source of a copy together with what was watched before. */
int follow_copies(struct chase *chase, int level, struct err *err);
/* Where the home is the same in every run, whichever block it is, and how it is watched. */
bool home_is_named(const struct backtrack_step *step, enum stake_by *ret);
/* A variable that is not worth a hook on its function. */
bool home_left_out(const struct chase *chase, unsigned int level);
/* The level whose home tells; -1: none. */
int telling_level(const struct chase *chase);
/* From how many other places the bad value of a trial may have been read. */
unsigned int twins_left(const struct chase *chase, const struct backtrack *backtrack,
			const struct backtrack_step *step);
/* Does it take more trials that pass to tell which of several places was read? */
bool awaits_passing(const struct chase *chase);
/* Was a victim of that trial watched, at one of the first levels? */
bool was_watched(const struct chase *chase, uint64_t trial, unsigned int levels);
/* All that was caught there is how a pointer to a live block came to its place. */
bool is_healthy(const struct level *level);
/* The home that the value was copied from, in most trials; NULL. */
const struct sight *copied_from(const struct level *level);

/* recycled.c */
int follow_recycler(struct chase *chase, int level, struct err *err);

/* guards.c: what they show becomes evidence, if they show anything (`ret_told`). */
int guards_instead(struct chase *chase, bool *ret_told, struct err *err);
/* Only if they show the same writer behind the end of a block, or before its start. */
int guards_confirm(struct chase *chase, const struct level *level, bool *ret_told, struct err *err);
/* Whether it goes with what stands in freed blocks, or in new ones. */
int guards_values(struct chase *chase, struct err *err);
/* Could the caught write have run out of another block? */
bool may_be_overrun(const struct level *level);
/* The stakeout's bytes, with guards. */
int watch_damage(struct chase *chase, struct err *err);

/* The request of a heap_run() as the guards have it; its settings, which the caller frees. */
struct heap_request;
char *guards_request(const struct chase *chase, struct heap_request *ret);
/* Its trials count. */
void guards_count(struct chase *chase, const struct heap_report *report);
/* Of the trial in chase->reading: who damaged what was watched. */
void read_guarded(struct chase *chase);

/* toss.c: about freed blocks (NULL), new ones, or the words of new ones of a context. */
#define TOSS_P 0.01 /* who is suspected less is let alone */
struct toss {
	uint64_t context; /* 0: all of them */
};
int toss_run(struct chase *chase, const struct toss *about, struct heap_report *report,
	     struct err *err);
/* Is there time for it? Else what would take it is told, and how (`command`, or NULL). */
bool toss_worth(struct chase *chase, const char *what, const char *command);

/* readers.c and unset.c: what they find stands in chase->guarded. */
int unset_look(struct chase *chase, bool *ret_told, struct err *err);
int readers_look(struct chase *chase, bool *ret_told, struct err *err);
void read_fenced(struct chase *chase);
bool readers_enough(const struct chase *chase);

/* lead.c: instead of a crash. */
int lead_follow(struct chase *chase, const struct evidence *evidence, struct err *err);
bool lead_is_crash(const struct evidence *evidence); /* then its trial is the start */
void read_lead(struct chase *chase);

/* race.c */
int race_look(struct chase *chase, struct err *err);
void read_race(struct chase *chase);
bool race_enough(const struct chase *chase);

/* sights.c: the trial in chase->reading. */
void read_failing(struct chase *chase);
void read_passing(struct chase *chase);
void read_scouted(struct chase *chase);
/* What that trial showed at a level; NULL: nothing. */
const struct sight *sight_of(const struct chase *chase, unsigned int level, uint64_t trial);

/* instances.c: the object at this address is another one than before, it got the field's value when
 * it was made, and what that leads to is as it was made, too: nobody spoiled anything there, and
 * the difference to what was seen at this address before is none. */
void see_instances(struct chase *chase, const struct crash_reading *crashed,
		   const struct trial_hits *log, struct event_log *in, const struct stake *stake);

/* habits.c: what the writer of a sight did there before becomes evidence. */
void see_habits(struct chase *chase, const struct trial_hits *log, const struct event_log *in,
		const struct sight *sight, const struct stake_result *result);

/* Did it store the address of a block? */
void see_pointer(const struct stake_result *result, struct write_seen *write);
/* The how manieth is it in its block's life? Of one that was watched from its birth. */
void see_first(const struct trial_hits *log, const struct event_log *in,
	       const struct stake_result *result, struct write_seen *write);
/* How was the field written before: whole, or in parts? */
void see_parts(const struct trial_hits *log, const struct event_log *in,
	       const struct stake_result *result, struct symbols *symbols,
	       struct write_seen *write);

/* frames.c: a frame that a pointer led into when it was stored. */
struct frame_life {
	uint64_t low, end;
	struct stack stack; /* from its function on; the caller's to deinit */
};
/* Had its function returned when the crash came? False also when that cannot be told. */
bool frames_outlived(const struct crash_reading *crashed, const struct hit *stored, uint64_t value,
		     struct symbols *symbols, struct frame_life *ret);

/* cuts.c: what a crash had to do with mapped files; who cut them, as far as it is known by now. */
enum cuts_state { CUTS_NONE, CUTS_UNKNOWN, CUTS_KNOWN };
void cuts_note(struct chase *chase, const struct crash_reading *crashed);
void cuts_settle(struct chase *chase);
enum cuts_state cuts_state(const struct chase *chase);
bool cuts_suspected(const struct chase *chase);
/* Are more crashes worth waiting for, because one of them will tell? */
bool cuts_wait(const struct chase *chase);

/* release.c: is one of the findings such an object? Then it is staked out. */
bool release_stake_out(struct chase *chase, const struct heap_report *report);
void read_release(struct chase *chase);
/* What was seen of it goes to the evidence about that object. */
void tell_release(struct chase *chase, struct evidence_list *list);
bool release_enough(const struct chase *chase);
void release_deinit(struct release *release);

/* telling.c: a level's sights become a hop and its evidence, and are handed over. */
void tell_level(struct chase *chase, struct level *level, unsigned int number, enum hop_end end);
void level_deinit(struct level *level);
