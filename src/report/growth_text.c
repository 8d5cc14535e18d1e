/*
 * Growth as text: the place, how fast, which tests, who holds it.
 */
#include "report/report_growth.h"

#include <inttypes.h>
#include <string.h>

#include "report/text_parts.h"

#define SITES_SHOWN 10
#define FRAMES_SHOWN 8
#define TESTS_SHOWN 4
#define HOLDERS_SHOWN 4
#define HOLDER_FRAMES 4
#define FEW_TESTS 50

static void print_bytes(double bytes, FILE *out)
{
	if (bytes < 10240)
		put(out, "%.4g bytes", bytes);
	else if (bytes < 10240.0 * 1024)
		put(out, "%.1f KiB", bytes / 1024);
	else
		put(out, "%.1f MiB", bytes / 1024 / 1024);
}

static const char *unit(const struct growth_report *report)
{
	return report->basis == GROWTH_TESTS ? "test" : "line";
}

static void print_place(const struct growth_site *site, bool verbose, FILE *out)
{
	size_t shown = verbose ? site->stack.count : FRAMES_SHOWN;

	if (site->stack.count == 0)
		put(out, "     (its stack was lost)\n");
	if (site->shared < site->stack.count && site->context_count > 1) {
		for (size_t i = 0; i < site->shared && i < shown; i++) {
			put(out, "     %-2zu ", i);
			text_frame(&site->stack.frames[i], out);
			put(out, "\n");
		}
		put(out, "     from %" PRIu64 " different callers, such as ", site->context_count);
		text_frame(&site->stack.frames[site->shared], out);
		put(out, "\n");
		return;
	}
	text_frames(&site->stack, shown, "     ", out);
}

static void print_tests(const struct growth_report *report, const struct growth_site *site,
			bool verbose, FILE *out)
{
	size_t shown = verbose ? site->by_test.count : TESTS_SHOWN;

	for (size_t i = 0; i < site->by_test.count && i < shown; i++) {
		const struct growth_test *test = &site->by_test.items[i];

		if (test->blocks != 0)
			put(out, "       %+" PRId64 " block%s  %s", test->blocks,
			    test->blocks == 1 ? " " : "s", test->name);
		else
			put(out, "       %+" PRId64 " bytes  %s", test->bytes, test->name);
		if (test->times > 1)
			put(out, "  (in %" PRIu64 " runs of it)", test->times);
		put(out, "\n");
	}
	if (site->by_test.count > shown)
		put(out, "       … and other %ss\n", unit(report));
}

static void print_holder(const struct growth_holder *holder, uint64_t looked_for, FILE *out)
{
	const char *slash = holder->module ? strrchr(holder->module, '/') : NULL;

	if (strcmp(holder->kind, "block") == 0) {
		put(out,
		    "       %" PRIu64 " of %" PRIu64 " by a block of %" PRIu64
		    " bytes, at offset %" PRIu64 ", allocated by\n",
		    holder->pointers, looked_for, holder->size, holder->offset);
		text_frames(&holder->stack, HOLDER_FRAMES, "         ", out);
		if (holder->root)
			put(out, "         and reached from the global %s\n", holder->root);
		return;
	}
	put(out, "       %" PRIu64 " pointer%s in ", holder->pointers,
	    holder->pointers == 1 ? "" : "s");
	if (strcmp(holder->kind, "global") == 0)
		put(out, "the global %s of %s\n", holder->name ? holder->name : "data",
		    slash ? slash + 1 : "the program");
	else
		put(out, "%s\n",
		    strcmp(holder->kind, "stack") == 0
			    ? "a stack (it may be a leftover of an earlier call)"
			    : "memory that was not allocated as a block");
}

static void print_holders(const struct growth_site *site, bool verbose, FILE *out)
{
	size_t shown = verbose ? site->holders.count : HOLDERS_SHOWN;

	if (site->looked_for == 0) {
		put(out, "     who holds them is not known\n");
		return;
	}
	if (site->holders.count == 0) {
		put(out,
		    "     nobody was found who still points to them (%" PRIu64
		    " looked for): lost\n",
		    site->looked_for);
		return;
	}
	put(out, "     held, after the last of them\n");
	for (size_t i = 0; i < site->holders.count && i < shown; i++)
		print_holder(&site->holders.items[i], site->looked_for, out);
}

static void print_site(const struct growth_report *report, const struct growth_site *site,
		       size_t number, bool verbose, FILE *out)
{
	put(out, "\n%3zu. %.3g blocks, ", number, site->blocks_per_test);
	print_bytes(site->bytes_per_test, out);
	put(out, " per %s: %" PRIu64 " -> %" PRIu64 " live blocks", unit(report),
	    site->blocks_first, site->blocks_last);
	if (site->blocks_first == site->blocks_last)
		put(out, ", %" PRIu64 " -> %" PRIu64 " bytes", site->bytes_first, site->bytes_last);
	put(out, "\n     higher than ever after %" PRIu64 " of %" PRIu64 " %ss, in %u of %u runs",
	    site->rises, site->tests, unit(report), site->trials, report->usable);
	if (site->p < 1e-6)
		put(out, " (p < 0.000001)\n");
	else
		put(out, " (p = %.2g)\n", site->p);
	put(out, "     allocated by%s\n",
	    site->framework ? " the test framework, for its own purposes" : "");
	print_place(site, verbose, out);
	if (site->by_test.count > 0)
		put(out, "     added most by\n");
	print_tests(report, site, verbose, out);
	print_holders(site, verbose, out);
}

static void print_basis(const struct growth_report *report, FILE *out)
{
	static const char *const words[] = {
		[GROWTH_TESTS] = "tests",
		[GROWTH_BREADCRUMBS] = "breadcrumbs",
		[GROWTH_LINES] = "lines of output, since no test framework's were among them",
	};

	put(out,
	    "%u run%s with %" PRIu64 " %s; %" PRIu64 " contexts had live blocks between them\n",
	    report->usable, report->usable == 1 ? "" : "s", report->tests, words[report->basis],
	    report->contexts);
}

void report_growth_text(const struct growth_report *report, bool verbose, FILE *out)
{
	size_t shown = verbose ? report->sites.count : SITES_SHOWN;

	text_program(report->program, out);
	put(out, "\n");
	if (report->usable > 0)
		print_basis(report, out);
	if (report->interrupted)
		put(out, "Interrupted: this is what was seen until then.\n");
	if (report->failed > 0)
		put(out, "%u of %u runs failed; redhand repro tells how.\n", report->failed,
		    report->trials);
	if (report->usable > 0 && report->sites.count == 0)
		put(out, "\nNothing keeps growing: no site has more live blocks after "
			 "test upon test and never comes back.\n");
	else if (report->usable > 0)
		put(out, "\n%zu site%s keep%s growing\n", report->sites.count,
		    report->sites.count == 1 ? "" : "s", report->sites.count == 1 ? "s" : "");
	for (size_t i = 0; i < report->sites.count && i < shown; i++)
		print_site(report, &report->sites.items[i], i + 1, verbose, out);
	if (report->sites.count > 0 && report->tests < FEW_TESTS)
		put(out,
		    "\nWith only %" PRIu64 " %ss a cache that is still being filled looks "
		    "the same: repeat the %ss to tell.\n",
		    report->tests, unit(report), unit(report));
	if (report->sites.count > shown)
		put(out, "\n… %zu more (-v shows all)\n", report->sites.count - shown);
	text_notes(&report->notes, out);
}
