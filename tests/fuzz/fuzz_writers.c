/*
 * Fuzzer of what redhand writes for other programs: whatever texts a target brought along, JSON and
 * SARIF are what a strict parser takes, JUnit is well-formed XML, and so is a page, which has no
 * script, style or address but its own. The first byte says whether the rest is texts, a verdict or
 * evidence as a case keeps it, or a certificate's texts, and what is written of it.
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
#include "report/report_page.h"
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

static const char *skip_behind(const char *from, const char *what)
{
	const char *found = strstr(from, what);

	if (!found)
		abort();
	return found + strlen(what) - 1;
}

static bool is_one_of(const char *name, size_t len, const char *const *names)
{
	for (; *names; names++)
		if (strlen(*names) == len && strncmp(*names, name, len) == 0)
			return true;
	return false;
}

static void must_be_entity(const char *p)
{
	static const char *const known[] = {
		"&lt;", "&gt;", "&amp;", "&quot;", "&apos;", "&#", NULL
	};
	size_t i = 0;

	while (known[i] && strncmp(p, known[i], strlen(known[i])) != 0)
		i++;
	if (!known[i])
		abort();
}

/* An attribute that runs or loads something: ` onx=`, ` src=`, ` href="` to somewhere else. */
static void must_be_harmless(const char *tag, const char *end)
{
	for (const char *at = tag; at < end; at++) {
		if (*at == '"')
			at += 1 + strcspn(at + 1, "\"");
		else if (*at == ' ' && (strncmp(at, " on", 3) == 0 || strncmp(at, " src", 4) == 0 ||
					(strncmp(at, " href=\"", 7) == 0 && at[7] != '#')))
			abort();
	}
}

/* Tags nest, attributes are quoted, no raw '<', and of '&' only what XML knows; no control
 * characters (XML 1.0, 2.2). */
static void must_be_xml(const char *text, bool page)
{
	static const char *const empty_ones[] = { "meta",  "br",  "hr",	  "col",
						  "input", "wbr", "link", NULL };
	static const char *const raw_ones[] = { "style", "script", NULL };
	const char *open[256];
	size_t depth = 0, scripts = 0;

	for (const char *p = text; *p != '\0'; p++) {
		if (((unsigned char)*p < 0x20 && !strchr("\t\n\r", *p)) || *p == 0x7f)
			abort();
		if (*p == '&')
			must_be_entity(p);
		if (*p != '<')
			continue;
		if (p[1] == '?' || p[1] == '!') {
			p = skip_behind(p, ">");
			continue;
		}
		bool closing = p[1] == '/';
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
		if (page)
			must_be_harmless(name + len, p);
		if (closing) {
			if (depth == 0 || strncmp(open[--depth], name, len) != 0 ||
			    strcspn(open[depth], " />\n\t") != len)
				abort();
		} else if (p[-1] != '/' && !(page && is_one_of(name, len, empty_ones))) {
			if (depth == 256)
				abort();
			open[depth++] = name;
			if (page && is_one_of(name, len, raw_ones)) {
				p = skip_behind(p, *name == 's' && name[1] == 't' ? "</style>"
										  : "</script>");
				depth--;
				scripts++;
			}
		}
	}
	if (depth != 0 || scripts > 2)
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

static void print_page(const struct investigation *inv, FILE *out)
{
	struct trial_dots dots = { 0 };

	report_investigation_html(inv, &dots, &(struct page_options){ .version = "0" }, out);
}

/* One of them at a time. */
static void try_writer(const struct investigation *inv, unsigned int which)
{
	static void (*const writers[])(const struct investigation *inv,
				       FILE *out) = { report_investigation_json, print_sarif,
						      report_investigation_md, print_page };
	struct share share = { .root = "/root", .home = "/home", .host = "host" };
	char *text = rendered(writers[which % 4], inv), *shared = NULL;

	if (which % 4 < 2)
		must_be_json(text);
	if (which % 4 == 0) {
		shared = share_json(&share, text, true);
		if (!shared)
			abort();
		must_be_json(shared);
	} else if (which % 4 == 2) {
		shared = share_text(&share, text);
	} else if (which % 4 == 3) {
		must_be_xml(text, true);
	}
	mem_free(shared);
	free(text);
}

static void try_texts(const uint8_t *data, size_t size, unsigned int writer)
{
	struct investigation inv = { 0 };

	inv.case_dir = take(&data, &size);
	inv.root = take(&data, &size);
	inv.reproduce = take(&data, &size);
	inv.prove_fix = take(&data, &size);
	for (unsigned int i = 0; i < 3; i++) {
		strv_take(&inv.program, take(&data, &size));
		said_new(&inv.notes)->text = take(&data, &size);
	}
	inv.judged = true;
	inv.verdict.sentence.text = take(&data, &size);
	try_writer(&inv, writer);
	investigation_deinit(&inv);
}

/* As a case keeps it. */
static void try_packed(const uint8_t *data, size_t size, bool verdict, unsigned int writer)
{
	struct investigation inv = { .case_dir = mem_strdup("case"), .judged = true };
	struct evidence evidence = { 0 };

	if (verdict ? verdict_unpack(data, size, &inv.verdict, NULL) == 0
		    : evidence_unpack(data, size, &evidence, NULL) == 0) {
		if (!verdict) {
			evidence.id = 1;
			VEC_PUSH(&inv.evidence.list, evidence);
		}
		try_writer(&inv, writer);
	}
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
	certificate.sentence.text = take(&data, &size);
	certificate.signature = take(&data, &size);
	certificate.summary = take(&data, &size);
	certificate.met = size > 0 && data[0] & 1;
	report_certificate_junit(&certificate, out);
	(void)fclose(out);
	must_be_xml(text, false);
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
	switch (data[0] % 4) {
	case 0:
		try_junit(data + 1, size - 1);
		break;
	case 1:
		try_texts(data + 1, size - 1, data[0] / 4);
		break;
	default:
		try_packed(data + 1, size - 1, data[0] % 4 == 2, data[0] / 4);
	}
	return 0;
}
