#include "read/crash_reading.h"

#include "base/cstr.h"
#include "read/pointers.h"

#define BAD_FREES_MAX 4
#define NAMED_MAX                                                                                  \
	2u /* objects given back twice; where there are more, not all that hand them out are known \
	    */

void crash_reading_read(struct event_logs *logs, const struct crash_places *places, uint64_t trial,
			enum backtrack_through through, struct symbols *symbols,
			struct crash_reading *ret)
{
	struct err why = { 0 };

	ret->trial = trial;
	ret->logs = logs;
	ret->through = through;
	if (places->list.count == 0)
		return;
	ret->has_record = true;
	crash_record_open(&places->list.items[0], &ret->record);
	ret->record.whole_blocks = through == THROUGH_WHOLE_BLOCKS;
	ret->has_backtrack = backtrack_read(&ret->record, symbols, &ret->backtrack, &why) == 0;
	if (!ret->has_backtrack)
		ret->no_backtrack = mem_strdup(why.message);
}

void crash_reading_deinit(struct crash_reading *crashed)
{
	backtrack_deinit(&crashed->backtrack);
	if (crashed->has_record)
		crash_record_deinit(&crashed->record);
	mem_free(crashed->no_backtrack);
	*crashed = (struct crash_reading){ 0 };
}

/* Nobody has the place now: that needs no further proof. Where another block has it, the pointer
 * may be that one's. */
static bool freed_now(const struct log_block *to)
{
	return to->id != 0 && to->state == LOG_BLOCK_FREED && to->relation == LOG_INSIDE;
}

int crash_reading_freed_step(const struct crash_reading *crashed)
{
	if (!crashed->has_backtrack)
		return -1;
	/* The value of the first step is the pointer that the fault went through. Nobody meant a
	 * block of data to be code: what lies where it jumped to says nothing. */
	for (size_t i = crashed->backtrack.executes; i < crashed->backtrack.steps.count; i++)
		if (freed_now(&crashed->backtrack.steps.items[i].to))
			return (int)i;
	return -1;
}

static struct block_life *life_of(struct event_log *log, const struct log_block *block,
				  const char *via, struct symbols *symbols)
{
	struct block_life *life = mem_alloc(sizeof(*life));

	block_life_read(log, block, via, symbols, life);
	return life;
}

/* Nobody saw which of them the pointer was to. The place of an object always had others. */
static bool is_shared(struct event_log *log, const struct log_block *block)
{
	struct log_block former;

	return block->api == LOG_API_PYTHON_OBJECT || block->value - block->start >= BLOCK_MIDST ||
	       (block_former(log, block, &former) && former.context != block->context);
}

/* Who read in the block: the one that faulted, or whoever handed him what had been read there. */
static void tell_user(const struct crash_reading *crashed, const struct crash *crash,
		      uint64_t block, struct freed_use *ret)
{
	const struct stack *stack = &crash->stack;
	const struct backtrack_step *read =
		VEC_FIND(&crashed->backtrack.steps, step, step->in.id == block && !step->by_value);
	size_t from = 0;

	while (read && from < stack->count && stack->frames[from].address != read->pc)
		from++;
	if (from == stack->count)
		from = 0;
	if (from == 0 || stack->frames[from].address == stack->frames[0].address)
		ret->instruction = cstr_dup(crash->instruction);
	for (size_t i = from; i < stack->count; i++)
		(void)stack_push(&ret->user, &stack->frames[i]);
}

static void tell_freed_use(const struct crash_reading *crashed, const struct log_block *block,
			   bool write, struct symbols *symbols, const struct crash *crash,
			   struct evidence_list *ret)
{
	struct evidence e = evidence_new(EVIDENCE_FREED_USE, crashed->trial, true);

	e.freed_use->block = life_of(crashed->record.log, block, "the pointer", symbols);
	e.freed_use->offset = (int64_t)(block->value - block->start);
	e.freed_use->write = write;
	e.freed_use->place_reused = is_shared(crashed->record.log, block);
	if (crash)
		tell_user(crashed, crash, block->id, e.freed_use);
	VEC_PUSH(&ret->list, e);
}

static bool block_of_free(struct event_log *log, const struct log_item *item, struct log_block *ret)
{
	struct log_item owned = *item;

	return log_next_owned(&log->reader, item->head.seq, &owned) &&
	       owned.head.type == LOG_BLOCK && log_payload(&owned, ret, sizeof(*ret));
}

/* Is it about an object of an allocator that the user named, or of a malloc inside the program? */
static bool of_named(const struct log_block *block, const struct log_bad_free *record)
{
	return block->api == LOG_API_HOOKED || record->evidence == LOG_EVIDENCE_FOLLOWED;
}

static void tell_bad_free(const struct crash_reading *crashed, struct event_log *log,
			  const struct log_item *item, struct symbols *symbols,
			  struct evidence_list *ret)
{
	static const enum bad_free_kind kinds[] = { [LOG_DOUBLE_FREE] = BAD_FREE_DOUBLE,
						    [LOG_INTERIOR_FREE] = BAD_FREE_INTERIOR,
						    [LOG_MISMATCHED_FREE] = BAD_FREE_MISMATCHED };
	struct evidence e = evidence_new(EVIDENCE_BAD_FREE, crashed->trial, true);
	struct log_bad_free record;
	struct log_block block;

	(void)log_payload(item, &record, sizeof(record));
	e.bad_free->kind = record.kind < sizeof(kinds) / sizeof(kinds[0]) ? kinds[record.kind]
									  : BAD_FREE_FOREIGN;
	e.bad_free->pointer = record.pointer;
	(void)event_log_context(log, record.context, symbols, &e.bad_free->second);
	if (block_of_free(log, item, &block)) {
		e.bad_free->block = life_of(log, &block, "the pointer", symbols);
		e.bad_free->named = of_named(&block, &record);
		e.bad_free->owners = crashed->backtrack.owners;
	}
	VEC_PUSH(&ret->list, e);
}

static bool is_named(struct event_log *log, const struct log_item *item,
		     const struct log_bad_free *record)
{
	struct log_block block;

	return record->kind == LOG_DOUBLE_FREE && block_of_free(log, item, &block) &&
	       of_named(&block, record);
}

static size_t count_named(const struct crash_reading *crashed)
{
	size_t count = 0;

	VEC_FOREACH (&crashed->logs->list, log) {
		struct log_bad_free record;
		struct log_item item;

		log_reader_rewind(&log->reader);
		while (log_reader_next(&log->reader, &item))
			count += item.head.type == LOG_BAD_FREE &&
				 log_payload(&item, &record, sizeof(record)) &&
				 is_named(log, &item, &record);
	}
	return count;
}

static void tell_bad_frees(const struct crash_reading *crashed, struct symbols *symbols,
			   const struct crash *crash, struct evidence_list *ret)
{
	bool named = count_named(crashed) <= NAMED_MAX;
	size_t told = 0;

	VEC_FOREACH (&crashed->logs->list, log) {
		struct log_item item;

		log_reader_rewind(&log->reader);
		while (told < BAD_FREES_MAX && log_reader_next(&log->reader, &item)) {
			struct log_bad_free record;

			/* A suspicion that the allocator does not share is none. */
			if (item.head.type != LOG_BAD_FREE ||
			    !log_payload(&item, &record, sizeof(record)) ||
			    (record.kind == LOG_INTERIOR_FREE &&
			     record.evidence == LOG_EVIDENCE_NONE &&
			     !(crash && crash->fault == FAULT_ABORT)) ||
			    (record.kind == LOG_DOUBLE_FREE &&
			     (record.evidence == LOG_EVIDENCE_NONE ||
			      record.evidence == LOG_EVIDENCE_FOLLOWED) &&
			     !(named && is_named(log, &item, &record))))
				continue;
			tell_bad_free(crashed, log, &item, symbols, ret);
			told++;
		}
	}
}

static void tell_mapping(const struct crash_reading *crashed, const struct crash *crash,
			 struct evidence_list *ret)
{
	struct evidence e = evidence_new(EVIDENCE_MAPPING, crashed->trial, true);

	e.mapping->file = mem_strdup(crash->file);
	e.mapping->mapped = crash->mapped;
	e.mapping->present = crash->present;
	stack_copy(&e.mapping->user, &crash->stack);
	e.mapping->cut = file_cut_dup(crash->cut);
	VEC_PUSH(&ret->list, e);
}

/* A small number in the pointer's place; an address that was computed has parts. */
static bool is_number(const struct backtrack *backtrack)
{
	return !backtrack->divides && backtrack->pointer != 0 &&
	       backtrack->source != POINTER_OTHER && !backtrack->by_index;
}

/* Where the pointer or the divisor came from. */
static void tell_value(const struct crash_reading *crashed, struct evidence_list *ret)
{
	const struct backtrack *backtrack = &crashed->backtrack;
	bool loaded = crashed->has_backtrack && backtrack->steps.count > 0;
	const struct backtrack_step *step = loaded ? &backtrack->steps.items[0] : NULL;
	/* What was found standing somewhere, or may have come another way, is not said. */
	bool unsure = loaded ? step->by_value || step->doubtful
			     : backtrack->source == POINTER_UNKNOWN && !backtrack->divides;
	struct evidence e;

	if (!is_number(backtrack) && (unsure || (!backtrack->divides && backtrack->pointer != 0)))
		return;
	e = evidence_new(EVIDENCE_FAULT_VALUE, crashed->trial, true);
	e.fault_value->divisor = backtrack->divides;
	e.fault_value->value = backtrack->pointer;
	if (!unsure)
		e.fault_value->source = loaded ? POINTER_LOADED : backtrack->source;
	if (loaded && !unsure)
		home_copy(&e.fault_value->home, &step->home);
	else if (backtrack->returned_by && !unsure)
		e.fault_value->returned_by = mem_strdup(backtrack->returned_by);
	VEC_PUSH(&ret->list, e);
}

/* A crooked pointer leads to whatever happens to lie there: nobody meant that block. */
static void forget_freed(struct crash *crash)
{
	VEC_FOREACH (&crash->blocks, block)
		if (block->state == BLOCK_FREED || block->former)
			block->telling = false;
}

void crash_reading_tell_crash(const struct crash_reading *crashed, const struct crash *crash,
			      struct evidence_list *ret)
{
	struct evidence e = evidence_new(EVIDENCE_CRASH, crashed->trial, true);

	crash_copy(e.crash, crash);
	if (crashed->backtrack.crooked)
		forget_freed(e.crash);
	VEC_PUSH(&ret->list, e);
	if (crash->fault == FAULT_MAPPING_SHRANK && crash->file)
		tell_mapping(crashed, crash, ret);
	if (crash->fault == FAULT_NULL || crash->fault == FAULT_ARITHMETIC ||
	    crash_is_null_call(crash))
		tell_value(crashed, ret);
}

void crash_reading_tell(const struct crash_reading *crashed, struct symbols *symbols,
			const struct crash *crash, struct evidence_list *ret)
{
	const struct backtrack *backtrack = &crashed->backtrack;
	int freed = crash_reading_freed_step(crashed);

	if (crash)
		crash_reading_tell_crash(crashed, crash, ret);
	if (backtrack->crooked) {
		/* What it leads to says nothing. */
	} else if (freed >= 0) {
		struct log_block block = backtrack->steps.items[freed].to;

		block.value = backtrack->steps.items[freed].value;
		tell_freed_use(crashed, &block, backtrack->is_write && freed == 0, symbols, crash,
			       ret);
	} else if (crashed->has_record && !(crash && crash->fault == FAULT_EXECUTE)) {
		if (freed_now(&backtrack->pointed))
			tell_freed_use(crashed, &backtrack->pointed, backtrack->is_write, symbols,
				       crash, ret);
		else if (freed_now(&backtrack->passed))
			tell_freed_use(crashed, &backtrack->passed, false, symbols, crash, ret);
	}
	if (crashed->through != THROUGH_WHOLE_BLOCKS && crashed->logs)
		tell_bad_frees(crashed, symbols, crash, ret);
}
