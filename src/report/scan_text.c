/*
 * A scan as text: by function, the instructions that match.
 */
#include "base/cstr.h"
#include "report/report_scan.h"

#include <inttypes.h>

#include "base/strbuf.h"
#include "report/text_parts.h"

static const struct frame *outermost(const struct scan_hit *hit)
{
	return hit->frames.count > 0 ? &hit->frames.frames[hit->frames.count - 1] : NULL;
}

static bool same_function(const struct scan_hit *a, const struct scan_hit *b)
{
	const struct frame *x = outermost(a), *y = outermost(b);

	return x && y && cstr_same(x->function, y->function) && cstr_same(x->module, y->module);
}

static void print_function(const struct scan_hit *hit, FILE *out)
{
	const struct frame *frame = outermost(hit);

	put(out, "\n%s", frame && frame->function ? frame->function : "(no name)");
	if (frame && frame->kind == FRAME_JIT)
		put(out, "  (emitted code)");
	else if (frame && frame->module)
		put(out, "  in %s", cstr_base(frame->module));
	put(out, "\n");
}

static void print_width(const struct scan_hit *hit, FILE *out)
{
	AUTO(strbuf_deinit) struct strbuf sb = { 0 };

	if (hit->match != SCAN_STORE)
		strbuf_adds(&sb, hit->match == SCAN_IMMEDIATE ? "constant" : "uses it");
	else if (hit->width == 0)
		strbuf_adds(&sb, "any width");
	else
		strbuf_addf(&sb, "%u byte%s", hit->width, hit->width == 1 ? "" : "s");
	put(out, "%-9s ", strbuf_str(&sb));
	if (hit->match == SCAN_STORE)
		put(out, "%-8s ",
		    hit->fit == SCAN_FIT_BEGINS || hit->fit == SCAN_FIT_ANY
			    ? ""
			    : scan_fit_name(hit->fit));
	else
		put(out, "%-8s ", "");
}

/* The innermost line, and who inlined it there. */
static void print_line(const struct scan_hit *hit, FILE *out)
{
	const struct frame *frame = hit->frames.count > 0 ? &hit->frames.frames[0] : NULL;

	if (!frame || !frame->file)
		return;
	put(out, "  %s:%u", cstr_base(frame->file), frame->line);
	if (hit->frames.count > 1 && frame->function)
		put(out, " (%s, inlined)", frame->function);
}

static void print_hit(const struct scan_report *report, const struct scan_hit *hit, bool verbose,
		      FILE *out)
{
	const struct frame *frame = outermost(hit);
	uint64_t address = frame && frame->module ? frame->offset : hit->address;

	put(out, "  %s0x%-12" PRIx64 " ",
	    !report->seen_known ? ""
	    : hit->executed	? "* "
				: "  ",
	    address);
	print_width(hit, out);
	put(out, "%-36s", hit->instruction);
	print_line(hit, out);
	if (verbose) {
		put(out, "  [");
		for (unsigned int i = 0; i < hit->length && i < SCAN_CODE_BYTES; i++)
			put(out, "%s%02x", i > 0 ? " " : "", hit->bytes[i]);
		(void)fputc(']', out);
	}
	put(out, "\n");
}

static void print_question(const struct scan_report *report, FILE *out)
{
	const struct scan_query *query = &report->query;
	const char *between = "";

	put(out, "%s: ", report->subject);
	if (query->store) {
		put(out, "stores at %s0x%" PRIx64, query->offset < 0 ? "-" : "+",
		    (uint64_t)(query->offset < 0 ? -query->offset : query->offset));
		if (query->width > 0)
			put(out, ", a field of %" PRIu64 " byte%s", query->width,
			    query->width == 1 ? "" : "s");
		between = "; ";
	}
	if (query->low < query->high && report->global)
		put(out, "%suses of %s", between, report->global);
	else if (query->low < query->high)
		put(out, "%suses of address 0x%" PRIx64, between, query->low);
	if (query->low < query->high)
		between = "; ";
	if (query->has_value)
		put(out, "%sthe constant 0x%" PRIx64, between, query->value);
	put(out, "\n");
}

static void print_totals(const struct scan_report *report, FILE *out)
{
	uint64_t all = report->hits.count + report->limited;

	put(out, "%s%" PRIu64 " instruction%s%s, out of %" PRIu64 " in %.1f MiB of code\n",
	    all > 0 ? "\n" : "", all, all == 1 ? "" : "s", all == 1 ? " matches" : " match",
	    report->instructions, (double)report->bytes / 1024 / 1024);
	if (report->limited > 0)
		put(out,
		    "%" PRIu64 " of them are not listed: narrow it with --function, --reg "
		    "or --fit, or raise --limit\n",
		    report->limited);
	if (report->stack_left_out > 0)
		put(out,
		    "%" PRIu64 " stores at this offset from the stack pointer are left out "
		    "(--stack lists them)\n",
		    report->stack_left_out);
	text_notes(&report->notes, out);
}

void report_scan_text(const struct scan_report *report, bool verbose, FILE *out)
{
	const struct scan_hit *before = NULL;

	print_question(report, out);
	VEC_FOREACH (&report->hits, hit) {
		if (!before || !same_function(before, hit))
			print_function(hit, out);
		print_hit(report, hit, verbose, out);
		before = hit;
	}
	print_totals(report, out);
	if (report->seen_known)
		put(out, "* was seen to run, by a watch or a chase of the case\n");
}
