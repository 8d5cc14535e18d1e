/*
 * Findings of the heap observer as text: what, which block, when, who.
 */
#include "report/report_heap.h"

#include <inttypes.h>
#include <string.h>

#include "base/cstr.h"
#include "report/text_parts.h"
#include "report/wording.h"

#define FINDINGS_SHOWN 10
#define FRAMES_SHOWN 6
#define HOLDERS_SHOWN 4
#define HOLDER_FRAMES 3
#define BYTES_SHOWN 16

static void print_site(const char *what, const struct stack *stack, bool verbose, FILE *out)
{
	if (stack->count == 0)
		return;
	put(out, "     %s\n", what);
	text_frames(stack, verbose ? stack->count : FRAMES_SHOWN, "       ", out);
}

static const char *plural(uint64_t count)
{
	return count == 1 ? "" : "s";
}

static void print_what(const struct heap_finding *f, FILE *out)
{
	int64_t behind = f->offset - (int64_t)f->size;

	switch (f->kind) {
	case HEAP_OVERFLOW:
		put(out,
		    "overflow: %" PRIu64 " byte%s written, from byte %" PRId64
		    " behind the end of a block of %" PRIu64 " byte%s",
		    f->length, plural(f->length), behind, f->size, plural(f->size));
		break;
	case HEAP_UNDERFLOW:
		put(out,
		    "underflow: %" PRIu64 " byte%s written, from %" PRId64
		    " before the start of a block of %" PRIu64 " byte%s",
		    f->length, plural(f->length), -f->offset, f->size, plural(f->size));
		break;
	case HEAP_WRITE_AFTER_FREE:
		put(out,
		    "write after free: %" PRIu64 " byte%s at offset %" PRId64
		    " of a freed block of %" PRIu64 " byte%s",
		    f->length, plural(f->length), f->offset, f->size, plural(f->size));
		break;
	case HEAP_DOUBLE_FREE:
		put(out, "double free: a block of %" PRIu64 " byte%s was freed again", f->size,
		    plural(f->size));
		break;
	case HEAP_INTERIOR_FREE:
		put(out, "free of a pointer into a block: offset %" PRId64 " of %" PRIu64 " byte%s",
		    f->offset, f->size, plural(f->size));
		break;
	case HEAP_MISMATCHED_FREE:
		put(out, "mismatched free: allocated with %s, freed with %s", f->allocated_by,
		    f->freed_by);
		break;
	case HEAP_INVALID_FREE:
		put(out, "invalid free: 0x%" PRIx64 " was never allocated", f->address);
		break;
	case HEAP_OVER_READ:
	case HEAP_KINDS:
		break;
	case HEAP_USE_AFTER_FREE:
		put(out, "use after free: %s a freed block of %" PRIu64 " byte%s",
		    f->poison && f->seen_at.count == 0 ? "unknown code has read"
						       : "the program crashed on",
		    f->size, plural(f->size));
		break;
	}
}

/* An access that a fence saw. */
static void print_access(const struct heap_finding *f, FILE *out)
{
	const char *does = f->write ? "writes" : "reads";
	int64_t behind = f->offset - (int64_t)f->size;

	put(out, "%s: ",
	    f->kind == HEAP_OVERFLOW	? "overflow"
	    : f->kind == HEAP_UNDERFLOW ? "underflow"
	    : f->kind == HEAP_OVER_READ ? "over-read"
	    : f->write			? "write after free"
					: "use after free");
	(void)fputs(does, out);
	if (f->length > 0)
		put(out, " %" PRIu64 " byte%s", f->length, plural(f->length));
	if (!f->live)
		put(out, " at offset %" PRId64 " of a freed block of %" PRIu64 " byte%s", f->offset,
		    f->size, plural(f->size));
	else if (f->offset < 0)
		put(out, ", %" PRId64 " before the start of a block of %" PRIu64 " byte%s",
		    -f->offset, f->size, plural(f->size));
	else
		put(out, ", from byte %" PRId64 " behind the end of a block of %" PRIu64 " byte%s",
		    behind, f->size, plural(f->size));
}

static void print_hex(const char *what, const uint8_t *bytes, unsigned int count, FILE *out)
{
	put(out, "       %-9s", what);
	for (unsigned int i = 0; i < count && i < BYTES_SHOWN; i++)
		put(out, " %02x", bytes[i]);
	put(out, "  ");
	for (unsigned int i = 0; i < count && i < BYTES_SHOWN; i++)
		(void)fputc(bytes[i] >= 32 && bytes[i] < 127 ? bytes[i] : '.', out);
	put(out, "\n");
}

static void print_tests(const struct heap_when *when, FILE *out)
{
	put(out, "     while %s ran: ", when->tests.count == 1 ? "this test" : "these tests");
	for (size_t i = 0; i < when->tests.count; i++)
		put(out, "%s%s", i > 0 ? ", " : "", when->tests.items[i]);
	put(out, "%s\n", when->more_tests ? ", …" : "");
}

/* Between which two lines. */
static void print_when(const struct heap_finding *f, FILE *out)
{
	const struct heap_when *when = &f->when;
	bool damage = f->kind <= HEAP_WRITE_AFTER_FREE && !f->fenced;

	if (damage)
		put(out, "     seen at %s%s\n",
		    strcmp(when->check, "line") == 0	   ? "a line of output"
		    : strcmp(when->check, "eviction") == 0 ? "its end in quarantine"
		    : strcmp(when->check, "timer") == 0	   ? "a look in between"
		    : strcmp(when->check, "free") == 0	   ? "its free"
		    : strcmp(when->check, "realloc") == 0  ? "its realloc"
		    : strcmp(when->check, "crash") == 0	   ? "the crash"
							   : "the exit",
		    when->by_time ? " (its process wrote no lines itself; placed by time)" : "");
	if (when->after)
		put(out, "     after   %s%s\n", when->after,
		    !damage		? ""
		    : when->since_birth ? "   (the block was made after this)"
					: "   (it was whole here)");
	if (when->before)
		put(out, "     %s  %s\n", cstr_same(when->check, "output") ? "in line" : "before ",
		    when->before);
	if (when->tests.count > 0)
		print_tests(when, out);
}

static void print_reach(const struct heap_finding *f, FILE *out)
{
	if (f->continued)
		(void)fputs(
			f->sampled ? "     it may have begun at another block, one without guards, "
				     "and gone on here\n"
				   : "     it began at another block and went on here: not this "
				     "block's doing\n",
			out);
	if (!f->continued && f->far)
		(void)fputs(
			"     the guard is hit from its far end on: it may have come from another "
			"block, before this one\n",
			out);
}

static void print_sites(const struct heap_finding *f, bool verbose, FILE *out)
{
	if (f->fenced && f->instruction)
		put(out, "     by %s\n", f->instruction);
	if (f->fenced)
		print_site(f->write ? "written by" : "read by", &f->seen_at, verbose, out);
	print_site("allocated by", &f->allocated, verbose, out);
	print_site(f->kind == HEAP_DOUBLE_FREE ? "freed first by" : "freed by", &f->freed, verbose,
		   out);
	if (f->fenced)
		return;
	if (f->kind == HEAP_DOUBLE_FREE)
		print_site("and again by", &f->seen_at, verbose, out);
	else if (f->kind == HEAP_USE_AFTER_FREE)
		print_site("used by", &f->seen_at, verbose, out);
	else if (f->kind > HEAP_DOUBLE_FREE)
		print_site("freed here", &f->seen_at, verbose, out);
	else
		print_site("noticed at its free by", &f->seen_at, verbose, out);
}

static void print_finding(const struct heap_report *report, const struct heap_finding *f,
			  size_t number, bool verbose, FILE *out)
{
	put(out, "\n%3zu. ", number);
	if (f->fenced)
		print_access(f, out);
	else
		print_what(f, out);
	put(out,
	    "\n     in %" PRIu64 " of %" PRIu64 " trials%s, %" PRIu64
	    " time%s; shown: trial %" PRIu64 ", process %d\n",
	    f->trials, f->fenced ? report->fence_trials : report->heap.trials,
	    f->fenced ? " with fences" : "", f->count, plural(f->count), f->trial, f->pid);
	if (f->evidence != 0 && f->kind <= HEAP_WRITE_AFTER_FREE && !f->fenced && f->key)
		put(out,
		    "     evidence %" PRIu64 "; who did it: redhand chase "
		    "--from-evidence %" PRIu64 "\n",
		    f->evidence, f->evidence);
	else if (f->evidence != 0)
		put(out, "     evidence %" PRIu64 "\n", f->evidence);
	if (f->key)
		put(out, "     block #%" PRIu64 ", key %s, %s\n", f->id, f->key,
		    f->live ? "live" : "freed");
	print_reach(f, out);
	if (f->bytes > 0) {
		print_hex("expected", f->expected, f->bytes, out);
		print_hex("found", f->found, f->bytes, out);
	}
	print_when(f, out);
	print_sites(f, verbose, out);
}

static void print_holder(const struct heap_holder *holder, FILE *out)
{
	const char *slash = holder->module ? strrchr(holder->module, '/') : NULL;

	put(out, "       %s", holder->used ? "USED LATER: " : "");
	if (strcmp(holder->kind, "block") == 0) {
		put(out,
		    "a block of %" PRIu64 " bytes, at offset %" PRIu64 " (%" PRIu64
		    " time%s), allocated by\n",
		    holder->size, holder->offset, holder->count, plural(holder->count));
		text_frames(&holder->stack, HOLDER_FRAMES, "         ", out);
		return;
	}
	if (strcmp(holder->kind, "global") == 0)
		put(out, "the global %s of %s", holder->name ? holder->name : "data",
		    slash ? slash + 1 : "the program");
	else if (strcmp(holder->kind, "register") == 0)
		put(out, "register %s of the code that freed it (may be a leftover)",
		    holder->name ? holder->name : "?");
	else if (strcmp(holder->kind, "stack") == 0 && holder->lane == 0)
		put(out, "the main thread's stack (may be a leftover of an earlier call)");
	else if (strcmp(holder->kind, "stack") == 0)
		put(out, "the stack of thread %d (may be a leftover of an earlier call)",
		    holder->lane);
	else
		put(out, "memory that was not allocated as a block");
	put(out, " (%" PRIu64 " time%s)\n", holder->count, plural(holder->count));
}

static void print_dangling(const struct heap_dangling *d, bool verbose, FILE *out)
{
	size_t shown = verbose ? d->holders.count : HOLDERS_SHOWN;

	put(out,
	    "\n   %s%" PRIu64 " freed block%s of %" PRIu64 " bytes, still pointed to; "
	    "trial %" PRIu64 ", key %s\n",
	    d->used ? "used after its free: " : "", d->blocks, plural(d->blocks), d->size, d->trial,
	    d->key ? d->key : "?");
	for (size_t i = 0; i < d->holders.count && i < shown; i++)
		print_holder(&d->holders.items[i], out);
	if (d->holders.count > shown)
		put(out, "       … %zu more\n", d->holders.count - shown);
	print_site("allocated by", &d->allocated, verbose, out);
	print_site("freed by", &d->freed, verbose, out);
}

static void print_rate(const char *what, const struct rate *rate, FILE *out)
{
	put(out, "     %s: %" PRIu64 " of %" PRIu64 " failed\n", what, rate->failed, rate->trials);
}

static void print_suspects(const struct heap_report *report, bool verbose, FILE *out)
{
	if (report->poison_chance >= 1)
		return;
	put(out,
	    "\nFreed blocks were overwritten at random, context by context: %" PRIu64
	    " contexts tested%s\n",
	    report->contexts,
	    report->suspects.count > 0
		    ? ""
		    : "; with none of them does the failure go, as far as can be told");
	if (report->suspects.count == 0 && report->heap.failed > 0 &&
	    report->heap.failed < report->needed)
		put(out,
		    "%" PRIu64 " of %" PRIu64 " trials failed; to single out one "
		    "of so many contexts takes at least %" PRIu64
		    " that fail: more trials with -n\n",
		    report->heap.failed, report->heap.trials, report->needed);
	VEC_FOREACH (&report->suspects, suspect) {
		put(out, "\n   context %s: its freed blocks are read (p = %.2g)\n",
		    suspect->context, suspect->p);
		print_rate("overwritten", &suspect->poisoned, out);
		print_rate("left alone", &suspect->clear, out);
		print_site("allocated by", &suspect->stack, verbose, out);
	}
}

/* How much the trials with fences could see. */
static void print_fence(const struct heap_report *report, FILE *out)
{
	const struct heap_fence *fence = &report->fence;
	uint64_t blocks = fence->fenced + fence->passed;

	if (report->fence_trials == 0)
		return;
	put(out, "%" PRIu64 " trial%s with fences%s: ", report->fence_trials,
	    plural(report->fence_trials),
	    report->fence_rate.trials > 0 ? ", because guards had found nothing" : "");
	if (blocks == 0)
		put(out, "no block had one\n");
	else
		put(out, "%" PRIu64 " of %" PRIu64 " blocks (%.1f %%) ended at a closed page\n",
		    fence->fenced, blocks, 100.0 * (double)fence->fenced / (double)blocks);
	if (fence->level > 0)
		put(out,
		    "Not all fit: contexts that make many blocks took turns; %u trials with "
		    "fences cover all of them.\n",
		    1u << fence->level);
	if (fence->untold > 0)
		put(out,
		    "The system calls of %u process%s could not be followed: closed pages "
		    "were errors to them.\n",
		    fence->untold, fence->untold == 1 ? "" : "es");
}

static void print_head(const struct heap_report *report, FILE *out)
{
	AUTO(mem_freep) char *sentence = words_of(&report->sentence);
	text_program(report->program, out);
	bool sampled = report->unguarded > 0;

	put(out, "\n");
	/* Where all trials had fences there is nothing to say about guards. */
	if (report->fence_trials == 0 || report->fence_rate.trials > 0)
		put(out,
		    "%" PRIu64 " trial%s with guards around %s and %u MiB of "
		    "quarantine; %" PRIu64 " blocks looked at in the end\n",
		    report->heap.trials, report->heap.trials == 1 ? "" : "s",
		    sampled ? "blocks" : "every block", report->quarantine_mib, report->blocks);
	if (sampled)
		put(out,
		    "In %" PRIu64 " of them %.1f %% of the blocks had guards and went "
		    "through quarantine, %" PRIu64 " of %" PRIu64 ": all of rare "
		    "contexts, a sample of those that make many (--sample full: all)\n",
		    report->sampled_trials,
		    100.0 * (double)report->guarded / (double)(report->guarded + report->unguarded),
		    report->guarded, report->guarded + report->unguarded);
	print_fence(report, out);
	if (report->interrupted)
		put(out, "Interrupted: this is what was seen until then.\n");
	if (sentence)
		put(out, "%c%s.\n", sentence[0] - 'a' + 'A', sentence + 1);
}

void report_heap_text(const struct heap_report *report, bool verbose, FILE *out)
{
	size_t shown = verbose ? report->findings.count : FINDINGS_SHOWN;

	print_head(report, out);
	if (report->findings.count == 0 && report->blocks + report->fence.fenced == 0)
		put(out, "\nNo block was looked at, so this says nothing: the program has "
			 "an allocator of its own, was killed, or ran unobserved.\n");
	else if (report->findings.count == 0)
		put(out, "\nNo damaged block, no bad free and no %s was seen.%s\n",
		    report->fence_trials > 0 ? "access behind a block or to a freed one"
					     : "write to a freed block",
		    report->heap.failed > 0
			    ? " A wrong write inside a block breaks no guard: redhand "
			      "chase looks for the code that wrote what a crash read."
			    : "");
	for (size_t i = 0; i < report->findings.count && i < shown; i++)
		print_finding(report, &report->findings.items[i], i + 1, verbose, out);
	if (report->findings.count > shown)
		put(out, "\n… %zu more (-v shows all)\n", report->findings.count - shown);
	if (report->swept > 0)
		put(out,
		    "\nWho still points to freed blocks: %" PRIu64
		    " looked for, %.1f MiB of memory read\n",
		    report->swept, (double)report->sweep_bytes / (1 << 20));
	for (size_t i = 0; i < report->dangling.count && (verbose || i < FINDINGS_SHOWN); i++)
		print_dangling(&report->dangling.items[i], verbose, out);
	print_suspects(report, verbose, out);
	text_notes(&report->notes, out);
	put(out, "\nSeed %" PRIu64 "; case: %s\n", report->seed, report->case_dir);
}
