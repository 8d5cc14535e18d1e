#pragma once

#include "engine/autopsy/autopsy.h"
#include "engine/chase/chase.h"
#include "engine/chase/clues.h"
#include "engine/chase/stakeout.h"
#include "model/heap.h"

/*
 * The parts of a chase. Private to engine/chase/.
 *
 *	chase.c	  what is run next, and when it is enough
 *	sights.c  what a trial that was watched showed
 *	cuts.c	  mapped files that were made shorter, and by whom
 *	release.c who let go of an object that was used later
 *	telling.c what was seen, as evidence
 */

#define LEVELS_MAX 4u /* steps of the trail that are watched */

/* What a failing trial showed at one level. */
struct sight {
	uint64_t trial;
	bool watched, since_birth;
	struct log_watch_row row; /* how it was watched */
	struct victim victim;
	uint64_t birth_value;  /* what was there when the watch began */
	struct evidence write; /* kind EVIDENCE_WRITE; write NULL: nobody was caught */
	struct evidence race;  /* race NULL: none */
	struct block_key source_key;
	struct home home;
	struct block_life *in;	   /* the victim's block */
	bool stale;		   /* the pointer there was stored before its target was born */
	struct block_life *target; /* the freed block that it leads to */
	bool target_exact;
	struct log_block former;
};

struct level {
	VEC(struct sight) sights; /* one per failing trial */
};

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
	struct autopsy *autopsy;
	struct hook_planner *hooks;
	uint64_t next; /* position */
	uint64_t end;  /* no position after this */
	bool looking;  /* for the first crash */
	bool guarding; /* heap observer, with watches on what it found damaged */
	uint64_t guarded_caught;
	struct release release;
	VEC(struct touched_file) files;
	bool awaiting; /* whoever cut the file */
	bool found;
	uint64_t found_count; /* crashes seen meanwhile */
	struct clues first;
	struct stakeout stakeout;
	struct strbuf items; /* of the plan */
	struct level levels[LEVELS_MAX + 4];
	unsigned int level_count;
	uint64_t round_failed, round_watched; /* of this round: failing trials; victim watched */
	uint64_t key_right, key_tried;
	unsigned int harmless;
	size_t heap_findings;
	/* Of the trial that is being read, until it is known whether it failed. */
	struct crash_report report;
	char name[24];
	uint64_t number;
	int signal;
	bool pending;
	double started_s;
};

/* sights.c: the trial in chase->name, while its directory is there. */
void read_failing(struct chase *chase);
void read_passing(struct chase *chase);
void read_guarded(struct chase *chase);

/* cuts.c: what a crash had to do with mapped files; who cut them, as far as it is known by now. */
enum cuts_state { CUTS_NONE, CUTS_UNKNOWN, CUTS_KNOWN };
void cuts_note(struct chase *chase, const struct clues *clues);
void cuts_settle(struct chase *chase);
enum cuts_state cuts_state(const struct chase *chase);
bool cuts_suspected(const struct chase *chase);
/* Are more crashes worth waiting for, because one of them will tell? */
bool cuts_wait(const struct chase *chase);

/* release.c: is one of the findings such an object? Then it is staked out. */
bool release_stake_out(struct chase *chase, const struct heap_report *report);
void read_release(struct chase *chase);
/* What was seen of it goes to the evidence about that object. */
void tell_release(struct chase *chase);
void release_deinit(struct release *release);

/* telling.c: a level's sights become a hop and its evidence, and are handed over. */
void tell_level(struct chase *chase, struct level *level, unsigned int number, enum hop_end end);
void level_deinit(struct level *level);
