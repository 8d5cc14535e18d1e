/*
 * What each kind of evidence is made of: its bytes in the case and back, its end. See archive.h.
 */
#include <assert.h>
#include <errno.h>

#include "model/archive.h"
#include "model/evidence.h"

#define EVIDENCE_VERSION 21

static MODEL_FIELDS(store_code_fields, store_code, FIELD(store_code, certain),
		    FIELD_CHOICE(store_code, form, STORE_FORMS),
		    FIELD_CHOICE(store_code, base, ADDRESS_BASES),
		    FIELD(store_code, pointer, displacement, string, indexed, moves_base,
			  immediate),
		    FIELD_CHOICE(store_code, source, POINTER_SOURCES),
		    FIELD(store_code, changed, joined, motion));

static MODEL_FIELDS(value_found_fields, value_found, FIELD(value_found, known, step, steps),
		    FIELD_CHOICE(value_found, leads, VALUE_LEADS),
		    FIELD(value_found, at_start, leads_recycled, jumped, indexed, read_by_code,
			  other_places, replaced, outlived, strayed, runtime, place_reused,
			  owner_reached));

static MODEL_FIELDS(write_parts_fields, write_parts,
		    FIELD(write_parts, known, whole, writers, covered));

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

static MODEL_FIELDS(block_bytes_fields, block_bytes, FIELD(block_bytes, bytes, offset, nth));

static MODEL_FIELDS(write_seen_fields, write_seen, FIELD_STRUCT(home_fields, write_seen, home),
		    FIELD_PART(block_fields, write_seen, victim),
		    FIELD(write_seen, instruction, width, store_start, store_len),
		    FIELD_CHOICE(write_seen, fit, FIT_KINDS), FIELD(write_seen, old, new),
		    FIELD_CHOICE(write_seen, value_len, sizeof(uint64_t) + 1),
		    FIELD(write_seen, flags, writer, tid, thread, when_ns),
		    FIELD_PART(block_fields, write_seen, base, target),
		    FIELD_STRUCT(home_fields, write_seen, source),
		    FIELD_CHOICE(write_seen, source_state, SOURCE_STATES), FIELD(write_seen, age),
		    FIELD_BEFORE(5, from_old_flags),
		    FIELD_STRUCT_SINCE(5, store_code_fields, write_seen, code),
		    FIELD_STRUCT_SINCE(5, value_found_fields, write_seen, found),
		    FIELD_STRUCT_SINCE(5, write_parts_fields, write_seen, parts),
		    FIELD_SINCE(5, write_seen, nth_of_block, nth_of_object, new_was_block),
		    FIELD_CHOICE_SINCE(5, write_seen, free_basis, FREE_BASES),
		    FIELD_SINCE(7, write_seen, copy), FIELD_SINCE(14, write_seen, registers),
		    FIELD_STRUCT_SINCE(18, block_bytes_fields, write_seen, block));

static MODEL_FIELDS(watch_fields, watch_account, FIELD_STRUCT(home_fields, watch_account, home),
		    FIELD_PART(block_fields, watch_account, victim),
		    FIELD(watch_account, mode, victim_watched, since_birth, kernel_writes, hits,
			  threads, value_known, value, birth_value));

static MODEL_FIELDS(outside_fields, outside_change, FIELD_STRUCT(home_fields, outside_change, home),
		    FIELD_PART(block_fields, outside_change, victim),
		    FIELD(outside_change, old, new),
		    FIELD_CHOICE(outside_change, value_len, sizeof(uint64_t) + 1),
		    FIELD(outside_change, kernel_writes, gap),
		    FIELD_SINCE(15, outside_change, between));

static MODEL_FIELDS(conflation_fields, conflation_seen,
		    FIELD(conflation_seen, address, offset, first_id, second_id, first_key,
			  second_key, first_value, second_value),
		    FIELD_CHOICE(conflation_seen, value_len, sizeof(uint64_t) + 1),
		    FIELD_PART(block_fields, conflation_seen, first, second),
		    FIELD(conflation_seen, watched));

static MODEL_FIELDS(freed_use_fields, freed_use, FIELD_PART(block_fields, freed_use, block),
		    FIELD(freed_use, offset, write, instruction, user, poison),
		    FIELD_SINCE(4, freed_use, place_reused),
		    FIELD_SINCE(6, freed_use, fenced, width), FIELD_SINCE(8, freed_use, first),
		    FIELD_SINCE(13, freed_use, unpointed),
		    FIELD_STRUCT_SINCE(16, home_fields, freed_use, from));

static MODEL_FIELDS(reported_fields, reported, FIELD_CHOICE(reported, kind, REPORTED_KINDS),
		    FIELD(reported, tool, what, write, width, offset),
		    FIELD_PART(block_fields, reported, block), FIELD(reported, user, other));

static MODEL_FIELDS(holder_fields, holder_seen, FIELD_STRUCT(home_fields, holder_seen, home),
		    FIELD_PART(block_fields, holder_seen, holder, target),
		    FIELD(holder_seen, written_by, used, exact, on_stack_too),
		    FIELD_SINCE(3, holder_seen, frame), FIELD_SINCE(17, holder_seen, counted));

static MODEL_FIELDS(bad_free_fields, bad_free, FIELD_CHOICE(bad_free, kind, BAD_FREE_KINDS),
		    FIELD(bad_free, pointer), FIELD_PART(block_fields, bad_free, block),
		    FIELD(bad_free, second, how), FIELD_SINCE(4, bad_free, named),
		    FIELD_SINCE(19, bad_free, owners));

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

static MODEL_FIELDS(canary_fields, canary_broken, FIELD_CHOICE(canary_broken, side, CANARY_SIDES),
		    FIELD_PART(block_fields, canary_broken, block),
		    FIELD(canary_broken, offset, len), FIELD_SINCE(5, canary_broken, goes_on_at),
		    FIELD_BEFORE(5, old_canary),
		    FIELD(canary_broken, expected, found, last_whole, first_broken),
		    FIELD_SINCE(7, canary_broken, writer, instruction));

static MODEL_FIELDS(mapping_fields, mapping_cut, FIELD(mapping_cut, file, mapped, present),
		    FIELD_PART(cut_fields, mapping_cut, cut), FIELD(mapping_cut, user));

static MODEL_FIELDS(odds_fields, odds_seen, FIELD_STRUCT(home_fields, odds_seen, home),
		    FIELD(odds_seen, allocated, garbage, garbage_failed, zeroed, zeroed_failed, p),
		    FIELD_SINCE(7, odds_seen, otherwise));

static MODEL_FIELDS(fault_value_fields, fault_value, FIELD(fault_value, divisor, value),
		    FIELD_CHOICE(fault_value, source, POINTER_SOURCES),
		    FIELD_STRUCT(home_fields, fault_value, home), FIELD(fault_value, returned_by));

static MODEL_FIELDS(party_fields, reference_party, FIELD(reference_party, at, taken, given),
		    FIELD_SINCE(17, reference_party, alone));

static MODEL_FIELDS(account_fields, reference_account,
		    FIELD_STRUCT(home_fields, reference_account, home),
		    FIELD_PART(block_fields, reference_account, block),
		    FIELD_LIST(party_fields, reference_account, parties));

static MODEL_FIELDS(growth_fields, growth_seen,
		    FIELD(growth_seen, key, site, blocks_per_test, bytes_per_test, p, tests, rises,
			  trials, usable),
		    FIELD_SINCE(12, growth_seen, holder),
		    FIELD_AS(FIELD_NUMBERS, 21, growth_seen, levels));

static MODEL_FIELDS(race_fields, race_seen, FIELD_STRUCT(home_fields, race_seen, home),
		    FIELD_PART(block_fields, race_seen, victim),
		    FIELD_PART(write_seen_fields, race_seen, first, second),
		    FIELD(race_seen, gap_ns, lost_update, locked),
		    FIELD_AS(FIELD_PART, 20, race_seen, read, .of = &(write_seen_fields)));

/* Before version 10 nobody looked for one machine of several. */
static void old_host(struct archive *a, void *object)
{
	(void)a;
	((struct host_signs *)object)->node_p = 1;
}

static MODEL_FIELDS(host_fields, host_signs,
		    FIELD(host_signs, bit_flips, flip_homes, flip_bits, segv, bus, ill, sites, core,
			  core_p, memory_tested, memory_errors, memory_seconds),
		    FIELD_BEFORE(10, old_host), FIELD_SINCE(10, host_signs, node, node_p));

/* Only what was no fault was stored before version 5. */
static void old_failure(struct archive *a, void *object)
{
	(void)a;
	((struct failure_seen *)object)->kind = FAILURE_EXIT;
}

static MODEL_FIELDS(failure_fields, failure_seen,
		    FIELD(failure_seen, signature, always, summary, trials, failed),
		    FIELD_BEFORE(5, old_failure),
		    FIELD_CHOICE_SINCE(5, failure_seen, kind, FAILURE_KINDS),
		    FIELD_SINCE(5, failure_seen, signal, fault, ran, ran_failed, obstacles,
				limit_s));

static MODEL_FIELDS(experiment_fields, experiment_made,
		    FIELD_CHOICE(experiment_made, kind, EXPERIMENT_KINDS),
		    FIELD(experiment_made, trials, telling, shown, shown_passing, coverage));

static MODEL_FIELDS(hop_fields, hop_seen, FIELD(hop_seen, number),
		    FIELD_STRUCT(home_fields, hop_seen, home),
		    FIELD(hop_seen, caught, watched, trials, key_right, key_tried),
		    FIELD_CHOICE(hop_seen, end, HOP_ENDS), FIELD(hop_seen, inferred),
		    FIELD_NUMBERS(hop_seen, evidence));

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
static MODEL_FIELDS(evidence_fields, evidence, FIELD(evidence, trial, failing, signature),
		    FIELD_SINCE(12, evidence, note));

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
