#pragma once

#include "studies/sentinel/sentinel.h"

/* README.md of a sentinel, for people who have never heard of redhand. */
void sentinel_readme(const struct sentinel *sentinel, struct strbuf *ret);

/* run.sh: what any CI can call. */
extern const char sentinel_run_sh[];
