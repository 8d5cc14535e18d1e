#include "report/report_doctor.h"

#include <errno.h>
#include <jansson.h>
#include <string.h>

#include "base/auto.h"
#include "base/strbuf.h"
#include "report/text.h"

static const char *const status_names[] = {
	[FINDING_OK] = "ok",
	[FINDING_LIMITED] = "limited",
	[FINDING_NO] = "no",
};

/* Green, yellow, red. */
static const char *const status_colours[] = {
	[FINDING_OK] = "\033[32m",
	[FINDING_LIMITED] = "\033[33m",
	[FINDING_NO] = "\033[31m",
};

/* Findings quote files and settings: nothing of that may reach a terminal as it is. */
static void print_finding(const struct finding *finding, bool colour, FILE *out)
{
	(void)fprintf(out, "  %s%-7s%s  ", colour ? status_colours[finding->status] : "",
		      status_names[finding->status], colour ? "\033[0m" : "");
	put(out, "%s: ", finding->title);
	text_print(finding->found, out);
	put(out, "\n");
	if (finding->status == FINDING_OK)
		return;
	if (finding->lost[0] != '\0') {
		put(out, "           without it: ");
		text_print(finding->lost, out);
		put(out, "\n");
	}
	if (finding->enable[0] != '\0') {
		put(out, "           to enable: ");
		text_print(finding->enable, out);
		put(out, "\n");
	}
}

static void print_findings(const struct finding_list *list, bool colour, FILE *out)
{
	for (size_t i = 0; i < list->count; i++)
		print_finding(&list->items[i], colour, out);
}

static void print_summary(const struct diagnosis *diagnosis, FILE *out)
{
	if (diagnosis->watchers[0] == '\0')
		(void)fputs("\nNothing works here to catch a write: redhand can count failures, "
			    "compare settings and check canaries, but not name the writer.\n",
			    out);
	else
		put(out, "\nTo catch a write redhand can use: %s.\n", diagnosis->watchers);
}

void report_doctor_text(const struct diagnosis *diagnosis, bool colour, FILE *out)
{
	const struct program_facts *facts = diagnosis->facts;

	if (facts) {
		put(out, "Program ");
		text_print(facts->path, out);
		if (facts->script[0] != '\0') {
			put(out, ", which runs the script ");
			text_print(facts->script, out);
		}
		put(out, "\n");
		print_findings(&diagnosis->program, colour, out);
		put(out, "\n");
	}
	put(out, "This machine\n");
	print_findings(&diagnosis->machine, colour, out);
	print_summary(diagnosis, out);
}

/* A JSON string of any bytes; null for the empty text. */
static json_t *text_or_null(const char *text)
{
	AUTO(strbuf_deinit) struct strbuf sb = { 0 };

	if (text[0] == '\0')
		return json_null();
	strbuf_add_printable(&sb, text, strlen(text));
	return json_string(strbuf_str(&sb));
}

static json_t *json_of_findings(const struct finding_list *list)
{
	json_t *array = json_array();

	for (size_t i = 0; i < list->count; i++) {
		const struct finding *finding = &list->items[i];
		bool ok = finding->status == FINDING_OK;

		(void)json_array_append_new(
			array,
			json_pack("{s:s, s:s, s:s, s:o, s:o, s:o}", "id", finding->id, "title",
				  finding->title, "status", status_names[finding->status], "found",
				  text_or_null(finding->found), "lost",
				  text_or_null(ok ? "" : finding->lost), "enable",
				  text_or_null(ok ? "" : finding->enable)));
	}
	return array;
}

static json_t *json_of_program(const struct diagnosis *diagnosis)
{
	static const char *const kinds[] = {
		[PROGRAM_ELF] = "elf", [PROGRAM_SCRIPT] = "script", [PROGRAM_OTHER] = "other"
	};
	static const char *const libcs[] = { [PROGRAM_LIBC_UNKNOWN] = "unknown",
					     [PROGRAM_LIBC_GLIBC] = "glibc",
					     [PROGRAM_LIBC_MUSL] = "musl",
					     [PROGRAM_LIBC_STATIC] = "static" };
	const struct program_facts *facts = diagnosis->facts;
	const char *linkage =
		facts && facts->kind == PROGRAM_ELF ? (facts->dynamic ? "dynamic" : "static") : "";
	json_t *object, *more;

	if (!facts)
		return json_null();
	object = json_pack("{s:o, s:o, s:s, s:b, s:o, s:o, s:b, s:o, s:o, s:b, s:b, s:s}", "path",
			   text_or_null(facts->path), "script", text_or_null(facts->script), "kind",
			   kinds[facts->kind], "runnable", (int)facts->executable, "trouble",
			   text_or_null(facts->trouble), "machine", text_or_null(facts->machine),
			   "native", (int)facts->native, "linkage", text_or_null(linkage), "loader",
			   text_or_null(facts->loader), "pie", (int)facts->pie, "privileged",
			   (int)facts->privileged, "libc", libcs[facts->libc]);
	more = json_pack("{s:b, s:b, s:o, s:o, s:o, s:b, s:o, s:b, s:b, s:o}", "stripped",
			 (int)!facts->symbols, "lines", (int)facts->lines, "build_id",
			 text_or_null(facts->build_id), "debug_link",
			 text_or_null(facts->debug_link), "debug_file",
			 text_or_null(facts->debug_file), "debug_file_lines",
			 (int)facts->debug_file_lines, "allocator", text_or_null(facts->allocator),
			 "allocator_inside", (int)facts->allocator_inside, "sanitized",
			 (int)facts->sanitized, "checks", json_of_findings(&diagnosis->program));
	(void)json_object_update(object, more);
	json_decref(more);
	return object;
}

int report_doctor_json(const struct diagnosis *diagnosis, FILE *out, struct err *err)
{
	json_t *document =
		json_pack("{s:s, s:b, s:o, s:o, s:o}", "schema", "redhand/doctor/1", "usable",
			  (int)diagnosis->usable, "watchers", text_or_null(diagnosis->watchers),
			  "checks", json_of_findings(&diagnosis->machine), "program",
			  json_of_program(diagnosis));
	int r;

	r = document ? json_dumpf(document, out, JSON_INDENT(2) | JSON_ENSURE_ASCII) : -1;
	json_decref(document);
	if (r < 0)
		return err_set(err, -EIO, "cannot write the JSON document");
	put(out, "\n");
	return 0;
}
