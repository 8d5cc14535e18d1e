/*
 * What crashes and the blocks in them are made of: their bytes, copies and ends. See archive.h.
 */
#include "model/archive.h"
#include "model/crash.h"

MODEL_FIELDS(block_fields, block_life, FIELD(block_life, via, value, id, key, start, size),
	     FIELD_CHOICE(block_life, state, BLOCK_FREED + 1),
	     FIELD(block_life, telling, former, beyond, python, freed_events, allocated, freed),
	     FIELD_SINCE(2, block_life, poison), FIELD_SINCE(9, block_life, left));

MODEL_FIELDS(cut_fields, file_cut,
	     FIELD(file_cut, trial, pid, program, how, old_size, new_size, before_s, stack));

static void registers(struct archive *a, void *object)
{
	struct crash *c = object;

	c->register_count =
		archive_choice(a, c->register_count, (unsigned int)ARRAY_SIZE(c->registers) + 1);
	for (unsigned int i = 0; i < c->register_count; i++) {
		archive_chars(a, c->registers[i].name, sizeof(c->registers[i].name));
		archive_u64(a, &c->registers[i].value);
	}
}

MODEL_FIELDS(crash_fields, crash,
	     FIELD(crash, pid, tid, program, command, thread, signal, code, hidden, from_outside,
		   address, realtime_ns),
	     FIELD_CHOICE(crash, fault, FAULT_CLASSES), FIELD_SINCE(11, crash, words),
	     FIELD(crash, abort_message, instruction, origin, stack),
	     FIELD_LIST(block_fields, crash, blocks),
	     FIELD(crash, file, file_inode, file_device, mapped, present),
	     FIELD_PART(cut_fields, crash, cut), FIELD_BY(registers),
	     FIELD(crash, write_us, cut_short), FIELD_SINCE(2, crash, write));

void block_life_deinit(struct block_life *block)
{
	fields_free(&block_fields, block);
}

void block_life_free(struct block_life *block)
{
	fields_drop(&block_fields, block);
}

struct block_life *block_life_dup(const struct block_life *block)
{
	return fields_dup(&block_fields, block);
}

void file_cut_free(struct file_cut *cut)
{
	fields_drop(&cut_fields, cut);
}

struct file_cut *file_cut_dup(const struct file_cut *cut)
{
	return fields_dup(&cut_fields, cut);
}

void crash_copy(struct crash *to, const struct crash *from)
{
	fields_copy(&crash_fields, to, from);
}

void crash_deinit(struct crash *crash)
{
	fields_free(&crash_fields, crash);
}
