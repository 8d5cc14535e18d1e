#pragma once

#include "model/certificate.h"
#include "report/json.h"

/* A certificate as docs/json.md describes it under redhand/sentinel/1. Private to report/. */
json_t *certificate_json(const struct certificate *certificate);
