/*
 * What each kind of evidence is made of: its bytes in the case and back, its end. See archive.h.
 */
#include <assert.h>
#include <errno.h>

#include "model/archive.h"
#include "model/evidence.h"

#define EVIDENCE_VERSION 19

/* clang-format off */
static const struct model_field store_code_list[] = {
	FIELD(BOOL, store_code, certain), FIELD_UPTO(CHOICE, store_code, form, STORE_FORMS),
	FIELD_UPTO(CHOICE, store_code, base, ADDRESS_BASES), FIELD(U64, store_code, pointer),
	FIELD(U64, store_code, displacement), FIELD(BOOL, store_code, string),
	FIELD(BOOL, store_code, indexed), FIELD(BOOL, store_code, moves_base),
	FIELD(BOOL, store_code, immediate), FIELD_UPTO(CHOICE, store_code, source, POINTER_SOURCES),
	FIELD(BOOL, store_code, changed), FIELD(BOOL, store_code, joined),
	FIELD(UINT, store_code, motion), { 0 },
};
static const struct model_fields store_code_fields = FIELDS(store_code, store_code_list);

static const struct model_field value_found_list[] = {
	FIELD(BOOL, value_found, known), FIELD(UINT, value_found, step),
	FIELD(UINT, value_found, steps), FIELD_UPTO(CHOICE, value_found, leads, VALUE_LEADS),
	FIELD(BOOL, value_found, at_start), FIELD(BOOL, value_found, leads_recycled),
	FIELD(BOOL, value_found, jumped), FIELD(BOOL, value_found, indexed),
	FIELD(BOOL, value_found, read_by_code), FIELD(UINT, value_found, other_places),
	FIELD(BOOL, value_found, replaced), FIELD(BOOL, value_found, outlived),
	FIELD(BOOL, value_found, strayed), FIELD(BOOL, value_found, runtime),
	FIELD(BOOL, value_found, place_reused), FIELD(BOOL, value_found, owner_reached), { 0 },
};
static const struct model_fields value_found_fields = FIELDS(value_found, value_found_list);

static const struct model_field write_parts_list[] = {
	FIELD(BOOL, write_parts, known), FIELD(UINT, write_parts, whole),
	FIELD(UINT, write_parts, writers), FIELD(BOOL, write_parts, covered), { 0 },
};
static const struct model_fields write_parts_fields = FIELDS(write_parts, write_parts_list);

/* Before version 5 a write had the meaning of what was seen in its flags. As facts that mean the
 * same; what else was seen is lost. */
enum old_flags {
	OLD_FIRST = 1 << 6,
	OLD_FREE_INFERRED = 1 << 7,
	OLD_FREE_UNKNOWN = 1 << 8,
	OLD_MASKED = 1 << 9,
	OLD_AT_MOST = 1 << 10,
	OLD_SOUND = 1 << 11,
	OLD_READABLE = 1 << 12,
	OLD_NAMED = 1 << 13,
	OLD_RECYCLED = 1 << 14,
	OLD_POINTER = 1 << 15,
	OLD_PIECE = 1 << 16,
	OLD_PARTS = 1 << 17,
	OLD_OPENS = 1 << 18,
	OLD_RUNS = 1 << 19,
	OLD_RUNS_UP = 1 << 20,
	OLD_RUNS_DOWN = 1 << 21,
	OLD_TWIN = 1 << 22,
};

static void from_old_code(struct write_seen *w, unsigned int old)
{
	struct store_code *c = &w->code;

	c->certain = old & (OLD_NAMED | OLD_PIECE | OLD_RUNS);
	if (old & (OLD_NAMED | OLD_PIECE))
		c->form = FORM_PLAIN;
	if (old & OLD_NAMED)
		c->base = ADDRESS_FIXED;
	if (old & OLD_PIECE) {
		c->base = ADDRESS_POINTER;
		c->source = POINTER_LOADED;
		c->pointer = w->home.address;
	}
	c->motion = (old & OLD_RUNS ? MOTION_SOMEWHERE : 0) | (old & OLD_RUNS_UP ? MOTION_UP : 0) |
		    (old & OLD_RUNS_DOWN ? MOTION_DOWN : 0);
}

static void from_old_flags(struct archive *a, void *object)
{
	struct write_seen *w = object;
	unsigned int old = w->flags;

	(void)a;
	w->flags = (old & (WRITE_LAST | WRITE_FOUND | WRITE_ASYNC | WRITE_KERNEL | WRITE_COPIED |
			   WRITE_UPDATE)) |
		   (old & OLD_MASKED ? WRITE_MASKED : 0) | (old & OLD_AT_MOST ? WRITE_AT_MOST : 0);
	from_old_code(w, old);
	w->found = (struct value_found){
		.known = old & (OLD_SOUND | OLD_READABLE | OLD_RECYCLED | OLD_TWIN),
		.step = 1,
		.steps = 2,
		.leads = old & OLD_SOUND ? LEADS_TO_LIVE : LEADS_NOWHERE,
		.read_by_code = old & OLD_READABLE,
		.other_places = old & OLD_TWIN ? 1 : 0,
		.place_reused = old & OLD_RECYCLED,
	};
	w->parts = (struct write_parts){ .known = old & OLD_PARTS, .writers = 2, .covered = true };
	w->nth_of_object = old & OLD_FIRST ? 1 : 0;
	w->nth_of_block = old & OLD_OPENS ? 1 : 0;
	w->new_was_block = old & OLD_POINTER;
	w->free_basis = old & OLD_FREE_INFERRED	 ? FREE_INFERRED
			: old & OLD_FREE_UNKNOWN ? FREE_UNSEEN
						 : FREE_SEEN;
}

static const struct model_field block_bytes_list[] = {
	FIELD(BYTES, block_bytes, bytes), FIELD(U64, block_bytes, offset),
	FIELD(U64, block_bytes, nth), { 0 },
};
static const struct model_fields block_bytes_fields = FIELDS(block_bytes, block_bytes_list);

static const struct model_field write_seen_list[] = {
	FIELD_OF(STRUCT, write_seen, home, home_fields),
	FIELD_OF(PART, write_seen, victim, block_fields), FIELD(TEXT, write_seen, instruction),
	FIELD(UINT, write_seen, width), FIELD(U64, write_seen, store_start),
	FIELD(U64, write_seen, store_len), FIELD_UPTO(CHOICE, write_seen, fit, FIT_KINDS),
	FIELD(U64, write_seen, old), FIELD(U64, write_seen, new),
	FIELD_UPTO(CHOICE, write_seen, value_len, sizeof(uint64_t) + 1),
	FIELD(UINT, write_seen, flags), FIELD(STACK, write_seen, writer),
	FIELD(INT, write_seen, tid), FIELD(TEXT, write_seen, thread),
	FIELD(U64, write_seen, when_ns), FIELD_OF(PART, write_seen, base, block_fields),
	FIELD_OF(PART, write_seen, target, block_fields),
	FIELD_OF(STRUCT, write_seen, source, home_fields),
	FIELD_UPTO(CHOICE, write_seen, source_state, SOURCE_STATES), FIELD(U64, write_seen, age),
	FIELD_BEFORE(5, from_old_flags),
	FIELD_OF_SINCE(5, STRUCT, write_seen, code, store_code_fields),
	FIELD_OF_SINCE(5, STRUCT, write_seen, found, value_found_fields),
	FIELD_OF_SINCE(5, STRUCT, write_seen, parts, write_parts_fields),
	FIELD_SINCE(5, U64, write_seen, nth_of_block),
	FIELD_SINCE(5, U64, write_seen, nth_of_object),
	FIELD_SINCE(5, BOOL, write_seen, new_was_block),
	FIELD_UPTO_SINCE(5, CHOICE, write_seen, free_basis, FREE_BASES),
	FIELD_SINCE(7, BOOL, write_seen, copy), FIELD_SINCE(14, TEXT, write_seen, registers),
	FIELD_OF_SINCE(18, STRUCT, write_seen, block, block_bytes_fields), { 0 },
};
static const struct model_fields write_seen_fields = FIELDS(write_seen, write_seen_list);

static const struct model_field watch_list[] = {
	FIELD_OF(STRUCT, watch_account, home, home_fields),
	FIELD_OF(PART, watch_account, victim, block_fields), FIELD(TEXT, watch_account, mode),
	FIELD(BOOL, watch_account, victim_watched), FIELD(BOOL, watch_account, since_birth),
	FIELD(BOOL, watch_account, kernel_writes), FIELD(U64, watch_account, hits),
	FIELD(UINT, watch_account, threads), FIELD(BOOL, watch_account, value_known),
	FIELD(U64, watch_account, value), FIELD(U64, watch_account, birth_value), { 0 },
};
static const struct model_fields watch_fields = FIELDS(watch_account, watch_list);

static const struct model_field outside_list[] = {
	FIELD_OF(STRUCT, outside_change, home, home_fields),
	FIELD_OF(PART, outside_change, victim, block_fields), FIELD(U64, outside_change, old),
	FIELD(U64, outside_change, new),
	FIELD_UPTO(CHOICE, outside_change, value_len, sizeof(uint64_t) + 1),
	FIELD(BOOL, outside_change, kernel_writes), FIELD(BOOL, outside_change, gap),
	FIELD_SINCE(15, SAID_LIST, outside_change, between), { 0 },
};
static const struct model_fields outside_fields = FIELDS(outside_change, outside_list);

static const struct model_field conflation_list[] = {
	FIELD(U64, conflation_seen, address), FIELD(U64, conflation_seen, offset),
	FIELD(U64, conflation_seen, first_id), FIELD(U64, conflation_seen, second_id),
	FIELD(TEXT, conflation_seen, first_key), FIELD(TEXT, conflation_seen, second_key),
	FIELD(U64, conflation_seen, first_value), FIELD(U64, conflation_seen, second_value),
	FIELD_UPTO(CHOICE, conflation_seen, value_len, sizeof(uint64_t) + 1),
	FIELD_OF(PART, conflation_seen, first, block_fields),
	FIELD_OF(PART, conflation_seen, second, block_fields),
	FIELD(BOOL, conflation_seen, watched), { 0 },
};
static const struct model_fields conflation_fields = FIELDS(conflation_seen, conflation_list);

static const struct model_field freed_use_list[] = {
	FIELD_OF(PART, freed_use, block, block_fields), FIELD(U64, freed_use, offset),
	FIELD(BOOL, freed_use, write), FIELD(TEXT, freed_use, instruction),
	FIELD(STACK, freed_use, user), FIELD(BOOL, freed_use, poison),
	FIELD_SINCE(4, BOOL, freed_use, place_reused), FIELD_SINCE(6, BOOL, freed_use, fenced),
	FIELD_SINCE(6, U64, freed_use, width), FIELD_SINCE(8, BOOL, freed_use, first),
	FIELD_SINCE(13, BOOL, freed_use, unpointed),
	FIELD_OF_SINCE(16, STRUCT, freed_use, from, home_fields), { 0 },
};
static const struct model_fields freed_use_fields = FIELDS(freed_use, freed_use_list);

static const struct model_field reported_list[] = {
	FIELD_UPTO(CHOICE, reported, kind, REPORTED_KINDS), FIELD(TEXT, reported, tool),
	FIELD(TEXT, reported, what), FIELD(BOOL, reported, write), FIELD(U64, reported, width),
	FIELD(U64, reported, offset), FIELD_OF(PART, reported, block, block_fields),
	FIELD(STACK, reported, user), FIELD(STACK, reported, other), { 0 },
};
static const struct model_fields reported_fields = FIELDS(reported, reported_list);

static const struct model_field holder_list[] = {
	FIELD_OF(STRUCT, holder_seen, home, home_fields),
	FIELD_OF(PART, holder_seen, holder, block_fields),
	FIELD_OF(PART, holder_seen, target, block_fields), FIELD(STACK, holder_seen, written_by),
	FIELD(BOOL, holder_seen, used), FIELD(BOOL, holder_seen, exact),
	FIELD(BOOL, holder_seen, on_stack_too), FIELD_SINCE(3, BOOL, holder_seen, frame),
	FIELD_SINCE(17, BOOL, holder_seen, counted), { 0 },
};
static const struct model_fields holder_fields = FIELDS(holder_seen, holder_list);

static const struct model_field bad_free_list[] = {
	FIELD_UPTO(CHOICE, bad_free, kind, BAD_FREE_KINDS), FIELD(U64, bad_free, pointer),
	FIELD_OF(PART, bad_free, block, block_fields), FIELD(STACK, bad_free, second),
	FIELD(TEXT, bad_free, how), FIELD_SINCE(4, BOOL, bad_free, named),
	FIELD_SINCE(19, U64, bad_free, owners), { 0 },
};
static const struct model_fields bad_free_fields = FIELDS(bad_free, bad_free_list);

/* Where the damage went on was a yes or no before version 5, and which block it was is lost. */
static void old_canary(struct archive *a, void *object)
{
	struct canary_broken *c = object;
	bool adjacent = false, contested = false;

	archive_bool(a, &adjacent);
	if (a->version >= 4)
		archive_bool(a, &contested);
	if (contested)
		c->goes_on_at = mem_strdup("another block");
}

static const struct model_field canary_list[] = {
	FIELD_UPTO(CHOICE, canary_broken, side, CANARY_SIDES),
	FIELD_OF(PART, canary_broken, block, block_fields), FIELD(U64, canary_broken, offset),
	FIELD(U64, canary_broken, len), FIELD_SINCE(5, TEXT, canary_broken, goes_on_at),
	FIELD_BEFORE(5, old_canary), FIELD(BYTES, canary_broken, expected),
	FIELD(BYTES, canary_broken, found), FIELD(TEXT, canary_broken, last_whole),
	FIELD(TEXT, canary_broken, first_broken), FIELD_SINCE(7, STACK, canary_broken, writer),
	FIELD_SINCE(7, TEXT, canary_broken, instruction), { 0 },
};
static const struct model_fields canary_fields = FIELDS(canary_broken, canary_list);

static const struct model_field mapping_list[] = {
	FIELD(TEXT, mapping_cut, file), FIELD(U64, mapping_cut, mapped),
	FIELD(U64, mapping_cut, present), FIELD_OF(PART, mapping_cut, cut, cut_fields),
	FIELD(STACK, mapping_cut, user), { 0 },
};
static const struct model_fields mapping_fields = FIELDS(mapping_cut, mapping_list);

static const struct model_field odds_list[] = {
	FIELD_OF(STRUCT, odds_seen, home, home_fields), FIELD(STACK, odds_seen, allocated),
	FIELD(U64, odds_seen, garbage), FIELD(U64, odds_seen, garbage_failed),
	FIELD(U64, odds_seen, zeroed), FIELD(U64, odds_seen, zeroed_failed),
	FIELD(REAL, odds_seen, p), FIELD_SINCE(7, BOOL, odds_seen, otherwise), { 0 },
};
static const struct model_fields odds_fields = FIELDS(odds_seen, odds_list);

static const struct model_field fault_value_list[] = {
	FIELD(BOOL, fault_value, divisor), FIELD(U64, fault_value, value),
	FIELD_UPTO(CHOICE, fault_value, source, POINTER_SOURCES),
	FIELD_OF(STRUCT, fault_value, home, home_fields), FIELD(TEXT, fault_value, returned_by),
	{ 0 },
};
static const struct model_fields fault_value_fields = FIELDS(fault_value, fault_value_list);

static const struct model_field party_list[] = {
	FIELD(STACK, reference_party, at), FIELD(U64, reference_party, taken),
	FIELD(U64, reference_party, given), FIELD_SINCE(17, BOOL, reference_party, alone), { 0 },
};
static const struct model_fields party_fields = FIELDS(reference_party, party_list);

static const struct model_field account_list[] = {
	FIELD_OF(STRUCT, reference_account, home, home_fields),
	FIELD_OF(PART, reference_account, block, block_fields),
	FIELD_OF(LIST, reference_account, parties, party_fields), { 0 },
};
static const struct model_fields account_fields = FIELDS(reference_account, account_list);

static const struct model_field growth_list[] = {
	FIELD(TEXT, growth_seen, key), FIELD(STACK, growth_seen, site),
	FIELD(REAL, growth_seen, blocks_per_test), FIELD(REAL, growth_seen, bytes_per_test),
	FIELD(REAL, growth_seen, p), FIELD(U64, growth_seen, tests), FIELD(U64, growth_seen, rises),
	FIELD(UINT, growth_seen, trials), FIELD(UINT, growth_seen, usable),
	FIELD_SINCE(12, SAID, growth_seen, holder), { 0 },
};
static const struct model_fields growth_fields = FIELDS(growth_seen, growth_list);

static const struct model_field race_list[] = {
	FIELD_OF(STRUCT, race_seen, home, home_fields),
	FIELD_OF(PART, race_seen, victim, block_fields),
	FIELD_OF(PART, race_seen, first, write_seen_fields),
	FIELD_OF(PART, race_seen, second, write_seen_fields), FIELD(U64, race_seen, gap_ns),
	FIELD(BOOL, race_seen, lost_update), FIELD(BOOL, race_seen, locked), { 0 },
};
static const struct model_fields race_fields = FIELDS(race_seen, race_list);

/* Before version 10 nobody looked for one machine of several. */
static void old_host(struct archive *a, void *object)
{
	(void)a;
	((struct host_signs *)object)->node_p = 1;
}

static const struct model_field host_list[] = {
	FIELD(UINT, host_signs, bit_flips), FIELD(UINT, host_signs, flip_homes),
	FIELD(UINT, host_signs, flip_bits), FIELD(UINT, host_signs, segv),
	FIELD(UINT, host_signs, bus), FIELD(UINT, host_signs, ill), FIELD(UINT, host_signs, sites),
	FIELD(INT, host_signs, core), FIELD(REAL, host_signs, core_p),
	FIELD(BOOL, host_signs, memory_tested), FIELD(U64, host_signs, memory_errors),
	FIELD(REAL, host_signs, memory_seconds), FIELD_BEFORE(10, old_host),
	FIELD_UPTO_SINCE(10, CHARS, host_signs, node, sizeof(((struct host_signs *)0)->node)),
	FIELD_SINCE(10, REAL, host_signs, node_p), { 0 },
};
static const struct model_fields host_fields = FIELDS(host_signs, host_list);

/* Only what was no fault was stored before version 5. */
static void old_failure(struct archive *a, void *object)
{
	(void)a;
	((struct failure_seen *)object)->kind = FAILURE_EXIT;
}

static const struct model_field failure_list[] = {
	FIELD_UPTO(CHARS, failure_seen, signature, sizeof(((struct failure_seen *)0)->signature)),
	FIELD(BOOL, failure_seen, always), FIELD(TEXT, failure_seen, summary),
	FIELD(U64, failure_seen, trials), FIELD(U64, failure_seen, failed),
	FIELD_BEFORE(5, old_failure),
	FIELD_UPTO_SINCE(5, CHOICE, failure_seen, kind, FAILURE_KINDS),
	FIELD_SINCE(5, INT, failure_seen, signal), FIELD_SINCE(5, BOOL, failure_seen, fault),
	FIELD_SINCE(5, U64, failure_seen, ran), FIELD_SINCE(5, U64, failure_seen, ran_failed),
	FIELD_SINCE(5, UINT, failure_seen, obstacles), FIELD_SINCE(5, REAL, failure_seen, limit_s),
	{ 0 },
};
static const struct model_fields failure_fields = FIELDS(failure_seen, failure_list);

static const struct model_field experiment_list[] = {
	FIELD_UPTO(CHOICE, experiment_made, kind, EXPERIMENT_KINDS),
	FIELD(U64, experiment_made, trials), FIELD(U64, experiment_made, telling),
	FIELD(U64, experiment_made, shown), FIELD(U64, experiment_made, shown_passing),
	FIELD(REAL, experiment_made, coverage), { 0 },
};
static const struct model_fields experiment_fields = FIELDS(experiment_made, experiment_list);

static const struct model_field hop_list[] = {
	FIELD(UINT, hop_seen, number), FIELD_OF(STRUCT, hop_seen, home, home_fields),
	FIELD(U64, hop_seen, caught), FIELD(U64, hop_seen, watched), FIELD(U64, hop_seen, trials),
	FIELD(U64, hop_seen, key_right), FIELD(U64, hop_seen, key_tried),
	FIELD_UPTO(CHOICE, hop_seen, end, HOP_ENDS), FIELD(TEXT, hop_seen, inferred),
	FIELD(NUMBERS, hop_seen, evidence), { 0 },
};
static const struct model_fields hop_fields = FIELDS(hop_seen, hop_list);

static const struct model_fields *const parts[EVIDENCE_KINDS] = {
	[EVIDENCE_CRASH] = &crash_fields,
	[EVIDENCE_WRITE] = &write_seen_fields,
	[EVIDENCE_WATCH] = &watch_fields,
	[EVIDENCE_OUTSIDE] = &outside_fields,
	[EVIDENCE_CONFLATION] = &conflation_fields,
	[EVIDENCE_FREED_USE] = &freed_use_fields,
	[EVIDENCE_HOLDER] = &holder_fields,
	[EVIDENCE_BAD_FREE] = &bad_free_fields,
	[EVIDENCE_CANARY] = &canary_fields,
	[EVIDENCE_MAPPING] = &mapping_fields,
	[EVIDENCE_GROWTH] = &growth_fields,
	[EVIDENCE_RACE] = &race_fields,
	[EVIDENCE_HOST] = &host_fields,
	[EVIDENCE_FAILURE] = &failure_fields,
	[EVIDENCE_HOP] = &hop_fields,
	[EVIDENCE_SIGHTING] = &write_seen_fields,
	[EVIDENCE_ODDS] = &odds_fields,
	[EVIDENCE_EXPERIMENT] = &experiment_fields,
	[EVIDENCE_OVER_READ] = &freed_use_fields,
	[EVIDENCE_FAULT_VALUE] = &fault_value_fields,
	[EVIDENCE_ACCOUNT] = &account_fields,
	[EVIDENCE_REPORTED] = &reported_fields,
};

struct evidence evidence_new(enum evidence_kind kind, uint64_t trial, bool failing)
{
	assert(kind < EVIDENCE_KINDS);
	return (struct evidence){ .trial = trial,
				  .failing = failing,
				  .kind = kind,
				  .any = mem_alloc(parts[kind]->size) };
}

void evidence_deinit(struct evidence *evidence)
{
	fields_drop(parts[evidence->kind], evidence->any);
	said_deinit(&evidence->note);
	*evidence = (struct evidence){ 0 };
}

void reported_deinit(struct reported *reported)
{
	fields_free(&reported_fields, reported);
}

void reported_copy(struct reported *to, const struct reported *from)
{
	fields_copy(&reported_fields, to, from);
}

/* The id is not among the bytes: it is the row's. */
static const struct model_field evidence_list[] = {
	FIELD(U64, evidence, trial), FIELD(BOOL, evidence, failing),
	FIELD_UPTO(CHARS, evidence, signature, sizeof(((struct evidence *)0)->signature)),
	FIELD_SINCE(12, SAID, evidence, note), { 0 },
};
static const struct model_fields evidence_fields = FIELDS(evidence, evidence_list);
/* clang-format on */

void evidence_pack(const struct evidence *evidence, struct strbuf *sb)
{
	struct archive a = { .out = sb, .version = EVIDENCE_VERSION };
	struct evidence e = *evidence; /* a walk takes what it could change */

	pack_u64(sb, EVIDENCE_VERSION);
	(void)archive_choice(&a, e.kind, EVIDENCE_KINDS);
	fields_walk(&a, &evidence_fields, &e);
	fields_walk(&a, parts[e.kind], e.any);
}

int evidence_unpack(const void *bytes, size_t len, struct evidence *ret, struct err *err)
{
	struct archive a = { .in = { .at = bytes, .left = len } };
	struct evidence e;
	enum evidence_kind kind;
	int r = archive_begin(&a, EVIDENCE_VERSION);

	if (r == -EPROTO)
		return err_set(err, r, "a newer redhand wrote this evidence");
	kind = archive_choice(&a, 0, EVIDENCE_KINDS);
	if (r < 0 || a.in.broken)
		return err_set(err, -EBADMSG, "this evidence is damaged");
	e = evidence_new(kind, 0, false);
	fields_walk(&a, &evidence_fields, &e);
	fields_walk(&a, parts[kind], e.any);
	if (a.in.broken || a.in.left > 0) {
		evidence_deinit(&e);
		return err_set(err, -EBADMSG, "this evidence is damaged");
	}
	*ret = e;
	return 0;
}
