#pragma once

#include "base/err.h"
#include "base/strbuf.h"

/*
 * Runs a program through PATH and takes what it prints on stdout, at most ASK_MAX bytes; its
 * stderr goes nowhere, its stdin is empty. For short questions to the user's tools, such as git.
 * `ret_status` is its exit status, 128 + signal when one ended it. Fails when it cannot be
 * run at all.
 */
#define ASK_MAX (64u << 10)

int ask(const char *const *argv, struct strbuf *ret_out, int *ret_status, struct err *err);
