#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "model/dots.h"
#include "model/evidence.h"
#include "model/investigation.h"
#include "report/page/html.h"

/*
 * The pictures of a page. Each takes plain facts, and draws the same for the same facts. Private to
 * report/.
 */

/* Every trial in order, a lane for each slot; the shape says how it failed. Of more trials than
 * there is room for, those of one place are one mark. */
void draw_strip(struct html *h, const struct investigation *inv, const struct trial_dots *dots);

/* How the interval of the rate closed in, trial by trial. Nothing for less than so many points. */
#define CLOSING_LEAST 5u
void draw_closing(struct html *h, const struct trial_dots *dots);

/* Which mark a family has in the strip: several rare ones share the last. */
unsigned int family_mark(int family);

/* A rate under each observer with its interval; a line where it is without, and what that
 * line is called. */
void draw_forest(struct html *h, const struct investigation *inv, const struct rate *without,
		 const char *line);

/* Lives of blocks as bars over numbered moments. */
enum lane_kind { LANE_PLAIN, LANE_VICTIM, LANE_HOLDER };

struct life_lane {
	char *name;
	int from, to; /* moments, from 0; `to` as large as their number: it lives on */
	enum lane_kind kind;
	bool lost; /* it may have ended before: nobody saw it */
};

/* A pointer that is followed when its block is gone. */
struct lane_arrow {
	bool known;
	size_t from, to; /* lanes */
	int at;		 /* moment */
};

struct lane_picture {
	VEC(struct life_lane) lanes;
	int moments;
	int failure; /* the moment of it; -1 */
	struct lane_arrow arrow;
};

void draw_lanes(struct html *h, const struct lane_picture *picture);

/* Bytes of a block, eight in a row. */
enum byte_zone { ZONE_BLOCK, ZONE_GUARD, ZONE_NEIGHBOUR };

struct byte_cell {
	enum byte_zone zone;
	bool field;   /* of the field that the verdict is about */
	bool known;   /* `after` means something */
	bool was;     /* `before` does */
	bool written; /* by the store */
	uint8_t before, after;
};

struct byte_row {
	int64_t offset; /* from the block's start */
	struct byte_cell cells[8];
	char *note; /* NULL */
	bool gap;   /* rows are left out before it */
};

struct byte_picture {
	VEC(struct byte_row) rows;
	bool values; /* some are known: before and after stand side by side */
};

/* With what its signs mean below it. */
void draw_bytes(struct html *h, const struct byte_picture *picture);

/* Lines of the log down, failing trials across, a mark where each died. */
void draw_crumbs(struct html *h, const struct trial_dots *dots);

/* "0x02 → 0x03"; NULL: not known. The caller's to free. */
char *change_words(const struct write_seen *write);

/* How much of a file that was cut is left; blocks that stay, nothing where they were not counted.
 */
void draw_file(struct html *h, const struct mapping_cut *cut);
void draw_growth(struct html *h, const struct growth_seen *growth);

/* Two threads and the word, on one axis of time. */
void draw_race(struct html *h, const struct race_seen *race);
