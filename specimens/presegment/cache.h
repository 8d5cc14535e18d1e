/*
 * The compile cache: plans of earlier compilations, in one file for all processes of the user.
 *
 * The file is a log. A plan is appended, a later one with the same key supersedes it, and whoever
 * appends to a log that has doubled compacts it first. Processes find plans through a mapping
 * of the file. The process of the primary device (0), which creates the cache when a machine starts
 * its work and is the busiest with it, takes the whole log into its own memory and holds it there.
 */
#ifndef PRESEGMENT_CACHE_H
#define PRESEGMENT_CACHE_H

#include "ir.h"
#include "plan.h"

enum cache_mode {
	CACHE_AUTO,    /* private on the primary device, else shared */
	CACHE_SHARED,  /* look up in the mapped file */
	CACHE_PRIVATE, /* look up in a copy made when the cache is opened */
	CACHE_OFF,
};

enum cache_rewrite {
	CACHE_IN_PLACE, /* a compacted log is written over the old one */
	CACHE_REPLACE,	/* it is written beside the old one and renamed */
};

struct cache_options {
	const char *dir; /* NULL: presegment/ under $XDG_CACHE_HOME or $HOME/.cache */
	enum cache_mode mode;
	enum cache_rewrite rewrite;
};

struct cache;

/* The defaults, as changed by PRESEGMENT_CACHE_MODE and PRESEGMENT_CACHE_REWRITE. */
int cache_options_init(struct cache_options *o, struct diag *diag);
/* Takes --cache DIR, --cache=DIR, --cache-mode=MODE and --cache-rewrite=HOW from argv[*i], moving
 * *i past an argument. 1: taken, 0: not one of these, negative: wrong, with a sentence. */
int cache_options_parse(struct cache_options *o, char **argv, int *i, struct diag *diag);
/* The lines of --help for these. */
extern const char cache_options_help[];

/* Opens the cache, creating or repairing it as needed. */
int cache_open(const struct cache_options *o, int device, struct cache **ret, struct diag *diag);
void cache_close(struct cache *c);

/* Finds the newest plan for a key. The view is good until the next call on the cache. NULL for `c`
 * is an empty cache. */
bool cache_find(struct cache *c, uint64_t key, struct plan_view *ret);
/* Adds a plan. A cache that cannot take it (disk full) stays as it is or ends up empty. */
void cache_put(struct cache *c, uint64_t key, const struct plan *p);

#endif
