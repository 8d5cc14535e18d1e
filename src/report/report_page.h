#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "model/dots.h"
#include "model/investigation.h"
#include "report/share.h"

/*
 * An investigation as a page for a browser: one file that needs nothing else, with or without
 * script. The same case gives the same bytes.
 */
struct page_options {
	const char *version;	   /* of redhand */
	const struct share *share; /* what is left out; NULL: nothing */
	bool live;		   /* of `redhand serve`: it asks for what has changed */
	uint64_t state;		   /* live: which state of the case it shows */
};

void report_investigation_html(const struct investigation *inv, const struct trial_dots *dots,
			       const struct page_options *options, FILE *out);

/* What a browser may load and run for such a page, for a header of HTTP or its <meta>. The caller's
 * to free. */
char *page_policy(bool live);
