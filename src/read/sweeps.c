#include "read/sweeps.h"

#include <inttypes.h>
#include <string.h>

#include "read/globals.h"
#include "wire/plan.h"

#define DANGLING_MAX 200
#define HOLDERS_MAX 32
#define RECORDS_MAX 100000
#define STACKS_MAX 5000
#define TRIALS_MAX 64 /* of which it is kept that a holder was used in them */

/* A pointer that a sweep came upon. */
struct held {
	struct log_holder record;
	bool at_crash; /* it stood there when the process died, not only when the block was freed */
};

/* What the sweeps of one process found, and what its crash touched. */
struct sweeping {
	struct event_logs *logs;
	struct symbols *symbols;
	uint64_t trial;
	const struct crash *crash; /* NULL: it did not die of one */
	struct event_log *log;
	struct heap_report *report;
	VEC(struct log_block) targets;
	VEC(struct held) holders;
	VEC(struct log_block) touched; /* by the crash */
	VEC(uint64_t) registers;       /* of the crash */
	bool sent;		       /* it was raised or aborted, no instruction failed */
	struct log_crash before;       /* the latest that a handler of the target took … */
	uint64_t before_seq;	       /* … and its number */
};

static void sweeping_deinit(struct sweeping *s)
{
	VEC_DEINIT(&s->targets);
	VEC_DEINIT(&s->holders);
	VEC_DEINIT(&s->touched);
	VEC_DEINIT(&s->registers);
}

static bool is_target(const struct sweeping *s, uint64_t id)
{
	return VEC_ANY(&s->targets, target, target->id == id);
}

/* What the crash is about may have been looked for before, at its free: still one block. */
static void take_block(struct sweeping *s, const struct log_item *item, bool at_crash)
{
	struct log_block block;

	if (!log_payload(item, &block, sizeof(block)) ||
	    (at_crash && block.via == LOG_VIA_SWEEP && is_target(s, block.id)))
		return;
	if (block.via == LOG_VIA_SWEEP && s->targets.count < RECORDS_MAX)
		VEC_PUSH(&s->targets, block);
	else if (block.via == LOG_VIA_REGISTER || block.via == LOG_VIA_FAULT ||
		 block.via == LOG_VIA_POISON || block.via == LOG_VIA_MEMORY)
		VEC_PUSH(&s->touched, block);
}

static void take_crash(struct sweeping *s, const struct log_item *item)
{
	struct log_crash crash;

	if (!log_payload(item, &crash, sizeof(crash)))
		return;
	if (!(crash.flags & LOG_CRASH_FINAL)) {
		s->before = crash;
		s->before_seq = item->head.seq;
		return;
	}
	/* Raised again by that handler: what it was raised for is the crash. */
	if ((crash.flags & LOG_CRASH_SENT) && crash.follows != 0 && crash.follows == s->before_seq)
		crash = s->before;
	s->sent = crash.flags & LOG_CRASH_SENT;
	for (unsigned int i = 0; i < LOG_GREG_RSP; i++)
		VEC_PUSH(&s->registers, crash.gregs[i]);
}

static void gather(struct sweeping *s)
{
	struct log_item item;
	bool at_crash = false; /* sweeps follow one another, each with its holders */

	log_reader_rewind(&s->log->reader);
	while (log_reader_next(&s->log->reader, &item)) {
		struct held held = { .at_crash = at_crash };
		struct log_sweep sweep;

		if (item.head.type == LOG_BLOCK)
			take_block(s, &item, at_crash);
		else if (item.head.type == LOG_CRASH)
			take_crash(s, &item);
		else if (item.head.type == LOG_HOLDER && s->holders.count < RECORDS_MAX &&
			 log_payload(&item, &held.record, sizeof(held.record)))
			VEC_PUSH(&s->holders, held);
		else if (item.head.type == LOG_SWEEP && log_payload(&item, &sweep, sizeof(sweep))) {
			s->report->sweep_bytes += sweep.read_bytes;
			at_crash = sweep.at == PLAN_SWEEP_AT_CRASH;
		}
	}
	s->report->swept += s->targets.count;
}

/* Did the crash go through this freed block? Only what the failing instruction used, or got its
 * address from, counts: a register may hold a pointer that nobody has use for any more. */
static bool was_used(const struct sweeping *s, uint64_t id)
{
	if (!s->crash || (uint32_t)s->crash->pid != s->log->reader.header.pid)
		return false;
	return VEC_ANY(&s->crash->blocks, block,
		       block->id == id && block->telling &&
			       (block->state == BLOCK_FREED || block->former));
}

/* Did it get there by this very pointer? Its value is in a register, or the block that holds it is
 * what a register led to. */
static bool was_way(const struct sweeping *s, const struct log_holder *holder)
{
	if (!was_used(s, holder->target_id))
		return false;
	VEC_FOREACH (&s->registers, value)
		if (*value == holder->value)
			return true;
	return VEC_ANY(&s->touched, block,
		       holder->kind == LOG_HELD_BY_BLOCK && block->id == holder->id);
}

static struct heap_dangling *dangling_of(struct sweeping *s, const struct log_block *target)
{
	struct event_log *home = event_logs_owner(s->logs, s->log, target->id);
	struct heap_dangling fresh = { .size = target->size,
				       .trial = s->trial,
				       .python = target->api == LOG_API_PYTHON_OBJECT };
	struct log_context row;

	if (!home || !log_context_row(&home->reader, target->context, &row))
		return NULL;
	fresh.context = mem_printf("%016" PRIx64, row.stack_hash);
	VEC_FOREACH (&s->report->dangling, known) {
		if (strcmp(known->context, fresh.context) == 0) {
			mem_free(fresh.context);
			return known;
		}
	}
	if (s->report->dangling.count >= DANGLING_MAX) {
		mem_free(fresh.context);
		return NULL;
	}
	fresh.key = event_log_key(home, &target->key, target->context);
	(void)event_log_allocation(home, target->context, s->symbols, &fresh.allocated);
	(void)event_log_freeing(s->log, target->free_context, s->symbols, &fresh.freed);
	VEC_PUSH(&s->report->dangling, fresh);
	return &s->report->dangling.items[s->report->dangling.count - 1];
}

static bool same_holder(const struct heap_holder *a, const struct heap_holder *b)
{
	if (strcmp(a->kind, b->kind) != 0)
		return false;
	/* Which element of a table it is may differ from trial to trial: it is one variable. */
	if (strcmp(a->kind, "global") == 0 && a->name && b->name && a->module && b->module)
		return strcmp(a->name, b->name) == 0 && strcmp(a->module, b->module) == 0;
	if (strcmp(a->kind, "global") == 0)
		return a->module_offset == b->module_offset;
	if (strcmp(a->kind, "block") == 0)
		return a->offset == b->offset && a->stack.count == b->stack.count &&
		       (a->stack.count == 0 ||
			a->stack.frames[0].offset == b->stack.frames[0].offset);
	return a->lane == b->lane;
}

static void add_trial(struct heap_trials *trials, uint64_t trial)
{
	size_t count = trials->list.count;

	if (count < TRIALS_MAX && (count == 0 || trials->list.items[count - 1] != trial))
		VEC_PUSH(&trials->list, trial);
}

static void add_holder(struct heap_dangling *dangling, struct heap_holder holder, uint64_t trial)
{
	VEC_FOREACH (&dangling->holders, known) {
		if (!same_holder(known, &holder))
			continue;
		known->count++;
		known->used |= holder.used;
		known->trials += known->last_trial != trial;
		known->last_trial = trial;
		if (holder.used_in.list.count > 0)
			add_trial(&known->used_in, trial);
		if (holder.there_in.list.count > 0)
			add_trial(&known->there_in, trial);
		heap_holder_deinit(&holder);
		return;
	}
	if (dangling->holders.count >= HOLDERS_MAX) {
		heap_holder_deinit(&holder);
		return;
	}
	holder.count = holder.trials = 1;
	holder.last_trial = trial;
	VEC_PUSH(&dangling->holders, holder);
}

static void tell_holder(struct sweeping *s, const struct held *held, struct heap_dangling *dangling)
{
	static const char *const kinds[] = { [LOG_HELD_BY_BLOCK] = "block",
					     [LOG_HELD_BY_FILE] = "global",
					     [LOG_HELD_BY_STACK] = "stack",
					     [LOG_HELD_BY_MEMORY] = "memory",
					     [LOG_HELD_BY_REGISTER] = "register" };
	static const char *const registers[] = { "r8",	"r9",  "r10", "r11", "r12", "r13",
						 "r14", "r15", "rdi", "rsi", "rbp", "rbx",
						 "rdx", "rax", "rcx", "rsp", "rip" };
	const struct log_holder *record = &held->record;
	struct heap_holder holder = { .lane = -1 };
	struct event_log *home;
	struct global_place global;

	if (record->kind >= ARRAY_SIZE(kinds) || !kinds[record->kind])
		return;
	holder.kind = mem_strdup(kinds[record->kind]);
	holder.target_offset = (int64_t)(record->value - record->target_start);
	holder.used = was_way(s, record);
	if (held->at_crash && was_used(s, record->target_id))
		add_trial(holder.used ? &holder.used_in : &holder.there_in, s->trial);
	if (record->kind == LOG_HELD_BY_BLOCK) {
		struct log_block block = { .context = record->context };

		holder.size = record->size;
		holder.offset = record->where - record->start;
		home = event_logs_owner(s->logs, s->log, record->id);
		if (home) {
			holder.key = event_log_key(home, &block.key, block.context);
			(void)event_log_context(home, record->context, s->symbols, &holder.stack);
		}
	} else if (record->kind == LOG_HELD_BY_STACK) {
		holder.lane = (int)record->id;
	} else if (record->kind == LOG_HELD_BY_REGISTER) {
		if (record->where < ARRAY_SIZE(registers))
			holder.name = mem_strdup(registers[record->where]);
	} else if (global_find(s->log, s->symbols, record->where, &global)) {
		mem_free(holder.kind);
		holder.kind = mem_strdup("global");
		holder.name = global.name;
		holder.module = global.module;
		holder.module_offset = global.offset;
		holder.name_offset = global.within;
	}
	add_holder(dangling, holder, s->trial);
}

/* What the C library made, gave back and left on a stack on its way to an abort (the text of a
 * failed assertion, for one) is its own affair. */
static bool is_leftover(const struct sweeping *s, const struct heap_dangling *dangling)
{
	if (!s->sent || heap_dangling_held(dangling) || dangling->allocated.count == 0 ||
	    dangling->freed.count == 0)
		return false;
	return frame_is_runtime(&dangling->allocated.frames[0]) &&
	       frame_is_runtime(&dangling->freed.frames[0]);
}

static void read_log(struct sweeping *s)
{
	gather(s);
	VEC_FOREACH (&s->targets, target) {
		struct heap_dangling *dangling = NULL;
		bool used = was_used(s, target->id);

		VEC_FOREACH (&s->holders, holder) {
			if (holder->record.target_id != target->id)
				continue;
			if (!dangling)
				dangling = dangling_of(s, target);
			if (!dangling)
				break;
			tell_holder(s, holder, dangling);
		}
		if (!dangling)
			continue;
		dangling->blocks++;
		dangling->leftover = is_leftover(s, dangling);
		dangling->used |= used && !dangling->leftover;
	}
}

void sweeps_read(struct reading *reading, const struct crash *crash, struct heap_report *report)
{
	struct event_logs *logs;

	if (reading_logs(reading, &logs, NULL) < 0)
		return;
	VEC_FOREACH (&logs->list, log) {
		AUTO(sweeping_deinit)
		struct sweeping s = { .logs = logs,
				      .symbols = reading_symbols(reading),
				      .trial = reading_trial(reading),
				      .crash = crash,
				      .log = log,
				      .report = report };

		read_log(&s);
	}
}

static void tell_global(const struct log_holder *record, const struct global_place *global,
			struct home *ret)
{
	*ret = (struct home){ .kind = HOME_GLOBAL,
			      .name = global->name,
			      .module = global->module,
			      .offset = (int64_t)(global->name ? global->within : global->offset),
			      .len = sizeof(uint64_t),
			      .address = record->where };
}

/* With the key that names the same block in another run; false: not known. */
static bool tell_block(struct event_log *log, const struct log_holder *record, struct home *ret)
{
	struct log_context row;
	struct block_key key;

	if (!log || record->number == 0 || !log_context_row(&log->reader, record->context, &row))
		return false;
	key = (struct block_key){ .stack_hash = row.stack_hash,
				  .lane = row.lane,
				  .ordinal = record->number - 1 };
	*ret = (struct home){ .kind = HOME_BLOCK,
			      .key = event_log_key(log, &key, record->context),
			      .block_id = record->id,
			      .offset = (int64_t)(record->where - record->start),
			      .len = sizeof(uint64_t),
			      .address = record->where };
	return true;
}

static void note_holder(struct sweeping *s, const struct log_holder *record,
			struct swept_holders *ret)
{
	struct global_place global = { 0 };
	struct home home = { 0 };
	bool known = true;

	if (record->kind == LOG_HELD_BY_STACK || record->kind == LOG_HELD_BY_REGISTER)
		return;
	if (record->kind == LOG_HELD_BY_BLOCK)
		known = tell_block(event_logs_owner(s->logs, s->log, record->id), record, &home);
	else if (global_find(s->log, s->symbols, record->where, &global))
		tell_global(record, &global, &home);
	else
		return;
	ret->count++;
	if (!known || ret->known == SWEPT_KNOWN) {
		home_deinit(&home);
		return;
	}
	ret->homes[ret->known] = home;
	ret->logs[ret->known++] = s->log;
}

void sweeps_holders_of(struct reading *reading, uint64_t block, struct swept_holders *ret)
{
	struct event_logs *logs;

	*ret = (struct swept_holders){ 0 };
	if (reading_logs(reading, &logs, NULL) < 0)
		return;
	VEC_FOREACH (&logs->list, log) {
		struct heap_report unused = { 0 };
		AUTO(sweeping_deinit)
		struct sweeping s = { .logs = logs,
				      .symbols = reading_symbols(reading),
				      .log = log,
				      .report = &unused };

		gather(&s);
		VEC_FOREACH (&s.holders, held)
			if (held->record.target_id == block && held->at_crash)
				note_holder(&s, &held->record, ret);
	}
}

void swept_holders_deinit(struct swept_holders *holders)
{
	for (size_t i = 0; i < holders->known; i++)
		home_deinit(&holders->homes[i]);
}

static bool names_function(const struct stack *stack, const char *function)
{
	size_t len = strlen(function);

	for (size_t i = 0; i < stack->count; i++) {
		const char *name = stack->frames[i].function;

		if (name && strncmp(name, function, len) == 0 &&
		    (name[len] == '\0' || name[len] == '('))
			return true;
	}
	return false;
}

size_t sweeps_contexts_of(struct reading *reading, const char *function, uint64_t *ret, size_t room)
{
	size_t count = 0, stacks = 0;
	struct event_logs *logs;

	if (reading_logs(reading, &logs, NULL) < 0)
		return 0;
	VEC_FOREACH (&logs->list, log) {
		uint32_t rows = log_context_count(&log->reader);

		for (uint32_t row = 1; row < rows && count < room && stacks < STACKS_MAX; row++) {
			AUTO(stack_deinit) struct stack stack = { 0 };
			struct log_context found;
			bool known = false;

			if (!log_context_row(&log->reader, row, &found) ||
			    !event_log_context(log, row, reading_symbols(reading), &stack))
				continue;
			stacks++;
			for (size_t i = 0; i < count; i++)
				known |= ret[i] == found.stack_hash;
			if (!known && names_function(&stack, function))
				ret[count++] = found.stack_hash;
		}
	}
	return count;
}
