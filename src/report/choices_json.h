#pragma once

#include <jansson.h>

#include "model/verdict.h"

/* The experiments that a hunt chose, in order. */
json_t *choices_json(const struct choice_list *choices);
