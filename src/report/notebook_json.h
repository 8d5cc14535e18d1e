#pragma once

#include <jansson.h>

#include "model/notebook.h"

/* What people wrote into a case, and where its trials ran, as JSON (docs/json.md). Private to
 * report/. */
json_t *world_json(const struct world *world);

/* attempts, steps, related and surroundings. */
json_t *notebook_json(const struct notebook *notebook);
