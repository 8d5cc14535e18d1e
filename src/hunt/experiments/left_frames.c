/*
 * Who keeps the address of a local whose function has returned, where nothing but a wrong value
 * shows it.
 *
 * What lies below the stack pointer, and is no variable of the function that reads it, is nobody's:
 * it follows a pointer into a frame that was left. Locals are watched from their function's entry
 * on and beyond its return, reads too. From a read below the stack pointer the code leads back to
 * the variable that the pointer was loaded from, and that is watched next: who put the address
 * there.
 */
#include "hunt/inquiry.h"

#include <string.h>

#include "arch/arch.h"
#include "arch/code.h"
#include "base/cstr.h"

#define WORD 8
#define WATCHES 4u /* debug registers */
#define TURNS_MAX 8u
#define LOCALS_MAX (16 * TURNS_MAX * WATCHES) /* of more the right one is hardly watched */
#define TRIALS_EACH 3u
#define FRAMES 8u
#define RED_ZONE 128u
#define STACK_NEAR (256u << 10) /* further away is another stack */

/* Of the first thread: other stacks may lie closely side by side. */
static bool is_below(const struct hit *caught)
{
	uint64_t sp = caught->hit->gregs[LOG_GREG_RSP];

	return caught->hit->tid == caught->log->reader.header.pid && caught->hit->address < sp &&
	       sp - caught->hit->address < STACK_NEAR &&
	       !(caught->hit->flags & (LOG_HIT_ALONGSIDE | LOG_HIT_IMPRECISE));
}

/* A function that calls nobody has its own variables below the stack pointer, too. */
static bool is_own(const struct bench *bench, const struct machine_frame *frame, uint64_t bias,
		   uint64_t address)
{
	int64_t at = (int64_t)(address - frame->cfa);

	return VEC_ANY(&bench->neighbours.known.list, v,
		       v->function == frame->start - bias && at >= v->at &&
			       at - v->at < (int64_t)v->size);
}

/* The instruction before the trap, found from the start of its function. */
static bool before_trap(const struct machine_frame *frame, uint64_t *ret)
{
	struct code_instruction instruction;
	uint64_t at = frame->start;

	while (at >= frame->code_address && at < frame->pc &&
	       code_decode(frame->code + (at - frame->code_address),
			   frame->code_len - (at - frame->code_address), at, &instruction)) {
		*ret = at;
		at += instruction.length;
	}
	return at == frame->pc;
}

/* Where the pointer was loaded from that the frame went through, itself or by what it called. */
static bool loaded_from(const struct machine_frame *frame, bool called, uint64_t *ret)
{
	struct trap trap = backtrack_trap(frame);
	struct access access = { .memory.base = arch_register_find(arch_native(), "rdi") };
	struct origin origin;
	uint64_t at;

	if (called ? !arch_call_before(&trap, &at)
		   : !before_trap(frame, &at) || !arch_access_at(&trap, at, &access))
		return false;
	if (access.memory.fixed || access.memory.base < 0)
		return false;
	arch_value_origin(&trap, at, access.memory.base, &origin);
	*ret = origin.from_address;
	return origin.kind == ORIGIN_LOAD && origin.from_known && origin.width == WORD;
}

/* The program's own variable that led there. */
static bool find_holder(struct bench *bench, const struct hit *caught, struct home *ret)
{
	const struct mapping *program = neighbours_program(bench, caught);
	struct machine_frame frames[FRAMES];
	size_t count, i = 0;
	uint64_t from = 0;
	bool found;

	if (!program)
		return false;
	count = watchset_frames(caught, bench->symbols, frames, FRAMES);
	while (i < count && (frames[i].pc < program->start || frames[i].pc >= program->end))
		i++;
	found = i < count &&
		(i == 0 ||
		 caught->hit->address + RED_ZONE < frames[0].registers.value[arch_native()->sp]) &&
		!is_own(bench, &frames[i], program->bias, caught->hit->address) &&
		loaded_from(&frames[i], i > 0, &from);
	machine_frames_free(frames, count);
	VEC_FOREACH (&bench->neighbours.known.list, v)
		if (found && v->function == 0 && from - program->bias - (uint64_t)v->at < v->size) {
			*ret = (struct home){ .kind = HOME_GLOBAL,
					      .name = mem_strdup(v->name),
					      .module = mem_strdup(program->path),
					      .offset = (int64_t)(from - program->bias) - v->at,
					      .address = from - program->bias,
					      .len = WORD };
			return true;
		}
	return false;
}

static void read_locals(struct bench *bench, bool passed)
{
	(void)passed;
	VEC_FOREACH (&reading_hits(bench->round.reading)->hits, caught)
		if (bench->neighbours.holder.kind == HOME_UNKNOWN && is_below(caught))
			(void)find_holder(bench, caught, &bench->neighbours.holder);
}

static bool locals_read(struct bench *bench)
{
	return bench->round.trials > 0;
}

static const struct round_ops locals_round = { .id = 16,
					       .observer = OBSERVE_WATCH,
					       .planned = true,
					       .read_any = read_locals,
					       .enough = locals_read };

/* The frame that the address belongs to: its function; 0: not known. */
static uint64_t owner_of(struct bench *bench, const struct hit *caught, uint64_t address)
{
	struct machine_frame frames[FRAMES];
	size_t count = watchset_frames(caught, bench->symbols, frames, FRAMES), i = 0;
	uint64_t owner;

	while (i < count && address >= frames[i].cfa)
		i++;
	owner = i < count ? frames[i].start : 0;
	machine_frames_free(frames, count);
	return owner;
}

/* Who put an address of the stack there that was read when its frame had been left. A function that
 * calls nobody has what is its own below the stack pointer, too. */
static const struct hit *put_before_return(struct bench *bench)
{
	const struct hit *put = NULL, *last = NULL;

	VEC_FOREACH (&reading_hits(bench->round.reading)->hits, caught) {
		uint64_t now = watched_word(caught->hit->new, WORD);
		uint64_t sp = caught->hit->gregs[LOG_GREG_RSP];

		if (watched_word(caught->hit->old, WORD) != now ||
		    hit_covers(caught, bench->symbols))
			put = now + RED_ZONE >= sp && now < caught->hit->stack_high ? caught : NULL;
		else if (put && put != last && now < sp && caught->hit->tid == put->hit->tid &&
			 owner_of(bench, put, now) != owner_of(bench, caught, sp))
			last = put;
	}
	return last;
}

/* The stack of the store from that function on which the address belongs to. */
static void take_frame(struct bench *bench, const struct hit *caught, uint64_t address,
		       const struct stack *writer, struct stack *ret)
{
	struct snapshot snapshot = event_log_snapshot(caught->log);
	struct machine_frame frames[FRAMES];
	size_t count = watchset_frames(caught, bench->symbols, frames, FRAMES), i = 0;

	while (i < count && address >= frames[i].cfa)
		i++;
	if (i == 0)
		stack_copy(ret, writer); /* the trap is behind the store */
	for (size_t at = i; i > 0 && at < count; at++)
		symbols_name(bench->symbols, &snapshot, frames[at].pc, 0, ret);
	machine_frames_free(frames, count);
}

static void read_holder(struct bench *bench, bool passed)
{
	struct evidence e = evidence_new(EVIDENCE_HOLDER, bench->round.number, true);
	struct evidence seen = evidence_new(EVIDENCE_WRITE, bench->round.number, true);
	const struct hit *last = put_before_return(bench);

	(void)passed;
	if (!last) {
		evidence_deinit(&seen);
		evidence_deinit(&e);
		return;
	}
	hit_describe(last, bench->symbols, seen.write);
	home_copy(&e.holder->home, &bench->neighbours.holder);
	e.holder->target = mem_alloc(sizeof(*e.holder->target));
	*e.holder->target = (struct block_life){ .state = BLOCK_FREED,
						 .value = watched_word(last->hit->new, WORD) };
	take_frame(bench, last, e.holder->target->value, &seen.write->writer,
		   &e.holder->target->allocated);
	e.holder->used = e.holder->exact = e.holder->frame = true;
	stack_copy(&e.holder->written_by, &seen.write->writer);
	evidence_deinit(&seen);
	VEC_PUSH(&bench->ret->evidence.list, e);
	bench->round.watched++;
}

static bool holder_read(struct bench *bench)
{
	return bench->round.watched >= PROOFS || bench->round.trials >= TRIALS_EACH;
}

static const struct round_ops holder_round = { .id = 17,
					       .observer = OBSERVE_WATCH,
					       .planned = true,
					       .read_any = read_holder,
					       .enough = holder_read };

static void watch(struct bench *bench, const struct watch_spec *spec)
{
	VEC_PUSH(&bench->watchset.list, *spec);
	bench->watchset.list.items[bench->watchset.list.count - 1].module =
		mem_strdup(bench->request->program_path);
}

static void forget(struct bench *bench)
{
	watchset_deinit(&bench->watchset);
	bench->watchset = (struct watchset){ 0 };
}

/* Arrays and structures first: of others few have their address taken. */
static bool watch_turn(struct bench *bench, unsigned int turn)
{
	const struct type_variables *known = &bench->neighbours.known;
	size_t first = (size_t)turn * WATCHES, nth = 0;

	forget(bench);
	for (unsigned int parts = 1; parts < 2; parts--)
		VEC_FOREACH (&known->list, v) {
			if (v->function == 0 || v->name[0] == '\0' || v->parts != (parts == 1) ||
			    v->at % (v->size < WORD ? 4 : WORD) != 0 || v->size < 4 ||
			    nth++ < first || bench->watchset.list.count == WATCHES)
				continue;
			watch(bench, &(struct watch_spec){ .by = LOCATE_FRAME,
							   .bytes = v->size < WORD ? 4 : WORD,
							   .identity = known->identity,
							   .address = v->function,
							   .offset = v->at,
							   .reads = true,
							   .after_return = true,
							   .home.kind = HOME_STACK });
		}
	return bench->watchset.list.count > 0;
}

static int run_planned(struct bench *bench, const struct round_ops *ops, struct err *err)
{
	int r = bench_plan(bench, err);

	return r == 0 ? round_run(bench, ops, err) : r;
}

static int look(struct bench *bench, struct err *err)
{
	const struct home *holder = &bench->neighbours.holder;
	int r = 0;

	for (unsigned int turn = 0; r == 0 && turn < TURNS_MAX && holder->kind == HOME_UNKNOWN &&
				    bench_may_go_on(bench) && watch_turn(bench, turn);
	     turn++)
		r = run_planned(bench, &locals_round, err);
	if (r < 0 || holder->kind == HOME_UNKNOWN)
		return r;
	forget(bench);
	watch(bench, &(struct watch_spec){ .by = LOCATE_GLOBAL,
					   .bytes = WORD,
					   .identity = bench->neighbours.known.identity,
					   .address = holder->address,
					   .reads = true,
					   .home.kind = HOME_GLOBAL });
	r = run_planned(bench, &holder_round, err);
	if (bench->round.watched > 0) {
		bench->told = true;
		SAY(&bench->ret->outcome, "outcome:evidence", said_count(bench->round.watched));
	}
	return r;
}

static bool applies(struct inquiry *inq, struct said *why)
{
	struct bench *bench = inq->bench;
	size_t locals = 0;

	(void)why;
	if (!neighbours_unexplained(bench) || !bench_may_go_on(bench))
		return false;
	VEC_FOREACH (&bench->neighbours.known.list, v)
		locals += v->function != 0;
	return locals > 0 && locals <= LOCALS_MAX;
}

static void price(const struct inquiry *inq, struct price *ret)
{
	price_of_trials(inq, TURNS_MAX, 2, ret);
}

static int run(struct inquiry *inq)
{
	struct bench *bench = inq->bench;
	struct watchset homes = bench->watchset;
	int r;

	bench->watchset = (struct watchset){ 0 };
	BENCH_SAY(bench, "chase:left-frames");
	r = look(bench, inq->err);
	watchset_deinit(&bench->watchset);
	bench->watchset = homes;
	return r;
}

EXPERIMENT(left_frames, .name = "left-frames", .question = QUESTION_WHO, .kind = EXPERIMENT_WATCH,
	   .chance = 0.15, .applies = applies, .price = price, .run = run);
