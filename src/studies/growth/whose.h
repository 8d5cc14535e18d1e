#pragma once

#include <stdbool.h>

#include "model/frame.h"

/*
 * Whose growth: what a test framework keeps of the tests it ran (reports, names, captured output)
 * grows by its nature, and is not what the user looks for.
 *
 * An allocation is the framework's when the way from it outwards meets a Python frame of a test
 * framework before one of the program: its own files, and test files wherever they lie. What
 * packages and the standard library do is done for whoever called them. Without Python frames, or
 * where no framework's are among them, it is the program's.
 */
bool is_frameworks(const struct stack *stack);
