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
	json_t *object = json_object();

	set(object, "text", json_text(text));
	return object;
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
	json_t *object = json_object();

	if (path[0] == '/')
		strbuf_adds(&uri, "file://");
	add_uri(&uri, path);
	set(object, "uri", json_text(strbuf_str(&uri)));
	if (path != file)
		set(object, "uriBaseId", json_text(ROOT_NAME));
	return object;
}

static json_t *physical_location(const struct investigation *inv, const struct frame *frame)
{
	json_t *object = json_object(), *region = json_object();

	set(object, "artifactLocation", artifact_location(inv, frame->file));
	set(region, "startLine", json_integer(frame->line));
	set(object, "region", region);
	return object;
}

/* A frame without a source file has a logical location only. */
static json_t *location(const struct investigation *inv, const struct frame *frame,
			const char *text)
{
	AUTO(strbuf_deinit) struct strbuf name = { 0 };
	json_t *object = json_object(), *logical = json_object(), *list = json_array();

	if (frame->file && frame->line > 0)
		set(object, "physicalLocation", physical_location(inv, frame));
	frame_describe(frame, &name);
	set(logical, "fullyQualifiedName",
	    json_text(frame->function ? frame->function : strbuf_str(&name)));
	set(logical, "kind", json_text("function"));
	(void)json_array_append_new(list, logical);
	set(object, "logicalLocations", list);
	if (text)
		set(object, "message", message(text));
	return object;
}

static json_t *stack_json(const struct investigation *inv, const struct stack *stack,
			  const char *text)
{
	json_t *object = json_object(), *frames = json_array();

	for (size_t i = 0; i < stack->count && i < STACK_FRAMES; i++) {
		const struct frame *frame = &stack->frames[i];
		json_t *row = json_object();

		set(row, "location", location(inv, frame, NULL));
		if (frame->module)
			PUT(row, frame, module);
		(void)json_array_append_new(frames, row);
	}
	if (text)
		set(object, "message", message(text));
	set(object, "frames", frames);
	return object;
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
	json_t *flow = json_object(), *threads = json_array(), *thread = json_object();
	json_t *locations = json_array();
	json_int_t order = 1;

	VEC_FOREACH (&inv->verdict.steps, step) {
		AUTO(mem_freep) char *what = words_of(&step->what);
		json_t *row = json_object();
		bool bad = step->stack.count > 0 && inv->verdict.writer.count > 0 &&
			   step->what.id && strcmp(step->what.id, "step:bad-write") == 0;

		set(row, "location", location(inv, shown_frame(&step->stack), what));
		set(row, "stack", stack_json(inv, &step->stack, NULL));
		set(row, "executionOrder", json_integer(order++));
		set(row, "importance", json_text(bad ? "essential" : "important"));
		(void)json_array_append_new(locations, row);
	}
	set(thread, "locations", locations);
	(void)json_array_append_new(threads, thread);
	set(flow, "message", message("from the allocation to the failure"));
	set(flow, "threadFlows", threads);
	return flow;
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

static void add_places(const struct investigation *inv, json_t *result)
{
	const struct stack *stack = investigation_accused(inv);
	json_t *locations = json_array(), *flows = json_array(), *stacks = json_array();

	if (stack && shown_frame(stack)) {
		(void)json_array_append_new(locations, location(inv, shown_frame(stack), NULL));
		(void)json_array_append_new(stacks, stack_json(inv, stack, NULL));
		set(result, "relatedLocations", related(inv, shown_frame(stack)));
	}
	set(result, "locations", locations);
	if (json_array_size(stacks) > 0)
		set(result, "stacks", stacks);
	else
		json_decref(stacks);
	if (inv->verdict.steps.count > 0) {
		(void)json_array_append_new(flows, code_flow(inv));
		set(result, "codeFlows", flows);
	} else {
		json_decref(flows);
	}
}

static void add_properties(const struct investigation *inv, json_t *result)
{
	json_t *bag = json_object();
	const struct verdict *v = &inv->verdict;

	PUT(bag, v, firm, caught, watched, trials);
	if (inv->reproduce)
		PUT(bag, inv, reproduce);
	set(result, "properties", bag);
}

static json_t *result_json(const struct investigation *inv)
{
	json_t *object = json_object(), *prints = json_object();
	const struct verdict *v = &inv->verdict;
	AUTO(mem_freep) char *sentence = words_of(&v->sentence);

	set(object, "ruleId", json_text(verdict_class_name(v->class)));
	set(object, "ruleIndex", json_integer(0));
	set(object, "level", json_text(v->firm ? "error" : "warning"));
	set(object, "message", message(sentence));
	add_places(inv, object);
	if (v->signature[0] != '\0') {
		set(prints, "redhandSignature/v1", json_text(v->signature));
		set(object, "partialFingerprints", prints);
	} else {
		json_decref(prints);
	}
	add_properties(inv, object);
	return object;
}

static json_t *rule_json(const struct investigation *inv)
{
	json_t *object = json_object(), *configuration = json_object();
	enum verdict_class class = inv->verdict.class;

	set(object, "id", json_text(verdict_class_name(class)));
	set(object, "shortDescription", message(words_class(class)));
	set(configuration, "level", json_text("error"));
	set(object, "defaultConfiguration", configuration);
	return object;
}

static json_t *tool_json(const struct investigation *inv, const char *version)
{
	json_t *tool = json_object(), *driver = json_object(), *list = json_array();

	set(driver, "name", json_text("redhand"));
	set(driver, "version", json_text(version));
	if (inv->judged)
		(void)json_array_append_new(list, rule_json(inv));
	set(driver, "rules", list);
	set(tool, "driver", driver);
	return tool;
}

static json_t *bases_json(const struct investigation *inv)
{
	AUTO(strbuf_deinit) struct strbuf uri = { 0 };
	json_t *bases = json_object(), *root = json_object();

	strbuf_adds(&uri, "file://");
	add_uri(&uri, inv->root);
	if (uri.data[uri.len - 1] != '/')
		strbuf_addc(&uri, '/');
	set(root, "uri", json_text(strbuf_str(&uri)));
	set(bases, ROOT_NAME, root);
	return bases;
}

void report_investigation_sarif(const struct investigation *inv, const char *version, FILE *out)
{
	json_t *log = json_object(), *runs = json_array(), *run = json_object();
	json_t *results = json_array();

	set(log, "$schema", json_text("https://json.schemastore.org/sarif-2.1.0.json"));
	set(log, "version", json_text("2.1.0"));
	set(run, "tool", tool_json(inv, version));
	if (inv->root && inv->root[0] == '/')
		set(run, "originalUriBaseIds", bases_json(inv));
	if (inv->judged)
		(void)json_array_append_new(results, result_json(inv));
	set(run, "results", results);
	set(run, "columnKind", json_text("unicodeCodePoints"));
	(void)json_array_append_new(runs, run);
	set(log, "runs", runs);
	json_print(log, out);
}
