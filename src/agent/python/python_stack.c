#include "agent/python/python_stack.h"

#include "agent/core/agent.h"
#include "agent/core/memory.h"
#include "agent/core/real.h"
#include "agent/python/interpreter.h"
#include "wire/checksum.h"
#include "wire/python_layout.h"

#define CODES_BITS 16u
#define CODES (1u << CODES_BITS)
#define PROBES 32u
#define TEXT_MAX 1024u
#define INTERPRETERS_MAX 16u
#define FRAMES_HASHED 3u

/* A code object. Another one may come to lie where one was: what names it tells. */
struct python_code {
	uint64_t object; /* atomic; 0: free */
	uint64_t filename, qualname;
	uint32_t first_line;
	uint32_t state; /* atomic, enum code_state */
	uint64_t hash;	/* the same in every run */
};

enum code_state {
	CODE_NEW,
	CODE_KNOWN, /* what names it is here, but not yet in the log */
	CODE_TOLD,
};

bool python_stack_on;
uint64_t *python_stack_inner;

static struct python_layout layout;
static struct python_code *codes;

static size_t inner_bytes(void)
{
	return agent.plan.context_rows * sizeof(*python_stack_inner);
}

static uint64_t word_at(uint64_t address)
{
	return *(const uint64_t *)address;
}

static uint32_t half_at(uint64_t address)
{
	return *(const uint32_t *)address;
}

void python_stack_init(void)
{
	if (!(agent.plan.flags & PLAN_GROWTH) || !(agent.plan.flags & PLAN_PYTHON))
		return;
	if (!real.python_runtime || !real.python_version || !real.python_thread_state ||
	    !python_layout_find(*real.python_version, &layout) ||
	    !python_layout_refine(&layout, real.python_runtime, PYTHON_OFFSETS_BYTES))
		return;
	codes = memory_map_sigsafe(CODES * sizeof(*codes));
	python_stack_inner = memory_map_sigsafe(inner_bytes());
	python_stack_on = codes && python_stack_inner;
}

void python_stack_forget(void)
{
	if (!python_stack_on)
		return;
	(void)raw_syscall3(SYS_madvise, codes, CODES * sizeof(*codes), MADV_DONTNEED);
	(void)raw_syscall3(SYS_madvise, python_stack_inner, inner_bytes(), MADV_DONTNEED);
}

static uint64_t text_hash(uint64_t hash, uint64_t object)
{
	uint64_t length = word_at(object + layout.unicode.length);
	uint32_t state = *(const uint8_t *)(object + layout.unicode.state);
	uint64_t start = state >> 6 & 1 ? layout.unicode.ascii_size : layout.unicode.compact_size;

	/* interned:2, kind:3, compact:1, ascii:1 */
	if (length > TEXT_MAX)
		length = TEXT_MAX;
	return checksum_add(checksum_mix(hash, length), (const void *)(object + start),
			    length * (state >> 2 & 7));
}

/* Tries to tell it, which somebody else may be at right now: then next time. */
static void code_tell(struct python_code *code)
{
	uint32_t known = CODE_KNOWN;
	struct log_python_code record = { .hash = code->hash, .object = code->object };

	if (!__atomic_compare_exchange_n(&code->state, &known, CODE_TOLD, false, __ATOMIC_ACQ_REL,
					 __ATOMIC_RELAXED))
		return;
	record.number = (uint32_t)(code - codes) + 1;
	record.layout = layout;
	if (!interpreter_code_sigsafe(&record))
		__atomic_store_n(&code->state, CODE_KNOWN, __ATOMIC_RELEASE);
}

/* Its number, and its hash; 0 when the table is full there. */
static uint32_t code_find(struct python_stack *stack, uint64_t object, uint64_t *ret_hash)
{
	uint64_t filename = word_at(object + layout.code.filename);
	uint64_t qualname = word_at(object + layout.code.qualname);
	uint32_t first_line = half_at(object + layout.code.first_line), probe;
	uint64_t at = object * 0x9e3779b97f4a7c15ull >> (64 - CODES_BITS);

	for (probe = 0; probe < PROBES; probe++, at++) {
		struct python_code *code = &codes[at % CODES];
		uint64_t there = __atomic_load_n(&code->object, __ATOMIC_ACQUIRE);
		uint32_t state;

		if (!there && __atomic_compare_exchange_n(&code->object, &there, object, false,
							  __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
			code->filename = filename;
			code->qualname = qualname;
			code->first_line = first_line;
			code->hash = text_hash(text_hash(CHECKSUM_SEED + first_line, filename),
					       qualname);
			__atomic_store_n(&code->state, CODE_KNOWN, __ATOMIC_RELEASE);
			there = object;
		}
		state = __atomic_load_n(&code->state, __ATOMIC_ACQUIRE);
		if (there != object || state == CODE_NEW || code->filename != filename ||
		    code->qualname != qualname || code->first_line != first_line)
			continue;
		stack->untold |= state == CODE_KNOWN;
		*ret_hash = code->hash;
		return (uint32_t)(code - codes) + 1;
	}
	return 0;
}

static void frame_add(struct python_stack *stack, uint64_t frame)
{
	uint64_t object = python_code_object(word_at(frame + layout.frame.code)), hash = 0;
	struct log_python_frame *ret = &stack->frames[stack->count];
	uint64_t instruction =
		(word_at(frame + layout.frame.instruction) - (object + layout.code.size)) / 2;

	/* Not begun yet, or the interpreter's own helper code: passed over, as in tracebacks. */
	if (*(const uint8_t *)(frame + layout.frame.owner) != PYTHON_OWNED_BY_GENERATOR &&
	    (instruction > INT32_MAX ? 0 : instruction) <
		    half_at(object + layout.code.first_traceable))
		return;
	ret->code = code_find(stack, object, &hash);
	ret->instruction = (uint32_t)instruction;
	ret->native = LOG_PYTHON_UNPLACED;
	stack->native[stack->count++] = 0;
	if (stack->count <= FRAMES_HASHED)
		stack->hash = checksum_mix(stack->hash, hash ^ (uint64_t)ret->instruction << 32);
}

/* Is this still the state of a thread? */
static bool is_listed(uint64_t state)
{
	uint64_t before = word_at(state), interpreter; /* PyThreadState begins with `prev` */
	uint32_t i;

	if (before)
		return word_at(before + layout.thread.next) == state;
	interpreter = word_at((uint64_t)real.python_runtime + layout.runtime.interpreters_head);
	for (i = 0; interpreter && i < INTERPRETERS_MAX; i++) {
		if (word_at(interpreter + layout.interpreter.threads_head) == state)
			return true;
		interpreter = word_at(interpreter + layout.interpreter.next);
	}
	return false;
}

/* The calling thread's. One that has let go of the interpreter, to run C for a while, still stands
 * where it called from. 0: it has none. */
static uint64_t own_state(struct thread *self)
{
	uint64_t state = (uint64_t)real.python_thread_state();
	uint64_t own = (uint64_t)__builtin_thread_pointer();

	if (state && word_at(state + layout.thread.thread_id) == own)
		return self->python_state = state;
	state = self->python_state;
	if (state && is_listed(state) && word_at(state + layout.thread.thread_id) == own)
		return state;
	return self->python_state = 0;
}

/* As walk_frames() of the tool's has it: the frames that one native frame runs are a group. */
/* Does the interpreter's own function for these Python frames begin here? Its frame, or 0. */
static uint64_t native_at(uint64_t at, uint64_t cframe)
{
	if (layout.frame.is_entry)
		return *(const uint8_t *)(at + layout.frame.is_entry) ? cframe : 0;
	return *(const uint8_t *)(at + layout.frame.owner) >= PYTHON_OWNED_BY_C_STACK ? at : 0;
}

/* A shim of the interpreter between Python frames, which is none. */
static bool is_shim(uint64_t at, uint64_t native)
{
	return !layout.frame.is_entry && native == at;
}

static uint32_t native_fill(struct python_stack *ret, uint32_t first, uint64_t native)
{
	for (; native && first < ret->count; first++)
		ret->native[first] = native;
	return first;
}

static __attribute__((noinline)) void stack_walk(struct thread *self, struct python_stack *ret)
{
	uint64_t state = own_state(self), at, cframe = 0;
	uint32_t first = 0, steps;

	if (!state)
		return;
	at = word_at(state + layout.thread.frame);
	if (at && (layout.cframe.current_frame || layout.cframe.previous)) {
		cframe = at;
		at = word_at(cframe + layout.cframe.current_frame);
	}
	for (steps = 0; at && ret->count < LOG_PYTHON_FRAMES && steps < 2 * LOG_PYTHON_FRAMES;
	     steps++, at = word_at(at + layout.frame.previous)) {
		uint64_t native = native_at(at, cframe);

		if (!is_shim(at, native))
			frame_add(ret, at);
		if (native && layout.frame.is_entry)
			cframe = word_at(cframe + layout.cframe.previous);
		first = native_fill(ret, first, native);
	}
	/* The native frame of the last group may be found only behind frames that are not kept. */
	for (steps = 0; at && first < ret->count && steps < 64;
	     steps++, at = word_at(at + layout.frame.previous))
		first = native_fill(ret, first, native_at(at, cframe));
}

bool python_stack_take(struct guard *guard, struct python_stack *ret)
{
	struct thread *self = guard->self;
	uint32_t i;

	ret->count = 0;
	ret->untold = false;
	ret->hash = CHECKSUM_SEED;
	if (__builtin_setjmp((void **)self->signals.recovery)) {
		ret->count = 0;
		self->python_state = 0;
		return false;
	}
	self->signals.recovery_armed = 1;
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	stack_walk(self, ret);
	__atomic_signal_fence(__ATOMIC_SEQ_CST);
	self->signals.recovery_armed = 0;
	for (i = 0; unlikely(ret->untold) && i < ret->count; i++)
		if (ret->frames[i].code)
			code_tell(&codes[ret->frames[i].code - 1]);
	return ret->count > 0;
}
