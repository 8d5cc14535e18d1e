#include "report/report_doctor.h"

#include <string.h>

#include "base/auto.h"
#include "base/strbuf.h"
#include "report/json.h"
#include "report/text_parts.h"

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

static json_t *finding_json(const struct finding *finding)
{
	bool ok = finding->status == FINDING_OK;

	return OBJECT(MEMBERS(finding, id, title), KEY("status", status_names[finding->status]),
		      KEY("found", text_or_null(finding->found)),
		      KEY("lost", text_or_null(ok ? "" : finding->lost)),
		      KEY("enable", text_or_null(ok ? "" : finding->enable)));
}

static json_t *program_json(const struct diagnosis *diagnosis)
{
	static const char *const kinds[] = {
		[PROGRAM_ELF] = "elf", [PROGRAM_SCRIPT] = "script", [PROGRAM_OTHER] = "other"
	};
	static const char *const libcs[] = { [PROGRAM_LIBC_UNKNOWN] = "unknown",
					     [PROGRAM_LIBC_GLIBC] = "glibc",
					     [PROGRAM_LIBC_MUSL] = "musl",
					     [PROGRAM_LIBC_STATIC] = "static" };
	const struct program_facts *f = diagnosis->facts;

	return OBJECT(KEY("path", text_or_null(f->path)), KEY("script", text_or_null(f->script)),
		      KEY("kind", kinds[f->kind]), KEY("runnable", f->executable),
		      KEY("trouble", text_or_null(f->trouble)),
		      KEY("machine", text_or_null(f->machine)), MEMBERS(f, native),
		      KEY("linkage",
			  OR_NULL(f->kind == PROGRAM_ELF, f->dynamic ? "dynamic" : "static")),
		      KEY("loader", text_or_null(f->loader)), MEMBERS(f, pie, privileged),
		      KEY("libc", libcs[f->libc]), KEY("stripped", json_boolean(!f->symbols)),
		      MEMBERS(f, lines), KEY("build_id", text_or_null(f->build_id)),
		      KEY("debug_link", text_or_null(f->debug_link)),
		      KEY("debug_file", text_or_null(f->debug_file)), MEMBERS(f, debug_file_lines),
		      KEY("allocator", text_or_null(f->allocator)),
		      MEMBERS(f, allocator_inside, sanitized),
		      KEY("checks", JSON_LIST(&diagnosis->program, finding_json)));
}

void report_doctor_json(const struct diagnosis *diagnosis, FILE *out)
{
	json_print(OBJECT(KEY("schema", "redhand/doctor/1"), MEMBERS(diagnosis, usable),
			  KEY("watchers", text_or_null(diagnosis->watchers)),
			  KEY("checks", JSON_LIST(&diagnosis->machine, finding_json)),
			  KEY("program", OR_NULL(diagnosis->facts, program_json(diagnosis)))),
		   out);
}
