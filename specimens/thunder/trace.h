/*
 * Trace: a recorded program of tensor operations, and its gradient.
 *
 * Values are named t0, t1, … in the order in which they were made. A trace is recorded
 * for the shapes it saw and can be replayed with other values of those shapes.
 */
#ifndef THUNDER_TRACE_H
#define THUNDER_TRACE_H

#include "executor.h"

extern PyTypeObject trace_type;

#endif
