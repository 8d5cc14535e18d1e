#include "read/hits.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "arch/arch.h"
#include "base/strbuf.h"
#include "read/pointers.h"

#define GREGS_NAMED 18u /* of the kernel's list, those that are registers */

static bool hit_sound(const struct log_hit *hit, size_t stack_bytes)
{
	return hit->stack_bytes <= stack_bytes && hit->code_bytes <= LOG_HIT_CODE &&
	       hit->bytes > 0 && hit->bytes <= LOG_WATCH_BYTES && hit->watch < LOG_WATCHES;
}

/* The bytes of its block stand behind a hit that was kept, and belong to it. */
static void take_bytes(const struct log_item *item, struct trial_hits *ret, size_t from)
{
	const struct log_hit_block *block = item->payload;
	size_t head = offsetof(struct log_hit_block, bytes);

	if (item->head.bytes < head || block->len > LOG_HIT_BLOCK ||
	    item->head.bytes - head < block->len)
		return;
	for (size_t i = from; i < ret->hits.count; i++)
		if (ret->hits.items[i].item.head.seq == item->head.owner)
			ret->hits.items[i].block = block;
}

/* The first few of each writer, kept for good. */
static void collect_kept(struct event_log *log, struct trial_hits *ret)
{
	size_t from = ret->hits.count;
	struct log_item item;

	log_reader_rewind(&log->reader);
	while (log_reader_next(&log->reader, &item)) {
		const struct log_hit *hit = item.payload;
		size_t bytes;
		const void *stack;

		if (item.head.type == LOG_HIT_BYTES)
			take_bytes(&item, ret, from);
		if (item.head.type != LOG_HIT || item.head.bytes < sizeof(*hit))
			continue;
		stack = log_payload_rest(&item, sizeof(*hit), &bytes);
		if (hit_sound(hit, bytes))
			VEC_PUSH(&ret->hits,
				 ((struct hit){
					 .log = log, .hit = hit, .stack = stack, .item = item }));
	}
}

static bool known(const struct trial_hits *log, size_t from, uint64_t number)
{
	for (size_t i = from; i < log->hits.count; i++)
		if (log->hits.items[i].hit->number == number)
			return true;
	return false;
}

static int by_number(const void *a, const void *b)
{
	uint64_t x = ((const struct hit *)a)->hit->number;
	uint64_t y = ((const struct hit *)b)->hit->number;

	return x < y ? -1 : x > y;
}

static void collect(struct event_log *log, struct trial_hits *ret)
{
	size_t from = ret->hits.count, kept;

	collect_kept(log, ret);
	kept = ret->hits.count;
	for (uint32_t slot = 0; slot < LOG_HITS; slot++) {
		const struct log_hit *hit = log_hit(&log->reader, slot);

		if (!hit || !hit_sound(hit, LOG_HIT_STACK))
			continue;
		/* Only the kept ones can be there already. */
		if (kept > from && known(ret, from, hit->number))
			continue;
		VEC_PUSH(&ret->hits, ((struct hit){ .log = log, .hit = hit, .stack = hit + 1 }));
	}
	if (ret->hits.count > from)
		qsort(ret->hits.items + from, ret->hits.count - from, sizeof(ret->hits.items[0]),
		      by_number);
}

void trial_hits_read(struct event_logs *logs, struct trial_hits *ret)
{
	VEC_FOREACH (&logs->list, log)
		collect(log, ret);
}

void trial_hits_deinit(struct trial_hits *hits)
{
	VEC_DEINIT(&hits->hits);
}

struct places {
	VEC(struct mapping) list; /* by address; borrows the log's texts */
};

/* The log knows files only. Where the trap was outside of them there is emitted code: at least the
 * page that it was on, and that is where its name is looked for. */
static void places_fill(const struct hit *caught, struct places *ret)
{
	uint64_t rip = caught->hit->gregs[LOG_GREG_RIP];
	struct mapping code = { .start = (rip - LOG_HIT_CODE_BEFORE) & ~(uint64_t)(LOG_PAGE - 1),
				.end = (rip | (LOG_PAGE - 1)) + 1,
				.perms = MAPPING_READ | MAPPING_EXEC };
	bool in_file = caught->hit->code_bytes == 0;

	VEC_FOREACH (&caught->log->modules, module)
		in_file |= module->start < code.end && code.start < module->end;
	VEC_FOREACH (&caught->log->modules, module) {
		if (!in_file && module->start >= code.end) {
			VEC_PUSH(&ret->list, code);
			in_file = true;
		}
		VEC_PUSH(&ret->list, *module);
	}
	if (!in_file)
		VEC_PUSH(&ret->list, code);
}

#define FUNCTION_FAR (1u << 20)

/* Followed from the start of the function, or of the piece of emitted code, there is one reading
 * only. Not where a hook moved the instruction: what is before it there is the agent's. */
static int decode_from_start(const struct hit *caught, struct symbols *symbols,
			     const struct trap *trap, struct writer *writer)
{
	const struct log_hit *hit = caught->hit;
	struct piece piece = { .address = hit->code_address,
			       .bytes = hit->code,
			       .len = hit->code_bytes };
	struct snapshot snapshot = event_log_snapshot(caught->log);
	uint64_t end = trap->code_address + trap->code_len, start;
	AUTO(mem_freep) uint8_t *code = NULL;
	struct places places = { 0 };
	struct trap whole = *trap;
	int r = 0;

	if (event_log_original(caught->log, trap->rip) != trap->rip)
		return 0;
	places_fill(caught, &places);
	snapshot.tid = (int)hit->tid;
	snapshot.pieces = &piece;
	snapshot.piece_count = 1;
	snapshot.mappings = places.list.items;
	snapshot.mapping_count = places.list.count;
	start = symbols_function_start(symbols, &snapshot, trap->rip - 1);
	if (start != 0 && start < trap->rip && end - start <= FUNCTION_FAR) {
		whole.start_hint = start;
		if (start < trap->code_address) {
			code = mem_alloc(end - start);
			if (!symbols_read(symbols, &snapshot, start, code,
					  trap->code_address - start))
				whole.start_hint = 0;
			memcpy(code + (trap->code_address - start), trap->code, trap->code_len);
			whole.code = code;
			whole.code_len = end - start;
			whole.code_address = start;
		}
	}
	if (whole.start_hint != 0)
		r = arch_decode_before(&whole, writer);
	VEC_DEINIT(&places.list);
	return r;
}

bool hit_freed(const struct log_hit *hit)
{
	bool freed = false;

	for (size_t i = 0; i < LOG_HIT_OWNERS && hit->owners[i].greg != 255; i++) {
		const struct log_hit_owner *owner = &hit->owners[i];

		if (owner->id == hit->id)
			freed |= owner->state == LOG_BLOCK_FREED && owner->relation != LOG_FORMER;
		else if (owner->state == LOG_BLOCK_LIVE && hit->address >= owner->start &&
			 hit->address - owner->start < owner->size_low)
			return false;
	}
	return freed;
}

int hit_decode(const struct hit *caught, struct symbols *symbols, struct writer *ret)
{
	const struct log_hit *hit = caught->hit;
	struct registers registers = { 0 };
	struct mask_registers masks;
	struct trap trap = { .code = hit->code,
			     .code_len = hit->code_bytes,
			     .code_address = hit->code_address,
			     .rip = hit->gregs[LOG_GREG_RIP],
			     .registers = &registers,
			     .low = hit->address,
			     .high = hit->address + hit->bytes };
	int r;

	if (hit->flags & LOG_HIT_IMPRECISE)
		return -ENOENT;
	if (hit->flags & LOG_HIT_KERNEL) {
		*ret = (struct writer){ .system_call = true, .certain = true };
		ret->store.at = trap.rip;
		return 0;
	}
	arch_registers_from_saved(arch_native(), hit->gregs, GREGS_NAMED, &registers);
	if (hit->id == 0 && hit->start != 0) {
		registers.value[arch_native()->thread_pointer] = hit->start;
		registers.known |= 1u << arch_native()->thread_pointer;
	}
	if (hit->flags & LOG_HIT_WITH_VECTORS) {
		_Static_assert(sizeof(masks.masks) == sizeof(hit->vectors.masks) &&
				       sizeof(masks.vectors) == sizeof(hit->vectors.vectors),
			       "same registers");
		memcpy(masks.masks, hit->vectors.masks, sizeof(masks.masks));
		memcpy(masks.vectors, hit->vectors.vectors, sizeof(masks.vectors));
		trap.masks = &masks;
	}
	if (hit->flags & LOG_HIT_AT)
		return arch_decode_at(&trap, ret);
	r = arch_decode_before(&trap, ret);
	/* Of what was found changed at the trap of another, the true store may be none. */
	if (r == 0 && symbols && (!ret->certain || (hit->flags & LOG_HIT_ALONGSIDE)))
		r = decode_from_start(caught, symbols, &trap, ret);
	return r;
}

bool hit_covers(const struct hit *caught, struct symbols *symbols)
{
	struct writer writer;

	return hit_decode(caught, symbols, &writer) == 0 && writer.covers;
}

uint64_t watched_word(const uint8_t bytes[LOG_WATCH_BYTES], uint32_t len)
{
	uint64_t word = 0;

	memcpy(&word, bytes, len < sizeof(word) ? len : sizeof(word));
	return word;
}

struct block_life *hit_block(struct event_log *log, const struct log_watched *watched,
			     struct symbols *symbols)
{
	uint32_t context = event_log_key_context(log, &watched->key);
	struct block_life *life = mem_alloc(sizeof(*life));

	*life = (struct block_life){ .via = mem_strdup("watched"),
				     .value = watched->address,
				     .id = watched->id,
				     .key = event_log_key(log, &watched->key, context),
				     .start = watched->start,
				     .size = watched->size,
				     .state = BLOCK_LIVE };
	if (context != 0)
		(void)event_log_allocation(log, context, symbols, &life->allocated);
	return life;
}

/* The block behind the register that the store went through. Of a block and the object in it, the
 * object. */
static const struct log_hit_owner *base_owner(const struct log_hit *hit, int greg)
{
	const struct log_hit_owner *found = NULL;

	for (size_t i = 0; i < LOG_HIT_OWNERS && hit->owners[i].greg != 255; i++)
		if (hit->owners[i].greg == greg)
			found = &hit->owners[i];
	return found;
}

/* read(2) and its kin: the buffer is their second argument. */
static int base_register(const struct writer *writer)
{
	return writer->system_call ? arch_register_find(arch_native(), "rsi")
				   : writer->store.to.base;
}

/* With --after-free it may have been over by then: a register that points into it knows. */
static struct block_life *tell_victim(const struct hit *caught, struct symbols *symbols)
{
	const struct log_hit *hit = caught->hit;
	struct log_watched watched = { .address = hit->address,
				       .id = hit->id,
				       .start = hit->start,
				       .size = hit->size,
				       .key = hit->key };
	struct block_life *life = hit_block(caught->log, &watched, symbols);

	for (size_t i = 0; i < LOG_HIT_OWNERS && hit->owners[i].greg != 255; i++) {
		const struct log_hit_owner *owner = &hit->owners[i];

		if (owner->id != hit->id || owner->state != LOG_BLOCK_FREED)
			continue;
		life->state = BLOCK_FREED;
		if (owner->free_context != 0)
			(void)event_log_freeing(caught->log, owner->free_context, symbols,
						&life->freed);
		break;
	}
	return life;
}

static struct block_life *block_behind(const struct hit *caught, int base, struct symbols *symbols)
{
	const struct arch *arch = arch_native();
	int greg = base >= 0 && base < REGISTERS_MAX ? arch->saved_index((unsigned int)base) : -1;
	const struct log_hit_owner *owner = greg < 0 ? NULL : base_owner(caught->hit, greg);
	struct event_log *log = caught->log;
	struct block_life *life;

	if (!owner)
		return NULL;
	life = mem_alloc(sizeof(*life));
	*life = (struct block_life){
		.via = mem_strdup(arch_register_name(arch, (unsigned int)base)),
		.value = caught->hit->gregs[greg],
		.id = owner->id,
		.key = event_log_key(log, &(struct block_key){ 0 }, owner->context),
		.start = owner->start,
		.size = owner->size_low,
		.state = owner->state == LOG_BLOCK_FREED ? BLOCK_FREED : BLOCK_LIVE,
		.telling = true,
		.former = owner->relation == LOG_FORMER,
		.beyond = owner->relation == LOG_BEYOND,
	};
	(void)event_log_allocation(log, owner->context, symbols, &life->allocated);
	if (owner->state == LOG_BLOCK_FREED && owner->free_context != 0)
		(void)event_log_freeing(log, owner->free_context, symbols, &life->freed);
	return life;
}

static struct block_life *tell_base(const struct hit *caught, const struct writer *writer,
				    struct symbols *symbols)
{
	return block_behind(caught, base_register(writer), symbols);
}

#define COPY_MAX (UINT64_C(1) << 40)

/* Functions of glibc that keep where they began in the register that they return it in: memcpy,
 * memmove and memset, in all their variants. */
static bool returns_start(const struct frame *frame)
{
	return frame->function && frame_is_runtime(frame) &&
	       (strstr(frame->function, "memcpy") || strstr(frame->function, "memmove") ||
		strstr(frame->function, "memset"));
}

static uint64_t register_called(const struct hit *caught, const char *name)
{
	const struct arch *arch = arch_native();

	return caught->hit->gregs[arch->saved_index((unsigned int)arch_register_find(arch, name))];
}

/* What is left of a rep-prefixed instruction, in bytes. */
static uint64_t rep_left(const struct hit *caught, const struct writer *writer)
{
	return register_called(caught, "rcx") * (writer->store.width > 0 ? writer->store.width : 1);
}

/* As long as the first argument is where it was, so is the third. */
static bool has_length(const struct hit *caught)
{
	return register_called(caught, "rax") == register_called(caught, "rdi");
}

/* A length that is negative makes the copy begin, or end, before its start. mempcpy() shares this
 * code and returns its end, below which its first argument stays. */
static bool is_negative(const struct hit *caught)
{
	uint64_t start = register_called(caught, "rax");

	return has_length(caught)
		       ? (int64_t)register_called(caught, "rdx") < 0
		       : caught->hit->address < start && register_called(caught, "rdi") > start;
}

/* As far as it is known. */
static uint64_t copy_length(const struct hit *caught, const struct writer *writer, uint64_t start)
{
	uint64_t at = register_called(caught, "rdi");

	if (is_negative(caught))
		return has_length(caught) ? register_called(caught, "rdx") : COPY_NEGATIVE;
	if (strncmp(writer->store.text, "rep ", 4) == 0 && at > start)
		return at - start + rep_left(caught, writer);
	return (writer->high > start ? writer->high : caught->hit->address + 1) - start;
}

/* Where the copy began, and how long it is. */
static void tell_copy(const struct hit *caught, const struct writer *writer,
		      struct symbols *symbols, struct write_seen *ret)
{
	uint64_t start = register_called(caught, "rax"), address = caught->hit->address;
	struct block_life *block;

	if (ret->writer.count == 0 || !returns_start(&ret->writer.frames[0]) || start == 0 ||
	    (address - start > COPY_MAX && !is_negative(caught)))
		return;
	block = block_behind(caught, arch_register_find(arch_native(), "rax"), symbols);
	if (!block || block->former || block->beyond) {
		block_life_free(block);
		return;
	}
	block_life_free(ret->base);
	ret->base = block;
	ret->copy = true;
	ret->store_start = start;
	ret->store_len = copy_length(caught, writer, start);
	ret->width = ret->store_len < UINT32_MAX ? (unsigned int)ret->store_len : 0;
	ret->fit = is_negative(caught)
			   ? FIT_WIDE
			   : store_fit_of(start, ret->store_len, address, caught->hit->bytes);
}

/* A trap is behind the store: its own address names the right line. */
static void tell_stack(const struct hit *caught, const struct writer *writer,
		       struct symbols *symbols, struct stack *ret)
{
	const struct log_hit *hit = caught->hit;
	struct python_memory python = { 0 };
	VEC(struct piece) pieces = { 0 };
	struct snapshot snapshot = event_log_snapshot(caught->log);
	const struct arch *arch = arch_native();
	struct places places = { 0 };

	places_fill(caught, &places);
	snapshot.tid = (int)hit->tid;
	snapshot.stack = (struct piece){ hit->stack_address, caught->stack, hit->stack_bytes };
	snapshot.mappings = places.list.items;
	snapshot.mapping_count = places.list.count;
	arch_registers_from_saved(arch, hit->gregs, GREGS_NAMED, &snapshot.registers);
	if (writer && !writer->system_call)
		snapshot.registers.value[arch->pc] = writer->store.at;
	/* Instructions that a hook moved are the function's that it moved them out of. */
	snapshot.registers.value[arch->pc] =
		event_log_original(caught->log, snapshot.registers.value[arch->pc]);
	VEC_PUSH(&pieces, ((struct piece){ .address = hit->code_address,
					   .bytes = hit->code,
					   .len = hit->code_bytes }));
	if (caught->item.head.seq != 0)
		python_memory_read(&caught->log->reader, &caught->item, &python);
	VEC_FOREACH (&python.pieces, piece)
		VEC_PUSH(&pieces, *piece);
	snapshot.pieces = pieces.items;
	snapshot.piece_count = pieces.count;
	snapshot.python_runtime = python.record.runtime;
	snapshot.python_version = python.record.version;
	(void)symbols_unwind(symbols, &snapshot, ret, NULL);
	VEC_DEINIT(&pieces);
	VEC_DEINIT(&places.list);
	python_memory_deinit(&python);
}

static void tell_home(const struct hit *caught, struct home *ret)
{
	const struct log_hit *hit = caught->hit;

	ret->address = hit->address;
	ret->len = hit->bytes;
	ret->kind = HOME_ADDRESS;
	if (hit->id == 0)
		return;
	ret->kind = HOME_BLOCK;
	ret->block_id = hit->id;
	ret->key = event_log_key(caught->log, &hit->key, 0);
	ret->offset = (int64_t)(hit->address - hit->start);
}

/* What the kernel wrote: as many bytes as the call returned, into its buffer. Other calls fill
 * structures; of those nothing is told. */
static void tell_transfer(const struct log_hit *hit, struct write_seen *ret)
{
	const struct arch *arch = arch_native();
	uint64_t to = hit->gregs[arch->saved_index((unsigned int)arch_register_find(arch, "rsi"))];
	uint64_t bytes =
		hit->gregs[arch->saved_index((unsigned int)arch_register_find(arch, "rax"))];

	if (bytes == 0 || bytes > (1u << 30) || hit->address + hit->bytes <= to ||
	    hit->address >= to + bytes)
		return;
	ret->store_start = to;
	ret->store_len = bytes;
	ret->width = bytes < UINT32_MAX ? (unsigned int)bytes : 0;
	ret->fit = store_fit_of(to, bytes, hit->address, hit->bytes);
}

/* Which call it was is known on watched pages only. */
static char *call_text(const struct log_hit *hit)
{
	const char *name =
		hit->flags & LOG_HIT_KERNEL ? arch_system_call_name(hit->last_syscall) : NULL;

	return name ? mem_printf("syscall (%s)", name) : mem_strdup("syscall");
}

static char *registers_text(const struct log_hit *hit)
{
	AUTO(strbuf_deinit) struct strbuf sb = { 0 };

	for (unsigned int i = 0; i < REGISTER_PLACES; i++)
		strbuf_addf(&sb, "%s%s=0x%" PRIx64, i > 0 ? " " : "", register_at(i),
			    hit->gregs[i]);
	return strbuf_take(&sb);
}

static void tell_bytes(const struct hit *caught, struct block_bytes *ret)
{
	const struct log_hit *hit = caught->hit;
	const struct log_hit_block *block = caught->block;
	struct log_hit_block in_ring;

	if (!block && log_hit_block(&caught->log->reader, hit->number, &in_ring))
		block = &in_ring;
	if (!block)
		return;
	strbuf_add(&ret->bytes, block->bytes, block->len);
	ret->offset = (int64_t)(block->address - (hit->id != 0 ? hit->start : hit->address));
	ret->nth = block->nth;
}

void hit_tell(const struct hit *caught, const struct writer *writer, struct symbols *symbols,
	      struct write_seen *ret)
{
	const struct log_hit *hit = caught->hit;

	tell_home(caught, &ret->home);
	if (hit->id != 0)
		ret->victim = tell_victim(caught, symbols);
	ret->value_len = hit->bytes < 8 ? hit->bytes : 8;
	ret->old = watched_word(hit->old, hit->bytes);
	ret->new = watched_word(hit->new, hit->bytes);
	ret->tid = (int)hit->tid;
	ret->registers = registers_text(hit);
	ret->age = hit->age;
	ret->when_ns = hit->time_ns - caught->log->reader.header.start_monotonic_ns;
	if (hit->flags & LOG_HIT_IMPRECISE)
		ret->flags |= WRITE_ASYNC;
	if (writer && writer->system_call) {
		ret->flags |= WRITE_KERNEL;
		ret->instruction = call_text(hit);
		tell_transfer(hit, ret);
		ret->base = tell_base(caught, writer, symbols);
	} else if (writer) {
		ret->instruction = mem_strdup(writer->store.text);
		ret->width = writer->mask_known ? writer->written : writer->store.width;
		ret->store_start = writer->low < writer->high ? writer->low : 0;
		ret->store_len = writer->high - writer->low;
		ret->fit = store_fit_of(writer->low, writer->high - writer->low, hit->address,
					hit->bytes);
		if (writer->store.kind == STORE_MODIFY)
			ret->flags |= WRITE_UPDATE;
		if (writer->store.kind == STORE_MASKED)
			ret->flags |= writer->mask_known ? WRITE_MASKED : WRITE_AT_MOST;
		if (ret->flags & WRITE_AT_MOST)
			ret->fit = FIT_UNKNOWN;
		ret->base = tell_base(caught, writer, symbols);
	}
	tell_bytes(caught, &ret->block);
	tell_stack(caught, writer, symbols, &ret->writer);
	if (writer && !writer->system_call && !(hit->flags & LOG_HIT_IMPRECISE))
		tell_copy(caught, writer, symbols, ret);
}

void hit_describe(const struct hit *caught, struct symbols *symbols, struct write_seen *ret)
{
	struct writer writer;
	bool decoded = hit_decode(caught, symbols, &writer) == 0;

	hit_tell(caught, decoded ? &writer : NULL, symbols, ret);
}

char *hit_key(const struct hit *caught, const struct writer *writer, const struct write_seen *write)
{
	uint64_t at = writer && !writer->system_call ? writer->store.at
						     : caught->hit->gregs[LOG_GREG_RIP];
	AUTO(strbuf_deinit) struct strbuf sb = { 0 };

	at = event_log_original(caught->log, at);
	for (size_t i = 0; i < caught->log->modules.count; i++) {
		const struct mapping *module = &caught->log->modules.items[i];

		if (at >= module->start && at < module->end) {
			strbuf_addf(&sb, "%s+0x%" PRIx64, module->path ? module->path : "?",
				    at - module->bias);
			if (caught->hit->flags & LOG_HIT_KERNEL)
				strbuf_addf(&sb, ":%" PRIu32, caught->hit->last_syscall);
			return strbuf_take(&sb);
		}
	}
	strbuf_addf(&sb, "jit:%s:%s",
		    write->writer.count > 0 && write->writer.frames[0].function
			    ? write->writer.frames[0].function
			    : "?",
		    write->instruction ? write->instruction : "?");
	return strbuf_take(&sb);
}
