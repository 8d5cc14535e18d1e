#include "read/backtrack_inside.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

#include "arch/arch.h"
#include "arch/code.h"
#include "read/pointers.h"

#define STEPS_MAX 8u
#define ROUNDS_MAX 64u
#define RED_ZONE 128u
#define THREAD_BYTES (64u << 10) /* of variables that each thread has, at most */

/* Where the value is now that is being followed: in register `reg`, right before instruction `at`
 * of frame `frame`. */
struct where {
	size_t frame;
	uint64_t at;
	int reg;
	bool doubtful;
	bool index; /* a number that an array was indexed with, not a pointer */
};

struct trap backtrack_trap(const struct machine_frame *frame)
{
	return (struct trap){ .code = frame->code,
			      .code_len = frame->code_len,
			      .code_address = frame->code_address,
			      .rip = frame->pc,
			      .start_hint = frame->start,
			      .registers = &frame->registers };
}

/* ---- blocks ---------------------------------------------------------------------------------- */

static bool covers(const struct log_block *block, uint64_t address)
{
	return address >= block->start && address - block->start < (block->size ? block->size : 1);
}

/* The block that holds an address, as the crash's records know it: of a block and an object in it,
 * the smaller one; of a former and a present owner, the present one. */
static void find_block(const struct crash_record *record, uint64_t address, struct log_block *ret,
		       struct log_block *ret_former)
{
	struct log_item item = record->item;

	while (log_next_owned(&record->log->reader, record->item.head.seq, &item)) {
		struct log_block block;
		struct log_block *to;

		if (item.head.type != LOG_BLOCK || !log_payload(&item, &block, sizeof(block)) ||
		    block.relation == LOG_BEYOND || !covers(&block, address) ||
		    (record->whole_blocks && block.api == LOG_API_HOOKED))
			continue;
		if (block.relation == LOG_FORMER) {
			/* The one that was freed last. */
			if (ret_former->id == 0 || block.freed_epoch > ret_former->freed_epoch)
				*ret_former = block;
			continue;
		}
		to = ret;
		if (to->id == 0 || block.size < to->size ||
		    (block.size == to->size && block.state == LOG_BLOCK_LIVE))
			*to = block;
	}
}

static bool find_former(const struct crash_record *record, const struct log_block *now,
			struct log_block *ret)
{
	struct log_block former = { 0 };

	if (!block_former(record->log, now, &former) ||
	    (record->whole_blocks && former.api == LOG_API_HOOKED))
		return false;
	*ret = former;
	return true;
}

static void find_pointed(const struct crash_record *record, uint64_t value, struct log_block *ret,
			 struct log_block *ret_former)
{
	find_block(record, value, ret, ret_former);
	if (ret->id == 0 || ret->state != LOG_BLOCK_LIVE || ret_former->id != 0)
		return;
	ret->value = value;
	(void)find_former(record, ret, ret_former);
}

/* ---- homes ----------------------------------------------------------------------------------- */

static bool is_of_file(const struct mapping *mapping)
{
	return mapping->path && mapping->path[0] == '/' && !mapping_is_shared_memory(mapping);
}

const struct mapping *backtrack_module(const struct backtracker *reader, const char *path)
{
	return VEC_FIND(&reader->record->log->modules, known,
			known->bias_known && known->path && path && strcmp(known->path, path) == 0);
}

void backtrack_name_global(const struct backtracker *reader, uint64_t address, struct home *ret)
{
	const struct mapping *mapping = snapshot_mapping(&reader->snapshot, address);
	const struct mapping *module = NULL;
	const char *path;
	uint64_t offset = 0;

	if (!mapping)
		return;
	if (is_of_file(mapping))
		module = mapping;
	/* Zeroed globals lie behind the file's own mapping. */
	for (size_t i = 0; !module && i < reader->snapshot.mapping_count; i++) {
		const struct mapping *before = &reader->snapshot.mappings[i];

		if (before->end == mapping->start && is_of_file(before) && !mapping->path)
			module = before;
	}
	if (!module)
		return;
	path = module->path;
	module = backtrack_module(reader, path);
	/* What the kernel has put right behind a library is none of its variables. */
	if (module && !mapping->path &&
	    !symbols_covers(reader->symbols, module, address - module->bias))
		return;
	ret->kind = HOME_GLOBAL;
	ret->module = mem_strdup(path);
	if (module) {
		offset = address - module->bias;
		ret->name = symbols_global(reader->symbols, module, offset, &offset);
	}
	ret->offset = (int64_t)offset;
}

void backtrack_name_home(const struct backtracker *reader, uint64_t address, bool own,
			 struct backtrack_step *step)
{
	struct home *home = &step->home;
	struct log_block former = { 0 };
	uint64_t high = reader->record->raw.stack_high;

	if (step->in.id == 0)
		find_block(reader->record, address, &step->in, &former);
	if (step->in.id != 0) {
		step->in.value = address;
		step->in_former = find_former(reader->record, &step->in, &former);
	}
	home->address = address;
	home->len = step->width;
	home->kind = HOME_ADDRESS;
	if (step->in.id != 0) {
		home->kind = HOME_BLOCK;
		home->block_id = step->in.id;
		home->key = event_log_key(reader->record->log, &step->in.key, step->in.context);
		home->offset = (int64_t)(address - step->in.start);
		return;
	}
	if (step->of_thread) {
		home->kind = HOME_THREAD;
		home->offset = (int64_t)(address - reader->record->raw.fs_base);
		return;
	}
	if (address >= reader->record->raw.gregs[LOG_GREG_RSP] - RED_ZONE && address < high)
		backtrack_name_slot(reader, address, own, step);
	else
		backtrack_name_global(reader, address, home);
}

/* ---- handles --------------------------------------------------------------------------------- */

static bool register_value(const struct backtracker *reader, size_t frame, uint64_t at, int reg,
			   unsigned int depth, uint64_t *ret);
static bool caller_of(const struct backtracker *reader, struct where *where);

#define ARGUMENTS 6u

static int argument_register(unsigned int argument)
{
	static const char *const names[ARGUMENTS] = { "rdi", "rsi", "rdx", "rcx", "r8", "r9" };

	return arch_register_find(arch_native(), names[argument]);
}

/* Was the block given to the function of this frame? By what its caller passed, where that can be
 * read back; else by what it still keeps of its arguments. */
static bool find_argument(const struct backtracker *reader, size_t frame,
			  const struct log_block *block, unsigned int *ret_argument,
			  uint64_t *ret_value)
{
	const struct machine_frame *here = &reader->frames[frame];
	struct where where = { .frame = frame };
	struct trap trap = backtrack_trap(here);
	uint64_t at = here->pc;
	struct origin origin;

	if (caller_of(reader, &where))
		for (unsigned int i = 0; i < ARGUMENTS; i++)
			if (register_value(reader, where.frame, where.at, argument_register(i), 0,
					   ret_value) &&
			    covers(block, *ret_value)) {
				*ret_argument = i;
				return true;
			}
	if (!here->exact && !arch_call_before(&trap, &at))
		return false;
	for (int reg = 0; reg < REGISTERS_MAX; reg++) {
		if (!(here->registers.known & 1u << reg) || reg == (int)arch_native()->sp ||
		    !covers(block, here->registers.value[reg]))
			continue;
		arch_value_origin(&trap, at, reg, &origin);
		if (origin.kind != ORIGIN_ENTRY || origin.changed)
			continue;
		for (unsigned int i = 0; i < ARGUMENTS; i++) {
			if (origin.reg != argument_register(i))
				continue;
			*ret_argument = i;
			*ret_value = here->registers.value[reg];
			return true;
		}
	}
	return false;
}

void backtrack_find_handles(const struct backtracker *reader, size_t from,
			    struct backtrack_step *step)
{
	if (step->home.kind != HOME_BLOCK)
		return;
	for (size_t frame = from; frame + 1 < reader->count; frame++) {
		unsigned int argument;
		uint64_t value;

		if (!find_argument(reader, frame, &step->in, &argument, &value))
			continue;
		VEC_PUSH(&step->handles,
			 ((struct backtrack_handle){
				 .frame = (unsigned int)frame,
				 .function = reader->frames[frame].start,
				 .argument = argument,
				 .offset = (int64_t)(step->home.address - value) }));
	}
}

/* Does the code go by the thread pointer? Or by a register that it was loaded into before. */
static bool is_of_thread(const struct backtracker *reader, const struct origin *origin,
			 uint64_t address)
{
	uint64_t base = reader->record->raw.fs_base;

	if (base == 0 || address >= base || base - address > THREAD_BYTES)
		return false;
	return origin->from.segment == (int)arch_native()->thread_pointer ||
	       (origin->from.segment == NO_REGISTER && origin->from.index == NO_REGISTER &&
		!origin->from.fixed && address - (uint64_t)origin->from.displacement == base);
}

/* Is it code of the C library? */
bool backtrack_in_runtime(const struct backtracker *reader, size_t frame)
{
	const struct mapping *code = snapshot_mapping(&reader->snapshot, reader->frames[frame].pc);

	return code && frame_is_runtime(&(struct frame){ .module = (char *)code->path });
}

/* Is it a variable of the library whose code reads it? */
static bool is_own_of_runtime(const struct backtracker *reader, const struct where *where,
			      const struct backtrack_step *step)
{
	if (!step->of_thread && step->home.kind != HOME_GLOBAL)
		return false;
	return backtrack_in_runtime(reader, where->frame) &&
	       (step->of_thread ||
		frame_is_runtime(&(struct frame){ .module = step->home.module }));
}

static void add_step(struct backtracker *reader, const struct where *where,
		     const struct origin *origin, uint64_t address, uint64_t value)
{
	struct backtrack_step step = { .value = value,
				       .width = origin->width,
				       .frame = (unsigned int)where->frame,
				       .pc = reader->frames[where->frame].pc,
				       .doubtful = where->doubtful || origin->joined ||
						   (origin->changed && !origin->shifted) ||
						   !origin->certain };

	step.of_thread = is_of_thread(reader, origin, address);
	backtrack_name_home(reader, address,
			    origin->from.base == (int)arch_native()->sp ||
				    origin->from.base == (int)arch_native()->fp,
			    &step);
	step.of_runtime = is_own_of_runtime(reader, where, &step);
	find_pointed(reader->record, value, &step.to, &step.to_former);
	if (step.to.id == 0 && covers(&reader->freed, value))
		step.to = reader->freed;
	backtrack_find_handles(reader, where->frame, &step);
	VEC_PUSH(&reader->ret->steps, step);
}

void backtrack_step_deinit(struct backtrack_step *step)
{
	VEC_DEINIT(&step->handles);
	home_deinit(&step->home);
}

/* ---- values ---------------------------------------------------------------------------------- */

/* What a load brings, if its place is known and was recorded. */
static bool loaded_value(const struct backtracker *reader, uint64_t address, unsigned int width,
			 uint64_t *ret)
{
	uint64_t value = 0;

	/* The thread pointer points to itself: psABI, thread-local storage, variant II. */
	if (width == 8 && address == reader->record->raw.fs_base && address != 0) {
		*ret = address;
		return true;
	}
	if (width == 0 || width > 8 ||
	    !symbols_read(reader->symbols, &reader->snapshot, address, &value, width))
		return false;
	*ret = value;
	return true;
}

/* What a register held right before `at`; follows it back where it has been overwritten since. */
static bool register_value(const struct backtracker *reader, size_t frame, uint64_t at, int reg,
			   unsigned int depth, uint64_t *ret);

static bool operand_value(const struct backtracker *reader, size_t frame, uint64_t at,
			  const struct memory_operand *operand, uint32_t kept, unsigned int depth,
			  uint64_t *ret)
{
	const struct registers *now = &reader->frames[frame].registers;
	uint64_t base = 0, index = 0, segment = 0;

	if (operand->fixed) {
		*ret = operand->address;
		return true;
	}
	if (operand->segment == (int)arch_native()->thread_pointer)
		segment = reader->record->raw.fs_base;
	else if (operand->segment != NO_REGISTER)
		return false;
	if (operand->base >= 0 && operand->base < REGISTERS_MAX) {
		if ((kept & 1u << operand->base) && (now->known & 1u << operand->base))
			base = now->value[operand->base];
		else if (!register_value(reader, frame, at, operand->base, depth + 1, &base))
			return false;
	}
	if (operand->index >= 0 && operand->index < REGISTERS_MAX) {
		if ((kept & 1u << operand->index) && (now->known & 1u << operand->index))
			index = now->value[operand->index];
		else if (!register_value(reader, frame, at, operand->index, depth + 1, &index))
			return false;
	}
	*ret = segment + base + index * operand->scale + (uint64_t)operand->displacement;
	return true;
}

static bool origin_address(const struct backtracker *reader, size_t frame,
			   const struct origin *origin, unsigned int depth, uint64_t *ret)
{
	if (origin->from_known) {
		*ret = origin->from_address;
		return true;
	}
	return operand_value(reader, frame, origin->at, &origin->from, origin->from_kept, depth,
			     ret);
}

static bool caller_of(const struct backtracker *reader, struct where *where)
{
	struct trap trap;

	if (where->frame + 1 >= reader->count || reader->frames[where->frame + 1].exact ||
	    reader->frames[where->frame + 1].returned)
		return false;
	where->frame++;
	trap = backtrack_trap(&reader->frames[where->frame]);
	return arch_call_before(&trap, &where->at);
}

/* The value went through a register that holds it to this day. */
static bool still_held(const struct origin *origin, const struct registers *now, uint64_t *ret)
{
	uint32_t held = origin->through & now->known;

	if (held == 0)
		return false;
	*ret = now->value[__builtin_ctz(held)];
	return true;
}

static bool register_value(const struct backtracker *reader, size_t frame, uint64_t at, int reg,
			   unsigned int depth, uint64_t *ret)
{
	struct trap trap = backtrack_trap(&reader->frames[frame]);
	struct where where = { .frame = frame, .at = at };
	struct origin origin;
	uint64_t address;

	if (depth > STEPS_MAX)
		return false;
	arch_value_origin(&trap, at, reg, &origin);
	if (origin.changed)
		return arch_value_computed(&trap, at, reg, ret);
	if (still_held(&origin, &reader->frames[frame].registers, ret) ||
	    (origin.slot_known && loaded_value(reader, origin.slot_address, 8, ret)))
		return true;
	switch (origin.kind) {
	case ORIGIN_LOAD:
		return origin_address(reader, frame, &origin, depth, &address) &&
		       loaded_value(reader, address, origin.width, ret);
	case ORIGIN_ADDRESS:
		return origin_address(reader, frame, &origin, depth, ret);
	case ORIGIN_IMMEDIATE:
		*ret = origin.immediate;
		return true;
	case ORIGIN_ENTRY:
		return caller_of(reader, &where) &&
		       register_value(reader, where.frame, where.at, origin.reg, depth + 1, ret);
	default:
		return arch_value_computed(&trap, at, reg, ret);
	}
}

/* ---- the way back -----------------------------------------------------------------------------
 */

/* The register with the object's address has been overwritten. In a loop it has the next one's. */
static void take_hint(struct backtracker *reader, const struct where *where,
		      const struct origin *origin)
{
	uint64_t address;

	if (reader->ret->steps.count > 0 || reader->hint.home.kind != HOME_UNKNOWN ||
	    !memory_operand_address(&origin->from, &reader->frames[where->frame].registers,
				    &address))
		return;
	reader->hint.width = origin->width;
	backtrack_name_home(reader, address, false, &reader->hint);
}

/* Is the register the address of something fixed: a table, whose place nobody can have spoilt? */
static bool is_constant(const struct backtracker *reader, const struct where *where,
			const struct origin *origin, int reg)
{
	struct trap trap = backtrack_trap(&reader->frames[where->frame]);
	struct origin base;

	arch_value_origin(&trap, origin->at, reg, &base);
	return !base.changed &&
	       (base.kind == ORIGIN_IMMEDIATE || (base.kind == ORIGIN_ADDRESS && base.from.fixed));
}

static bool is_register(int reg)
{
	return reg >= 0 && reg < REGISTERS_MAX;
}

/* Through which register the load went on: its base, or the index into something fixed. */
static bool go_on_through(const struct backtracker *reader, struct where *where,
			  const struct origin *origin)
{
	const struct memory_operand *from = &origin->from;
	bool base = !from->fixed && is_register(from->base);

	if (is_register(from->index) && (!base || is_constant(reader, where, origin, from->base))) {
		where->reg = from->index;
		where->index = true;
	} else if (base) {
		where->reg = from->base;
		where->index = false;
	} else {
		return false;
	}
	where->at = origin->at;
	where->doubtful |= origin->joined || !origin->certain;
	return true;
}

/* The value was kept in a slot of the frame. Is it another than the one that was put there? Then
 * somebody changed it in that slot, and where it came from does not matter. So it is where nobody
 * can tell who called: what runs over the slot often runs on over the return address. */
static bool slot_changed(const struct backtracker *reader, const struct where *where,
			 const struct origin *origin, uint64_t value)
{
	struct where caller = *where;
	uint64_t put;

	if (!origin->slot_known || origin->changed)
		return false;
	if (origin->kind == ORIGIN_IMMEDIATE)
		return origin->immediate != value;
	if (origin->kind == ORIGIN_ADDRESS)
		return origin_address(reader, where->frame, origin, 0, &put) && put != value;
	/* What a call returned is not known any more: the slot is as far as it goes. What led to
	 * the object whose field is bad was good enough. */
	if (origin->kind == ORIGIN_CALL)
		return value != 0 && reader->ret->steps.count == 0;
	if (origin->kind != ORIGIN_ENTRY)
		return false;
	if (!caller_of(reader, &caller))
		return true;
	return register_value(reader, caller.frame, caller.at, origin->reg, 0, &put) &&
	       put != value;
}

static void add_slot(struct backtracker *reader, const struct where *where,
		     const struct origin *origin, uint64_t value)
{
	struct origin slot = { .kind = ORIGIN_LOAD,
			       .certain = origin->certain,
			       .width = 8,
			       .from = { .base = (int)arch_native()->sp, .index = NO_REGISTER } };

	add_step(reader, where, &slot, origin->slot_address, value);
}

/* An index that led out of the block that its pointer was to. */
static void note_stray(const struct backtracker *reader, const struct where *where,
		       const struct origin *origin, uint64_t address)
{
	struct backtrack_step *step = &reader->ret->steps.items[reader->ret->steps.count - 1];
	const struct memory_operand *from = &origin->from;
	struct log_block block = { 0 }, former = { 0 };
	uint64_t base;

	/* Two pointers may have been made one and their distance; then it is counted in bytes. */
	if (from->fixed || !is_register(from->base) || !is_register(from->index) || from->scale < 2)
		return;
	if (origin->from_kept & reader->frames[where->frame].registers.known & 1u << from->base)
		base = reader->frames[where->frame].registers.value[from->base];
	else if (!register_value(reader, where->frame, origin->at, from->base, 0, &base))
		return;
	find_block(reader->record, base, &block, &former);
	/* A pointer to elsewhere may have been moved there by the compiler. */
	if (block.id == 0 || block.state != LOG_BLOCK_LIVE || base != block.start ||
	    covers(&block, address))
		return;
	block.value = base;
	step->strayed = block;
}

/* Pointers are read from words that are aligned as a pointer is. */
static void note_crooked(struct backtracker *reader, const struct where *where,
			 const struct origin *origin, uint64_t base)
{
	const struct backtrack_step *first = reader->ret->steps.items;

	if (reader->ret->steps.count == 1 && reader->crooked == 0 && !where->index &&
	    origin->kind == ORIGIN_LOAD && origin->width == 8 && base & 7 &&
	    first->home.address & 7 && first->in.id != 0 && first->in.state == LOG_BLOCK_LIVE &&
	    covers(&first->in, base))
		reader->crooked = base;
}

/* Where the pointer to a freed block came from may not be known: it was followed all the same. */
static void note_passed(struct backtracker *reader, const struct where *where, uint64_t value)
{
	struct log_block to = { 0 }, former = { 0 };

	find_pointed(reader->record, value, &to, &former);
	to.value = value;
	if (reader->ret->passed.id == 0 && !where->index && !where->doubtful &&
	    to.state == LOG_BLOCK_FREED && to.relation == LOG_INSIDE)
		reader->ret->passed = to;
}

/* The value was made by a call, or given by a caller that is not known: there is no home. */
static void note_maker(struct backtracker *reader, const struct where *where,
		       const struct origin *origin)
{
	const struct machine_frame *frame = &reader->frames[where->frame];
	AUTO(stack_deinit) struct stack called = { 0 };
	struct code_instruction call;
	const char *name;

	if (reader->ret->steps.count > 0 || where->doubtful || origin->joined || origin->changed ||
	    !origin->certain)
		return;
	if (origin->kind == ORIGIN_ENTRY)
		reader->ret->source = POINTER_GIVEN;
	if (origin->kind != ORIGIN_CALL || origin->at - frame->code_address >= frame->code_len)
		return;
	reader->ret->source = POINTER_RETURNED;
	if (!code_decode(frame->code + (origin->at - frame->code_address),
			 frame->code_len - (origin->at - frame->code_address), origin->at, &call) ||
	    !(call.flags & CODE_HAS_TARGET))
		return;
	symbols_name(reader->symbols, &reader->snapshot, call.target, FRAME_EXACT, &called);
	name = called.count > 0 ? called.frames[called.count - 1].function : NULL;
	if (name)
		reader->ret->returned_by = mem_strdup(name);
}

/* What was loaded, and from where. False: the way ends here. */
static bool follow_load(struct backtracker *reader, struct where *where,
			const struct origin *origin, uint64_t *value, uint64_t *ret_address,
			bool *ret_known)
{
	uint64_t address = 0;
	bool known = origin_address(reader, where->frame, origin, 0, &address);

	if (!known)
		take_hint(reader, where, origin);
	if (origin->shifted)
		*value -= origin->added;
	/* Of an index, what was made out of the number is not what was loaded. */
	if (known && (!where->index || !origin->changed ||
		      loaded_value(reader, address, origin->width, value))) {
		add_step(reader, where, origin, address, *value);
		note_stray(reader, where, origin, address);
	}
	*ret_address = address;
	*ret_known = known;
	return go_on_through(reader, where, origin) && (known || where->index);
}

/* One origin further. False at the end. */
static bool follow(struct backtracker *reader, struct where *where, uint64_t *value)
{
	const struct machine_frame *frame = &reader->frames[where->frame];
	struct trap trap = backtrack_trap(frame);
	struct origin origin;
	uint64_t address = 0;
	bool known;

	arch_value_origin(&trap, where->at, where->reg, &origin);
	if (slot_changed(reader, where, &origin, *value)) {
		add_slot(reader, where, &origin, *value);
		return false;
	}
	switch (origin.kind) {
	case ORIGIN_LOAD:
		if (!follow_load(reader, where, &origin, value, &address, &known))
			return false;
		break;
	case ORIGIN_ADDRESS:
		if (!origin_address(reader, where->frame, &origin, 0, &address) ||
		    !go_on_through(reader, where, &origin) || where->index)
			return false;
		known = true;
		break;
	case ORIGIN_ENTRY:
		where->reg = origin.reg;
		where->doubtful |= origin.changed;
		if (caller_of(reader, where))
			return true;
		note_maker(reader, where, &origin);
		return false;
	default:
		note_maker(reader, where, &origin);
		return false;
	}
	/* From here on the pointer that was loaded through is followed. What a call may have
	 * overwritten is not known in its caller. */
	if (origin.from_kept & frame->registers.known & 1u << where->reg)
		*value = frame->registers.value[where->reg];
	else if (!register_value(reader, where->frame, where->at, where->reg, 0, value) && known &&
		 !where->index)
		*value = address - (uint64_t)origin.from.displacement;
	note_crooked(reader, where, &origin, *value);
	note_passed(reader, where, *value);
	return true;
}

/* The way is lost in the C library, as where printf() takes its arguments from memory. The next
 * function outside that passed the same value goes on. */
static bool leave_library(const struct backtracker *reader, struct where *where, uint64_t value)
{
	struct where out = *where;
	uint64_t held;

	if (reader->ret->steps.count > 0 || where->index || value >> 16 == 0 ||
	    !backtrack_in_runtime(reader, where->frame))
		return false;
	while (caller_of(reader, &out))
		for (unsigned int i = 0; i < ARGUMENTS && !backtrack_in_runtime(reader, out.frame);
		     i++) {
			out.reg = argument_register(i);
			if (register_value(reader, out.frame, out.at, out.reg, 0, &held) &&
			    held == value) {
				*where = out;
				return true;
			}
		}
	return false;
}

static bool canonical(uint64_t address)
{
	return address >> 47 == 0 || address >> 47 == 0x1ffff;
}

/* call [rax+16]: that place is the first home, if what stands there was jumped to. An address that
 * is none at all faults at the jump, before anybody is there. */
static bool add_jumped(struct backtracker *reader, const struct where *where,
		       const struct access *access, uint64_t target)
{
	const struct registers *now = &reader->frames[where->frame].registers;
	struct origin direct = { .certain = true, .width = 8 };
	uint64_t address;

	if (!memory_operand_address(&access->memory, now, &address) &&
	    !operand_value(reader, where->frame, where->at, &access->memory, 0, 0, &address))
		return false;
	if (!reader->ret->executes) {
		if (!loaded_value(reader, address, 8, &target) || canonical(target))
			return true;
		reader->ret->executes = true;
	}
	add_step(reader, where, &direct, address, target);
	return true;
}

/* Of a base and an index, the one that led astray: the index, where the base is the address of
 * something and what both make is not. */
static bool index_is_wild(const struct backtracker *reader, const struct where *where,
			  const struct memory_operand *memory)
{
	const struct registers *now = &reader->frames[where->frame].registers;
	const struct mapping *at;
	uint64_t base, address;

	if (memory->index < 0 || memory->index >= REGISTERS_MAX ||
	    !(now->known & 1u << memory->index) || memory->segment != NO_REGISTER)
		return false;
	if (memory->base < 0 || memory->base >= REGISTERS_MAX) {
		base = (uint64_t)memory->displacement;
	} else {
		if (!(now->known & 1u << memory->base))
			return false;
		base = now->value[memory->base];
	}
	address = base + now->value[memory->index] * memory->scale;
	if (memory->base >= 0)
		address += (uint64_t)memory->displacement;
	at = snapshot_mapping(&reader->snapshot, base);
	return at && at->perms & MAPPING_READ && (address < at->start || address >= at->end);
}

static uint64_t of_width(uint64_t value, unsigned int width)
{
	return width == 0 || width >= 8 ? value : value & ((UINT64_C(1) << width * 8) - 1);
}

/* What was divided by, in a register or in memory. False when there is nothing to follow. */
static bool begin_division(struct backtracker *reader, struct where *where, uint64_t *value)
{
	const struct registers *now = &reader->frames[0].registers;
	struct trap trap = backtrack_trap(&reader->frames[0]);
	struct origin direct = { .certain = true };
	struct access access;
	uint64_t address;

	if (!arch_access_at(&trap, where->at, &access) || !access.divides)
		return false;
	where->index = true; /* a number */
	if (access.divisor != NO_REGISTER) {
		where->reg = access.divisor;
		reader->ret->divides = reader->ret->by_index = now->known & 1u << where->reg;
		*value = of_width(now->value[where->reg], access.width);
		reader->ret->pointer = *value;
		return reader->ret->divides;
	}
	if (!memory_operand_address(&access.memory, now, &address) ||
	    !loaded_value(reader, address, access.width, value))
		return false;
	reader->ret->divides = reader->ret->by_index = true;
	reader->ret->pointer = *value;
	direct.width = access.width;
	direct.from = access.memory;
	add_step(reader, where, &direct, address, *value);
	return false;
}

/* The access that failed, or the call or jump that led out of the code. False: it is not found. */
static bool find_access(struct backtracker *reader, struct where *where, bool in_code,
			struct access *ret)
{
	struct trap trap = backtrack_trap(&reader->frames[where->frame]);
	bool found = arch_access_at(&trap, where->at, ret);

	/* What was called there has left by a jump. */
	if (!in_code && !(found && ret->jumps) && backtrack_leapt(reader, where->at)) {
		*where = (struct where){ .at = reader->frames[0].pc };
		trap = backtrack_trap(&reader->frames[0]);
		found = arch_access_at(&trap, where->at, ret);
	}
	return found;
}

/* Is the function that this frame runs the C library's own for that system call? `__read_chk()`,
 * `pread()` of pread64 and `recv()` of recvfrom are. */
static bool is_wrapper(const struct backtracker *reader, size_t frame, uint64_t call)
{
	AUTO(stack_deinit) struct stack called = { 0 };
	const char *system = arch_system_call_name((uint32_t)call), *name;

	symbols_name(reader->symbols, &reader->snapshot, reader->frames[frame].start, FRAME_EXACT,
		     &called);
	name = called.count > 0 ? called.frames[called.count - 1].function : NULL;
	if (!name || !system)
		return false;
	name += strspn(name, "_");
	return strncmp(name, system, strlen(system)) == 0 ||
	       strncmp(name, system, strlen(name)) == 0;
}

/* On to whoever called the C library, if the same argument held the value there. What lies between
 * differs from library to library: since 2.41 glibc's goes through functions that may be left by
 * cancellation, and moves the arguments to and fro. */
static void leave_runtime(const struct backtracker *reader, struct where *where,
			  unsigned int argument, uint64_t value)
{
	uint64_t call = reader->frames[0].registers.value[arch_register_find(arch_native(), "rax")];
	struct where out = *where;
	uint64_t held = value;

	while (backtrack_in_runtime(reader, out.frame))
		if (!caller_of(reader, &out))
			return;
	out.reg = argument_register(argument);
	if (out.frame != where->frame && is_wrapper(reader, out.frame - 1, call) &&
	    (!register_value(reader, out.frame, out.at, out.reg, 0, &held) || held == value))
		*where = out;
}

/* A system call was given it: which of its arguments? */
static bool begin_call(struct backtracker *reader, struct where *where, uint64_t *value)
{
	static const char *const names[ARGUMENTS] = { "rdi", "rsi", "rdx", "r10", "r8", "r9" };
	const struct registers *now = &reader->frames[0].registers;

	*value = reader->record->raw.fault_address;
	for (unsigned int i = 0; i < ARGUMENTS; i++) {
		where->reg = arch_register_find(arch_native(), names[i]);
		if (now->known & 1u << where->reg && now->value[where->reg] == *value) {
			leave_runtime(reader, where, i, *value);
			return true;
		}
	}
	return false;
}

/* The register or memory that held the bad pointer. False when there is none. */
static bool begin_access(struct backtracker *reader, struct where *where, uint64_t *value)
{
	const struct log_crash *record = &reader->record->raw;
	bool in_code = reader->frames[0].code_len > 0 &&
		       record->fault_address != record->gregs[LOG_GREG_RIP];
	struct access access;

	if (!in_code) {
		/* Jumped to: the caller has the pointer. */
		reader->ret->executes = true;
		*value = record->gregs[LOG_GREG_RIP];
		if (!caller_of(reader, where))
			return false;
	}
	if (!find_access(reader, where, in_code, &access))
		return false;
	reader->ret->is_write = access.writes;
	if (access.jumps && access.target != NO_REGISTER) {
		where->reg = access.target;
		if (in_code)
			*value = reader->frames[where->frame].registers.value[where->reg];
		return true;
	}
	if (access.jumps && !add_jumped(reader, where, &access, *value))
		return false;
	if (!access.jumps && index_is_wild(reader, where, &access.memory)) {
		reader->ret->by_index = where->index = true;
		where->reg = access.memory.index;
		*value = reader->frames[where->frame].registers.value[where->reg];
		return true;
	}
	if (access.memory.fixed || access.memory.base < 0 || access.memory.base >= REGISTERS_MAX)
		return false;
	where->reg = access.memory.base;
	*value = reader->frames[where->frame].registers.value[where->reg];
	return true;
}

/* The last free of what is no block's start, and the block that the pointer led into. 0: none. */
static uint64_t freed_wrongly(struct event_log *log, struct log_block *ret_block)
{
	struct log_item item, owned;
	struct log_bad_free bad;
	uint64_t ret = 0;

	log_reader_rewind(&log->reader);
	while (log_reader_next(&log->reader, &item)) {
		if (item.head.type != LOG_BAD_FREE || !log_payload(&item, &bad, sizeof(bad)) ||
		    (bad.kind != LOG_INTERIOR_FREE && bad.kind != LOG_INVALID_FREE))
			continue;
		ret = bad.pointer;
		owned = item;
		*ret_block = (struct log_block){ 0 };
		if (log_next_owned(&log->reader, item.head.seq, &owned) &&
		    owned.head.type == LOG_BLOCK)
			(void)log_payload(&owned, ret_block, sizeof(*ret_block));
	}
	return ret;
}

/* The allocator ended it because of the pointer that it was given: by the first function outside of
 * the C library. */
static bool begin_free(struct backtracker *reader, struct where *where, uint64_t *value)
{
	uint64_t held;

	*value = freed_wrongly(reader->record->log, &reader->freed);
	while (backtrack_in_runtime(reader, where->frame) ||
	       event_log_is_agent(reader->record->log, reader->frames[where->frame].pc))
		if (!caller_of(reader, where))
			return false;
	where->reg = argument_register(0);
	reader->ret->freed = true;
	return where->frame > 0 &&
	       (!register_value(reader, where->frame, where->at, where->reg, 0, &held) ||
		held == *value);
}

static bool begin(struct backtracker *reader, struct where *where, uint64_t *value)
{
	*where = (struct where){ .at = reader->frames[0].pc };
	switch (reader->record->raw.signo) {
	case SIGFPE:
		return begin_division(reader, where, value);
	case SIGSYS:
		return begin_call(reader, where, value);
	case SIGABRT:
		return begin_free(reader, where, value);
	default:
		return begin_access(reader, where, value);
	}
}

int backtrack_read(const struct crash_record *record, struct symbols *symbols,
		   struct backtrack *ret, struct err *err)
{
	struct backtracker reader = { .record = record, .symbols = symbols, .ret = ret };
	struct where where;
	uint64_t value = 0;
	unsigned int rounds = 0;

	crash_record_snapshot(record, &reader.snapshot);
	reader.count = symbols_machine_frames(symbols, &reader.snapshot, reader.frames, FRAMES_MAX);
	if (reader.count > 0 && backtrack_smashed(&reader)) {
		machine_frames_free(reader.frames, reader.count);
		return 0;
	}
	if (record->raw.flags & LOG_CRASH_SENT &&
	    (record->raw.signo != SIGABRT || freed_wrongly(record->log, &reader.freed) == 0)) {
		machine_frames_free(reader.frames, reader.count);
		return err_set(err, -ENODATA,
			       "the signal was sent: no instruction read a bad value");
	}
	if (reader.count > 0 && begin(&reader, &where, &value)) {
		ret->pointer = value;
		if (reader.freed.id != 0)
			ret->pointed = reader.freed;
		else if (!ret->by_index)
			find_pointed(record, value, &ret->pointed, &ret->pointed_former);
		while (ret->steps.count < STEPS_MAX && rounds++ < ROUNDS_MAX &&
		       (follow(&reader, &where, &value) || leave_library(&reader, &where, value)))
			;
		if (!ret->divides)
			backtrack_take_found(&reader);
		ret->owners = backtrack_owners(&reader);
	}
	machine_frames_free(reader.frames, reader.count);
	backtrack_step_deinit(&reader.hint);
	if (ret->steps.count == 0)
		return err_set(err, -ENODATA,
			       "where the bad value was loaded from cannot be read back");
	return 0;
}

void backtrack_deinit(struct backtrack *backtrack)
{
	VEC_FREE(&backtrack->steps, step, backtrack_step_deinit(step));
	mem_free(backtrack->returned_by);
}
