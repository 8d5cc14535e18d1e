/*
 * Watches as text: who wrote, how often, what; the odd one out first.
 */
#include "report/report_watch.h"

#include <inttypes.h>
#include <string.h>

#include "report/text_parts.h"
#include "report/wording.h"

#define WRITERS_SHOWN 8
#define FRAMES_SHOWN 8
#define LIFE_FRAMES 4

static const char *plural(uint64_t count)
{
	return count == 1 ? "" : "s";
}

static void print_target(const struct watch_report *report, const struct watch_target *target,
			 FILE *out)
{
	AUTO(mem_freep) char *what = words_of(&target->what);

	put(out, "%s: %s\n  ", target->text, what ? what : "");
	put(out, "%" PRIu64 " write%s caught", target->hits, plural(target->hits));
	if (target->matched < target->hits)
		put(out, ", %" PRIu64 " of them count by --when", target->matched);
	if (target->unchanged > 0)
		put(out, "; %" PRIu64 " left the value as it was", target->unchanged);
	put(out, "\n");
	if (target->objects > 1)
		put(out, "  %" PRIu64 " of %" PRIu64 " objects were watched (%.3g %%)%s\n",
		    target->armed, target->objects,
		    100.0 * (double)target->armed / (double)target->objects,
		    target->displaced > 0 ? ", some only until newer ones came" : "");
	if (target->objects > 0 && target->armed == 0)
		put(out, "  NOT WATCHED: %s\n",
		    report->mode && strcmp(report->mode, "pages") == 0
			    ? "it was not allocated where blocks are placed on watched "
			      "pages"
			    : "the CPU's four registers were taken by others, or its "
			      "memory was not there");
	if (target->moved > 0)
		put(out,
		    "  realloc moved %" PRIu64 " of them, or cut off what was watched: from "
		    "then on %s not watched\n",
		    target->moved, target->moved == 1 ? "it was" : "they were");
	if (target->beyond > 0)
		put(out,
		    "  %" PRIu64
		    " of them %s too short: what was watched lies behind the end of a block "
		    "of %" PRIu64 " byte%s\n",
		    target->beyond, target->beyond == 1 ? "was" : "were", target->beyond_size,
		    plural(target->beyond_size));
	if (target->objects == 0)
		put(out, "  no such object was ever there\n");
	if (target->imprecise > 0)
		put(out, "  %" PRIu64 " were told late (the program blocks SIGTRAP)\n",
		    target->imprecise);
}

static void print_value(uint64_t value, unsigned int len, FILE *out)
{
	put(out, "0x%0*" PRIx64, (int)(len ? len : 8) * 2, value);
}

static const char *masked_words(unsigned int flags)
{
	if (flags & WRITE_AT_MOST)
		return " (by a mask that is not known)";
	return flags & WRITE_MASKED ? " (by its mask)" : "";
}

static void print_base(const struct write_seen *write, FILE *out)
{
	const struct block_life *base = write->base;
	bool same = base && write->victim && base->id == write->victim->id;

	if (!base || same)
		return;
	put(out,
	    "     written through %s, which points to another block: #%" PRIu64 ", %" PRIu64
	    " bytes, %s\n",
	    base->via, base->id, base->size, base->state == BLOCK_FREED ? "FREED" : "live");
	if (base->allocated.count > 0) {
		put(out, "       allocated by\n");
		text_stack(&base->allocated, LIFE_FRAMES, "         ", out);
	}
	if (base->freed.count > 0) {
		put(out, "       freed by\n");
		text_stack(&base->freed, LIFE_FRAMES, "         ", out);
	}
}

static void print_moment(const char *what, const struct watch_moment *moment, FILE *out)
{
	const struct write_seen *write = moment->write;

	if (!write)
		return;
	put(out, "     %s: trial %" PRIu64 "%s, thread %d, ", what, moment->trial,
	    moment->failing ? " (failed)" : "", write->tid);
	print_value(write->old, write->value_len, out);
	put(out, " -> ");
	print_value(write->new, write->value_len, out);
	if (write->victim)
		put(out, ", block #%" PRIu64 " %s", write->victim->id,
		    write->victim->key ? write->victim->key : "");
	put(out, "\n");
}

/* Of the write that is shown. */
static void print_registers(const struct write_seen *write, FILE *out)
{
	const char *at = write->registers ? write->registers : "";

	for (unsigned int i = 0; *at != '\0'; i++) {
		size_t len = strcspn(at, " ");

		put(out, "%s%.*s", i % 4 ? " " : "       ", (int)len, at);
		at += len + (at[len] == ' ');
		if (i % 4 == 3 || *at == '\0')
			put(out, "\n");
	}
}

static void print_values(const struct watch_writer *writer, FILE *out)
{
	unsigned int len = writer->first.write ? writer->first.write->value_len : 8;

	put(out, "     stores");
	for (unsigned int i = 0; i < writer->value_count && i < 4; i++) {
		put(out, "%s ", i > 0 ? "," : "");
		print_value(writer->values[i].value, len, out);
		if (writer->values[i].count > 1)
			put(out, " (%" PRIu64 " times)", writer->values[i].count);
	}
	put(out, "%s\n", writer->more_values || writer->value_count > 4 ? " and others" : "");
}

/* "syscall (read)" where it is known which. */
static void print_call(const struct write_seen *write, FILE *out)
{
	const char *name = write && write->instruction ? strchr(write->instruction, '(') : NULL;

	if (name)
		put(out, "the kernel, in the system call %.*s", (int)strcspn(name + 1, ")"),
		    name + 1);
	else
		put(out, "the kernel, in a system call");
}

/* Says something only where there are others to compare with. */
static bool only_in_failing(const struct watch_writer *writer, const struct watch_report *report)
{
	return writer->failing > 0 && writer->failing == writer->trials &&
	       report->failed < report->trials;
}

static void print_how(const struct watch_writer *writer, const struct write_seen *write, FILE *out)
{
	const char *fit = words_fit(write->fit);

	if (write->width > 0)
		put(out, "     %s%u byte%s%s%s%s\n", write->flags & WRITE_AT_MOST ? "up to " : "",
		    write->width, plural(write->width), masked_words(write->flags), fit ? ", " : "",
		    fit ? fit : "");
	if (writer->imprecise)
		put(out, "     some of its traps came late: it may be another one\n");
	else if (!writer->certain && !writer->system_call && write->instruction)
		put(out, "     (the instruction is the likeliest reading of the code)\n");
}

static void print_writer(const struct watch_report *report, const struct watch_writer *writer,
			 size_t number, bool verbose, FILE *out)
{
	const struct write_seen *write = watch_writer_shown(writer);

	put(out, "\n%2zu. ", number);
	if (writer->system_call)
		print_call(write, out);
	else
		put(out, "%s",
		    write && write->instruction ? write->instruction : "(an unknown instruction)");
	put(out, "   %" PRIu64 " time%s, %" PRIu64 " changed it; in %u of %" PRIu64 " trials%s\n",
	    writer->count, plural(writer->count), writer->changed, writer->trials, report->trials,
	    only_in_failing(writer, report) ? ", ONLY IN FAILING ONES" : "");
	if (!write)
		return;
	print_how(writer, write, out);
	text_stack(&write->writer, verbose ? write->writer.count : FRAMES_SHOWN, "     ", out);
	print_values(writer, out);
	print_moment("first", &writer->first, out);
	if (writer->count > 1)
		print_moment("last ", &writer->last, out);
	print_base(write, out);
	if (writer->evidence > 0)
		put(out, "     kept as evidence %" PRIu64 " of the case\n", writer->evidence);
	if (verbose) {
		print_registers(write, out);
		text_source(&write->writer, "     ", out);
	}
}

static void print_conflation(const struct watch_conflation *conflation, FILE *out)
{
	put(out,
	    "\nInstance conflation at 0x%" PRIx64 " (trial %" PRIu64 "): %" PRIu64
	    " different objects lived there, one after the other\n",
	    conflation->address, conflation->trial, conflation->instances);
	for (size_t i = 0; i < conflation->list.count; i++) {
		const struct watch_instance *instance = &conflation->list.items[i];

		put(out,
		    "  object %" PRIu64 " (block #%" PRIu64 "): 0x%" PRIx64 " … 0x%" PRIx64
		    ", %" PRIu64 " write%s, %s\n",
		    instance->number, instance->id, instance->first_value, instance->last_value,
		    instance->hits, plural(instance->hits), words_watched_end(instance->end));
		if ((int)i == conflation->changed_at)
			put(out, "  -- no write happened here: what looks like a change "
				 "is two objects\n");
	}
}

static void print_outside(const struct watch_outside *outside, FILE *out)
{
	const struct outside_change *change = outside->change;
	AUTO(strv_deinit) struct strv known = { 0 };

	put(out, "\nOutside writer (trial %" PRIu64 "): 0x%" PRIx64 " changed from ",
	    outside->trial, change->home.address);
	print_value(change->old, change->value_len, out);
	put(out, " to ");
	print_value(change->new, change->value_len, out);
	put(out, ", and no instruction was caught.\n  %s\n",
	    change->kernel_writes
		    ? "System calls of this process would have been seen: it was another "
		      "process, a device, or a mapping of the same memory elsewhere."
		    : "Writes by system calls are not seen here (redhand doctor says "
		      "how to allow it), nor those of other processes and devices.");
	words_list(&change->between, &known);
	for (size_t i = 0; i < known.count; i++)
		put(out, "  %s %s\n", i == 0 ? "What is known:" : "              ", known.items[i]);
}

void report_watch_stop(const struct watch_stop *stop, FILE *out)
{
	const struct write_seen *write = stop->write;

	put(out, "stopped at %s", write->instruction ? write->instruction : "a write to it");
	put(out, ": ");
	print_value(write->old, write->value_len, out);
	put(out, " -> ");
	print_value(write->new, write->value_len, out);
	put(out, "\n");
	text_stack(&write->writer, FRAMES_SHOWN, "  ", out);
	put(out,
	    "trial %" PRIu64 " waits: gdb -p %d (below 'signal handler called' is the "
	    "writer), or kill -CONT %d to go on; Ctrl-C here ends it\n",
	    stop->trial, stop->pid, stop->pid);
	(void)fflush(out);
}

static void print_head(const struct watch_report *report, FILE *out)
{
	put(out, "Watched %" PRIu64 " trial%s, %" PRIu64 " failed", report->trials,
	    plural(report->trials), report->failed);
	if (report->mode)
		put(out, "; mode %s%s%s%s", report->mode, report->mode_reason ? " (" : "",
		    report->mode_reason ? report->mode_reason : "", report->mode_reason ? ")" : "");
	put(out, "\n");
	if (report->mode && !report->kernel_writes)
		put(out, "Writes by system calls are not seen.\n");
	VEC_FOREACH (&report->targets, target)
		print_target(report, target, out);
}

void report_watch_text(const struct watch_report *report, bool verbose, FILE *out)
{
	size_t shown = verbose ? report->writers.count : WRITERS_SHOWN;

	print_head(report, out);
	for (size_t i = 0; i < report->writers.count && i < shown; i++)
		print_writer(report, &report->writers.items[i], i + 1, verbose, out);
	if (report->writers.count > shown)
		put(out, "\n… and %zu more writers (-v shows all)\n",
		    report->writers.count - shown);
	if (report->writers.count == 0 && report->mode)
		put(out, "\nNo write was caught.\n");
	VEC_FOREACH (&report->conflations, conflation)
		if (verbose || conflation == report->conflations.items)
			print_conflation(conflation, out);
	if (report->conflations.count > 1 && !verbose)
		put(out, "  (the same at %zu more addresses; -v shows them)\n",
		    report->conflations.count - 1);
	VEC_FOREACH (&report->outside, outside)
		print_outside(outside, out);
	text_notes(&report->notes, out);
}
