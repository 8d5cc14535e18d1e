/*
 * Who writes out of an array into the variable beside it.
 *
 * In the data segment and in frames nothing lies between two variables, so neither guards nor
 * fences see it. The debug information says where each begins and ends: what lies beside an array
 * is watched, four words in a trial, and of each store there the code is asked which variable its
 * address was made from (arch_roots()). Compilers fold constants into addresses, so that a[i - 4]
 * may begin in front of `a`: the line that the address was taken in must name the other variable,
 * and not the one that was written to.
 */
#include "hunt/inquiry.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "arch/arch.h"
#include "arch/store.h"
#include "base/cstr.h"

#define WORD 8
#define WATCHES 4u			    /* debug registers */
#define TURNS_MAX 20u			    /* of so many watches each */
#define TRIALS_EACH 4u			    /* of a turn that has shown something */
#define PAIRS_MAX (4 * TURNS_MAX * WATCHES) /* of more the right one is hardly watched */
#define HITS_MAX 256u			    /* of a trial that are looked at */
#define FRAMES 8u
#define HEAD 16u     /* the return address and the caller's frame pointer */
#define LINES_OUT 3u /* frames whose lines are asked for the variable */
#define LINES_ON 2u  /* that a call may go on for */
#define GAP 64	     /* more, and they are no neighbours */

/* A store that is looked at, and the frames that it was made in. */
struct astray {
	struct bench *bench;
	const struct mapping *program;
	struct snapshot snapshot;
	struct machine_frame frames[FRAMES];
	size_t count;
};

/* A variable in this process. */
struct found {
	const struct type_variable *variable; /* NULL: none, or not known */
	uint64_t start;
	uint64_t named_at; /* the instruction that put its address into a register */
};

/* As much as one register watches. */
static uint32_t register_bytes(int64_t at, uint64_t size)
{
	uint32_t bytes = WORD;

	while (bytes > size || at % (int64_t)bytes != 0)
		bytes /= 2;
	return bytes;
}

static void add(struct bench *bench, const struct type_variable *variable, int64_t at,
		uint32_t bytes, size_t first)
{
	struct neighbours *n = &bench->neighbours;
	bool framed = variable->function != 0;

	if (n->words++ < first || bench->watchset.list.count == WATCHES)
		return;
	VEC_PUSH(&bench->watchset.list,
		 ((struct watch_spec){
			 .by = framed ? LOCATE_FRAME : LOCATE_GLOBAL,
			 .bytes = bytes,
			 .identity = n->known.identity,
			 .address = framed ? variable->function : (uint64_t)at,
			 .module = mem_strdup(bench->request->program_path),
			 .offset = framed ? at : 0,
			 .home = { .kind = framed ? HOME_STACK : HOME_GLOBAL, .len = bytes } }));
}

/* Beside each other, with nothing known in between. */
static bool are_neighbours(const struct type_variable *a, const struct type_variable *b)
{
	int64_t end = a->at + (int64_t)a->size;

	return a->function == b->function && end <= b->at && b->at - end < GAP;
}

static void add_pair(struct bench *bench, const struct type_variable *a,
		     const struct type_variable *b, bool behind, size_t first)
{
	uint64_t rest = a->size < WORD ? a->size : WORD;
	int64_t last = a->at + (int64_t)(a->size - rest);
	uint32_t bytes = register_bytes(a->at + (int64_t)a->size, rest);

	if (!are_neighbours(a, b))
		return;
	if (behind && a->parts)
		add(bench, b, b->at, register_bytes(b->at, b->size), first);
	if (!behind && b->parts)
		add(bench, a, last + (int64_t)(rest - bytes), bytes, first);
}

/* A number or a pointer that has been watched neither as what is behind an array nor as what is
 * before one. Of a function's own only those that it shares its frame with an array. */
static bool is_far(const struct type_variables *known, size_t i)
{
	const struct type_variable *v = &known->list.items[i];
	bool array = false;

	if (v->parts || v->size > WORD || (i > 0 && are_neighbours(v - 1, v) && (v - 1)->parts) ||
	    (i + 1 < known->list.count && are_neighbours(v, v + 1) && (v + 1)->parts))
		return false;
	VEC_FOREACH (&known->list, other)
		array |= other->function == v->function && other->parts;
	return array;
}

/* The words of that turn: those behind arrays, those before them, and what else may be hit by an
 * index that is far out. False: there are no more. */
static bool watch_turn(struct bench *bench, unsigned int turn)
{
	const struct type_variables *known = &bench->neighbours.known;
	size_t first = (size_t)turn * WATCHES;

	watchset_deinit(&bench->watchset);
	bench->watchset = (struct watchset){ 0 };
	bench->neighbours.words = 0;
	for (size_t i = 1; i < known->list.count; i++)
		add_pair(bench, &known->list.items[i - 1], &known->list.items[i], true, first);
	for (size_t i = 1; i < known->list.count; i++)
		add_pair(bench, &known->list.items[i - 1], &known->list.items[i], false, first);
	for (size_t i = 0; i < known->list.count; i++)
		if (is_far(known, i))
			add(bench, &known->list.items[i], known->list.items[i].at,
			    register_bytes(known->list.items[i].at, known->list.items[i].size),
			    first);
	return bench->watchset.list.count > 0;
}

static bool contains(const struct type_variable *v, uint64_t function, int64_t at)
{
	return v->function == function && at >= v->at && at - v->at < (int64_t)v->size;
}

/* The one variable there. Those of two blocks of a function may share their place. */
static struct found variable_at(const struct astray *look, uint64_t address)
{
	uint64_t function = 0, base = look->program->bias;
	struct found found = { 0 };

	for (size_t i = 0; i < look->count && function == 0; i++)
		if (address < look->frames[i].cfa &&
		    address >= look->frames[0].registers.value[arch_native()->sp] - 128) {
			base = look->frames[i].cfa;
			function = look->frames[i].start - look->program->bias;
		}
	VEC_FOREACH (&look->bench->neighbours.known.list, v) {
		if (!contains(v, function, (int64_t)(address - base)))
			continue;
		if (found.variable)
			return (struct found){ 0 };
		found.variable = v;
		found.start = base + (uint64_t)v->at;
	}
	return found;
}

static bool in_program(const struct astray *look, uint64_t pc)
{
	return pc >= look->program->start && pc < look->program->end;
}

/* Does the call of that frame go to the function of the frame inside it, and not to one that jumped
 * there with other arguments? One outside of the program is called by way of a jump through the
 * table of what is linked. */
static bool calls_inner(const struct astray *look, size_t frame, uint64_t *ret_at)
{
	static const uint8_t mark[] = { 0xf3, 0x0f, 0x1e, 0xfa };
	const struct machine_frame *inner = &look->frames[frame - 1];
	struct trap trap = backtrack_trap(&look->frames[frame]);
	uint8_t code[16];
	const uint8_t *at = code;
	int32_t distance;
	uint64_t to;

	if (!arch_call_before(&trap, ret_at) || !in_program(look, *ret_at) ||
	    !symbols_read(look->bench->symbols, &look->snapshot, *ret_at, code, 6))
		return false;
	if (code[0] == 0xff && code[1] == 0x15)
		return !in_program(look, inner->pc);
	memcpy(&distance, code + 1, sizeof(distance));
	to = *ret_at + 5 + (uint64_t)(int64_t)distance;
	if (code[0] != 0xe8 || in_program(look, inner->pc))
		return code[0] == 0xe8 && to == inner->start;
	if (!symbols_read(look->bench->symbols, &look->snapshot, to, code, sizeof(code)))
		return false;
	if (memcmp(at, mark, sizeof(mark)) == 0)
		at += sizeof(mark);
	at += *at == 0xf2;
	return at[0] == 0xff && at[1] == 0x25;
}

/* The variable that the address in this operand was made from; through arguments, in the caller. */
static struct found meant(const struct astray *look, size_t frame, uint64_t at,
			  const struct memory_operand *operand)
{
	const struct machine_frame *in = &look->frames[frame];
	unsigned int fp = arch_native()->fp;
	bool framed = in->registers.known & 1u << fp && in->registers.value[fp] == in->cfa - HEAD;
	struct trap trap = backtrack_trap(in);
	struct found found = { 0 };
	struct roots roots;

	arch_roots(&trap, at, operand, framed, &roots);
	for (size_t i = 0; !roots.several && i < roots.count; i++) {
		const struct root *root = &roots.list[i];
		struct found one = { 0 };
		uint64_t call;

		if (!root->argument) {
			one = variable_at(look, root->address);
			one.named_at = root->at;
		} else if (frame + 1 < look->count && calls_inner(look, frame + 1, &call)) {
			one = meant(look, frame + 1, call,
				    &(struct memory_operand){ .base = root->reg,
							      .index = NO_REGISTER,
							      .segment = NO_REGISTER });
		}
		if (one.variable && found.variable)
			return (struct found){ 0 };
		if (one.variable)
			found = one;
	}
	return found;
}

/* Which argument of a function of the C library is written to; -1: not known. */
static int written_argument(const char *function)
{
	static const struct {
		const char *part;
		int argument;
	} writers[] = { { "cpy", 0 },	  { "cat", 0 },	     { "memmove", 0 }, { "memset", 0 },
			{ "sprintf", 0 }, { "snprintf", 0 }, { "gets", 0 },    { "fread", 0 },
			{ "read", 1 },	  { "recv", 1 } };

	for (size_t i = 0; function && i < ARRAY_SIZE(writers); i++)
		if (strstr(function, writers[i].part))
			return writers[i].argument;
	return -1;
}

/* The function outside of the program that the program called. */
static const char *called(const struct astray *look, const struct stack *stack)
{
	const char *name = NULL;

	for (size_t i = 0; i < stack->count; i++) {
		const struct frame *frame = &stack->frames[i];

		if (in_program(look, frame->address))
			return name;
		name = frame->function;
	}
	return NULL;
}

static struct found meant_by(const struct astray *look, const struct hit *caught,
			     const struct writer *writer, const struct stack *stack)
{
	static const char *const arguments[] = { "rdi", "rsi" };
	struct memory_operand operand = { .index = NO_REGISTER, .segment = NO_REGISTER };
	size_t frame = 0;
	uint64_t call;
	int which;

	if (!(caught->hit->flags & LOG_HIT_KERNEL) && look->count > 0 &&
	    in_program(look, look->frames[0].pc))
		return writer->certain ? meant(look, 0, writer->store.at, &writer->store.to)
				       : (struct found){ 0 };
	while (frame < look->count && !in_program(look, look->frames[frame].pc))
		frame++;
	which = written_argument(called(look, stack));
	if (frame == 0 || frame == look->count || which < 0 || !calls_inner(look, frame, &call))
		return (struct found){ 0 };
	operand.base = arch_register_find(arch_native(), arguments[which]);
	return meant(look, frame, call, &operand);
}

static bool is_word(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

static bool is_named(const char *text, const char *name)
{
	size_t len = strlen(name);

	for (const char *at = text; len > 0 && (at = strstr(at, name)) != NULL; at += len)
		if ((at == text || !is_word(at[-1])) && !is_word(at[len]))
			return true;
	return false;
}

/* The names of a variable: its own, and macros whose text has one of them. */
struct names_for_it {
	VEC(char *) list;
	char *macro; /* that is being defined; NULL */
};

static bool any_named(const struct names_for_it *names, const char *text)
{
	return VEC_ANY(&names->list, name, is_named(text, *name));
}

static void note_macro(struct names_for_it *names, const char *text)
{
	static const char define[] = "define";
	const char *at = text + strspn(text, " \t");
	size_t len = 0;

	if (!names->macro && *at == '#') {
		at += 1 + strspn(at + 1, " \t");
		if (strncmp(at, define, strlen(define)) != 0)
			return;
		at += strlen(define);
		at += strspn(at, " \t");
		while (is_word(at[len]))
			len++;
		names->macro = mem_strndup(at, len);
		text = at + len;
	}
	if (!names->macro)
		return;
	if (any_named(names, text))
		VEC_PUSH(&names->list, mem_strdup(names->macro));
	if (!strstr(text, "\\\n")) {
		mem_free(names->macro);
		names->macro = NULL;
	}
}

/* Does that line name it, or one of so many that the statement goes on for? By a macro only what
 * was hit: of that any hint is enough. */
static bool lines_name(const struct frame *at, uint32_t on, const char *name, bool macros)
{
	FILE *source = at->file && at->line > 0 ? fopen(at->file, "re") : NULL;
	struct names_for_it names = { 0 };
	char *text = NULL;
	size_t room = 0;
	bool named = false, ended = false;

	VEC_PUSH(&names.list, mem_strdup(name));
	for (uint32_t i = 1; source && !ended && getline(&text, &room, source) >= 0; i++) {
		if (macros)
			note_macro(&names, text);
		named |= i >= at->line && any_named(&names, text);
		ended = i >= at->line && (i >= at->line + on || strchr(text, ';'));
	}
	VEC_FREE(&names.list, known, mem_free(*known));
	mem_free(names.macro);
	free(text);
	if (source)
		(void)fclose(source);
	return named;
}

/* Which of the two the lines of that stack name first, from the inside: 1: the one that the address
 * was made from; -1: the one that was hit; 0: neither. */
static int stack_names(const struct stack *stack, uint32_t on, const struct found *meant,
		       const struct found *hit)
{
	for (size_t i = 0; i < stack->count && i < LINES_OUT; i++) {
		const struct frame *frame = &stack->frames[i];

		if (lines_name(frame, 0, hit->variable->name, true))
			return -1;
		if (lines_name(frame, on, meant->variable->name, false))
			return 1;
	}
	return 0;
}

/* Does whoever wrote the code mean that variable, and not the one that the store is in? Of code
 * that was inlined, or made for one caller, it is the caller's line that names it. Where a variable
 * begins another one ends, and whoever goes down from there may mean that: the very line that the
 * address was taken in must name it. */
static bool source_agrees(const struct astray *look, const struct found *meant,
			  const struct found *hit, const struct stack *writer)
{
	const struct frame *site = stack_site(writer);
	bool down = hit->start < meant->start;
	struct stack stack = { 0 };
	int named;

	if (!site || lines_name(site, 0, hit->variable->name, true))
		return false;
	symbols_name(look->bench->symbols, &look->snapshot, meant->named_at, FRAME_EXACT, &stack);
	named = stack_names(&stack, down ? 0 : LINES_ON, meant, hit);
	if (named == 0 && !down)
		named = stack_names(writer, LINES_ON, meant, hit);
	stack_deinit(&stack);
	return named > 0;
}

static void name_home(const struct astray *look, const struct found *hit, struct write_seen *ret)
{
	uint64_t address = ret->home.address, len = ret->home.len;
	const struct type_variable *v = hit->variable;

	home_deinit(&ret->home);
	ret->home = (struct home){ .kind = v->function != 0 ? HOME_STACK : HOME_GLOBAL,
				   .module = mem_strdup(look->program->path),
				   .offset = (int64_t)(address - hit->start),
				   .len = len,
				   .address = address };
	if (v->function == 0) {
		ret->home.name = mem_strdup(v->name);
	} else {
		struct stack stack = { 0 };

		symbols_name(look->bench->symbols, &look->snapshot,
			     v->function + look->program->bias, FRAME_EXACT, &stack);
		ret->home.offset += v->at;
		ret->home.name = cstr_dup(stack.count > 0 ? stack.frames[0].function : NULL);
		stack_deinit(&stack);
	}
}

/* The store's address belongs to another variable than its bytes. */
static bool is_astray(const struct astray *look, const struct hit *caught,
		      const struct writer *writer, struct write_seen *ret)
{
	struct found hit = variable_at(look, caught->hit->address), other;

	if (!hit.variable)
		return false;
	hit_tell(caught, writer, look->bench->symbols, ret);
	other = meant_by(look, caught, writer, &ret->writer);
	if (!other.variable || other.variable == hit.variable ||
	    other.variable->function != hit.variable->function ||
	    !source_agrees(look, &other, &hit, &ret->writer))
		return false;
	name_home(look, &hit, ret);
	block_life_free(ret->base);
	ret->base = mem_alloc(sizeof(*ret->base));
	*ret->base = (struct block_life){ .key = mem_strdup(other.variable->name),
					  .id = 1, /* known, and the program's own */
					  .start = other.start,
					  .size = other.variable->size };
	/* Of a repeated instruction the range is a guess; what was hit is not. */
	if (writer->store.kind == STORE_REPEATED) {
		ret->store_start = caught->hit->address;
		ret->store_len = caught->hit->bytes;
	}
	ret->flags |= WRITE_LAST;
	return true;
}

const struct mapping *neighbours_program(const struct bench *bench, const struct hit *caught)
{
	return VEC_FIND(&caught->log->modules, m,
			m->bias_known &&
				wire_module_identity(m->build_id, m->build_id_len, m->path) ==
					bench->neighbours.known.identity);
}

static bool look_at(struct bench *bench, const struct hit *caught)
{
	struct evidence e = evidence_new(EVIDENCE_WRITE, bench->round.number, true);
	struct astray look = { .bench = bench, .snapshot = event_log_snapshot(caught->log) };
	struct writer writer;
	bool astray = false;

	look.program = neighbours_program(bench, caught);
	if (look.program && hit_decode(caught, bench->symbols, &writer) == 0) {
		look.count = watchset_frames(caught, bench->symbols, look.frames, FRAMES);
		astray = is_astray(&look, caught, &writer, e.write);
		machine_frames_free(look.frames, look.count);
	}
	if (astray)
		VEC_PUSH(&bench->ret->evidence.list, e);
	else
		evidence_deinit(&e);
	return astray;
}

static void read_any(struct bench *bench, bool passed)
{
	unsigned int looked = 0;

	(void)passed;
	VEC_FOREACH (&reading_hits(bench->round.reading)->hits, caught) {
		if (caught->hit->flags & (LOG_HIT_ALONGSIDE | LOG_HIT_IMPRECISE) ||
		    memcmp(caught->hit->old, caught->hit->new, caught->hit->bytes) == 0)
			continue;
		if (looked++ == HITS_MAX)
			return;
		if (look_at(bench, caught)) {
			bench->round.watched++;
			return;
		}
	}
}

static bool enough(struct bench *bench)
{
	return bench->round.watched >= PROOFS ||
	       bench->round.trials >= (bench->round.watched > 0 ? TRIALS_EACH : 1);
}

static const struct round_ops beside_round = {
	.id = 15, .observer = OBSERVE_WATCH, .planned = true, .read_any = read_any, .enough = enough
};

/* Nothing that was watched before explains it: what was caught there is not what is told. */
static bool is_empty_hop(const struct evidence *e, const void *ctx)
{
	(void)ctx;
	return e->kind == EVIDENCE_HOP && e->hop->caught == 0;
}

static int look_beside(struct bench *bench, struct err *err)
{
	int r = 0;

	bench->round.watched = 0;
	for (unsigned int turn = 0; r == 0 && turn < TURNS_MAX && bench->round.watched == 0 &&
				    bench_may_go_on(bench) && watch_turn(bench, turn);
	     turn++) {
		r = bench_plan(bench, err);
		if (r == 0)
			r = round_run(bench, &beside_round, err);
	}
	if (bench->round.watched == 0)
		return r;
	evidence_drop(&bench->ret->evidence, is_empty_hop, NULL);
	bench->told = true;
	SAY(&bench->ret->outcome, "outcome:evidence", said_count(bench->round.watched));
	return r;
}

static void know_variables(struct bench *bench)
{
	AUTO(types_closep) struct types *types = NULL;

	if (bench->neighbours.read)
		return;
	bench->neighbours.read = true;
	if (types_open(bench->request->program_path, &types, NULL) == 0)
		types_variables(types, &bench->neighbours.known);
}

bool neighbours_unexplained(struct bench *bench)
{
	know_variables(bench);
	return !bench->told &&
	       (bench->request->start.freed ||
		(bench_settled(bench) && bench->ret->guarded_trials > 0 && bench_is_nobody(bench)));
}

static bool applies(struct inquiry *inq, struct said *why)
{
	struct bench *bench = inq->bench;
	const struct type_variables *known = &bench->neighbours.known;
	size_t pairs = 0;

	(void)why;
	if ((inq->known.target && !neighbours_unexplained(bench)) || !bench_may_go_on(bench))
		return false;
	know_variables(bench);
	for (size_t i = 1; i < known->list.count; i++)
		pairs += are_neighbours(&known->list.items[i - 1], &known->list.items[i]) &&
			 (known->list.items[i - 1].parts || known->list.items[i].parts);
	return pairs > 0 && pairs <= PAIRS_MAX;
}

static void price(const struct inquiry *inq, struct price *ret)
{
	price_of_trials(inq, TURNS_MAX / 2.0, 1.5, ret);
}

static int run(struct inquiry *inq)
{
	struct bench *bench = inq->bench;
	struct watchset homes = bench->watchset;
	int r;

	bench->watchset = (struct watchset){ 0 };
	BENCH_SAY(bench, "chase:neighbours");
	r = look_beside(bench, inq->err);
	watchset_deinit(&bench->watchset);
	bench->watchset = homes;
	return r;
}

EXPERIMENT(neighbours, .name = "neighbours", .question = QUESTION_WHO, .kind = EXPERIMENT_WATCH,
	   .chance = 0.3, .applies = applies, .price = price, .run = run);
