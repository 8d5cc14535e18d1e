#pragma once

#include "engine/autopsy/autopsy.h"
#include "engine/chase/chase.h"
#include "engine/chase/clues.h"
#include "engine/chase/recycler.h"
#include "engine/chase/stakeout.h"

/*
 * The parts of a chase. Private to engine/chase/.
 *
 *	chase.c	  what is run next, and when it is enough
 *	sights.c  what a trial that was watched showed
 *	telling.c what was seen, as evidence
 */

#define LEVELS_MAX 4u /* steps of the trail that are watched */

/* What a failing trial showed at one level. */
struct sight {
	uint64_t trial;
	bool watched, since_birth;
	bool followed; /* an allocator of the program's own was followed, too */
	struct log_watch_row row; /* how it was watched */
	struct victim victim;
	uint64_t birth_value;  /* what was there when the watch began */
	struct evidence write; /* kind EVIDENCE_WRITE; write NULL: nobody was caught */
	struct evidence race;  /* race NULL: none */
	struct source_place source; /* of the write, where it copied */
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
	bool scouting; /* for an allocator of the program's own */
	bool guarding; /* heap observer, with watches on what it found damaged */
	uint64_t guarded_caught;
	bool found;
	uint64_t found_count; /* crashes seen meanwhile */
	struct clues first;
	struct stakeout stakeout;
	struct scout scout;
	struct recycler recycler;
	struct strbuf items; /* of the plan */
	struct level levels[LEVELS_MAX + 4];
	unsigned int level_count;
	uint64_t round_failed, round_watched; /* of this round: failing trials; victim watched */
	bool other_way;			      /* to watch them, when this one leads to few victims */
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
void read_scouted(struct chase *chase);

/* telling.c: a level's sights become a hop and its evidence, and are handed over. */
void tell_level(struct chase *chase, struct level *level, unsigned int number, enum hop_end end);
void level_deinit(struct level *level);
