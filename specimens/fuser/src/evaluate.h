/* Runs a fusion on the host, one expression after the other. */
#ifndef FUSER_EVALUATE_H
#define FUSER_EVALUATE_H

#include "tensor.h"

/*
 * Takes one tensor per input and stores one new tensor per output in out[],
 * which the caller destroys. False, with nothing stored, when the arguments do
 * not fit or an index is out of range. The fusion must not be dynamic.
 */
bool evaluate(const struct ir_container *fusion, struct tensor *const *args, int nargs,
	      struct tensor **out);

#endif
