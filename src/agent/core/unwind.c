#include "agent/core/unwind.h"

#include <stddef.h>
#include <string.h>

#include "agent/core/modules.h"
#include "wire/checksum.h"

/* DWARF 5 section 6.4 and the LSB's description of .eh_frame. Only the encodings that linkers for
 * x86-64 emit are understood; anything else ends the walk. */

#define PE_PCREL_SDATA4 0x1b
#define PE_DATAREL_SDATA4 0x3b
#define PE_UDATA4 0x03
#define REG_RBP_NUMBER 6
#define REG_RSP_NUMBER 7
#define REG_RA_NUMBER 16
#define REMEMBER_MAX 8
#define CFA_WORDS_MAX 0x1ffffu /* of struct unwind_rule's bit fields */
#define RBP_WORDS_MAX 0x1fffu
#define PROGRAM_MAX 4096

struct cfi_cursor {
	const uint8_t *at, *end;
	bool bad;
};

enum rule_kind { RULE_SAME, RULE_AT_CFA, RULE_LOST, RULE_UNDEFINED };

struct cfi_rule {
	enum rule_kind kind;
	int64_t offset;
};

struct row {
	uint64_t cfa_register; /* REG_RBP_NUMBER or REG_RSP_NUMBER, or one we do not follow */
	int64_t cfa_offset;
	bool cfa_lost;
	struct cfi_rule rbp, ra;
};

struct fde_entry {
	uint64_t code_align;
	int64_t data_align;
	struct cfi_cursor initial, program;
	uint64_t start;
	bool signal_frame;
};

static uint64_t take(struct cfi_cursor *c, unsigned bytes)
{
	uint64_t value = 0;

	if ((size_t)(c->end - c->at) < bytes) {
		c->bad = true;
		return 0;
	}
	memcpy(&value, c->at, bytes);
	c->at += bytes;
	return value;
}

/* LEB128 (DWARF 5, 7.6). */
static uint64_t take_leb(struct cfi_cursor *c, bool sign)
{
	uint64_t value = 0;
	unsigned shift = 0;
	uint8_t byte;

	do {
		byte = (uint8_t)take(c, 1);
		if (shift < 64)
			value |= (uint64_t)(byte & 0x7f) << shift;
		shift += 7;
	} while ((byte & 0x80) && !c->bad);
	if (sign && shift < 64 && (byte & 0x40))
		value |= ~(uint64_t)0 << shift;
	return value;
}

static uint64_t take_uleb(struct cfi_cursor *c)
{
	return take_leb(c, false);
}

static int64_t take_sleb(struct cfi_cursor *c)
{
	return (int64_t)take_leb(c, true);
}

static uint64_t take_pcrel(struct cfi_cursor *c)
{
	uint64_t at = (uint64_t)c->at;

	return at + (uint64_t)(int64_t)(int32_t)take(c, 4);
}

/* Length field and the bytes it spans. */
static bool record_open(const uint8_t *at, struct cfi_cursor *ret)
{
	uint32_t length;

	memcpy(&length, at, 4);
	if (!length || length >= 0xfffffff0u)
		return false;
	ret->at = at + 4;
	ret->end = at + 4 + length;
	ret->bad = false;
	return true;
}

static unsigned pointer_bytes(uint8_t encoding)
{
	switch (encoding & 0x0f) {
	case 0x00:
	case 0x04:
	case 0x0c:
		return 8;
	case 0x03:
	case 0x0b:
		return 4;
	case 0x02:
	case 0x0a:
		return 2;
	default:
		return 0;
	}
}

static bool cie_read(const uint8_t *at, struct fde_entry *ret)
{
	const char *augmentation;
	uint8_t encoding = 0, other;
	struct cfi_cursor c;

	if (!record_open(at, &c) || take(&c, 4) != 0)
		return false;
	(void)take(&c, 1);
	augmentation = (const char *)c.at;
	while (take(&c, 1) && !c.bad)
		;
	ret->code_align = take_uleb(&c);
	ret->data_align = take_sleb(&c);
	if (take_uleb(&c) != REG_RA_NUMBER)
		return false;
	if (*augmentation == 'z') {
		(void)take_uleb(&c);
		for (augmentation++; *augmentation && !c.bad; augmentation++) {
			switch (*augmentation) {
			case 'R':
				encoding = (uint8_t)take(&c, 1);
				break;
			case 'P':
				other = (uint8_t)take(&c, 1);
				if (!pointer_bytes(other))
					return false;
				(void)take(&c, pointer_bytes(other));
				break;
			case 'L':
				(void)take(&c, 1);
				break;
			case 'S':
				ret->signal_frame = true;
				break;
			default:
				return false;
			}
		}
	}
	ret->initial = c;
	return !c.bad && encoding == PE_PCREL_SDATA4;
}

static bool fde_read(const uint8_t *at, uint64_t pc, struct fde_entry *ret)
{
	uint64_t bytes, skip;
	const uint8_t *id_at;
	struct cfi_cursor c;

	memset(ret, 0, sizeof(*ret));
	if (!record_open(at, &c))
		return false;
	id_at = c.at;
	if (!cie_read(id_at - (uint32_t)take(&c, 4), ret))
		return false;
	ret->start = take_pcrel(&c);
	bytes = take(&c, 4);
	if (c.bad || pc - ret->start >= bytes)
		return false;
	skip = take_uleb(&c);
	if (skip > (uint64_t)(c.end - c.at))
		return false;
	c.at += skip;
	ret->program = c;
	return !c.bad;
}

/* The header's table is sorted by address: (start, entry) pairs relative to the header. */
static const uint8_t *fde_find(uint64_t header, uint64_t pc)
{
	const uint8_t *at = (const uint8_t *)header;
	int32_t pair[2], want = (int32_t)(int64_t)(pc - header);
	uint32_t count, low = 0, high;

	if (at[0] != 1 || at[1] != PE_PCREL_SDATA4 || at[2] != PE_UDATA4 ||
	    at[3] != PE_DATAREL_SDATA4)
		return NULL;
	memcpy(&count, at + 8, 4);
	at += 12;
	high = count;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		memcpy(pair, at + (size_t)middle * 8, 8);
		if (pair[0] <= want)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low)
		return NULL;
	memcpy(pair, at + (size_t)(low - 1) * 8, 8);
	return (const uint8_t *)(header + (uint64_t)(int64_t)pair[1]);
}

static struct cfi_rule *rule_of(struct row *row, uint64_t number, struct cfi_rule *other)
{
	return number == REG_RBP_NUMBER ? &row->rbp : number == REG_RA_NUMBER ? &row->ra : other;
}

static void rule_set(struct row *row, uint64_t number, enum rule_kind kind, int64_t offset)
{
	struct cfi_rule other, *rule = rule_of(row, number, &other);

	rule->kind = kind;
	rule->offset = offset;
}

/* Runs instructions up to the row for pc. `first` is the row of the entry's own program, for
 * restore; NULL while that is made. */
static void bytes_pass(struct cfi_cursor *c, uint64_t bytes)
{
	if (bytes > (uint64_t)(c->end - c->at))
		c->bad = true;
	else
		c->at += bytes;
}

/* Instructions about one register. False: it is none. */
static bool register_step(struct cfi_cursor *c, const struct fde_entry *entry, uint8_t op,
			  struct row *row, const struct row *first)
{
	uint64_t number = take_uleb(c), bytes;
	struct cfi_rule other;

	switch (op) {
	case 0x05: /* offset_extended */
		rule_set(row, number, RULE_AT_CFA, (int64_t)take_uleb(c) * entry->data_align);
		return true;
	case 0x06: /* restore_extended */
		if (first)
			*rule_of(row, number, &other) =
				*rule_of((struct row *)first, number, &other);
		return true;
	case 0x07: /* undefined */
		rule_set(row, number, RULE_UNDEFINED, 0);
		return true;
	case 0x08: /* same_value */
		rule_set(row, number, RULE_SAME, 0);
		return true;
	case 0x09: /* register */
		(void)take_uleb(c);
		rule_set(row, number, RULE_LOST, 0);
		return true;
	case 0x10: /* expression, val_expression */
	case 0x16:
		bytes = take_uleb(c);
		bytes_pass(c, bytes);
		rule_set(row, number, RULE_LOST, 0);
		return true;
	case 0x11: /* offset_extended_sf */
		rule_set(row, number, RULE_AT_CFA, take_sleb(c) * entry->data_align);
		return true;
	case 0x2e: /* GNU_args_size: its number is one of bytes */
		return true;
	default:
		return false;
	}
}

/* Instructions about the frame's address. False: it is none. */
static bool frame_step(struct cfi_cursor *c, const struct fde_entry *entry, uint8_t op,
		       struct row *row)
{
	bool expression = op == 0x0f, with_register = op == 0x0c || op == 0x0d || op == 0x12;

	if (with_register)
		row->cfa_register = take_uleb(c);
	if (with_register || expression)
		row->cfa_lost = expression;
	switch (op) {
	case 0x0c: /* def_cfa */
	case 0x0e: /* def_cfa_offset */
		row->cfa_offset = (int64_t)take_uleb(c);
		return true;
	case 0x0d: /* def_cfa_register */
		return true;
	case 0x0f: /* def_cfa_expression */
		bytes_pass(c, take_uleb(c));
		return true;
	case 0x12: /* def_cfa_sf */
	case 0x13: /* def_cfa_offset_sf */
		row->cfa_offset = take_sleb(c) * entry->data_align;
		return true;
	default:
		return false;
	}
}

/* Those with an operand in their own byte, and those that move on: by how much. */
static uint64_t short_step(struct cfi_cursor *c, const struct fde_entry *entry, uint8_t op,
			   struct row *row, const struct row *first)
{
	uint8_t low = op & 0x3f;
	struct cfi_rule other;

	switch (op & 0xc0) {
	case 0x40: /* advance_loc */
		return low * entry->code_align;
	case 0x80: /* offset */
		rule_set(row, low, RULE_AT_CFA, (int64_t)take_uleb(c) * entry->data_align);
		return 0;
	case 0xc0: /* restore */
		if (first)
			*rule_of(row, low, &other) = *rule_of((struct row *)first, low, &other);
		return 0;
	default: /* advance_loc1, 2, 4; nop */
		return op ? take(c, 1u << (op - 2)) * entry->code_align : 0;
	}
}

static bool program_run(struct cfi_cursor c, const struct fde_entry *entry, uint64_t pc,
			struct row *row, const struct row *first)
{
	struct row kept[REMEMBER_MAX];
	uint64_t location = entry->start;
	unsigned depth = 0, steps;

	for (steps = 0; c.at < c.end && steps < PROGRAM_MAX && !c.bad; steps++) {
		uint8_t op = (uint8_t)take(&c, 1);

		if (op >= 0x40 || op <= 0x04) {
			if (op == 0x01) /* set_loc */
				return false;
			location += short_step(&c, entry, op, row, first);
			if (location > pc)
				return true;
		} else if (op == 0x0a) { /* remember_state */
			if (depth == REMEMBER_MAX)
				return false;
			kept[depth++] = *row;
		} else if (op == 0x0b) { /* restore_state */
			if (!depth)
				return false;
			*row = kept[--depth];
		} else if (!frame_step(&c, entry, op, row) &&
			   !register_step(&c, entry, op, row, first)) {
			return false;
		}
	}
	return !c.bad;
}

static bool stack_word(const struct unwind *at, uint64_t address, uint64_t *ret)
{
	if (address % 8 || address < at->low || (at->high && address + 8 > at->high))
		return false;
	memcpy(ret, (const void *)address, 8);
	return true;
}

/* The rule in the few bits that it is kept in; `ret` stays as it is where it does not fit. */
static void row_keep(const struct row *row, struct unwind_rule *ret)
{
	int64_t cfa = row->cfa_offset, rbp = row->rbp.kind == RULE_AT_CFA ? -row->rbp.offset : 8;

	if (row->cfa_lost || row->ra.kind != RULE_AT_CFA || row->rbp.kind >= RULE_LOST ||
	    row->ra.offset != -8)
		return;
	if (cfa < 0 || cfa % 8 || cfa / 8 > CFA_WORDS_MAX)
		return;
	if (rbp <= 0 || rbp % 8 || rbp / 8 > RBP_WORDS_MAX)
		return;
	if (row->rbp.kind == RULE_AT_CFA)
		ret->rbp = (uint32_t)(rbp / 8) & RBP_WORDS_MAX;
	ret->cfa = (uint32_t)(cfa / 8) & CFA_WORDS_MAX;
	if (row->cfa_register == REG_RSP_NUMBER)
		ret->kind = UNWIND_BY_RSP;
	else if (row->cfa_register == REG_RBP_NUMBER)
		ret->kind = UNWIND_BY_RBP;
}

void unwind_learn(uint64_t rip, const struct loaded_module *module, struct unwind_rule *ret)
{
	struct row row = { .cfa_lost = true, .rbp = { RULE_SAME, 0 }, .ra = { RULE_LOST, 0 } };
	struct row first;
	struct fde_entry entry;
	const uint8_t *fde;

	memset(ret, 0, sizeof(*ret));
	if (module && module->identity)
		ret->frame_hash = checksum_mix(module->identity, rip - module->base) | 1;
	fde = module && module->eh_header ? fde_find(module->eh_header, rip - 1) : NULL;
	if (!fde || !fde_read(fde, rip - 1, &entry)) {
		ret->kind = UNWIND_BY_CHAIN;
		return;
	}
	if (entry.signal_frame || !program_run(entry.initial, &entry, UINT64_MAX, &row, NULL))
		return;
	first = row;
	if (!program_run(entry.program, &entry, rip - 1, &row, &first))
		return;
	if (row.ra.kind == RULE_UNDEFINED)
		ret->cfa = UNWIND_NOTHING_ABOVE;
	row_keep(&row, ret);
}

static bool step_by_chain(struct unwind *at, uint64_t *ret_slot)
{
	uint64_t rip, rbp, frame = at->rbp;

	if (!at->high || frame < at->rsp || !stack_word(at, frame, &rbp) ||
	    !stack_word(at, frame + 8, &rip))
		return false;
	*ret_slot = frame + 8;
	at->rip = rip;
	at->rsp = frame + 16;
	at->rbp = rbp;
	return rip > 4096;
}

bool unwind_step(struct unwind *at, const struct unwind_rule *rule, uint64_t *ret_slot)
{
	uint64_t cfa, rip, rbp = at->rbp;

	if (rule->kind == UNWIND_BY_CHAIN)
		return step_by_chain(at, ret_slot);
	if (rule->kind == UNWIND_END)
		return false;
	cfa = (rule->kind == UNWIND_BY_RSP ? at->rsp : at->rbp) + 8ull * rule->cfa;
	if (cfa <= at->rsp || !stack_word(at, cfa - 8, &rip))
		return false;
	if (rule->rbp && !stack_word(at, cfa - 8ull * rule->rbp, &rbp))
		return false;
	*ret_slot = cfa - 8;
	at->rip = rip;
	at->rsp = cfa;
	at->rbp = rbp;
	return rip > 4096;
}
