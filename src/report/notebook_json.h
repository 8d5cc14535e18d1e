#pragma once

#include <jansson.h>

#include "model/notebook.h"

/* What people wrote into a case, and where its trials ran, as JSON (docs/json.md). Private to
 * report/. */
json_t *world_json(const struct world *world);
json_t *attempts_json(const struct notebook *notebook);
json_t *user_steps_json(const struct notebook *notebook);
json_t *relations_json(const struct notebook *notebook);
json_t *surroundings_json(const struct notebook *notebook);
