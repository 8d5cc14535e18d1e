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
	json_t *object = json_object();

	PUT(object, frame, function, file);
	set(object, "line", frame->line > 0 ? json_integer(frame->line) : json_null());
	PUT(object, frame, module);
	set(object, "offset",
	    frame->module || frame_in_piece(frame) ? json_hex(frame->offset) : json_null());
	set(object, "kind", json_text(frame_kind_name(frame->kind)));
	set(object, "guessed", json_boolean(frame->flags & FRAME_GUESSED));
	set(object, "returned", json_boolean(frame->flags & FRAME_RETURNED));
	return object;
}

json_t *json_stack(const struct stack *stack)
{
	json_t *array = json_array();

	for (size_t i = 0; i < stack->count; i++)
		(void)json_array_append_new(array, frame_json(&stack->frames[i]));
	return array;
}

json_t *json_site(const struct stack *stack)
{
	const struct frame *site = stack_site(stack);
	json_t *object;

	if (stack->count == 0)
		return json_null();
	object = frame_json(site ? site : &stack->frames[0]);
	set(object, "stack", json_stack(stack));
	return object;
}

json_t *json_block(const struct block_life *block)
{
	json_t *object = json_object();

	PUT(object, block, via, id, key);
	set(object, "address", json_hex(block->start));
	PUT(object, block, size);
	set(object, "offset", json_integer((json_int_t)(block->value - block->start)));
	set(object, "state",
	    json_text(block->state == BLOCK_FREED || block->former ? "freed" : "live"));
	set(object, "used", json_boolean(block->telling));
	set(object, "recycled", json_boolean(block->former));
	PUT(object, block, poison, beyond, python);
	set(object, "freed_events_ago",
	    block->freed_events > 0 ? json_integer((json_int_t)block->freed_events) : json_null());
	PUT(object, block, allocated, freed);
	return object;
}

static json_t *cut_json(const struct file_cut *cut)
{
	json_t *object = json_object();

	PUT(object, cut, trial, pid, program, how, old_size, new_size, before_s);
	set(object, "site", json_site(&cut->stack));
	return object;
}

json_t *json_fault(const struct crash *crash)
{
	json_t *object = json_object(), *file;

	set(object, "class", json_text(fault_class_name(crash->fault)));
	PUT(object, crash, words);
	set(object, "address",
	    crash->address != 0 || crash->fault == FAULT_NULL || crash->fault == FAULT_EXECUTE
		    ? json_hex(crash->address)
		    : json_null());
	PUT(object, crash, abort_message);
	set(object, "block",
	    crash->blocks.count > 0 ? json_block(&crash->blocks.items[0]) : json_null());
	if (crash->file) {
		file = json_object();
		set(file, "path", json_text(crash->file));
		PUT(file, crash, mapped, present);
		set(file, "shortened_by", crash->cut ? cut_json(crash->cut) : json_null());
		set(object, "file", file);
	} else {
		set(object, "file", json_null());
	}
	return object;
}

static json_t *crash_json(const struct crash *crash)
{
	json_t *object = json_object(), *registers = json_object();

	set(object, "signal", json_text(signal_name(crash->signal)));
	PUT(object, crash, pid, tid, program, command, thread, instruction);
	set(object, "pointer_loaded_by", json_text(crash->origin));
	set(object, "fault", json_fault(crash));
	set(object, "stack", json_stack(&crash->stack));
	set(object, "stack_end", json_text(stack_end_name(crash->stack.end)));
	set(object, "blocks", JSON_LIST(&crash->blocks, json_block));
	for (unsigned int i = 0; i < crash->register_count; i++)
		set(registers, crash->registers[i].name, json_hex(crash->registers[i].value));
	set(object, "registers", registers);
	set(object, "whole", json_boolean(!crash->cut_short));
	set(object, "record_us", json_integer((json_int_t)crash->write_us));
	return object;
}

static json_t *chaos_json(const struct chaos *chaos)
{
	json_t *object, *knobs = json_array();

	if (!chaos) {
		json_decref(knobs);
		return json_null();
	}
	object = json_object();
	for (unsigned int i = 0; i < CHAOS_KNOBS; i++)
		if (chaos->knobs & 1u << i)
			(void)json_array_append_new(knobs, json_text(chaos_knob_names[i]));
	PUT(object, chaos, seed);
	set(object, "knobs", knobs);
	PUT(object, chaos, pad_bytes, gap_bytes, heap_bytes);
	set(object, "core", chaos->core >= 0 ? json_integer(chaos->core) : json_null());
	PUT(object, chaos, hold_weight, arm_us);
	return object;
}

void report_trial_json(const struct trial_report *trial, FILE *out)
{
	json_t *object = json_object();

	set(object, "schema", json_text("redhand/show/1"));
	set(object, "case", json_text(trial->case_dir));
	PUT(object, trial, trial, slot, seconds, outcome);
	set(object, "last_line", json_text(trial->last_crumb));
	PUT(object, trial, kept);
	set(object, "chaos", chaos_json(trial->chaos));
	set(object, "crashes", JSON_LIST(&trial->report->crashes, crash_json));
	set(object, "notes", json_said_list(&trial->report->notes));
	json_print(object, out);
}
