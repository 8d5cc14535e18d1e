/*
 * Crashes as text: what died, where, what it touched and the life of that.
 */
#include "base/cstr.h"
#include "report/report_crash.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/auto.h"
#include "base/source_file.h"
#include "base/strbuf.h"
#include "model/signature.h"
#include "report/text_parts.h"
#include "report/wording.h"

#define BRIEF_FRAMES 6
#define FRAMES 64
#define LIFE_FRAMES 6
#define SOURCE_AROUND 2
#define CUT_FRAMES 16
#define ROUND_MAX 8	/* functions that call each other in a circle */
#define ROUNDS_FOLDED 3 /* further ones */
#define INNER_SHOWN 2	/* inner frames that are not worth leaving out */

static void print_inside(const struct frame *frame, FILE *out)
{
	if (frame_in_piece(frame))
		put(out, "+0x%" PRIx64, frame->offset);
}

void text_frame(const struct frame *frame, FILE *out)
{
	if (frame->function)
		put(out, "%s", frame->function);
	else if (frame->module)
		put(out, "%s+0x%" PRIx64, cstr_base(frame->module), frame->offset);
	else
		put(out, "0x%" PRIx64, frame->address);
	print_inside(frame, out);
	if (frame->file && frame->line > 0)
		put(out, "  %s:%u", frame->file, frame->line);
	else if (frame->function && frame->module)
		put(out, "  in %s", cstr_base(frame->module));
	if (frame->kind == FRAME_INLINE)
		put(out, "  (inlined)");
	else if (frame->kind == FRAME_PYTHON)
		put(out, "  (Python)");
	else if (frame->kind == FRAME_JIT)
		put(out, "  (emitted code)");
	if (frame->flags & FRAME_GUESSED)
		put(out, "  (a guess)");
	if (frame->flags & FRAME_RETURNED)
		/* Only a hook saw it return; else a former call that ended at the same place may
		 * have left the same. */
		put(out, frame->flags & FRAME_EXACT
				 ? "  (its return led there)"
				 : "  (its return led there, by what is left on the stack)");
	if (frame->flags & FRAME_FILE_REPLACED)
		put(out, "  (the file has changed since)");
}

static bool same_frame(const struct frame *a, const struct frame *b)
{
	return cstr_same(a->function, b->function) && cstr_same(a->file, b->file) &&
	       a->line == b->line && a->kind == b->kind && a->flags == b->flags &&
	       (a->function || a->address == b->address);
}

/* How often the `length` frames from `at` on come again right after themselves. */
static size_t repeats(const struct stack *stack, size_t at, size_t length)
{
	size_t next = at + length;

	while (next < stack->count &&
	       same_frame(&stack->frames[next - length], &stack->frames[next]))
		next++;
	return (next - at) / length - 1;
}

/* The shortest round that recursion makes from here, if it makes several. */
static size_t round_length(const struct stack *stack, size_t at, size_t *ret_times)
{
	for (size_t length = 1; length <= ROUND_MAX && at + length < stack->count; length++) {
		*ret_times = repeats(stack, at, length);
		if (*ret_times >= ROUNDS_FOLDED)
			return length;
	}
	return 0;
}

/* From frame `first` on; returns the first that is not printed. */
static size_t print_frames(const struct stack *stack, size_t first, size_t limit,
			   const char *indent, FILE *out)
{
	size_t i = first;

	for (size_t lines = 0; i < stack->count && lines < limit;) {
		size_t times = 0, length = round_length(stack, i, &times);
		size_t end = i + (length > 0 ? length : 1);

		for (size_t k = i; k < end; k++, lines++) {
			put(out, "%s%-2zu ", indent, k);
			text_frame(&stack->frames[k], out);
			put(out, "\n");
		}
		if (length == 1)
			put(out, "%s… the same %zu times more\n", indent, times);
		else if (length > 1)
			put(out, "%s… these %zu frames %zu times more\n", indent, length, times);
		i = end + times * length;
	}
	return i;
}

void text_frames(const struct stack *stack, size_t limit, const char *indent, FILE *out)
{
	size_t shown = print_frames(stack, 0, limit, indent, out);

	if (stack->count > shown)
		put(out, "%s… %zu more\n", indent, stack->count - shown);
}

/* What comes behind the frames that were printed. */
static void print_end(const struct stack *stack, size_t shown, const char *indent, FILE *out)
{
	static const char *const ends[] = {
		[STACK_COMPLETE] = NULL,
		[STACK_TRUNCATED] = "the rest of the stack could not be read",
		[STACK_LOST] = "the rest of the stack could not be read",
		[STACK_TOO_DEEP] = "the stack goes on: no more of it was read",
		[STACK_LOOP] = "from here the frames turn in a circle: the stack is damaged",
	};

	if (stack->count > shown)
		put(out, "%s… %zu more\n", indent, stack->count - shown);
	else if (ends[stack->end])
		put(out, "%s(%s)\n", indent, ends[stack->end]);
}

/* Only the first frames, and not those of the C library that lead from the program's own to
 * raise(): whoever frees a block twice wants to see who that was. */
static void print_brief(const struct stack *stack, const struct frame *site, const char *indent,
			FILE *out)
{
	size_t at = site ? (size_t)(site - stack->frames) : 0;
	size_t first = at > INNER_SHOWN ? at - 1 : 0, shown;

	if (first > 0)
		put(out, "%s… %zu inner frames\n", indent, first);
	shown = print_frames(stack, first, BRIEF_FRAMES, indent, out);
	print_end(stack, shown, indent, out);
}

void text_stack(const struct stack *stack, size_t limit, const char *indent, FILE *out)
{
	print_end(stack, print_frames(stack, 0, limit, indent, out), indent, out);
}

static FILE *open_source(const struct frame *frame)
{
	return frame && frame->file && frame->line > 0 ? source_open(frame->file, frame->module)
						       : NULL;
}

/* Of the frame that says most; else the first with a source line that can be read here. */
void text_source(const struct stack *stack, const char *indent, FILE *out)
{
	const struct frame *frame = stack_site(stack);
	AUTO(strbuf_deinit) struct strbuf sb = { 0 };
	FILE *source = open_source(frame);
	char *line = NULL;
	size_t room = 0;

	for (size_t i = 0; i < stack->count && !source; i++) {
		frame = &stack->frames[i];
		source = open_source(frame);
	}
	if (!source)
		return;
	put(out, "\n%s%s:%u\n", indent, frame->file, frame->line);
	for (uint32_t n = 1; n <= frame->line + SOURCE_AROUND && getline(&line, &room, source) >= 0;
	     n++) {
		if (n + SOURCE_AROUND < frame->line)
			continue;
		strbuf_clear(&sb);
		strbuf_add_printable(&sb, line, strcspn(line, "\r\n"));
		put(out, "%s%s%5u  %.160s\n", indent, n == frame->line ? ">" : " ", n,
		    strbuf_str(&sb));
	}
	free(line);
	(void)fclose(source);
}

static void print_site(const char *what, const struct stack *stack, const char *indent,
		       size_t frames, FILE *out)
{
	if (stack->count == 0)
		return;
	put(out, "%s%s\n", indent, what);
	text_stack(stack, frames, "        ", out);
}

/* Does somebody have the place of a block that was freed? Whoever came after it may be gone, too.
 */
static bool has_heir(const struct crash *crash, const struct block_life *former)
{
	return VEC_ANY(&crash->blocks, block,
		       !block->former && !block->beyond && block->state == BLOCK_LIVE &&
			       former->value - block->start < (block->size > 0 ? block->size : 1));
}

static void print_block(const struct crash *crash, const struct block_life *block, FILE *out)
{
	int64_t offset = (int64_t)(block->value - block->start);
	char name[BLOCK_NAME_BYTES];

	put(out, "  %s %s block %s, %" PRIu64 " bytes, ", block->via,
	    block->poison ? "was read from" : "->", block_name(block->id, name), block->size);
	if (block->poison)
		put(out, "overwritten when it was freed");
	else if (block->beyond)
		put(out, "%" PRId64 " bytes behind its end", offset - (int64_t)block->size);
	else
		put(out, "offset %" PRId64, offset);
	if (block->former)
		put(out, has_heir(crash, block)
				 ? ": FREED, and another block has its place now"
				 : ": FREED, and another block had its place after it");
	else
		put(out, ": %s", block->state == BLOCK_FREED ? "FREED" : "live");
	if (block->state == BLOCK_FREED && block->freed_events > 0)
		put(out, " (at most %" PRIu64 " allocations and frees ago)", block->freed_events);
	put(out, "\n      key %s%s\n", block->key ? block->key : "unknown",
	    block->python ? ", an object of Python's" : "");
	print_site("allocated by", &block->allocated, "      ", LIFE_FRAMES, out);
	print_site("freed by", &block->freed, "      ", LIFE_FRAMES, out);
}

static void print_cut(const struct crash *crash, FILE *out)
{
	const struct file_cut *cut = crash->cut;

	if (crash->fault != FAULT_MAPPING_SHRANK)
		return;
	if (!cut) {
		put(out,
		    "\nNobody was seen making %s shorter; --observe ids watches for "
		    "that in every process of every slot.\n",
		    crash->file);
		return;
	}
	put(out,
	    "\n%s was made shorter %.3f s before, from %" PRId64 " to %" PRId64
	    " bytes, by %s in process %d (%s, trial %" PRIu64 "):\n",
	    crash->file, cut->before_s, cut->old_size, cut->new_size, cut->how, cut->pid,
	    cstr_base(cut->program), cut->trial);
	text_stack(&cut->stack, CUT_FRAMES, "  ", out);
}

void report_crash_brief(const struct crash *crash, const char *indent, FILE *out)
{
	AUTO(mem_freep) char *words = words_of(&crash->words);

	put(out, "%s%s\n", indent, words ? words : signal_name(crash->signal));
	print_brief(&crash->stack, crash_site(crash), indent, out);
	VEC_FOREACH (&crash->blocks, block) {
		if (!block->telling || (!block->former && block->state != BLOCK_FREED))
			continue;
		put(out, "%s%s leads to a freed block of %" PRIu64 " bytes", indent, block->via,
		    block->size);
		if (block->freed.count > 0) {
			put(out, ", freed by ");
			text_frame(&block->freed.frames[0], out);
		}
		put(out, "\n");
		break;
	}
	if (crash->cut && crash->cut->stack.count > 0) {
		put(out, "%smade shorter by process %d: ", indent, crash->cut->pid);
		text_frame(&crash->cut->stack.frames[0], out);
		put(out, "\n");
	}
}

static void print_registers(const struct crash *crash, FILE *out)
{
	put(out, "\nRegisters:\n");
	for (unsigned int i = 0; i < crash->register_count; i++)
		put(out, "  %-3s 0x%016" PRIx64 "%s", crash->registers[i].name,
		    crash->registers[i].value, i % 3 == 2 ? "\n" : "");
	put(out, "\n");
}

#define BLOCKS_SHOWN 6

static void print_blocks(const struct crash *crash, bool verbose, FILE *out)
{
	size_t shown =
		verbose || crash->blocks.count < BLOCKS_SHOWN ? crash->blocks.count : BLOCKS_SHOWN;

	if (shown > 0)
		put(out, "\nWhat its pointers lead to:\n");
	for (size_t i = 0; i < shown; i++)
		print_block(crash, &crash->blocks.items[i], out);
	if (crash->blocks.count > shown)
		put(out, "  … %zu more (-v)\n", crash->blocks.count - shown);
}

static void print_crash(const struct crash *crash, bool verbose, FILE *out)
{
	AUTO(mem_freep) char *words = words_of(&crash->words);

	put(out, "\n%s in process %d (%s)%s%s: %s\n", signal_name(crash->signal), crash->pid,
	    crash->program ? cstr_base(crash->program) : "?",
	    crash->thread && crash->thread[0] != '\0' ? ", thread " : "",
	    crash->thread ? crash->thread : "", words ? words : "");
	if (crash->command)
		put(out, "  command: %s\n", crash->command);
	if (crash->cut_short)
		put(out, "  (the record of this crash is not whole)\n");
	if (crash->instruction)
		put(out, "  instruction: %s\n", crash->instruction);
	if (crash->origin)
		put(out, "  its pointer was loaded by: %s\n", crash->origin);
	put(out, "\nStack:\n");
	text_stack(&crash->stack, FRAMES, "  ", out);
	text_source(&crash->stack, "  ", out);
	print_cut(crash, out);
	print_blocks(crash, verbose, out);
	if (verbose)
		print_registers(crash, out);
}

static void describe_knob(const struct chaos *chaos, enum chaos_knob knob, struct strbuf *sb)
{
	switch (knob) {
	case CHAOS_PAD:
		strbuf_addf(sb, "%" PRIu64 " bytes more environment", chaos->pad_bytes);
		break;
	case CHAOS_GAP:
		strbuf_addf(sb, "mappings %" PRIu64 " KiB and the heap %" PRIu64 " bytes off",
			    chaos->gap_bytes >> 10, chaos->heap_bytes);
		break;
	case CHAOS_PIN:
		if (chaos->core < 0)
			strbuf_adds(sb, "on all cores");
		else
			strbuf_addf(sb, "on core %d only", chaos->core);
		break;
	case CHAOS_STARVE:
		strbuf_addf(sb, "threads held back at allocations (weight %.2f)",
			    (double)chaos->hold_weight / 16);
		break;
	case CHAOS_ARM:
		strbuf_addf(sb, "up to %" PRIu64 " us after arming a watch", chaos->arm_us);
		break;
	case CHAOS_ALL:
		break;
	}
}

/* Says nothing of the seed. */
static void describe_chaos(const struct chaos *chaos, struct strbuf *sb)
{
	const char *before = "";

	for (unsigned int i = 0; i < CHAOS_KNOBS; i++) {
		if (!(chaos->knobs & 1u << i))
			continue;
		strbuf_adds(sb, before);
		describe_knob(chaos, 1u << i, sb);
		before = "; ";
	}
}

static void print_chaos(const struct chaos *chaos, FILE *out)
{
	AUTO(strbuf_deinit) struct strbuf what = { 0 }, knobs = { 0 };

	describe_chaos(chaos, &what);
	chaos_list(chaos->knobs, &knobs);
	put(out, "  disturbed: %s\n", strbuf_str(&what));
	put(out, "  the same again with: --chaos-seed %" PRIu64, chaos->seed);
	if (chaos->knobs != CHAOS_ALL)
		put(out, " --chaos %s", strbuf_str(&knobs));
	put(out, "\n");
}

void report_trial_text(const struct trial_report *trial, bool verbose, FILE *out)
{
	put(out, "Trial %" PRIu64 " on slot %u, %.3f s: %s\n", trial->trial, trial->slot,
	    trial->seconds, trial->outcome);
	if (trial->last_crumb)
		put(out, "  last line: %s\n", trial->last_crumb);
	if (trial->kept)
		put(out, "  its output: %s/trials/%" PRIu64 "\n", trial->case_dir, trial->trial);
	else
		put(out, "  its directory was not kept (see --keep)\n");
	if (trial->chaos)
		print_chaos(trial->chaos, out);
	VEC_FOREACH (&trial->report->crashes, crash)
		print_crash(crash, verbose, out);
	if (trial->report->crashes.count == 0)
		put(out, "\nNo crash was recorded in it.\n");
	VEC_FOREACH (&trial->report->notes.list, note) {
		AUTO(mem_freep) char *text = words_of(note);

		put(out, "%sNote: %s.\n", note == trial->report->notes.list.items ? "\n" : "",
		    text);
	}
}
