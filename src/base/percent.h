#pragma once

/*
 * A share as a percentage with as many decimals as it takes to tell it from nothing: 20.0, 0.26,
 * 0.02. "Below 0.0 %" would say that it cannot be.
 */
#define PERCENT_MAX 32

/* Writes into `buf`, of PERCENT_MAX bytes, and returns it; no sign behind the number. */
const char *percent_text(char *buf, double share);

/* The same for an argument of printf, valid to the end of the block. */
#define PERCENT(share) percent_text((char[PERCENT_MAX]){ 0 }, share)
