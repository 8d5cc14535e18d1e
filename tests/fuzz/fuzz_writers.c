/*
 * Fuzzer of what redhand writes for other programs: whatever texts a target brought along, JSON and
 * SARIF are what a strict parser takes, and JUnit is well-formed XML.
 */
#include <ctype.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "model/certificate.h"
#include "model/investigation.h"
#include "report/report_investigation.h"
#include "report/report_sentinel.h"
#include "report/share.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The next text of the input: up to a newline. */
static char *take(const uint8_t **data, size_t *size)
{
	const uint8_t *end = memchr(*data, '\n', *size);
	size_t len = end ? (size_t)(end - *data) : *size;
	char *text = mem_strndup((const char *)*data, len);

	*data += end ? len + 1 : len;
	*size -= end ? len + 1 : len;
	return text;
}

static void must_be_json(const char *text)
{
	json_t *value = json_loads(text, JSON_REJECT_DUPLICATES, NULL);

	if (!value)
		abort();
	json_decref(value);
}

/* Tags nest, attributes are quoted, no raw '<', and of '&' only what XML knows; no control
 * characters (XML 1.0, 2.2). */
static void must_be_xml(const char *text)
{
	char *open[64];
	size_t depth = 0;

	for (const char *p = text; *p != '\0'; p++) {
		if ((unsigned char)*p < 0x20 && !strchr("\t\n\r", *p))
			abort();
		if (*p == '&' && strncmp(p, "&lt;", 4) != 0 && strncmp(p, "&gt;", 4) != 0 &&
		    strncmp(p, "&amp;", 5) != 0 && strncmp(p, "&quot;", 6) != 0 &&
		    strncmp(p, "&apos;", 6) != 0 && strncmp(p, "&#", 2) != 0)
			abort();
		if (*p != '<')
			continue;
		if (p[1] == '?') {
			p = strstr(p, "?>");
			if (!p)
				abort();
			p++;
			continue;
		}
		bool closing = p[1] == '/', empty;
		const char *name = p + 1 + closing;
		size_t len = strcspn(name, " />\n\t");
		char quote = '\0';

		for (p = name + len; *p != '\0' && (*p != '>' || quote != '\0'); p++) {
			if (quote != '\0' && *p == '<')
				abort();
			if (quote != '\0' && *p == quote)
				quote = '\0';
			else if (quote == '\0' && (*p == '"' || *p == '\''))
				quote = *p;
		}
		if (*p == '\0' || len == 0)
			abort();
		empty = p[-1] == '/';
		if (closing) {
			if (depth == 0 || strlen(open[depth - 1]) != len ||
			    strncmp(open[depth - 1], name, len) != 0)
				abort();
			free(open[--depth]);
		} else if (!empty) {
			if (depth == 64)
				abort();
			open[depth++] = strndup(name, len);
		}
	}
	if (depth != 0)
		abort();
}

static char *rendered(void (*print)(const struct investigation *inv, FILE *out),
		      const struct investigation *inv)
{
	char *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);

	print(inv, out);
	(void)fclose(out);
	return text;
}

static void print_sarif(const struct investigation *inv, FILE *out)
{
	report_investigation_sarif(inv, "0", out);
}

static void try_investigation(const uint8_t *data, size_t size)
{
	struct investigation inv = { 0 };
	struct share share = { .root = "/root", .home = "/home", .host = "host" };
	char *text, *shared;

	inv.case_dir = take(&data, &size);
	inv.root = take(&data, &size);
	inv.reproduce = take(&data, &size);
	inv.prove_fix = take(&data, &size);
	for (unsigned int i = 0; i < 3; i++) {
		strv_take(&inv.program, take(&data, &size));
		strv_take(&inv.notes, take(&data, &size));
	}
	inv.judged = true;
	inv.verdict.sentence.text = take(&data, &size);
	text = rendered(report_investigation_json, &inv);
	must_be_json(text);
	shared = share_json(&share, text, true);
	if (!shared)
		abort();
	must_be_json(shared);
	mem_free(shared);
	free(text);
	text = rendered(print_sarif, &inv);
	must_be_json(text);
	free(text);
	text = rendered(report_investigation_md, &inv);
	shared = share_text(&share, text);
	mem_free(shared);
	free(text);
	investigation_deinit(&inv);
}

static void try_junit(const uint8_t *data, size_t size)
{
	struct certificate certificate = { .expect = EXPECT_FAILS, .confidence = 0.99 };
	char *program[] = { take(&data, &size), take(&data, &size), NULL };
	char *dir = take(&data, &size), *text = NULL;
	size_t len = 0;
	FILE *out = open_memstream(&text, &len);

	certificate.dir = dir;
	certificate.program = program;
	certificate.sentence = take(&data, &size);
	certificate.signature = take(&data, &size);
	certificate.summary = take(&data, &size);
	certificate.met = size > 0 && data[0] & 1;
	report_certificate_junit(&certificate, out);
	(void)fclose(out);
	must_be_xml(text);
	free(text);
	mem_free((char *)certificate.signature);
	mem_free((char *)certificate.summary);
	certificate.signature = certificate.summary = NULL;
	certificate_deinit(&certificate);
	mem_free(program[0]);
	mem_free(program[1]);
	mem_free(dir);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size == 0)
		return 0;
	if (data[0] & 1)
		try_investigation(data + 1, size - 1);
	else
		try_junit(data + 1, size - 1);
	return 0;
}
