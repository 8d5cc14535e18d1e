#include "agent/ids/context.h"

#include <elf.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

#include "agent/arch/x86_64.h"
#include "agent/core/agent.h"
#include "agent/core/feature.h"
#include "agent/core/log.h"
#include "agent/core/memory.h"
#include "agent/core/modules.h"
#include "agent/core/unwind.h"
#include "agent/ids/sites.h"
#include "agent/ids/stack_hashes.h"
#include "agent/python/python_stack.h"
#include "wire/checksum.h"

/* A span: its words, and SPAN_WORDS for each time that it was seen. */
#define STACK_OURS (64u << 10) /* that a hook and what it calls take at most */
#define SPAN_WORDS 4096u
#define SPAN_SEEN 8u
#define SPAN_VARIES 0xffffu
#define SPANS_VARIED_MAX 64u
#define ROWS_GRAB 16u  /* counters to a cache line */
#define ROOT_FRAMES 3u /* main's caller, its caller, and the program's entry */
#define ENTRY_BYTES 64u

/* What a scan found. */
struct stack_scan {
	uint64_t hash;
	uint32_t count;
	bool deep;	  /* goes as far as a record does; else only as far as the hash */
	bool rooted;	  /* ends at the program's entry: the frames above main are all there */
	bool lost;	  /* a frame was not understood, or left out */
	bool varies;	  /* one of the frames is not always as long: nothing to be recognised by */
	uint32_t through; /* which frames may turn out so: rule_bit() */
	uint16_t offset[LOG_CONTEXT_DEEP]; /* of each frame's word, from caller.frame */
	uint64_t frames[LOG_CONTEXT_DEEP];
};

static uint64_t entry; /* of the program; 0: unknown */

uint32_t *context_ordinals;
uint16_t *context_marks;

/* By context: what it goes through. Racy between the lanes that share a row, which none do. */
static uint32_t *context_through;

static uint32_t rows_used; /* atomic */
static bool can_mix;	   /* else no site is ever learned, and so none is compared with */

static size_t ordinals_bytes(void)
{
	return (size_t)agent.plan.context_rows * sizeof(uint32_t);
}

bool context_init(const void *auxiliary_vector)
{
	const Elf64_auxv_t *at;

	can_mix = arch_can_mix();
	if (log_map.contexts) {
		context_ordinals = memory_map_at_sigsafe(MEMORY_ORDINALS_AT, ordinals_bytes());
		context_through = memory_map_sigsafe(ordinals_bytes());
		if (!context_ordinals || !context_through)
			return false;
	}
	for (at = auxiliary_vector; at->a_type != AT_NULL; at++)
		if (at->a_type == AT_ENTRY)
			entry = at->a_un.a_val;
	return true;
}

void context_forget(void)
{
	rows_used = 0;
	if (!context_ordinals)
		return;
	(void)raw_syscall3(SYS_madvise, context_ordinals, ordinals_bytes(), MADV_DONTNEED);
	(void)raw_syscall3(SYS_madvise, context_through, ordinals_bytes(), MADV_DONTNEED);
}

uint32_t context_rows_sigsafe(void)
{
	uint32_t used = __atomic_load_n(&rows_used, __ATOMIC_RELAXED);

	return used < agent.plan.context_rows ? used : agent.plan.context_rows;
}

static bool on_own_stack(const struct thread *self, uint64_t frame)
{
	return frame < self->stack_high && self->stack_high - frame < (1ull << 30);
}

/* Never 0. With the place in the table, 40 to 47 bits of a bijection. */
static inline uint32_t rule_tag(uint64_t mixed)
{
	return (uint32_t)(mixed >> (32 - THREAD_RULES_BITS)) | 1;
}

/* Where the rule is, or would be. */
static inline struct unwind_rule *rule_place(struct thread *self, uint64_t mixed, uint32_t mask)
{
	return &self->tables.rules[mixed >> (64 - THREAD_RULES_BITS) & mask];
}

/* What is known of the span of a rule that is new in its place. That one varies is not forgotten:
 * two rules may take this place from each other all the time. */
static inline void span_move(struct thread *self, const struct unwind_rule *rule, uint16_t span)
{
	uint16_t *at = &self->tables.spans[rule - self->tables.rules];

	if (*at != SPAN_VARIES)
		*at = span;
}

/* NULL: it was not learned. When the table has grown, what was in it is found where it lay. */
static inline const struct unwind_rule *rule_known(struct thread *self, uint64_t mixed)
{
	struct unwind_rule *rule = rule_place(self, mixed, self->known.rules_mask), *old;
	uint32_t mask;

	if (likely(rule->tag == rule_tag(mixed)))
		return rule;
	for (mask = self->known.rules_mask >> 1; mask >= THREAD_RULES_MIN - 1; mask >>= 1) {
		old = rule_place(self, mixed, mask);
		if (old->tag == rule_tag(mixed)) {
			*rule = *old;
			span_move(self, rule, self->tables.spans[old - self->tables.rules]);
			return rule;
		}
	}
	return NULL;
}

/* The place of a new one. Most of a short process's return addresses fit a few pages. */
static struct unwind_rule *rule_take(struct thread *self, uint64_t mixed)
{
	uint32_t size = self->known.rules_mask + 1;

	if (++self->known.rules_used > size / 2 &&
	    size < sizeof(self->tables.rules) / sizeof(self->tables.rules[0])) {
		memory_populate_sigsafe((uint64_t)&self->tables.rules[size],
					size * sizeof(self->tables.rules[0]));
		self->known.rules_mask = 2 * size - 1;
	}
	return rule_place(self, mixed, self->known.rules_mask);
}

/* Learned once per return address and thread. */
static const struct unwind_rule *rule_for(struct thread *self, uint64_t rip, uint32_t generation)
{
	uint64_t mixed = rip * 0x9e3779b97f4a7c15ull;
	const struct unwind_rule *known;
	struct unwind_rule *rule;

	if (unlikely(self->known.rules_generation != generation)) {
		if (self->known.rules_generation) { /* else untouched */
			memset(self->tables.rules, 0,
			       (self->known.rules_mask + 1ull) * sizeof(*rule));
			memset(self->tables.spans, 0,
			       (self->known.rules_mask + 1ull) * sizeof(self->tables.spans[0]));
			memset(self->tables.wrappers, 0, sizeof(self->tables.wrappers));
		}
		self->known.rules_generation = generation;
		self->known.rules_used = 0;
	}
	known = rule_known(self, mixed);
	if (known)
		return known;
	rule = rule_take(self, mixed);
	unwind_learn(rip, module_find_sigsafe(rip), rule);
	rule->tag = rule_tag(mixed);
	span_move(self, rule, 0);
	return rule;
}

/* One of 32, by the return address. */
static inline uint32_t rule_bit(const struct unwind_rule *rule)
{
	return 1u << (rule->tag >> 1 & 31);
}

/* A function that leaves its frame by rbp may have made it longer before this call (alloca, arrays
 * of variable length). Then its caller's return address lies now here and now there, and in between
 * is what earlier calls have left: old return addresses that look like a way that was taken once.
 * So the frames of such a function must have been of one length for some time; once they were not,
 * nothing is recognised through them any more. By rsp the way to the caller hangs on the return
 * address alone, so that all words of a site are what they seem if the first ones are. */
static bool span_varies(struct thread *self, const struct unwind_rule *rule, uint64_t bytes)
{
	uint16_t *span = &self->tables.spans[rule - self->tables.rules];

	if (*span == SPAN_VARIES)
		return true;
	if (*span && *span % SPAN_WORDS == bytes / 8) {
		if (*span / SPAN_WORDS < SPAN_SEEN)
			*span += SPAN_WORDS;
		return *span / SPAN_WORDS < SPAN_SEEN;
	}
	if (!*span && bytes / 8 < SPAN_WORDS) {
		*span = (uint16_t)(SPAN_WORDS + bytes / 8);
		return true;
	}
	*span = SPAN_VARIES;
	/* Not without end: rules push each other out, and what varies is found out again. */
	if (self->known.spans_varied++ < SPANS_VARIED_MAX)
		sites_forget_through(self, context_through, rule_bit(rule));
	return true;
}

static void span_note(struct thread *self, const struct unwind_rule *rule, uint64_t bytes,
		      struct stack_scan *scan)
{
	if (rule->kind == UNWIND_BY_RSP)
		return;
	scan->through |= rule_bit(rule);
	scan->varies |= span_varies(self, rule, bytes);
}

/* The same for a frame farther up. Code of a library that has just been loaded would pass for code
 * without a file, and all callers of that kind for one. */
static const struct unwind_rule *rule_above(struct thread *self, uint64_t rip, uint32_t *generation)
{
	const struct unwind_rule *rule = rule_for(self, rip, *generation);

	if (likely(rule->frame_hash) || module_find_sigsafe(rip) || !modules_grown_sigsafe())
		return rule;
	modules_refresh_sigsafe();
	*generation = modules_generation_sigsafe();
	return rule_for(self, rip, *generation);
}

/* How far up a return address lies; 0: too far for the fast way to read again. */
static uint16_t offset_from(uint64_t frame, uint64_t slot)
{
	return slot - frame < UINT16_MAX ? (uint16_t)(slot - frame) : 0;
}

/* The same walk over return addresses whose rules are all known, on the thread's own stack, which
 * cannot fault: most new paths are old frames in another order. False: the careful walk decides. */
static inline bool rbp_restore(uint64_t at, uint64_t low, uint64_t high, uint64_t *rbp)
{
	if (at < low || at > high || at % 8)
		return false;
	*rbp = *(const uint64_t *)at;
	return true;
}

static bool scan_known(struct thread *self, struct caller caller, struct stack_scan *ret)
{
	uint64_t rip = caller.return_address, rsp = caller.frame + 16, slot = caller.frame + 8;
	uint64_t rbp = caller.rbp, high = self->stack_high - 8, cfa;
	const struct unwind_rule *rule;
	uint64_t hash = CHECKSUM_SEED;
	uint32_t count = 0;

	ret->deep = ret->rooted = ret->varies = false;
	ret->through = 0;
	if (self->known.rules_generation != modules_generation_sigsafe())
		return false;
	for (;;) {
		rule = rule_known(self, rip * 0x9e3779b97f4a7c15ull);
		if (!rule)
			return false;
		if (rule->frame_hash) {
			hash = checksum_mix(hash, rule->frame_hash);
			ret->offset[count] = offset_from(caller.frame, slot);
			if (++count == THREAD_SITE_WORDS + 1)
				break;
		} else if (!count) {
			return false;
		}
		if (rule->kind == UNWIND_END) {
			ret->rooted = rip - entry < ENTRY_BYTES;
			break;
		}
		if (rule->kind == UNWIND_BY_CHAIN)
			return false;
		cfa = (rule->kind == UNWIND_BY_RSP ? rsp : rbp) + 8ull * rule->cfa;
		slot = cfa - 8;
		if (cfa <= rsp || slot > high || slot % 8)
			return false;
		if (rule->rbp && !rbp_restore(cfa - 8ull * rule->rbp, caller.frame, high, &rbp))
			return false;
		span_note(self, rule, cfa - rsp, ret);
		rip = *(const uint64_t *)slot;
		rsp = cfa;
		if (rip <= 4096)
			break;
	}
	ret->hash = hash;
	ret->count = count;
	return true;
}

/* Code without a file (JIT) moves from run to run: walked through, and left out of the hash. */
static __attribute__((noinline)) void scan_walk(struct thread *self, struct caller caller,
						uint32_t frames, struct stack_scan *ret)
{
	struct unwind at = { .rip = caller.return_address, .rsp = caller.frame + 16 };
	uint64_t slot = caller.frame + 8, rsp;
	const struct unwind_rule *rule;
	uint32_t generation = modules_generation_sigsafe();

	at.rbp = caller.rbp;
	at.low = caller.frame;
	at.high = on_own_stack(self, caller.frame) ? self->stack_high : 0;
	rule = rule_for(self, at.rip, generation);
	if (!rule->frame_hash && module_find_caller_sigsafe(at.rip)) {
		generation = modules_generation_sigsafe();
		rule = rule_for(self, at.rip, generation);
	}
	for (;;) {
		if (rule->frame_hash) {
			if (ret->count <= THREAD_SITE_WORDS)
				ret->hash = checksum_mix(ret->hash, rule->frame_hash);
			ret->frames[ret->count] = at.rip;
			ret->offset[ret->count++] = offset_from(caller.frame, slot);
		}
		ret->lost |= !rule->frame_hash || rule->kind == UNWIND_BY_CHAIN;
		if (ret->count == frames)
			return;
		rsp = at.rsp;
		if (!unwind_step(&at, rule, &slot)) {
			ret->rooted = rule->kind == UNWIND_END && at.rip - entry < ENTRY_BYTES;
			ret->lost |= rule->kind != UNWIND_END || rule->cfa != UNWIND_NOTHING_ABOVE;
			return;
		}
		/* What lies above is told, and nothing is recognised by it. */
		if (ret->count <= THREAD_SITE_WORDS)
			span_note(self, rule, at.rsp - rsp, ret);
		rule = rule_above(self, at.rip, &generation);
	}
}

/* Far out, Python's own frames say more than the interpreter's. */
static uint32_t frames_kept(void)
{
	return python_stack_on ? LOG_CONTEXT_FRAMES : LOG_CONTEXT_DEEP;
}

/* What was found before a fault counts: the same fault comes in the next run. */
static __attribute__((noinline)) void scan_caller(struct guard *guard, struct caller caller,
						  uint32_t frames, struct stack_scan *ret)
{
	struct thread *self = guard->self;

	memset(ret, 0, offsetof(struct stack_scan, offset));
	ret->hash = CHECKSUM_SEED;
	ret->deep = frames == frames_kept();
	if (__builtin_setjmp((void **)self->signals.recovery)) {
		ret->lost = true;
		return;
	}
	self->signals.recovery_armed = 1;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	scan_walk(self, caller, frames, ret);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	self->signals.recovery_armed = 0;
}

/* What lies on the stack, for the tool to unwind. A program with very many contexts keeps their
 * frames only. */
static uint64_t slice_bytes(const struct thread *self, struct caller caller, uint64_t rsp)
{
	uint64_t bytes = caller.frame + agent.plan.context_slice_bytes - rsp;

	if (log_map.events_tail > (uint64_t)agent.plan.events_mib << 19)
		return 0;
	if (!on_own_stack(self, caller.frame))
		return memory_readable_sigsafe(rsp, bytes);
	return bytes < self->stack_high - rsp ? bytes : self->stack_high - rsp;
}

/* Every page of the log costs the target more than a microsecond: where the walk found the frames,
 * they are kept, and the stack's bytes only where it did not. */
static __attribute__((noinline)) void context_record(struct guard *guard, struct caller caller,
						     const struct stack_scan *scan, uint64_t hash,
						     uint32_t row)
{
	struct log_context_seen seen = { .stack_hash = hash, .context = row };
	uint32_t first = scan->count < LOG_CONTEXT_FRAMES ? scan->count : LOG_CONTEXT_FRAMES;
	struct thread *self = guard->self;
	struct log_writer writer;
	const void *rest;
	bool lost;

	arch_callee_registers(&seen.registers);
	/* Of another stack than ours, as from a handler: the bytes would begin at neither. */
	lost = scan->lost && caller.frame - seen.registers.rsp < STACK_OURS;
	seen.lane = self->lane;
	seen.walk = lost					 ? LOG_WALK_LOST
		    : !scan->lost && scan->count < frames_kept() ? LOG_WALK_WHOLE
								 : LOG_WALK_CUT;
	seen.frame_count = (uint16_t)(lost ? first : scan->count);
	memcpy(seen.frames, scan->frames, first * sizeof(seen.frames[0]));
	if (lost)
		seen.stack_bytes = (uint32_t)slice_bytes(self, caller, seen.registers.rsp);
	rest = lost ? (const void *)seen.registers.rsp : scan->frames + first;
	log_writer_init_sigsafe(&writer, LOG_TO_EVENTS);
	(void)log_append_sigsafe(&writer, LOG_CONTEXT, &seen, sizeof(seen), rest,
				 seen.stack_bytes +
					 (seen.frame_count - first) * sizeof(seen.frames[0]));
}

/* A row of this lane's. They come in groups: the counters of a group share a cache line, which no
 * other thread then writes to. 0 when the table is full. */
static uint32_t row_take(struct thread *self)
{
	uint32_t at;

	if (self->known.context_next == self->known.context_end) {
		at = __atomic_load_n(&rows_used, __ATOMIC_RELAXED);
		if (at > agent.plan.context_rows - ROWS_GRAB)
			return 0;
		at = __atomic_fetch_add(&rows_used, ROWS_GRAB, __ATOMIC_RELAXED);
		if (at > agent.plan.context_rows - ROWS_GRAB)
			return 0;
		self->known.context_next = at ? at : 1; /* row 0 is "unknown" */
		self->known.context_end = at + ROWS_GRAB;
	}
	return self->known.context_next++;
}

/* Of the native frames, those that lie inside of the interpreter's innermost loop: the rest only
 * repeats what Python's frames say, and would make many contexts of one. */
static uint64_t inner_hash(struct guard *guard, struct caller caller,
			   const struct python_stack *stack)
{
	struct stack_scan scan;
	uint64_t hash = CHECKSUM_SEED;
	uint32_t i;

	scan_caller(guard, caller, THREAD_SITE_WORDS + 1, &scan);
	for (i = 0; i < scan.count; i++) {
		const struct loaded_module *module = module_find_sigsafe(scan.frames[i]);

		if (module)
			hash = checksum_mix(hash, checksum_mix(module->identity,
							       scan.frames[i] - module->base));
		if (i + 1 < scan.count && scan.offset[i + 1] && stack->native[0] > caller.frame &&
		    stack->native[0] < caller.frame + scan.offset[i + 1])
			break;
	}
	return hash ? hash : 1;
}

/* A group of Python frames stands before the native frame that runs it: the one in whose part of
 * the stack the interpreter keeps what belongs to it. */
static void python_record(struct python_stack *stack, struct caller caller,
			  const struct stack_scan *scan, uint32_t row)
{
	struct log_python_stack record = { .context = row, .frame_count = stack->count };
	struct log_writer writer;
	uint32_t i, native;

	for (i = 0; i < stack->count; i++)
		for (native = 0; native + 1 < scan->count && scan->offset[native + 1]; native++)
			if (stack->native[i] > caller.frame &&
			    stack->native[i] < caller.frame + scan->offset[native + 1]) {
				stack->frames[i].native = native;
				break;
			}
	log_writer_init_sigsafe(&writer, LOG_TO_EVENTS);
	(void)log_append_sigsafe(&writer, LOG_PYTHON_STACK, &record, sizeof(record), stack->frames,
				 stack->count * sizeof(stack->frames[0]));
}

/* A context that this lane did not have yet. 0 when there is no room: counted. `scan`: what was
 * seen of the stack so far. `python`: what stands on it beside the native frames, or NULL. */
static uint32_t context_make(struct guard *guard, struct caller caller, uint64_t hash,
			     const struct stack_scan *scan, struct python_stack *python)
{
	uint32_t lane = guard->self->lane, row = row_take(guard->self);
	struct log_context *context = &log_map.contexts[row];
	struct stack_scan full;

	if (row)
		context->stack_hash = hash;
	if (!row || !stack_hashes_add(guard->self, hash, row)) {
		log_drop_sigsafe(LOG_DROP_CONTEXT);
		return 0;
	}
	context->lane = lane;
	context->check = log_context_check(hash, lane, row);
	__atomic_fetch_add(&log_map.header->contexts_used, 1, __ATOMIC_RELAXED);
	if (!scan->deep) {
		scan_caller(guard, caller, frames_kept(), &full);
		scan = &full;
	}
	FEATURES_TELL(block.context_made, row, hash, scan->frames, scan->count);
	context_record(guard, caller, scan, hash, row);
	if (python)
		python_record(python, caller, scan, row);
	return row;
}

/* Offsets that the fast way may read again: none on a stack whose end is unknown. Who is in main
 * has the same callers above it for as long as main runs, so these need not be looked at. */
static void layout_from(uint16_t offset[THREAD_SITE_WORDS], const struct stack_scan *scan, bool own)
{
	unsigned i, count = scan->count;

	if (scan->rooted && count > ROOT_FRAMES)
		count -= ROOT_FRAMES;
	for (i = 0; i < THREAD_SITE_WORDS; i++) {
		offset[i] = i + 1 < count && own ? scan->offset[i + 1] : 0;
		if (!offset[i])
			offset[i] = SITES_NO_WORD;
	}
}

/* A function with a frame of fixed length has its caller at the same distance in every call. */
static bool caller_fixed(struct thread *self, uint64_t return_address,
			 const struct stack_scan *scan)
{
	const struct unwind_rule *rule =
		rule_for(self, return_address, self->known.rules_generation);

	return scan->count > 1 && rule->kind == UNWIND_BY_RSP &&
	       scan->offset[1] == 8 + 8 * rule->cfa;
}

/* The walk costs some 50 ns once its rules are known; the site makes the next call from the same
 * place, at the same depth and by the same way, cheaper. */
__attribute__((noinline)) uint32_t context_find_slow(struct guard guard, uint64_t return_address,
						     uint64_t frame, uint64_t rbp)
{
	struct caller caller = { return_address, frame, rbp ? rbp : *(const uint64_t *)frame };
	uint16_t offset[THREAD_SITE_WORDS];
	struct thread *self = guard.self;
	bool own = on_own_stack(self, frame);
	uint32_t context;
	struct stack_scan scan;
	uint64_t hash;

	/* A return address that was never seen is a context that was never seen: one walk for both.
	 */
	if (!own || !scan_known(self, caller, &scan))
		scan_caller(&guard, caller, frames_kept(), &scan);
	hash = scan.hash ? scan.hash : 1;
	context = stack_hashes_find(self, hash);
	if (!context)
		context = context_make(&guard, caller, hash, &scan, NULL);
	/* Its allocations are to come this way, too. */
	if (context_marked(context))
		return context;
	layout_from(offset, &scan, own);
	if (context)
		context_through[context] |= scan.through;
	if (context && can_mix && !scan.varies)
		sites_learn(self, caller, offset,
			    own && offset[0] != SITES_NO_WORD &&
				    caller_fixed(self, return_address, &scan),
			    context);
	return context;
}

uint32_t context_in_python(struct guard *guard, uint32_t native, struct caller caller)
{
	struct thread *self = guard->self;
	struct python_stack stack;
	uint32_t context;
	uint64_t hash;

	if (!native || !python_stack_take(guard, &stack))
		return native;
	if (!python_stack_inner[native])
		python_stack_inner[native] = inner_hash(guard, caller, &stack);
	hash = checksum_mix(python_stack_inner[native], stack.hash);
	hash = hash ? hash : 1;
	context = stack_hashes_find(self, hash);
	if (!context)
		context = context_make(guard, caller, hash, &(struct stack_scan){ .deep = false },
				       &stack);
	return context ? context : native;
}
