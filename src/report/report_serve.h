#pragma once

#include <stdio.h>

/* Schema redhand/serve/1 (docs/json.md): where the page is, as soon as it is there. */
void report_serve_json(const char *case_dir, const char *url, unsigned int port, FILE *out);
