#include "model/evidence.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

static const char *const kind_names[EVIDENCE_KINDS] = {
	[EVIDENCE_CRASH] = "crash",
	[EVIDENCE_WRITE] = "write",
	[EVIDENCE_WATCH] = "watch",
	[EVIDENCE_OUTSIDE] = "outside-change",
	[EVIDENCE_CONFLATION] = "conflation",
	[EVIDENCE_FREED_USE] = "freed-use",
	[EVIDENCE_HOLDER] = "holder",
	[EVIDENCE_BAD_FREE] = "bad-free",
	[EVIDENCE_CANARY] = "canary",
	[EVIDENCE_MAPPING] = "mapping-cut",
	[EVIDENCE_GROWTH] = "growth",
	[EVIDENCE_RACE] = "race",
	[EVIDENCE_HOST] = "host-signs",
	[EVIDENCE_FAILURE] = "failure",
	[EVIDENCE_HOP] = "hop",
	[EVIDENCE_SIGHTING] = "sighting",
	[EVIDENCE_ODDS] = "odds",
	[EVIDENCE_EXPERIMENT] = "experiment",
	[EVIDENCE_OVER_READ] = "over-read",
	[EVIDENCE_FAULT_VALUE] = "fault-value",
	[EVIDENCE_ACCOUNT] = "reference-account",
	[EVIDENCE_REPORTED] = "reported",
};

static const size_t part_sizes[EVIDENCE_KINDS] = {
	[EVIDENCE_CRASH] = sizeof(struct crash),
	[EVIDENCE_WRITE] = sizeof(struct write_seen),
	[EVIDENCE_WATCH] = sizeof(struct watch_account),
	[EVIDENCE_OUTSIDE] = sizeof(struct outside_change),
	[EVIDENCE_CONFLATION] = sizeof(struct conflation_seen),
	[EVIDENCE_FREED_USE] = sizeof(struct freed_use),
	[EVIDENCE_HOLDER] = sizeof(struct holder_seen),
	[EVIDENCE_BAD_FREE] = sizeof(struct bad_free),
	[EVIDENCE_CANARY] = sizeof(struct canary_broken),
	[EVIDENCE_MAPPING] = sizeof(struct mapping_cut),
	[EVIDENCE_GROWTH] = sizeof(struct growth_seen),
	[EVIDENCE_RACE] = sizeof(struct race_seen),
	[EVIDENCE_HOST] = sizeof(struct host_signs),
	[EVIDENCE_FAILURE] = sizeof(struct failure_seen),
	[EVIDENCE_HOP] = sizeof(struct hop_seen),
	[EVIDENCE_SIGHTING] = sizeof(struct write_seen),
	[EVIDENCE_ODDS] = sizeof(struct odds_seen),
	[EVIDENCE_EXPERIMENT] = sizeof(struct experiment_made),
	[EVIDENCE_OVER_READ] = sizeof(struct freed_use),
	[EVIDENCE_FAULT_VALUE] = sizeof(struct fault_value),
	[EVIDENCE_ACCOUNT] = sizeof(struct reference_account),
	[EVIDENCE_REPORTED] = sizeof(struct reported),
};

const char *evidence_kind_name(enum evidence_kind kind)
{
	return kind < EVIDENCE_KINDS ? kind_names[kind] : "unknown";
}

const char *store_fit_name(enum store_fit fit)
{
	static const char *const names[FIT_KINDS] = {
		[FIT_UNKNOWN] = "unknown",
		[FIT_NARROW] = "narrow",
		[FIT_EXACT] = "exact",
		[FIT_WIDE] = "wide",
	};

	return fit < FIT_KINDS ? names[fit] : "unknown";
}

const char *home_kind_name(enum home_kind kind)
{
	static const char *const names[HOME_KINDS] = {
		[HOME_UNKNOWN] = "unknown", [HOME_BLOCK] = "block",	[HOME_GLOBAL] = "global",
		[HOME_STACK] = "stack",	    [HOME_ADDRESS] = "address", [HOME_THREAD] = "thread",
	};

	return kind < HOME_KINDS ? names[kind] : "unknown";
}

const char *bad_free_name(enum bad_free_kind kind)
{
	static const char *const names[BAD_FREE_KINDS] = {
		[BAD_FREE_DOUBLE] = "double",
		[BAD_FREE_INTERIOR] = "interior",
		[BAD_FREE_MISMATCHED] = "mismatched",
		[BAD_FREE_FOREIGN] = "foreign",
	};

	return kind < BAD_FREE_KINDS ? names[kind] : "unknown";
}

enum store_fit store_fit_of(uint64_t start, uint64_t len, uint64_t field, uint64_t field_len)
{
	if (len == 0 || field_len == 0)
		return FIT_UNKNOWN;
	if (start == field && len == field_len)
		return FIT_EXACT;
	/* Without sums, which hostile values could overflow. */
	if (start < field || start - field >= field_len || len > field_len - (start - field))
		return FIT_WIDE;
	return FIT_NARROW;
}

struct evidence evidence_new(enum evidence_kind kind, uint64_t trial, bool failing)
{
	assert(kind < EVIDENCE_KINDS);
	return (struct evidence){
		.trial = trial, .failing = failing, .kind = kind, .any = mem_alloc(part_sizes[kind])
	};
}

static char *copy(const char *text)
{
	return text ? mem_strdup(text) : NULL;
}

void home_copy(struct home *to, const struct home *from)
{
	*to = *from;
	to->key = copy(from->key);
	to->name = copy(from->name);
	to->field = copy(from->field);
	to->module = copy(from->module);
}

void home_deinit(struct home *home)
{
	mem_free(home->key);
	mem_free(home->name);
	mem_free(home->field);
	mem_free(home->module);
	*home = (struct home){ 0 };
}

/* Of some blocks only the stack is known, not the thread either. */
bool key_same_context(const char *a, const char *b)
{
	const char *end_a = a ? strrchr(a, '#') : NULL, *end_b = b ? strrchr(b, '#') : NULL;
	size_t len_a, len_b;

	if (!a || !b)
		return false;
	len_a = end_a && end_b ? (size_t)(end_a - a) : strcspn(a, "@#");
	len_b = end_a && end_b ? (size_t)(end_b - b) : strcspn(b, "@#");
	return len_a > 0 && len_a == len_b && memcmp(a, b, len_a) == 0;
}

bool key_same_stack(const char *a, const char *b)
{
	size_t len = a ? strcspn(a, "@#") : 0;

	return len > 0 && b && strcspn(b, "@#") == len && memcmp(a, b, len) == 0;
}

static bool same_text(const char *a, const char *b)
{
	return a && b && strcmp(a, b) == 0;
}

bool same_variable(const struct home *a, const struct home *b)
{
	return a->kind == HOME_GLOBAL && b->kind == HOME_GLOBAL && a->name && b->name &&
	       strcmp(a->name, b->name) == 0 && a->module && b->module &&
	       strcmp(a->module, b->module) == 0;
}

bool home_same(const struct home *a, const struct home *b)
{
	if (a->kind != b->kind || a->offset != b->offset)
		return false;
	switch (a->kind) {
	case HOME_BLOCK:
		return key_same_context(a->key, b->key);
	case HOME_GLOBAL:
	case HOME_STACK:
		return same_text(a->name, b->name);
	case HOME_THREAD:
		return true;
	case HOME_ADDRESS:
		return a->address != 0 && a->address == b->address;
	default:
		return false;
	}
}

static void describe_place(const struct home *home, struct strbuf *sb)
{
	switch (home->kind) {
	case HOME_BLOCK:
		strbuf_addf(sb, "block %s, offset %" PRId64,
			    home->key ? home->key : "of no known key", home->offset);
		break;
	case HOME_GLOBAL:
		strbuf_addf(sb, "global %s", home->name ? home->name : "of no known name");
		if (home->offset != 0)
			strbuf_addf(sb, "+%" PRId64, home->offset);
		break;
	case HOME_STACK:
		strbuf_addf(sb, "stack of %s", home->name ? home->name : "an unknown function");
		break;
	case HOME_THREAD:
		strbuf_addf(sb, "thread-local memory at %" PRId64, home->offset);
		break;
	default:
		if (home->address != 0)
			strbuf_addf(sb, "address 0x%" PRIx64, home->address);
		else
			strbuf_adds(sb, "an unknown place");
	}
}

void home_describe(const struct home *home, struct strbuf *sb)
{
	if (home->field)
		strbuf_addf(sb, "%s (", home->field);
	describe_place(home, sb);
	if (home->len > 0)
		strbuf_addf(sb, ", %" PRIu64 " byte%s", home->len, home->len == 1 ? "" : "s");
	if (home->field)
		strbuf_addc(sb, ')');
}

static void write_free(struct write_seen *w)
{
	if (!w)
		return;
	home_deinit(&w->home);
	home_deinit(&w->source);
	block_life_free(w->victim);
	block_life_free(w->base);
	block_life_free(w->target);
	mem_free(w->instruction);
	mem_free(w->thread);
	stack_deinit(&w->writer);
	mem_free(w);
}

static void race_free(struct race_seen *race)
{
	home_deinit(&race->home);
	block_life_free(race->victim);
	write_free(race->first);
	write_free(race->second);
	mem_free(race);
}

static void canary_free(struct canary_broken *canary)
{
	block_life_free(canary->block);
	strbuf_deinit(&canary->expected);
	strbuf_deinit(&canary->found);
	mem_free(canary->goes_on_at);
	mem_free(canary->last_whole);
	mem_free(canary->first_broken);
	stack_deinit(&canary->writer);
	mem_free(canary->instruction);
	mem_free(canary);
}

static void conflation_free(struct conflation_seen *c)
{
	mem_free(c->first_key);
	mem_free(c->second_key);
	block_life_free(c->first);
	block_life_free(c->second);
	mem_free(c);
}

static void holder_free(struct holder_seen *holder)
{
	home_deinit(&holder->home);
	block_life_free(holder->holder);
	block_life_free(holder->target);
	stack_deinit(&holder->written_by);
	mem_free(holder);
}

static void mapping_free(struct mapping_cut *mapping)
{
	mem_free(mapping->file);
	file_cut_free(mapping->cut);
	stack_deinit(&mapping->user);
	mem_free(mapping);
}

static void watch_free(struct watch_account *watch)
{
	home_deinit(&watch->home);
	block_life_free(watch->victim);
	mem_free(watch->mode);
	mem_free(watch);
}

static void outside_free(struct outside_change *outside)
{
	home_deinit(&outside->home);
	block_life_free(outside->victim);
	strv_deinit(&outside->between);
	mem_free(outside);
}

static void freed_use_free(struct freed_use *use)
{
	block_life_free(use->block);
	mem_free(use->instruction);
	stack_deinit(&use->user);
	mem_free(use);
}

static void bad_free_free(struct bad_free *bad)
{
	block_life_free(bad->block);
	stack_deinit(&bad->second);
	mem_free(bad->how);
	mem_free(bad);
}

static void growth_free(struct growth_seen *growth)
{
	mem_free(growth->key);
	stack_deinit(&growth->site);
	mem_free(growth->holder);
	mem_free(growth);
}

static void odds_free(struct odds_seen *odds)
{
	home_deinit(&odds->home);
	stack_deinit(&odds->allocated);
	mem_free(odds);
}

static void fault_value_free(struct fault_value *value)
{
	home_deinit(&value->home);
	mem_free(value->returned_by);
	mem_free(value);
}

static void account_free(struct reference_account *account)
{
	home_deinit(&account->home);
	block_life_free(account->block);
	VEC_FOREACH (&account->parties, party)
		stack_deinit(&party->at);
	VEC_DEINIT(&account->parties);
	mem_free(account);
}

static void hop_free(struct hop_seen *hop)
{
	home_deinit(&hop->home);
	mem_free(hop->inferred);
	VEC_DEINIT(&hop->evidence);
	mem_free(hop);
}

void reported_deinit(struct reported *reported)
{
	mem_free(reported->tool);
	mem_free(reported->what);
	block_life_free(reported->block);
	stack_deinit(&reported->user);
	stack_deinit(&reported->other);
	*reported = (struct reported){ 0 };
}

static void part_free(struct evidence *evidence)
{
	switch (evidence->kind) {
	case EVIDENCE_CRASH:
		crash_deinit(evidence->crash);
		mem_free(evidence->crash);
		return;
	case EVIDENCE_WRITE:
	case EVIDENCE_SIGHTING:
		write_free(evidence->write);
		return;
	case EVIDENCE_WATCH:
		watch_free(evidence->watch);
		return;
	case EVIDENCE_OUTSIDE:
		outside_free(evidence->outside);
		return;
	case EVIDENCE_CONFLATION:
		conflation_free(evidence->conflation);
		return;
	case EVIDENCE_FREED_USE:
	case EVIDENCE_OVER_READ:
		freed_use_free(evidence->freed_use);
		return;
	case EVIDENCE_HOLDER:
		holder_free(evidence->holder);
		return;
	case EVIDENCE_BAD_FREE:
		bad_free_free(evidence->bad_free);
		return;
	case EVIDENCE_CANARY:
		canary_free(evidence->canary);
		return;
	case EVIDENCE_MAPPING:
		mapping_free(evidence->mapping);
		return;
	case EVIDENCE_GROWTH:
		growth_free(evidence->growth);
		return;
	case EVIDENCE_RACE:
		race_free(evidence->race);
		return;
	case EVIDENCE_FAILURE:
		mem_free(evidence->failure->summary);
		break;
	case EVIDENCE_HOP:
		hop_free(evidence->hop);
		return;
	case EVIDENCE_ODDS:
		odds_free(evidence->odds);
		return;
	case EVIDENCE_FAULT_VALUE:
		fault_value_free(evidence->fault_value);
		return;
	case EVIDENCE_ACCOUNT:
		account_free(evidence->account);
		return;
	case EVIDENCE_REPORTED:
		reported_deinit(evidence->reported);
		break;
	default:
		break;
	}
	mem_free(evidence->any);
}

void evidence_deinit(struct evidence *evidence)
{
	if (evidence->any)
		part_free(evidence);
	mem_free(evidence->note);
	*evidence = (struct evidence){ 0 };
}

void evidence_add_experiment(struct evidence_list *list, const struct experiment_made *made)
{
	struct evidence e = evidence_new(EVIDENCE_EXPERIMENT, 0, false);

	*e.experiment = *made;
	VEC_PUSH(&list->list, e);
}

void evidence_list_deinit(struct evidence_list *list)
{
	VEC_FOREACH (&list->list, evidence)
		evidence_deinit(evidence);
	VEC_DEINIT(&list->list);
}

bool evidence_fenced(const struct evidence *evidence)
{
	if (evidence->kind == EVIDENCE_CANARY)
		return evidence->canary->writer.count > 0;
	return (evidence->kind == EVIDENCE_FREED_USE || evidence->kind == EVIDENCE_OVER_READ) &&
	       evidence->freed_use->fenced;
}

bool evidence_to_judge(const struct evidence_list *list)
{
	VEC_FOREACH (&list->list, e)
		if (e->kind != EVIDENCE_SIGHTING && e->kind != EVIDENCE_EXPERIMENT)
			return true;
	return false;
}

const struct evidence *evidence_find(const struct evidence_list *list, uint64_t id)
{
	VEC_FOREACH (&list->list, evidence)
		if (id != 0 && evidence->id == id)
			return evidence;
	return NULL;
}
