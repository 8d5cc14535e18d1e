/*
 * An investigation as SARIF 2.1.0, for code hosts and editors.
 *
 * One result: the verdict, at the place of the bad write (or of the failure, while nobody was
 * caught), with the way from the allocation to the failure as a code flow and the stacks of its
 * ends. Files below the project's root are named relative to it, as code hosts want them.
 */
#include "report/report_investigation.h"

#include <string.h>

#include "report/json.h"
#include "report/wording.h"

#define ROOT_NAME "SRCROOT"
#define STACK_FRAMES 64

static json_t *message(const char *text)
{
	return OBJECT(KEY("text", text));
}

/* RFC 3986: everything but unreserved characters and '/' as %XX. */
static void add_uri(struct strbuf *sb, const char *path)
{
	for (const unsigned char *c = (const unsigned char *)path; *c != '\0'; c++) {
		if ((*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') ||
		    (*c >= '0' && *c <= '9') || strchr("-._~/+", *c))
			strbuf_addc(sb, (char)*c);
		else
			strbuf_addf(sb, "%%%02X", *c);
	}
}

static json_t *artifact_location(const struct investigation *inv, const char *file)
{
	AUTO(strbuf_deinit) struct strbuf uri = { 0 };
	const char *path = investigation_path(inv, file);

	if (path[0] == '/')
		strbuf_adds(&uri, "file://");
	add_uri(&uri, path);
	return OBJECT(KEY("uri", strbuf_str(&uri)), KEY_IF(path != file, "uriBaseId", ROOT_NAME));
}

static json_t *physical_location(const struct investigation *inv, const struct frame *frame)
{
	return OBJECT(KEY("artifactLocation", artifact_location(inv, frame->file)),
		      KEY("region", OBJECT(KEY("startLine", frame->line))));
}

/* A frame without a source file has a logical location only. */
static json_t *location(const struct investigation *inv, const struct frame *frame,
			const char *text)
{
	AUTO(strbuf_deinit) struct strbuf name = { 0 };
	json_t *logical;

	frame_describe(frame, &name);
	logical = OBJECT(KEY("fullyQualifiedName", frame->function ?: strbuf_str(&name)),
			 KEY("kind", "function"));
	return OBJECT(KEY_IF(frame->file && frame->line > 0, "physicalLocation",
			     physical_location(inv, frame)),
		      KEY("logicalLocations", json_one(logical)),
		      KEY_IF(text, "message", message(text)));
}

static json_t *stack_json(const struct investigation *inv, const struct stack *stack)
{
	json_t *frames = json_array();

	for (size_t i = 0; i < stack->count && i < STACK_FRAMES; i++) {
		const struct frame *frame = &stack->frames[i];

		(void)json_array_append_new(frames,
					    OBJECT(KEY("location", location(inv, frame, NULL)),
						   KEY_IF(frame->module, "module", frame->module)));
	}
	return OBJECT(KEY("frames", frames));
}

static const struct frame *shown_frame(const struct stack *stack)
{
	const struct frame *site = stack_site(stack);

	if (site && site->file && site->line > 0)
		return site;
	for (size_t i = 0; i < stack->count; i++)
		if (stack->frames[i].file && stack->frames[i].line > 0)
			return &stack->frames[i];
	return site ? site : stack->count > 0 ? &stack->frames[0] : NULL;
}

static json_t *code_flow(const struct investigation *inv)
{
	json_t *locations = json_array();
	int order = 1;

	VEC_FOREACH (&inv->verdict.steps, step) {
		AUTO(mem_freep) char *what = words_of(&step->what);
		bool bad = step->stack.count > 0 && inv->verdict.writer.count > 0 &&
			   step->what.id && strcmp(step->what.id, "step:bad-write") == 0;

		(void)json_array_append_new(
			locations,
			OBJECT(KEY("location", location(inv, shown_frame(&step->stack), what)),
			       KEY("stack", stack_json(inv, &step->stack)),
			       KEY("executionOrder", order++),
			       KEY("importance", bad ? "essential" : "important")));
	}
	return OBJECT(KEY("message", message("from the allocation to the failure")),
		      KEY("threadFlows", json_one(OBJECT(KEY("locations", locations)))));
}

/* The other places of the story: what hosts show beside the line. */
static json_t *related(const struct investigation *inv, const struct frame *accused)
{
	json_t *list = json_array();

	VEC_FOREACH (&inv->verdict.steps, step) {
		const struct frame *frame = shown_frame(&step->stack);
		AUTO(mem_freep) char *what = words_of(&step->what);

		if (frame && frame->file && frame->line > 0 &&
		    !(accused->file && frame->line == accused->line &&
		      strcmp(frame->file, accused->file) == 0))
			(void)json_array_append_new(list, location(inv, frame, what));
	}
	return list;
}

static json_t *places_json(const struct investigation *inv)
{
	const struct stack *stack = investigation_accused(inv);
	const struct frame *frame = stack ? shown_frame(stack) : NULL;

	return OBJECT(KEY_IF(frame, "relatedLocations", related(inv, frame)),
		      KEY("locations", json_one(frame ? location(inv, frame, NULL) : NULL)),
		      KEY_IF(frame, "stacks", json_one(stack_json(inv, stack))),
		      KEY_IF(inv->verdict.steps.count > 0, "codeFlows", json_one(code_flow(inv))));
}

static json_t *result_json(const struct investigation *inv)
{
	const struct verdict *v = &inv->verdict;
	AUTO(mem_freep) char *sentence = words_of(&v->sentence);

	return OBJECT(KEY("ruleId", verdict_class_name(v->class)), KEY("ruleIndex", 0),
		      KEY("level", v->firm ? "error" : "warning"),
		      KEY("message", message(sentence)), ALL_OF(places_json(inv)),
		      KEY_IF(v->signature[0] != '\0', "partialFingerprints",
			     OBJECT(KEY("redhandSignature/v1", v->signature))),
		      KEY("properties",
			  OBJECT(MEMBERS(v, firm, caught, watched, trials),
				 KEY_IF(inv->reproduce, "reproduce", inv->reproduce))));
}

static json_t *rule_json(const struct investigation *inv)
{
	enum verdict_class class = inv->verdict.class;

	return OBJECT(KEY("id", verdict_class_name(class)),
		      KEY("shortDescription", message(words_class(class))),
		      KEY("defaultConfiguration", OBJECT(KEY("level", "error"))));
}

static json_t *tool_json(const struct investigation *inv, const char *version)
{
	return OBJECT(
		KEY("driver", OBJECT(KEY("name", "redhand"), KEY("version", version),
				     KEY("rules", json_one(inv->judged ? rule_json(inv) : NULL)))));
}

static json_t *bases_json(const struct investigation *inv)
{
	AUTO(strbuf_deinit) struct strbuf uri = { 0 };

	strbuf_adds(&uri, "file://");
	add_uri(&uri, inv->root);
	if (uri.data[uri.len - 1] != '/')
		strbuf_addc(&uri, '/');
	return OBJECT(KEY(ROOT_NAME, OBJECT(KEY("uri", strbuf_str(&uri)))));
}

void report_investigation_sarif(const struct investigation *inv, const char *version, FILE *out)
{
	json_t *run = OBJECT(KEY("tool", tool_json(inv, version)),
			     KEY_IF(inv->root && inv->root[0] == '/', "originalUriBaseIds",
				    bases_json(inv)),
			     KEY("results", json_one(inv->judged ? result_json(inv) : NULL)),
			     KEY("columnKind", "unicodeCodePoints"));

	json_print(OBJECT(KEY("$schema", "https://json.schemastore.org/sarif-2.1.0.json"),
			  KEY("version", "2.1.0"), KEY("runs", json_one(run))),
		   out);
}
