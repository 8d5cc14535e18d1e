#pragma once

#include "base/err.h"
#include "base/vec.h"

/* Splits text into words as a shell would: white space separates, single and double quotes and
 * backslashes protect. Nothing is expanded. An open quote is an error. */
int words_split(const char *text, struct strv *ret, struct err *err);
