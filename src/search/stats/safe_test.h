/*
 * Safe test: compare two arms while the trials come in, and stop at any time.
 *
 * Looking at a fixed-size p-value again and again until it is small finds a
 * difference sooner or later even where there is none. This test may be looked
 * at after every trial. It bets against 'the arms fail equally often': E is what
 * a stake of 1 has become. If the arms are alike E is expected not to grow,
 * and the chance that it *ever* reaches 1/alpha is at most alpha (Ville's
 * inequality). So whoever stops when E reaches 1/alpha is wrong with
 * probability alpha at most, whatever made them stop.
 *
 * The bets are those of Turner, Ly and Grünwald, 'Generic E-variables for exact
 * sequential k-sample tests that allow for optional stopping': trials are taken in blocks, one of
 * each arm, and each block is bet on with what the blocks before it have shown.
 *
 * What the caller must keep to:
 * - Pair the n-th trial *started* in one arm with the n-th started in the other.
 *   Pairing by who finished first would join outcomes by their
 *   duration, and crashes are quick.
 * - A comparison that also looks at Fisher's p in the end asks twice, and should
 *   spend half of alpha on each. fisher_curtailed() costs nothing.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Plain memory, no clean-up; read through safe_test_p(). */
struct safe_test {
	uint64_t blocks;
	uint64_t failed_a, failed_b; /* <= blocks */
	double log_e;
	double log_e_max; /* >= 0: E begins at 1 */
};

void safe_test_init(struct safe_test *test);

/* Adds one block: whether the trial of arm A and that of arm B failed. */
void safe_test_add(struct safe_test *test, bool fail_a, bool fail_b);

/*
 * A p-value that holds at any time: 1 over the largest E so far, at most 1. It may be
 * printed wherever an ordinary one would be; it is the larger of the two as a rule.
 */
double safe_test_p(const struct safe_test *test);
