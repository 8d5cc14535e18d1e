/* Where the bad value stands, when the code does not say where it was read. */
#include "read/backtrack_inside.h"

#include "arch/arch.h"

#define FOUND_MAX 3u
#define PLACES_MAX 8u
#define LARGEST_HOME (64u << 10) /* a word in an arena says nothing about whose it is */
#define COMMON_VALUE 0x10000u	 /* smaller numbers stand in many places for other reasons */

/* The same field of another block of that kind: the code was right about the field and wrong about
 * which object, as it is when a loop has gone on. */
static bool same_field(const struct backtrack_step *step, const struct log_value *value)
{
	return step->home.kind == HOME_BLOCK && value->id != 0 &&
	       value->key.stack_hash == step->in.key.stack_hash &&
	       (int64_t)(value->where - value->start) == step->home.offset;
}

static struct log_block block_of(const struct log_value *found)
{
	return (struct log_block){ .id = found->id,
				   .start = found->start,
				   .size = found->size,
				   .context = found->context,
				   .state = LOG_BLOCK_LIVE,
				   .relation = LOG_INSIDE,
				   .api = (uint8_t)found->api,
				   .key = found->key };
}

/* The home that the code says, in a block that neither a register nor the stack led to any more. */
static void take_block(struct backtracker *reader, const struct log_value *found,
		       struct backtrack_step *step)
{
	if (step->in.id != 0 || found->id == 0)
		return;
	home_deinit(&step->home);
	step->home = (struct home){ 0 };
	step->in = block_of(found);
	backtrack_name_home(reader, found->where, false, step);
	backtrack_find_handles(reader, step->frame, step);
}

static void add_found(struct backtracker *reader, const struct log_value *found, size_t at,
		      bool by_field, unsigned int twins)
{
	struct backtrack_step step = { .value = found->value,
				       .width = 8,
				       .by_value = true,
				       .by_field = by_field,
				       .twins = twins };

	step.in = block_of(found);
	backtrack_name_home(reader, found->where, false, &step);
	backtrack_find_handles(reader, 0, &step);
	VEC_PUSH(&reader->ret->steps, step);
	/* To its place: those before it were found likewise. */
	for (size_t i = reader->ret->steps.count - 1; i > at; i--) {
		struct backtrack_step other = reader->ret->steps.items[i - 1];

		reader->ret->steps.items[i - 1] = reader->ret->steps.items[i];
		reader->ret->steps.items[i] = other;
	}
}

/* A pointer that ran over memory until it came to its end: that address is where the memory ends,
 * and who keeps it (the allocator does) has nothing to do with the pointer. */
static bool ran_to_the_end(const struct backtracker *reader)
{
	uint64_t pointer = reader->ret->pointer;
	const struct mapping *before = snapshot_mapping(&reader->snapshot, pointer - 1);

	return before && before->perms & MAPPING_READ && before->end == pointer &&
	       !snapshot_mapping(&reader->snapshot, pointer) && !reader->ret->executes;
}

/* A variable, and is it one of the C library's? */
static bool is_global(const struct backtracker *reader, uint64_t address, bool of_runtime)
{
	struct home home = { 0 };
	bool is;

	backtrack_name_global(reader, address, &home);
	is = home.kind == HOME_GLOBAL &&
	     frame_is_runtime(&(struct frame){ .module = home.module }) == of_runtime;
	home_deinit(&home);
	return is;
}

/* The allocator's lists and the like: they know addresses of everything. */
static bool is_of_runtime(const struct backtracker *reader, uint64_t address)
{
	return is_global(reader, address, true);
}

/* Was it read from a variable of a function, for sure, that holds it to this day? */
static bool still_in_frame(const struct backtracker *reader, uint64_t sought)
{
	const struct backtrack_step *first = reader->ret->steps.items;
	uint64_t word;

	return reader->ret->steps.count > 0 && first->home.kind == HOME_STACK && !first->doubtful &&
	       first->width == sizeof(word) &&
	       symbols_read(reader->symbols, &reader->snapshot, first->home.address, &word,
			    sizeof(word)) &&
	       word == sought;
}

/* Where a value stands: of homes like the one that is sought alone, once there is one. */
struct value_places {
	struct log_value found[FOUND_MAX];
	size_t count, all, homes;
	bool by_field, agrees;
};

static void place_add(struct backtracker *reader, const struct backtrack_step *like,
		      const struct log_value *value, struct value_places *places)
{
	places->all++;
	if (value->size > LARGEST_HOME || (value->id == 0 && is_of_runtime(reader, value->where)))
		return;
	places->homes++;
	if (reader->ret->steps.count > 0 &&
	    reader->ret->steps.items[0].home.address == value->where) {
		take_block(reader, value, &reader->ret->steps.items[0]);
		places->agrees = true;
	}
	if (same_field(like, value) && !places->by_field) {
		places->by_field = true;
		places->count = 0;
	} else if (places->by_field) {
		return;
	}
	if (places->count < FOUND_MAX)
		places->found[places->count++] = *value;
}

/* The words that hold `sought` become the homes. False: none does, or too many. */
static bool take_value(struct backtracker *reader, uint64_t sought)
{
	const struct crash_record *record = reader->record;
	struct log_item item = record->item;
	const struct backtrack_step *like =
		reader->ret->steps.count > 0 ? &reader->ret->steps.items[0] : &reader->hint;
	/* A variable of a thread is the same one at each turn of a loop. Of frames no values were
	 * written down. */
	struct value_places places = { .agrees =
					       like->of_thread || still_in_frame(reader, sought) };

	while (log_next_owned(&record->log->reader, record->item.head.seq, &item)) {
		struct log_value value;

		if (item.head.type == LOG_VALUE && log_payload(&item, &value, sizeof(value)) &&
		    value.value == sought)
			place_add(reader, like, &value, &places);
	}
	/* What stands in many places is no trace of one of them; in one only, even a small number
	 * is. */
	if (places.agrees || places.count == 0 || ran_to_the_end(reader) ||
	    (!places.by_field && places.all > (sought < COMMON_VALUE ? 1 : PLACES_MAX)))
		return places.agrees;
	VEC_FOREACH (&reader->ret->steps, step)
		backtrack_step_deinit(step);
	reader->ret->steps.count = 0;
	for (size_t i = 0; i < places.count; i++)
		add_found(reader, &places.found[i], i, places.by_field,
			  places.by_field ? 0 : (unsigned int)places.homes - 1);
	return true;
}

static void take_crooked(struct backtracker *reader)
{
	reader->ret->pointer = reader->crooked;
	reader->ret->crooked = true;
}

/* Where an object of CPython's begins in its block: behind what the interpreter keeps in front of
 * it, two words of the collector's, and two more where instances have dictionaries. */
static bool is_objects_address(const struct log_block *block, uint64_t pointer)
{
	uint64_t offset = pointer - block->start;

	return offset == 0 || offset == 16 || offset == 32;
}

static bool is_pythons(const struct log_block *block)
{
	return block->id != 0 &&
	       (block->api == LOG_API_PYTHON_OBJECT || block->api == LOG_API_PYTHON_MEMORY);
}

/* The first load read in a freed object, through a pointer into its middle that a live object
 * holds: nobody ever made such a pointer, so it is the bad value, and what was read through it says
 * nothing. */
static bool is_led_astray(const struct backtrack *backtrack)
{
	const struct backtrack_step *read = &backtrack->steps.items[0];
	const struct backtrack_step *holder = &backtrack->steps.items[1];

	return backtrack->steps.count >= 2 && !read->by_value && !holder->by_value &&
	       is_pythons(&read->in) && read->in.state == LOG_BLOCK_FREED &&
	       is_pythons(&holder->in) && holder->in.state == LOG_BLOCK_LIVE &&
	       holder->value - read->in.start < read->in.size &&
	       !is_objects_address(&read->in, holder->value);
}

static void drop_first(struct backtrack *backtrack)
{
	backtrack_step_deinit(&backtrack->steps.items[0]);
	backtrack->steps.count--;
	for (size_t i = 0; i < backtrack->steps.count; i++)
		backtrack->steps.items[i] = backtrack->steps.items[i + 1];
	backtrack->pointer = backtrack->steps.items[0].value;
	backtrack->crooked = true;
}

/* The one variable of the functions on the stack that holds the wild pointer: a loop that went on
 * through a list whose first element lies there. */
static void take_slot(struct backtracker *reader)
{
	struct backtrack_step step = { .value = reader->ret->pointer,
				       .width = 8,
				       .by_value = true };
	unsigned int sp = arch_native()->sp;
	uint64_t at = 0, word, places = 0;

	for (size_t i = 0; i < reader->count && reader->ret->pointer >= COMMON_VALUE; i++) {
		const struct machine_frame *frame = &reader->frames[i];
		uint64_t low = frame->registers.value[sp];

		if (!(frame->registers.known & 1u << sp) || frame->cfa - low > LARGEST_HOME)
			break;
		for (; low < frame->cfa; low += sizeof(word))
			if (symbols_read(reader->symbols, &reader->snapshot, low, &word,
					 sizeof(word)) &&
			    word == reader->ret->pointer) {
				at = low;
				places++;
			}
	}
	if (places != 1)
		return;
	backtrack_name_home(reader, at, false, &step);
	VEC_PUSH(&reader->ret->steps, step);
}

void backtrack_take_found(struct backtracker *reader)
{
	if (is_led_astray(reader->ret)) {
		drop_first(reader->ret);
		return;
	}
	if (reader->crooked == 0 || !take_value(reader, reader->crooked))
		(void)take_value(reader, reader->ret->pointer);
	else
		take_crooked(reader);
	if (reader->ret->steps.count == 0)
		take_slot(reader);
}

/* Functions of the program that still have it: in a register that they kept, or in their frames. */
static uint64_t held_by_functions(const struct backtracker *reader, uint64_t sought)
{
	unsigned int sp = arch_native()->sp;
	uint64_t word, ret = 0;

	for (size_t i = 0; i < reader->count; i++) {
		const struct registers *now = &reader->frames[i].registers;

		if (backtrack_in_runtime(reader, i) ||
		    event_log_is_agent(reader->record->log, reader->frames[i].pc) ||
		    !(now->known & 1u << sp) ||
		    reader->frames[i].cfa - now->value[sp] > LARGEST_HOME)
			continue;
		for (unsigned int reg = 0; reg < REGISTERS_MAX; reg++)
			ret += now->known >> reg & 1 && now->value[reg] == sought;
		for (uint64_t at = now->value[sp]; at < reader->frames[i].cfa; at += sizeof(word))
			ret += symbols_read(reader->symbols, &reader->snapshot, at, &word,
					    sizeof(word)) &&
			       word == sought;
	}
	return ret;
}

uint64_t backtrack_owners(const struct backtracker *reader)
{
	const struct crash_record *record = reader->record;
	struct log_item item = record->item;
	uint64_t ret = 0;

	if (reader->freed.id != 0)
		ret = held_by_functions(reader, reader->freed.start);
	while (reader->freed.id != 0 &&
	       log_next_owned(&record->log->reader, record->item.head.seq, &item)) {
		struct log_value value;

		ret += item.head.type == LOG_VALUE && log_payload(&item, &value, sizeof(value)) &&
		       value.value == reader->freed.start &&
		       (value.id != 0 || is_global(reader, value.where, false));
	}
	return ret;
}
