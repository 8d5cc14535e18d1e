#pragma once

#include "studies/sentinel/make.h"

/* README.md, for people who have never heard of redhand, and run.sh. */
extern const struct sentinel_words sentinel_words;
