#include "hunt/observations/watchset.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arch/arch.h"

#define WATCHED_MAX 8u
#define GREGS_NAMED 18u
#define FRAME_HEAD \
	16u /* the return address and the caller's frame pointer: psABI, the stack frame */

void watchset_deinit(struct watchset *watchset)
{
	VEC_FOREACH (&watchset->list, spec) {
		home_deinit(&spec->home);
		mem_free(spec->module);
	}
	VEC_DEINIT(&watchset->list);
}

static const struct mapping *module_at(const struct event_log *log, uint64_t address)
{
	return VEC_FIND(&log->modules, item, address >= item->start && address < item->end);
}

static const struct mapping *module_called(const struct event_log *log, const char *path)
{
	return VEC_FIND(&log->modules, item, item->path && strcmp(item->path, path) == 0);
}

static bool place_in(struct watch_spec *spec, const struct mapping *module, uint64_t address)
{
	if (!module || !module->bias_known || !module->path)
		return false;
	spec->identity = wire_module_identity(module->build_id, module->build_id_len, module->path);
	spec->address = address - module->bias;
	spec->module = mem_strdup(module->path);
	return true;
}

static uint32_t bytes_of(uint64_t width)
{
	return width > 0 && width < WATCHED_MAX ? (uint32_t)width : WATCHED_MAX;
}

bool watchset_add_step(struct watchset *watchset, const struct crash_record *record,
		       const struct backtrack_step *step, unsigned int level, enum locate_by by,
		       size_t handle)
{
	struct watch_spec spec = { .by = by,
				   .level = level,
				   .key = step->in.key,
				   .bytes = bytes_of(step->width),
				   .offset = step->home.offset };
	bool placed = false;

	if (by == LOCATE_KEY || by == LOCATE_CONTEXT)
		placed = step->home.kind == HOME_BLOCK && step->in.key.stack_hash != 0;
	if (by == LOCATE_GLOBAL && step->home.kind == HOME_GLOBAL && step->home.module)
		placed = place_in(&spec, module_called(record->log, step->home.module),
				  step->home.address);
	if (by == LOCATE_THREAD)
		placed = step->home.kind == HOME_THREAD;
	if (by == LOCATE_FRAME && step->home.kind == HOME_STACK && step->function != 0)
		placed = place_in(&spec, module_at(record->log, step->function), step->function);
	if (by == LOCATE_ARGUMENT && handle < step->handles.count) {
		const struct backtrack_handle *h =
			&step->handles.items[step->handles.count - 1 - handle];

		spec.argument = h->argument;
		spec.offset = h->offset;
		placed = h->function != 0 &&
			 place_in(&spec, module_at(record->log, h->function), h->function);
	}
	if (!placed || watchset->list.count == PLAN_WATCHES_MAX) {
		mem_free(spec.module);
		return false;
	}
	home_copy(&spec.home, &step->home);
	VEC_PUSH(&watchset->list, spec);
	return true;
}

bool watchset_add_rows(struct watchset *watchset, const struct crash_record *record,
		       const struct backtrack_step *step, uint64_t stride, unsigned int turn)
{
	static const uint64_t shifts[] = { 0, PLAN_WATCHES_MAX / 2, PLAN_WATCHES_MAX / 4 };
	struct backtrack_step row = *step;
	uint64_t first = (uint64_t)step->home.offset % stride, rows, turns;

	if (step->home.offset < 0 || stride < step->width || step->in.size < first + step->width)
		return false;
	rows = (step->in.size - first - step->width) / stride + 1;
	turns = (rows + PLAN_WATCHES_MAX - 1) / PLAN_WATCHES_MAX;
	if (turn > 0 && (turns == 1 || turn >= turns * ARRAY_SIZE(shifts)))
		return false;
	for (uint64_t i = 0; i < rows && i < PLAN_WATCHES_MAX; i++) {
		uint64_t at = turn % turns * PLAN_WATCHES_MAX + shifts[turn / turns] + i;

		row.home.offset = (int64_t)(first + at % rows * stride);
		if (!watchset_add_step(watchset, record, &row, 0, LOCATE_CONTEXT, 0))
			return false;
		watchset->list.items[watchset->list.count - 1].row = true;
	}
	return rows > 1;
}

bool watchset_add_source(struct watchset *watchset, const struct write_seen *write,
			 const struct source_place *place, unsigned int level)
{
	const struct home *source = &write->source;
	struct watch_spec spec = { .level = level,
				   .key = place->key,
				   .bytes = bytes_of(source->len),
				   .offset = source->offset,
				   .identity = place->identity,
				   .address = place->address };

	if (watchset->list.count == PLAN_WATCHES_MAX)
		return false;
	if (source->kind == HOME_BLOCK && place->key.stack_hash != 0)
		spec.by = LOCATE_KEY;
	else if (source->kind == HOME_GLOBAL && place->identity != 0)
		spec.by = LOCATE_GLOBAL;
	else
		return false;
	home_copy(&spec.home, source);
	VEC_PUSH(&watchset->list, spec);
	return true;
}

bool watchset_add_global(struct watchset *watchset, const struct event_log *log,
			 const struct home *home)
{
	struct watch_spec spec = { .by = LOCATE_GLOBAL, .bytes = bytes_of(home->len) };

	if (watchset->list.count == PLAN_WATCHES_MAX || !home->module ||
	    !place_in(&spec, module_called(log, home->module), home->address))
		return false;
	home_copy(&spec.home, home);
	VEC_PUSH(&watchset->list, spec);
	return true;
}

bool watchset_add_result(struct watchset *watchset, const struct backtrack_step *step,
			 unsigned int level, const char *function)
{
	struct watch_spec spec = { .by = LOCATE_RESULT,
				   .level = level,
				   .key = step->in.key,
				   .bytes = bytes_of(step->width),
				   .offset = step->home.offset };

	if (watchset->list.count == PLAN_WATCHES_MAX)
		return false;
	spec.module = mem_strdup(function);
	home_copy(&spec.home, &step->home);
	VEC_PUSH(&watchset->list, spec);
	return true;
}

/* CONTEXT[@LANE]#ORDINAL, as event_log_key() writes it. */
static bool key_parse(const char *text, struct block_key *ret)
{
	unsigned int lane = 0, ordinal;
	uint64_t hash;

	/* Digits that overflow make another key, which no block has. */
	// NOLINTBEGIN(cert-err34-c)
	if (!text || (sscanf(text, "%16" SCNx64 "@%u#%u", &hash, &lane, &ordinal) != 3 &&
		      (lane = 0, sscanf(text, "%16" SCNx64 "#%u", &hash, &ordinal) != 2)))
		return false;
	// NOLINTEND(cert-err34-c)
	*ret = (struct block_key){ .stack_hash = hash, .lane = lane, .ordinal = ordinal };
	return hash != 0;
}

bool watchset_add_block(struct watchset *watchset, const char *key, int64_t offset, uint32_t bytes)
{
	struct watch_spec spec = { .by = LOCATE_KEY, .offset = offset, .bytes = bytes_of(bytes) };

	if (watchset->list.count == PLAN_WATCHES_MAX || !key_parse(key, &spec.key))
		return false;
	spec.home = (struct home){
		.kind = HOME_BLOCK, .key = mem_strdup(key), .offset = offset, .len = spec.bytes
	};
	VEC_PUSH(&watchset->list, spec);
	return true;
}

bool watchset_add_fence(struct watchset *watchset, const char *context)
{
	struct watch_spec spec = { .by = LOCATE_CONTEXT, .bytes = WATCHED_MAX, .fence = true };
	char *end;

	spec.key.stack_hash = strtoull(context, &end, 16);
	if (watchset->list.count == PLAN_WATCHES_MAX || end == context)
		return false;
	spec.home = (struct home){ .kind = HOME_BLOCK, .key = mem_strdup(context) };
	VEC_PUSH(&watchset->list, spec);
	return true;
}

bool watchset_add_near(struct watchset *watchset, const struct crash_record *record,
		       const struct backtrack_step *step, int64_t distance)
{
	struct watch_spec *spec;

	if (!watchset_add_step(watchset, record, step, 0, LOCATE_GLOBAL, 0))
		return false;
	spec = &watchset->list.items[watchset->list.count - 1];
	spec->bytes = WATCHED_MAX;
	spec->address = (spec->address & ~(uint64_t)(WATCHED_MAX - 1)) + (uint64_t)distance;
	spec->home.offset = (spec->home.offset & ~(int64_t)(WATCHED_MAX - 1)) + distance;
	spec->home.len = WATCHED_MAX;
	return true;
}

bool watchset_add_damage(struct watchset *watchset, const struct heap_finding *finding)
{
	if (!watchset_add_block(watchset, finding->key, finding->offset, bytes_of(finding->length)))
		return false;
	watchset->list.items[watchset->list.count - 1].after_free =
		finding->kind == HEAP_WRITE_AFTER_FREE;
	watchset->list.items[watchset->list.count - 1].size = finding->size;
	return true;
}

/* One byte takes one debug register, wherever it lies. */
bool watchset_widen(struct watchset *watchset)
{
	struct watch_spec *first = watchset->list.items;

	if (watchset->list.count == 0 || first->by != LOCATE_KEY || first->after_free ||
	    first->size == 0)
		return false;
	for (size_t i = 1; i < watchset->list.count; i++) {
		home_deinit(&first[i].home);
		mem_free(first[i].module);
	}
	watchset->list.count = 1;
	first->by = LOCATE_CONTEXT;
	first->bytes = 1;
	first->home.len = 1;
	return true;
}

bool watchset_add_count(struct watchset *watchset, const char *key, int64_t offset)
{
	if (!watchset_add_block(watchset, key, offset, WATCHED_MAX))
		return false;
	watchset->list.items[watchset->list.count - 1].count = true;
	return true;
}

/* Where its returns cannot all be seen, the next call ends what the last one began. */
static int plan_frame(struct hook_planner *planner, const char *function, uint32_t number,
		      bool after_return, struct strbuf *items, struct err *err)
{
	struct hook_use use = { .role = HOOK_WATCH_FRAME,
				.number = number,
				.pointer = HOOK_NO_ARGUMENT,
				.size = HOOK_NO_ARGUMENT,
				.count = HOOK_NO_ARGUMENT };

	if (!after_return && hook_plan(planner, function, &use, items, NULL) == 0)
		return 0;
	use.role = HOOK_WATCH_ENTERED;
	return hook_plan(planner, function, &use, items, err);
}

static int plan_hook(struct watch_spec *spec, struct hook_planner *planner, uint32_t number,
		     struct strbuf *items, struct err *err)
{
	AUTO(mem_freep)
	char *function = spec->by == LOCATE_RESULT
				 ? mem_strdup(spec->module)
				 : mem_printf("%s+0x%" PRIx64, spec->module, spec->address);

	if (spec->by == LOCATE_FRAME)
		return plan_frame(planner, function, number, spec->after_return, items, err);
	return hook_plan_watch(planner, function,
			       spec->by == LOCATE_RESULT ? -1 : (int)spec->argument, number, items,
			       err);
}

static uint32_t flags_of(const struct watch_spec *spec)
{
	return (spec->after_free ? PLAN_WATCH_AFTER_FREE : 0) |
	       (spec->reads ? PLAN_WATCH_READS : 0) | (spec->count ? PLAN_WATCH_COUNT : 0) |
	       (spec->fence ? PLAN_WATCH_FENCE : 0) |
	       (spec->by == LOCATE_CONTEXT ? PLAN_WATCH_ANY_LANE : 0);
}

int watchset_plan(struct watchset *watchset, struct hook_planner *planner, struct strbuf *items,
		  struct err *err)
{
	static const uint32_t kinds[] = {
		[LOCATE_KEY] = PLAN_WATCH_KEY,	   [LOCATE_ARGUMENT] = PLAN_WATCH_HOOK,
		[LOCATE_RESULT] = PLAN_WATCH_HOOK, [LOCATE_GLOBAL] = PLAN_WATCH_GLOBAL,
		[LOCATE_FRAME] = PLAN_WATCH_HOOK,  [LOCATE_THREAD] = PLAN_WATCH_THREAD,
		[LOCATE_CONTEXT] = PLAN_WATCH_KEY
	};

	for (size_t i = 0; i < watchset->list.count; i++) {
		struct watch_spec *spec = &watchset->list.items[i];
		struct plan_watch watch = {
			.item = { .type = PLAN_ITEM_WATCH, .bytes = sizeof(watch) },
			.kind = kinds[spec->by],
			.bytes = spec->bytes,
			.offset = spec->offset,
			.key = spec->key,
			.flags = flags_of(spec),
			.size_low = spec->by == LOCATE_CONTEXT ? spec->size : 0,
			.size_high = spec->by == LOCATE_CONTEXT ? spec->size : 0,
			.ordinal_reach = spec->by == LOCATE_CONTEXT ? UINT32_MAX : 0,
			.policy = spec->by == LOCATE_KEY ? PLAN_WATCH_OLDEST : PLAN_WATCH_NEWEST
		};
		struct plan_range range = { .identity = spec->identity,
					    .address = spec->address,
					    .bytes = spec->bytes };

		if ((spec->by == LOCATE_ARGUMENT || spec->by == LOCATE_RESULT ||
		     spec->by == LOCATE_FRAME) &&
		    !spec->refused && plan_hook(spec, planner, (uint32_t)i, items, err) < 0)
			spec->refused = true;
		if (spec->by == LOCATE_GLOBAL) {
			watch.offset = 0;
			watch.place_count = watch.range_count = 1;
			watch.item.bytes += sizeof(range);
		}
		strbuf_add(items, &watch, sizeof(watch));
		if (spec->by == LOCATE_GLOBAL)
			strbuf_add(items, &range, sizeof(range));
	}
	return 0;
}

static uint64_t low_bytes(uint64_t value, unsigned int len)
{
	return len == 0 || len >= 8 ? value : value & ((1ull << len * 8) - 1);
}

/* The life in which the place got the value: the last that began with another one and ended with
 * it. One that has not ended counts by what was seen last. */
static bool find_life(struct event_log *log, const struct victim *victim, struct log_watched *ret)
{
	bool found = false;

	for (uint32_t i = 0; i < LOG_WATCHED; i++) {
		struct log_watched row;
		bool got;

		if (!log_watched(&log->reader, i, &row) || row.address != victim->address)
			continue;
		if (victim->id != 0 && row.id != 0 && row.id != victim->id)
			continue;
		got = low_bytes(row.last_value, victim->len) ==
			      low_bytes(victim->value, victim->len) ||
		      row.end == LOG_WATCHED_STILL;
		if (got &&
		    (low_bytes(row.first_value, victim->len) !=
			     low_bytes(victim->value, victim->len) ||
		     row.end == LOG_WATCHED_STILL) &&
		    (!found || row.number > ret->number)) {
			*ret = row;
			found = true;
		}
	}
	return found;
}

bool watchset_covers(struct event_log *log, const struct victim *victim, bool from_birth)
{
	for (uint32_t i = 0; i < LOG_WATCHED; i++) {
		struct log_watched row;

		if (log_watched(&log->reader, i, &row) && row.address == victim->address &&
		    (victim->id == 0 || row.id == 0 || row.id == victim->id) &&
		    row.end != LOG_WATCHED_DISPLACED && row.end != LOG_WATCHED_YIELDED &&
		    (from_birth || low_bytes(row.first_value, victim->len) !=
					   low_bytes(victim->value, victim->len)))
			return true;
	}
	return false;
}

static const struct hit *find_number(const struct trial_hits *log, const struct event_log *in,
				     uint64_t number)
{
	return VEC_FIND(&log->hits, caught, caught->log == in && caught->hit->number == number);
}

static const struct hit *find_rip(const struct trial_hits *log, const struct event_log *in,
				  uint64_t rip)
{
	return VEC_FIND(&log->hits, caught,
			caught->log == in && caught->hit->gregs[LOG_GREG_RIP] == rip);
}

/* The latest whole hit on the place that left the value; with `before`, the latest before that. */
static const struct hit *find_value(const struct trial_hits *log, const struct event_log *in,
				    const struct victim *victim)
{
	const struct hit *found = NULL;

	VEC_FOREACH (&log->hits, caught) {
		const struct log_hit *hit = caught->hit;

		if (caught->log != in || hit->address != victim->address ||
		    (hit->flags & LOG_HIT_ALONGSIDE) ||
		    (victim->before != 0 && hit->number >= victim->before))
			continue;
		if (low_bytes(watched_word(hit->new, hit->bytes), victim->len) ==
		    low_bytes(victim->value, victim->len))
			found = caught;
	}
	return found;
}

void watchset_look(const struct trial_hits *log, struct event_log *in, const struct victim *victim,
		   struct watchset_result *ret)
{
	*ret = (struct watchset_result){ 0 };
	ret->watched = find_life(in, victim, &ret->row);
	ret->since_birth = ret->watched && ret->row.end == LOG_WATCHED_STILL;
	ret->last = find_value(log, in, victim);
	if (ret->last) {
		ret->caught = ret->exact = true;
		ret->watched = true;
		return;
	}
	if (victim->before != 0 || !log_last(&in->reader, victim->address, &ret->brief) ||
	    low_bytes(ret->brief.new_word, victim->len) != low_bytes(victim->value, victim->len))
		return;
	ret->last = find_number(log, in, ret->brief.hit);
	ret->exact = ret->last != NULL;
	if (!ret->last)
		ret->last = find_rip(log, in, ret->brief.rip);
	ret->caught = ret->last != NULL;
	ret->watched |= ret->caught;
}

const struct hit *watchset_brought(const struct trial_hits *log, struct event_log *in,
				   const struct victim *victim,
				   const struct watchset_result *result)
{
	const struct hit *found = NULL;

	VEC_FOREACH (&log->hits, caught) {
		const struct log_hit *hit = caught->hit;

		if (caught->log == in && hit->address == victim->address &&
		    !(hit->flags & (LOG_HIT_ALONGSIDE | LOG_HIT_IMPRECISE)) &&
		    hit->number < result->last->hit->number &&
		    memcmp(hit->old, hit->new, sizeof(hit->new)) != 0 &&
		    low_bytes(watched_word(hit->new, hit->bytes), victim->len) ==
			    low_bytes(victim->value, victim->len))
			found = caught;
	}
	return found;
}

bool watchset_through_freed_object(const struct watchset_result *result,
				   const struct write_seen *write)
{
	const struct log_hit *hit = result->last->hit;

	if (!write->base || write->base->state != BLOCK_FREED)
		return false;
	for (size_t i = 0; i < LOG_HIT_OWNERS && hit->owners[i].greg != 255; i++)
		if (hit->owners[i].space != 0 && hit->owners[i].id == write->base->id)
			return true;
	return false;
}

bool watchset_next_write(const struct trial_hits *log, struct event_log *in, uint64_t address,
			 uint64_t after_ns, struct watchset_result *ret)
{
	uint64_t after = after_ns + in->reader.header.start_monotonic_ns;

	*ret = (struct watchset_result){ .watched = true };
	VEC_FOREACH (&log->hits, caught) {
		const struct log_hit *hit = caught->hit;

		if (caught->log == in && hit->address == address && hit->time_ns > after &&
		    !(hit->flags & (LOG_HIT_ALONGSIDE | LOG_HIT_IMPRECISE)) &&
		    memcmp(hit->old, hit->new, sizeof(hit->new)) != 0 &&
		    (!ret->last || hit->time_ns < ret->last->hit->time_ns))
			ret->last = caught;
	}
	ret->caught = ret->exact = ret->last != NULL;
	/* The ring may have lost it; what was last there is kept in short. */
	if (ret->caught || !log_last(&in->reader, address, &ret->brief) ||
	    ret->brief.time_ns <= after || ret->brief.old_word == ret->brief.new_word)
		return ret->caught;
	ret->last = find_rip(log, in, ret->brief.rip);
	ret->caught = ret->last != NULL;
	return ret->caught;
}

static const struct log_hit_owner *owner_of(const struct log_hit *hit, uint64_t address)
{
	const struct log_hit_owner *found = NULL;

	for (size_t i = 0; i < LOG_HIT_OWNERS && hit->owners[i].greg != 255; i++) {
		const struct log_hit_owner *owner = &hit->owners[i];

		if (address >= owner->start && address - owner->start < owner->size_low &&
		    owner->state == LOG_BLOCK_LIVE && owner->relation == LOG_INSIDE)
			found = owner;
	}
	return found;
}

static void name_source(const struct hit *caught, uint64_t address, struct symbols *symbols,
			struct home *ret, struct source_place *ret_place)
{
	const struct log_hit_owner *owner = owner_of(caught->hit, address);
	struct event_log *log = caught->log;
	struct log_context row;
	uint64_t offset = 0;

	ret->kind = HOME_ADDRESS;
	ret->address = address;
	if (owner) {
		if (log_context_row(&log->reader, owner->context, &row))
			ret_place->key = (struct block_key){ .stack_hash = row.stack_hash,
							     .lane = row.lane,
							     .ordinal = owner->ordinal };
		ret->kind = HOME_BLOCK;
		ret->block_id = owner->id;
		ret->key = event_log_key(log, &ret_place->key, owner->context);
		ret->offset = (int64_t)(address - owner->start);
		return;
	}
	/* Data of a module: between it and the next, by the symbol that is there. */
	for (size_t i = 0; i < log->modules.count; i++) {
		const struct mapping *module = &log->modules.items[i];
		char *name;

		if (!module->bias_known || address < module->start ||
		    address - module->start > (64u << 20))
			continue;
		name = symbols_global(symbols, module, address - module->bias, &offset);
		if (!name)
			continue;
		ret->kind = HOME_GLOBAL;
		mem_free(ret->name);
		mem_free(ret->module);
		ret->name = name;
		ret->module = mem_strdup(module->path);
		ret->offset = (int64_t)offset;
		ret_place->identity =
			wire_module_identity(module->build_id, module->build_id_len, module->path);
		ret_place->address = address - module->bias;
	}
}

/* Where a load read from: by registers that still hold it, or by a constant that was in one before
 * it was overwritten, as emitted code has it. */
static bool load_address(const struct trap *trap, const struct origin *load, uint64_t *ret)
{
	struct origin base;

	if (load->from_known) {
		*ret = load->from_address;
		return true;
	}
	if (load->from.index != NO_REGISTER || load->from.base < 0 ||
	    load->from.base >= REGISTERS_MAX)
		return false;
	arch_value_origin(trap, load->at, load->from.base, &base);
	if (base.kind != ORIGIN_IMMEDIATE || base.changed)
		return false;
	*ret = base.immediate + (uint64_t)load->from.displacement;
	return true;
}

size_t watchset_frames(const struct hit *caught, struct symbols *symbols, struct machine_frame *ret,
		       size_t room)
{
	const struct log_hit *hit = caught->hit;
	struct piece piece = { .address = hit->code_address,
			       .bytes = hit->code,
			       .len = hit->code_bytes };
	struct snapshot snapshot = event_log_snapshot(caught->log);

	snapshot.tid = (int)hit->tid;
	snapshot.stack = (struct piece){ hit->stack_address, caught->stack, hit->stack_bytes };
	snapshot.pieces = &piece;
	snapshot.piece_count = 1;
	arch_registers_from_saved(arch_native(), hit->gregs, GREGS_NAMED, &snapshot.registers);
	return symbols_machine_frames(symbols, &snapshot, ret, room);
}

/* Was the stored value only copied from elsewhere? */
static void tell_source(const struct hit *caught, const struct writer *writer,
			const struct trap *trap, struct symbols *symbols, struct write_seen *ret,
			struct source_place *ret_place)
{
	const struct log_hit *hit = caught->hit;
	struct origin origin;
	uint64_t address;

	if (writer->store.kind != STORE_PLAIN || writer->store.source != SOURCE_REGISTER ||
	    writer->store.source_register >= REGISTERS_MAX)
		return;
	arch_value_origin(trap, writer->store.at, writer->store.source_register, &origin);
	if (origin.kind != ORIGIN_LOAD || !load_address(trap, &origin, &address))
		return;
	if (origin.changed && address == hit->address)
		ret->flags |= WRITE_UPDATE;
	/* A piece of the value is no copy of it. */
	if (origin.changed || origin.width != writer->store.width ||
	    writer->store.width < hit->bytes || address == hit->address)
		return;
	ret->flags |= WRITE_COPIED;
	ret->source.len = origin.width;
	name_source(caught, address, symbols, &ret->source, ret_place);
}

/* Where functions keep no frame pointer its register is one like the others. */
static bool has_frame_pointer(const struct machine_frame *frame)
{
	unsigned int fp = arch_native()->fp;

	return frame->registers.known & 1u << fp && frame->cfa != 0 &&
	       frame->registers.value[fp] == frame->cfa - FRAME_HEAD;
}

static enum store_form form_of(const struct store *store)
{
	switch (store->kind) {
	case STORE_PLAIN:
		return FORM_PLAIN;
	case STORE_MODIFY:
		return FORM_MODIFY;
	case STORE_PUSH:
		return FORM_PUSH;
	default:
		return FORM_OTHER;
	}
}

static enum address_base base_of(const struct memory_operand *to, bool framed)
{
	const struct arch *arch = arch_native();

	if (to->fixed || (to->base == NO_REGISTER && to->segment == (int)arch->thread_pointer))
		return ADDRESS_FIXED;
	if (to->base == (int)arch->sp || (to->base == (int)arch->fp && framed))
		return ADDRESS_FRAME;
	return to->base < 0 || to->base >= REGISTERS_MAX ? ADDRESS_UNKNOWN : ADDRESS_POINTER;
}

static enum pointer_source source_of(const struct origin *origin)
{
	switch (origin->kind) {
	case ORIGIN_LOAD:
		return POINTER_LOADED;
	case ORIGIN_ENTRY:
		return POINTER_GIVEN;
	case ORIGIN_CALL:
		return POINTER_RETURNED;
	case ORIGIN_UNKNOWN:
		return POINTER_UNKNOWN;
	default:
		return POINTER_OTHER;
	}
}

#define FLAG_DOWN 0x400u /* string instructions go down */

static unsigned int motion_of(const struct hit *caught, const struct writer *writer,
			      const struct trap *trap)
{
	unsigned int runs = 0;

	/* It moves by itself; what the code around does with the register is another matter. */
	if (writer->store.string)
		return caught->hit->gregs[LOG_GREG_EFL] & FLAG_DOWN ? MOTION_DOWN : MOTION_UP;
	if (!writer->store.to.fixed && writer->store.to.base != (int)arch_native()->sp)
		runs = arch_pointer_runs(trap, writer->store.at, writer->store.to.base);
	return (runs & RUNS_UP ? MOTION_UP : 0) | (runs & RUNS_DOWN ? MOTION_DOWN : 0) |
	       (runs & RUNS_SOMEWHERE ? MOTION_SOMEWHERE : 0);
}

/* A frame pointer that leads into a block is a register like the others. */
static void tell_address(const struct hit *caught, const struct writer *writer,
			 const struct trap *trap, bool framed, struct store_code *ret)
{
	const struct memory_operand *to = &writer->store.to;
	struct origin origin;

	*ret = (struct store_code){ .certain = true,
				    .form = form_of(&writer->store),
				    .base = base_of(to, framed && caught->hit->id == 0),
				    .displacement = to->displacement,
				    .string = writer->store.string,
				    .indexed = to->index != NO_REGISTER,
				    .moves_base = writer->store.moves_base,
				    .immediate = writer->store.source == SOURCE_IMMEDIATE,
				    .motion = motion_of(caught, writer, trap) };
	if (ret->base != ADDRESS_POINTER)
		return;
	ret->pointer = caught->hit->gregs[arch_native()->saved_index((unsigned int)to->base)];
	arch_value_origin(trap, writer->store.at, to->base, &origin);
	ret->source = source_of(&origin);
	ret->changed = origin.changed;
	ret->joined = origin.joined;
}

unsigned int watchset_runs(const struct hit *caught, struct symbols *symbols)
{
	struct machine_frame frame;
	struct writer writer;
	struct trap trap;
	unsigned int runs;

	if (hit_decode(caught, symbols, &writer) < 0 || writer.system_call ||
	    watchset_frames(caught, symbols, &frame, 1) != 1)
		return 0;
	trap = backtrack_trap(&frame);
	runs = motion_of(caught, &writer, &trap);
	machine_frames_free(&frame, 1);
	return runs;
}

/* What the code before the store tells. */
static void tell_code(const struct hit *caught, const struct writer *writer,
		      struct symbols *symbols, struct write_seen *ret,
		      struct source_place *ret_place)
{
	struct machine_frame frame;
	struct writer whole; /* found from the start of its function */
	struct trap trap;

	if (watchset_frames(caught, symbols, &frame, 1) != 1)
		return;
	trap = backtrack_trap(&frame);
	tell_source(caught, writer, &trap, symbols, ret, ret_place);
	trap.low = caught->hit->address;
	trap.high = trap.low + caught->hit->bytes;
	if ((caught->hit->flags & LOG_HIT_AT) ||
	    (arch_decode_before(&trap, &whole) == 0 && whole.certain &&
	     whole.store.at == writer->store.at))
		tell_address(caught, writer, &trap, has_frame_pointer(&frame), &ret->code);
	machine_frames_free(&frame, 1);
}

void watchset_tell(const struct watchset_result *result, const struct victim *victim,
		   struct event_log *log, struct symbols *symbols, struct write_seen *ret,
		   struct source_place *ret_source)
{
	struct writer writer;
	bool decoded = hit_decode(result->last, symbols, &writer) == 0;

	hit_tell(result->last, decoded ? &writer : NULL, symbols, ret);
	if (!result->exact) {
		/* Another write of the same instruction: what is known of this one goes over it. */
		home_deinit(&ret->home);
		ret->home = (struct home){ .kind = HOME_ADDRESS,
					   .address = victim->address,
					   .len = ret->value_len };
		ret->old = result->brief.old_word;
		ret->new = result->brief.new_word;
		ret->tid = (int)result->brief.tid;
		ret->when_ns = result->brief.time_ns - log->reader.header.start_monotonic_ns;
		ret->store_start = 0;
	}
	ret->flags |= WRITE_LAST;
	if (low_bytes(ret->new, victim->len) == low_bytes(victim->value, victim->len))
		ret->flags |= WRITE_FOUND;
	if (!decoded || writer.system_call)
		return;
	tell_code(result->last, &writer, symbols, ret, ret_source);
	/* Of another write by the same instruction: a global is the same one each time. */
	if (!result->exact && (ret->flags & WRITE_COPIED) && ret->source.kind != HOME_GLOBAL) {
		ret->flags &= ~(unsigned int)WRITE_COPIED;
		home_deinit(&ret->source);
		ret->source = (struct home){ 0 };
	}
}
