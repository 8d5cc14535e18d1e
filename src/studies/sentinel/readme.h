#pragma once

#include "studies/sentinel/sentinel.h"

/* README.md of a sentinel, for people who have never heard of redhand. */
void readme_write(const struct sentinel *sentinel, struct strbuf *ret);

/* run.sh: what any CI can call. */
extern const char readme_run_sh[];
