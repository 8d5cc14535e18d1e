#include "read/poison_found.h"

#include <ctype.h>
#include <string.h>

#include "arch/arch.h"
#include "read/block_damage_inside.h"
#include "wire/guard_word.h"

#define WORD 8u
#define FINDINGS_MAX 16u
#define LINE_MAX 160u
#define FRAMES_MAX 16u
#define HALVES_MAX 8u
#define HALF_BITS 24u	      /* of an address, in half a word */
#define HALF_CHANCE 1e-4      /* that one of a trial's numbers is such a half by chance */
#define HALF_MASK 0xc0c0c0c0u /* of CANARY_MARK */
#define HALF_MARK 0x80808080u

struct half {
	uint32_t value;
	size_t at; /* in the text */
};

/* What came out, beside the log of one process. */
struct search {
	struct log_findings found;
	uint64_t seed;
	VEC(struct log_life)
	freed; /* the last blocks that it freed; gathered when first asked for */
	bool gathered;
	const char *text; /* of the output; NULL: it is looked for in registers */
	size_t len;
	size_t findings;
	VEC(struct half) halves; /* numbers of four bytes that may be half of a word */
};

static bool read_seed(struct event_log *log, uint64_t *ret)
{
	struct log_item item;
	struct log_heap heap;

	log_reader_rewind(&log->reader);
	while (log_reader_next(&log->reader, &item))
		if (item.head.type == LOG_HEAP && log_payload(&item, &heap, sizeof(heap)) &&
		    heap.poison_ppm > 0) {
			*ret = heap.seed;
			return true;
		}
	return false;
}

bool poison_is_there(const struct damage_source *of)
{
	uint64_t seed;

	return VEC_ANY(&of->logs->list, log, read_seed(log, &seed));
}

static void gather(struct search *s)
{
	struct log_reader *reader = &s->found.log->reader;

	for (uint32_t lane = 0; !s->gathered && lane < log_lane_count(reader); lane++) {
		struct log_ring_cursor cursor;
		struct log_life life;

		if (!log_ring_begin(reader, lane, &cursor))
			continue;
		while (log_ring_next(reader, &cursor, &life))
			if (life.op == LOG_LIFE_FREE)
				VEC_PUSH(&s->freed, life);
	}
	s->gathered = true;
}

/* The last one that was freed there. */
static const struct log_life *freed_at(struct search *s, uint64_t start)
{
	const struct log_life *last = NULL;

	gather(s);
	VEC_FOREACH (&s->freed, life)
		if (life->start == start && (!last || life->id > last->id))
			last = life;
	return last;
}

/* The upper half of a word has those bits of the address that tell neighbours apart. Blocks farther
 * away may have it in common: then nobody knows which of them was read. */
static const struct log_life *freed_with_half(struct search *s, uint32_t half)
{
	const struct log_life *last = NULL;

	VEC_FOREACH (&s->freed, life) {
		if (canary_word(s->seed, life->start, CANARY_POISON) >> 32 != half)
			continue;
		if (last && last->start != life->start)
			return NULL;
		if (!last || life->id > last->id)
			last = life;
	}
	return last;
}

static char *line_at(const struct search *s, size_t at)
{
	struct strbuf sb = { 0 };
	size_t from = at, to = at;

	while (from > 0 && s->text[from - 1] != '\n' && at - from < LINE_MAX / 2)
		from--;
	while (to < s->len && s->text[to] != '\n' && to - from < LINE_MAX)
		to++;
	strbuf_add_printable(&sb, s->text + from, to - from);
	return strbuf_take(&sb);
}

static bool is_known(const struct search *s, uint64_t id)
{
	return VEC_ANY(&s->found.ret->findings, finding,
		       finding->kind == HEAP_USE_AFTER_FREE && finding->id == id &&
			       finding->poison &&
			       finding->pid == (int)s->found.log->reader.header.pid);
}

static void add(struct search *s, const struct log_life *life, size_t at)
{
	struct heap_finding finding;

	if (s->findings == FINDINGS_MAX || is_known(s, life->id))
		return;
	s->findings++;
	finding = damage_finding(&s->found, HEAP_USE_AFTER_FREE);
	damage_tell_block(&s->found,
			  &(struct log_block){ .id = life->id,
					       .start = life->start,
					       .size = log_life_size(life),
					       .api = life->api,
					       .context = life->context & LOG_CONTEXT_MASK,
					       .free_context = life->free_context,
					       .freed_epoch = life->epoch,
					       .state = LOG_BLOCK_FREED },
			  &finding);
	finding.poison = true;
	finding.when.check = mem_strdup(s->text ? "output" : "register");
	finding.when.before = s->text ? line_at(s, at) : NULL;
	VEC_PUSH(&s->found.ret->findings, finding);
}

static bool note_word(struct search *s, uint64_t word, size_t at)
{
	const struct log_life *life = NULL;
	uint64_t start;

	if (canary_decode(s->seed, word, CANARY_POISON, &start))
		life = freed_at(s, start);
	if (life)
		add(s, life, at);
	return life != NULL;
}

static void note_half(struct search *s, uint32_t value, size_t at)
{
	if ((value & HALF_MASK) != HALF_MARK || s->halves.count > HALVES_MAX)
		return;
	VEC_FOREACH (&s->halves, half)
		if (half->value == value)
			return;
	VEC_PUSH(&s->halves, ((struct half){ value, at }));
}

/* Half a word has few bits: of many numbers, beside many freed blocks, one is such a half by
 * chance.
 */
static void add_halves(struct search *s)
{
	if (s->halves.count == 0 || s->halves.count > HALVES_MAX)
		return;
	gather(s);
	if ((double)s->halves.count * (double)s->freed.count / (1u << HALF_BITS) > HALF_CHANCE)
		return;
	VEC_FOREACH (&s->halves, half) {
		const struct log_life *life = freed_with_half(s, half->value);

		if (life)
			add(s, life, half->at);
	}
}

static bool is_poison_byte(char c)
{
	return ((unsigned char)c & 0xc0) == 0x80;
}

/* A text may begin anywhere in a word. Returns where the run ends. */
static size_t read_bytes(struct search *s, size_t at)
{
	size_t end = at;
	bool found = false;

	while (end < s->len && is_poison_byte(s->text[end]))
		end++;
	for (size_t from = at; !found && from < at + WORD && from + WORD <= end; from++) {
		uint64_t word;

		memcpy(&word, s->text + from, WORD);
		found = note_word(s, word, from);
	}
	return end;
}

/* False: it is no number in that base, or too large. */
static bool parse(const char *text, size_t len, unsigned int base, uint64_t *ret)
{
	uint64_t value = 0;

	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)text[i];
		unsigned int digit = isdigit(c)	   ? (unsigned int)c - '0'
				     : isxdigit(c) ? (unsigned int)tolower(c) - 'a' + 10
						   : base;

		if (digit >= base || __builtin_mul_overflow(value, base, &value) ||
		    __builtin_add_overflow(value, digit, &value))
			return false;
	}
	*ret = value;
	return len > 0;
}

/* Every byte of poison has its upper bit: it has all of its digits, and of signed numbers a sign.
 */
static void read_number(struct search *s, size_t at, size_t len)
{
	const char *text = s->text + at;
	bool negative = at > 0 && text[-1] == '-';
	uint64_t value;

	if (parse(text, len, 10, &value)) {
		value = negative ? -value : value;
		if (len >= 19)
			(void)note_word(s, value, at);
		else if (len == 10 &&
			 value == (negative ? (uint64_t)(int32_t)value : (uint32_t)value))
			note_half(s, (uint32_t)value, at);
	}
	if (len > 2 && text[0] == '0' && (text[1] == 'x' || text[1] == 'X')) {
		text += 2;
		len -= 2;
	}
	if ((len == 2 * WORD || len == WORD) && parse(text, len, 16, &value)) {
		if (len == 2 * WORD)
			(void)note_word(s, value, at);
		else
			note_half(s, (uint32_t)value, at);
	}
}

static void search_text(struct search *s)
{
	size_t at = 0;

	while (at < s->len) {
		size_t from = at;

		if (is_poison_byte(s->text[at])) {
			at = read_bytes(s, at);
			continue;
		}
		while (at < s->len && isalnum((unsigned char)s->text[at]))
			at++;
		if (at - from >= WORD)
			read_number(s, from, at - from);
		at += at == from;
	}
}

void poison_find_in_output(const struct damage_source *of, const char *text, size_t len,
			   struct damage *ret)
{
	VEC_FOREACH (&of->logs->list, log) {
		struct search s = { .found = { .of = of, .log = log, .ret = ret },
				    .text = text,
				    .len = len };

		if (read_seed(log, &s.seed)) {
			search_text(&s);
			add_halves(&s);
		}
		VEC_DEINIT(&s.halves);
		VEC_DEINIT(&s.freed);
	}
}

/* Functions give these registers back as they got them, redhand's own included: what stands there
 * was read by the program. In the others there may be rests of redhand's. */
static void search_frames(struct search *s, const struct machine_frame *frames, size_t count)
{
	const struct arch *arch = arch_native();

	for (size_t i = 0; i < count; i++)
		for (unsigned int reg = 0; reg < arch->register_count; reg++)
			if (arch->callee_saved & frames[i].registers.known & 1u << reg)
				(void)note_word(s, frames[i].registers.value[reg], 0);
}

void poison_find_in_crash(const struct damage_source *of, const struct crash_place *place,
			  struct damage *ret)
{
	struct search s = { .found = { .of = of, .log = place->log, .ret = ret } };
	struct machine_frame frames[FRAMES_MAX];
	struct crash_record record = { 0 };
	struct snapshot snapshot;
	size_t count;

	if (!read_seed(place->log, &s.seed))
		return;
	crash_record_open(place, &record);
	crash_record_snapshot(&record, &snapshot);
	count = symbols_machine_frames(of->symbols, &snapshot, frames, FRAMES_MAX);
	search_frames(&s, frames, count);
	machine_frames_free(frames, count);
	crash_record_deinit(&record);
	VEC_DEINIT(&s.freed);
}
