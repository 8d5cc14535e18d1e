/*
 * What crashes and the blocks in them are made of: their bytes, copies and ends. See archive.h.
 */
#include "model/archive.h"
#include "model/crash.h"

/* clang-format off */
static const struct model_field block_list[] = {
	FIELD(TEXT, block_life, via), FIELD(U64, block_life, value), FIELD(U64, block_life, id),
	FIELD(TEXT, block_life, key), FIELD(U64, block_life, start), FIELD(U64, block_life, size),
	FIELD_UPTO(CHOICE, block_life, state, BLOCK_FREED + 1), FIELD(BOOL, block_life, telling),
	FIELD(BOOL, block_life, former), FIELD(BOOL, block_life, beyond),
	FIELD(BOOL, block_life, python), FIELD(U64, block_life, freed_events),
	FIELD(STACK, block_life, allocated), FIELD(STACK, block_life, freed),
	FIELD_SINCE(2, BOOL, block_life, poison), FIELD_SINCE(9, BOOL, block_life, left), { 0 },
};
const struct model_fields block_fields = FIELDS(block_life, block_list);

static const struct model_field cut_list[] = {
	FIELD(U64, file_cut, trial), FIELD(INT, file_cut, pid), FIELD(TEXT, file_cut, program),
	FIELD(TEXT, file_cut, how), FIELD(U64, file_cut, old_size), FIELD(U64, file_cut, new_size),
	FIELD(REAL, file_cut, before_s), FIELD(STACK, file_cut, stack), { 0 },
};
const struct model_fields cut_fields = FIELDS(file_cut, cut_list);

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

static const struct model_field crash_list[] = {
	FIELD(INT, crash, pid), FIELD(INT, crash, tid), FIELD(TEXT, crash, program),
	FIELD(TEXT, crash, command), FIELD(TEXT, crash, thread), FIELD(INT, crash, signal),
	FIELD(INT, crash, code), FIELD(BOOL, crash, hidden), FIELD(BOOL, crash, from_outside),
	FIELD(U64, crash, address), FIELD(U64, crash, realtime_ns),
	FIELD_UPTO(CHOICE, crash, fault, FAULT_CLASSES), FIELD_SINCE(11, SAID, crash, words),
	FIELD(TEXT, crash, abort_message), FIELD(TEXT, crash, instruction),
	FIELD(TEXT, crash, origin), FIELD(STACK, crash, stack),
	FIELD_OF(LIST, crash, blocks, block_fields), FIELD(TEXT, crash, file),
	FIELD(U64, crash, file_inode), FIELD(U64, crash, file_device), FIELD(U64, crash, mapped),
	FIELD(U64, crash, present), FIELD_OF(PART, crash, cut, cut_fields), FIELD_BY(registers),
	FIELD(U64, crash, write_us), FIELD(BOOL, crash, cut_short),
	FIELD_SINCE(2, BOOL, crash, write), { 0 },
};
const struct model_fields crash_fields = FIELDS(crash, crash_list);
/* clang-format on */

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
