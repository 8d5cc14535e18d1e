/*
 * Crashes as JSON; docs/json.md describes every field.
 */
#include "report/report_crash.h"

#include <inttypes.h>

#include "model/signature.h"
#include "report/json.h"

json_t *json_hex(uint64_t value)
{
	char text[24];

	(void)snprintf(text, sizeof(text), "0x%" PRIx64, value);
	return json_string(text);
}

static json_t *frame_json(const struct frame *frame)
{
	bool placed = frame->module || frame_in_piece(frame);

	return OBJECT(MEMBERS(frame, function, file),
		      KEY("line", OR_NULL(frame->line > 0, frame->line)), MEMBERS(frame, module),
		      KEY("offset", OR_NULL(placed, json_hex(frame->offset))),
		      KEY("kind", frame_kind_name(frame->kind)),
		      KEY("guessed", json_boolean(frame->flags & FRAME_GUESSED)),
		      KEY("returned", json_boolean(frame->flags & FRAME_RETURNED)));
}

json_t *json_stack(const struct stack *stack)
{
	json_t *array = json_array();

	for (size_t i = 0; i < stack->count; i++)
		(void)json_array_append_new(array, frame_json(&stack->frames[i]));
	return array;
}

json_t *json_site(struct stack stack)
{
	const struct frame *site = stack_site(&stack);

	if (stack.count == 0)
		return json_null();
	return OBJECT(ALL_OF(frame_json(site ? site : &stack.frames[0])),
		      KEY("stack", json_stack(&stack)));
}

json_t *json_block(const struct block_life *block)
{
	bool freed = block->state == BLOCK_FREED || block->former;

	return OBJECT(MEMBERS(block, via, id, key), KEY("address", json_hex(block->start)),
		      MEMBERS(block, size), KEY("offset", (int64_t)(block->value - block->start)),
		      KEY("state", freed ? "freed" : "live"), KEY("used", block->telling),
		      KEY("recycled", block->former), MEMBERS(block, poison, beyond, python),
		      KEY("freed_events_ago", UNLESS_0(block->freed_events)),
		      MEMBERS(block, allocated, freed));
}

static json_t *cut_json(const struct file_cut *cut)
{
	return OBJECT(MEMBERS(cut, trial, pid, program, how, old_size, new_size, before_s),
		      KEY("site", cut->stack));
}

static json_t *file_json(const struct crash *crash)
{
	return OBJECT(KEY("path", crash->file), MEMBERS(crash, mapped, present),
		      KEY("shortened_by", OR_NULL(crash->cut, cut_json(crash->cut))));
}

json_t *json_fault(const struct crash *crash)
{
	bool at =
		crash->address != 0 || crash->fault == FAULT_NULL || crash->fault == FAULT_EXECUTE;

	return OBJECT(KEY("class", fault_class_name(crash->fault)), MEMBERS(crash, words),
		      KEY("address", OR_NULL(at, json_hex(crash->address))),
		      MEMBERS(crash, abort_message),
		      KEY("block",
			  OR_NULL(crash->blocks.count > 0, json_block(crash->blocks.items))),
		      KEY("file", OR_NULL(crash->file, file_json(crash))));
}

static json_t *crash_json(const struct crash *crash)
{
	json_t *registers = json_object();

	for (unsigned int i = 0; i < crash->register_count; i++)
		(void)json_object_set_new(registers, crash->registers[i].name,
					  json_hex(crash->registers[i].value));
	return OBJECT(KEY("signal", signal_name(crash->signal)),
		      MEMBERS(crash, pid, tid, program, command, thread, instruction),
		      KEY("pointer_loaded_by", crash->origin), KEY("fault", json_fault(crash)),
		      KEY("stack", json_stack(&crash->stack)),
		      KEY("stack_end", stack_end_name(crash->stack.end)),
		      KEY("blocks", JSON_LIST(&crash->blocks, json_block)),
		      KEY("registers", registers), KEY("whole", json_boolean(!crash->cut_short)),
		      KEY("record_us", crash->write_us));
}

static json_t *chaos_json(const struct chaos *chaos)
{
	json_t *knobs = json_array();

	for (unsigned int i = 0; i < CHAOS_KNOBS; i++)
		if (chaos->knobs & 1u << i)
			(void)json_array_append_new(knobs, json_text(chaos_knob_names[i]));
	return OBJECT(MEMBERS(chaos, seed), KEY("knobs", knobs),
		      MEMBERS(chaos, pad_bytes, gap_bytes, heap_bytes),
		      KEY("core", OR_NULL(chaos->core >= 0, chaos->core)),
		      MEMBERS(chaos, hold_weight, arm_us));
}

void report_trial_json(const struct trial_report *trial, FILE *out)
{
	const struct crash_report *report = trial->report;

	json_print(OBJECT(KEY("schema", "redhand/show/1"), KEY("case", trial->case_dir),
			  MEMBERS(trial, trial, slot, seconds, outcome),
			  KEY("last_line", trial->last_crumb), MEMBERS(trial, kept),
			  KEY("chaos", OR_NULL(trial->chaos, chaos_json(trial->chaos))),
			  KEY("crashes", JSON_LIST(&report->crashes, crash_json)),
			  MEMBERS(report, notes)),
		   out);
}
