#pragma once

#include "cmd/progress.h"
#include "hunt/hunt.h"

/*
 * A hunt as it runs, on stderr: what each stage decided, ticked off, and below it the stage that
 * runs, with its trials and what is left of the budget. Elsewhere than on a terminal plain lines.
 */
struct hunt_board {
	struct progress progress;
	bool colour;
	double started_s, budget_s; /* budget 0: none */
	unsigned int number, count; /* of the running stage; 0 before the first */
	const char *title;
	/* What a verdict will probably take from `expected_at_s` on; trials 0: not known yet. */
	double expected_trials, expected_s, expected_at_s;
};

void hunt_board_init(struct hunt_board *board, double budget_s);

/* How the hunt speaks to it. */
struct hunt_show hunt_board_show(struct hunt_board *board);

void hunt_board_end(struct hunt_board *board); /* leaves the screen clean */
