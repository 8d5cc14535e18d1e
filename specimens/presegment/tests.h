/*
 * The tests, by topic, and what they share.
 */
#ifndef PRESEGMENT_TESTS_H
#define PRESEGMENT_TESTS_H

#include "harness.h"
#include "runtime.h"

extern const struct test_case resize_tests[];
extern const int resize_tests_count;
extern const struct test_case scheduler_tests[];
extern const int scheduler_tests_count;

/* An input of rows x columns. */
int matrix(struct fusion *f, enum dtype dtype, int64_t rows, int64_t columns);

/* Compiles the fusion, which it takes over, and expects that the runtime computes what the fusion
 * did. Returns the runtime for further questions, or NULL after a failure; the caller frees it. */
struct runtime *compile_and_compare(struct test_run *t, struct fusion *f, enum scheduler wanted);
/* The same when there are no further questions than who schedules it, in how many segments. */
void expect_schedule(struct test_run *t, struct fusion *f, enum scheduler scheduler, int segments);
/* How many operations of a kind the compiled fusion still has. */
int count_kind(const struct runtime *rt, enum op_kind kind);

#endif
