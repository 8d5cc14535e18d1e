/*
 * Where a live page is, as JSON.
 */
#include "report/report_serve.h"

#include "report/json.h"

void report_serve_json(const char *case_dir, const char *url, unsigned int port, FILE *out)
{
	json_print(OBJECT(KEY("schema", "redhand/serve/1"), KEY("case", case_dir), KEY("url", url),
			  KEY("port", port)),
		   out);
}
