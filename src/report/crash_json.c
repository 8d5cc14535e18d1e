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

	set(object, "function", json_text(frame->function));
	set(object, "file", json_text(frame->file));
	set(object, "line", frame->line > 0 ? json_integer(frame->line) : json_null());
	set(object, "module", json_text(frame->module));
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

	set(object, "via", json_text(block->via));
	set(object, "id", json_integer((json_int_t)block->id));
	set(object, "key", json_text(block->key));
	set(object, "address", json_hex(block->start));
	set(object, "size", json_integer((json_int_t)block->size));
	set(object, "offset", json_integer((json_int_t)(block->value - block->start)));
	set(object, "state",
	    json_text(block->state == BLOCK_FREED || block->former ? "freed" : "live"));
	set(object, "used", json_boolean(block->telling));
	set(object, "recycled", json_boolean(block->former));
	set(object, "poison", json_boolean(block->poison));
	set(object, "beyond", json_boolean(block->beyond));
	set(object, "python", json_boolean(block->python));
	set(object, "freed_events_ago",
	    block->freed_events > 0 ? json_integer((json_int_t)block->freed_events) : json_null());
	set(object, "allocated", json_site(&block->allocated));
	set(object, "freed", json_site(&block->freed));
	return object;
}

static json_t *cut_json(const struct file_cut *cut)
{
	json_t *object = json_object();

	set(object, "trial", json_integer((json_int_t)cut->trial));
	set(object, "pid", json_integer(cut->pid));
	set(object, "program", json_text(cut->program));
	set(object, "how", json_text(cut->how));
	set(object, "old_size", json_integer(cut->old_size));
	set(object, "new_size", json_integer(cut->new_size));
	set(object, "before_s", json_number(cut->before_s));
	set(object, "site", json_site(&cut->stack));
	return object;
}

json_t *json_fault(const struct crash *crash)
{
	json_t *object = json_object(), *file;

	set(object, "class", json_text(fault_class_name(crash->fault)));
	set(object, "words", json_said(&crash->words));
	set(object, "address",
	    crash->address != 0 || crash->fault == FAULT_NULL || crash->fault == FAULT_EXECUTE
		    ? json_hex(crash->address)
		    : json_null());
	set(object, "abort_message", json_text(crash->abort_message));
	set(object, "block",
	    crash->blocks.count > 0 ? json_block(&crash->blocks.items[0]) : json_null());
	if (crash->file) {
		file = json_object();
		set(file, "path", json_text(crash->file));
		set(file, "mapped", json_integer((json_int_t)crash->mapped));
		set(file, "present", json_integer((json_int_t)crash->present));
		set(file, "shortened_by", crash->cut ? cut_json(crash->cut) : json_null());
		set(object, "file", file);
	} else {
		set(object, "file", json_null());
	}
	return object;
}

static json_t *crash_json(const struct crash *crash)
{
	json_t *object = json_object(), *blocks = json_array(), *registers = json_object();

	set(object, "signal", json_text(signal_name(crash->signal)));
	set(object, "pid", json_integer(crash->pid));
	set(object, "tid", json_integer(crash->tid));
	set(object, "program", json_text(crash->program));
	set(object, "command", json_text(crash->command));
	set(object, "thread", json_text(crash->thread));
	set(object, "instruction", json_text(crash->instruction));
	set(object, "pointer_loaded_by", json_text(crash->origin));
	set(object, "fault", json_fault(crash));
	set(object, "stack", json_stack(&crash->stack));
	set(object, "stack_end", json_text(stack_end_name(crash->stack.end)));
	VEC_FOREACH (&crash->blocks, block)
		(void)json_array_append_new(blocks, json_block(block));
	set(object, "blocks", blocks);
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
	set(object, "seed", json_integer((json_int_t)chaos->seed));
	set(object, "knobs", knobs);
	set(object, "pad_bytes", json_integer((json_int_t)chaos->pad_bytes));
	set(object, "gap_bytes", json_integer((json_int_t)chaos->gap_bytes));
	set(object, "heap_bytes", json_integer((json_int_t)chaos->heap_bytes));
	set(object, "core", chaos->core >= 0 ? json_integer(chaos->core) : json_null());
	set(object, "hold_weight", json_integer((json_int_t)chaos->hold_weight));
	set(object, "arm_us", json_integer((json_int_t)chaos->arm_us));
	return object;
}

void report_trial_json(const struct trial_report *trial, FILE *out)
{
	json_t *object = json_object(), *crashes = json_array();

	set(object, "schema", json_text("redhand/show/1"));
	set(object, "case", json_text(trial->case_dir));
	set(object, "trial", json_integer((json_int_t)trial->trial));
	set(object, "slot", json_integer(trial->slot));
	set(object, "seconds", json_number(trial->seconds));
	set(object, "outcome", json_text(trial->outcome));
	set(object, "last_line", json_text(trial->last_crumb));
	set(object, "kept", json_boolean(trial->kept));
	set(object, "chaos", chaos_json(trial->chaos));
	VEC_FOREACH (&trial->report->crashes, crash)
		(void)json_array_append_new(crashes, crash_json(crash));
	set(object, "crashes", crashes);
	set(object, "notes", json_said_list(&trial->report->notes));
	json_print(object, out);
}
