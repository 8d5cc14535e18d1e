/*
 * Where a live page is, as JSON.
 */
#include "report/report_serve.h"

#include "report/json.h"

void report_serve_json(const char *case_dir, const char *url, unsigned int port, FILE *out)
{
	json_t *object = json_object();

	set(object, "schema", json_text("redhand/serve/1"));
	set(object, "case", json_text(case_dir));
	set(object, "url", json_text(url));
	set(object, "port", json_integer(port));
	json_print(object, out);
}
