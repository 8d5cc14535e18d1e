#pragma once

#include <stddef.h>

#include "base/strbuf.h"

/*
 * Breadcrumbs: log lines as places in a run.
 *
 * Two runs print the same line with other addresses, times and durations in
 * it; those are masked, so that it is recognised as the same place.
 */

/* Appends the line without its terminal escape sequences. */
void crumb_plain(const char *line, size_t len, struct strbuf *ret);

/* The line as a breadcrumb: escape sequences dropped, what varies masked with '*',
 * made printable, shortened. The caller's to free; "" when nothing is left. */
char *crumb_from_line(const char *line, size_t len);

/* The same with every number masked: for identities made from a line that
 * nobody chose as a breadcrumb. */
char *crumb_mask_numbers(const char *crumb);
