#pragma once

#include "model/summary.h"
#include "report/json.h"

/* A signature as docs/json.md describes it under 'Common parts'. Private to report/. */
json_t *signature_json(const struct signature_summary *s);
json_t *signatures_json(const struct signature_summaries *signatures);
json_t *families_json(const struct failure_families *families);
