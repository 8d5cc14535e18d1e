/*
 * What each piece of evidence says, without words: the sentences stand in report/words_evidence.c.
 */
#include "model/evidence.h"

#include "model/said.h"
#include "model/signature.h"

static struct said_value block_value(const struct block_life *block)
{
	struct said said = { 0 };

	if (block)
		SAY(&said, "block", said_flag(block->state == BLOCK_FREED || block->former),
		    said_number(block->size), said_text(block->key));
	else
		SAY(&said, "a-block");
	return said_part(&said);
}

static void crash(const struct evidence *evidence, struct said *ret)
{
	const struct crash *c = evidence->crash;

	SAY(ret, "evidence:crash",
	    said_anything(&c->words) ? said_copied(&c->words) : said_text(signal_name(c->signal)),
	    said_frame(crash_site(c)));
}

/* A string instruction writes as much as its counter says. */
static void write_seen(const struct evidence *evidence, struct said *ret)
{
	const struct write_seen *w = evidence->write;

	SAY(ret, "evidence:write", said_count(w->width), said_flag(w->flags & WRITE_AT_MOST),
	    said_text(store_fit_name(w->fit)), said_home(&w->home),
	    said_change(w->old, w->new, w->value_len), said_site(&w->writer),
	    said_flag(w->flags & WRITE_LAST), said_flag(w->flags & WRITE_ASYNC));
}

static void watch(const struct evidence *evidence, struct said *ret)
{
	const struct watch_account *w = evidence->watch;

	SAY(ret, "evidence:watch", said_home(&w->home), said_text(w->mode),
	    said_flag(w->since_birth), said_flag(w->kernel_writes), said_number(w->hits),
	    said_number(w->threads), said_flag(w->victim_watched));
}

#define BETWEEN_MOST 3u

static void outside(const struct evidence *evidence, struct said *ret)
{
	const struct outside_change *o = evidence->outside;

	SAY(ret, "evidence:outside", said_home(&o->home),
	    said_change(o->old, o->new, o->value_len > 0 ? o->value_len : 9), said_flag(o->gap));
	for (size_t i = 0; i < o->between.list.count && i < BETWEEN_MOST; i++)
		said_add(ret, said_copied(&o->between.list.items[i]));
}

static void conflation(const struct evidence *evidence, struct said *ret)
{
	const struct conflation_seen *c = evidence->conflation;

	SAY(ret, "evidence:conflation", said_signed(c->offset), said_number(c->first_id),
	    said_number(c->first_value), said_number(c->second_id), said_number(c->second_value),
	    said_flag(c->watched));
}

static void freed_use(const struct evidence *evidence, struct said *ret)
{
	const struct freed_use *u = evidence->freed_use;
	const struct block_life *b = u->block;

	SAY(ret, "evidence:freed-use", block_value(b), said_flag(u->write), said_signed(u->offset),
	    said_site(&u->user), said_site(b ? &b->allocated : NULL),
	    said_site(b ? &b->freed : NULL), said_count(b ? b->freed_events : 0));
}

static void over_read(const struct evidence *evidence, struct said *ret)
{
	const struct freed_use *u = evidence->freed_use;

	int64_t behind = u->block ? u->offset - (int64_t)u->block->size : 0;

	SAY(ret, "evidence:over-read", block_value(u->block),
	    said_signed(u->offset < 0 ? -u->offset : behind), said_flag(u->offset < 0),
	    said_site(&u->user), said_site(u->block ? &u->block->allocated : NULL));
}

static void holder(const struct evidence *evidence, struct said *ret)
{
	const struct holder_seen *h = evidence->holder;
	struct said target = { 0 };

	if (h->frame && h->target)
		SAY(&target, "returned-frame", said_site(&h->target->allocated));
	else
		SAY(&target, "freed-target", block_value(h->target),
		    said_site(h->target ? &h->target->freed : NULL));
	SAY(ret, "evidence:holder", said_home(&h->home), said_part(&target),
	    said_site(&h->written_by), said_flag(h->used));
}

static void bad_free(const struct evidence *evidence, struct said *ret)
{
	const struct bad_free *b = evidence->bad_free;
	static const char *const ids[BAD_FREE_KINDS] = {
		[BAD_FREE_DOUBLE] = "freed:twice",
		[BAD_FREE_INTERIOR] = "freed:interior",
		[BAD_FREE_MISMATCHED] = "freed:mismatched",
		[BAD_FREE_FOREIGN] = "freed:foreign",
	};
	bool twice = b->kind == BAD_FREE_DOUBLE;

	SAY(ret, "evidence:bad-free",
	    said_word(b->named ? "freed:object"
			       : ids[b->kind < BAD_FREE_KINDS ? b->kind : BAD_FREE_FOREIGN]),
	    said_text(b->how), said_site(&b->second),
	    said_site(b->block && twice ? &b->block->freed : NULL),
	    said_site(b->block && !twice ? &b->block->allocated : NULL));
}

static void canary(const struct evidence *evidence, struct said *ret)
{
	const struct canary_broken *c = evidence->canary;
	static const char *const ids[CANARY_SIDES] = {
		[CANARY_BEFORE] = "side:before",
		[CANARY_AFTER] = "side:after",
		[CANARY_FREED] = "side:inside",
	};

	SAY(ret, "evidence:canary", said_number(c->len),
	    said_word(ids[c->side < CANARY_SIDES ? c->side : CANARY_FREED]), block_value(c->block),
	    said_signed(c->offset), said_text(c->last_whole), said_text(c->first_broken),
	    said_site(&c->writer));
}

static void mapping(const struct evidence *evidence, struct said *ret)
{
	const struct mapping_cut *m = evidence->mapping;
	const struct file_cut *cut = m->cut;

	SAY(ret, "evidence:mapping", said_text(m->file), said_number(m->mapped),
	    said_number(m->present), cut ? said_signed(cut->pid) : said_none(),
	    cut ? said_number(cut->trial) : said_none(), said_text(cut ? cut->how : NULL),
	    said_site(cut ? &cut->stack : NULL));
}

static void odds(const struct evidence *evidence, struct said *ret)
{
	const struct odds_seen *o = evidence->odds;

	SAY(ret, "evidence:odds", said_flag(o->otherwise), said_number(o->garbage_failed),
	    said_number(o->garbage), said_home(&o->home), said_number(o->zeroed_failed),
	    said_number(o->zeroed), said_real(o->p), said_site(&o->allocated),
	    said_flag(!evidence->failing));
}

static void fault_value(const struct evidence *evidence, struct said *ret)
{
	const struct fault_value *f = evidence->fault_value;
	bool loaded = f->source == POINTER_LOADED, returned = f->source == POINTER_RETURNED;

	SAY(ret, "evidence:fault-value", said_flag(f->divisor), said_number(f->value),
	    loaded ? said_home(&f->home) : said_none(), said_flag(returned),
	    said_text(returned ? f->returned_by : NULL), said_flag(f->source == POINTER_GIVEN));
}

static void account(const struct evidence *evidence, struct said *ret)
{
	const struct reference_account *r = evidence->account;

	SAY(ret, "evidence:account", said_home(&r->home));
	VEC_FOREACH (&r->parties, party) {
		struct said part = { 0 };

		SAY(&part, "reference-party", said_site(&party->at), said_number(party->taken),
		    said_number(party->given));
		said_add(ret, said_part(&part));
	}
}

static void growth(const struct evidence *evidence, struct said *ret)
{
	const struct growth_seen *g = evidence->growth;

	SAY(ret, "evidence:growth", said_real(g->blocks_per_test), said_real(g->bytes_per_test),
	    said_site(&g->site), said_number(g->trials), said_number(g->usable),
	    said_number(g->rises), said_number(g->tests), said_copied(&g->holder));
}

static void race(const struct evidence *evidence, struct said *ret)
{
	const struct race_seen *r = evidence->race;

	SAY(ret, "evidence:race", said_home(&r->home), said_real((double)r->gap_ns / 1000),
	    said_site(r->first ? &r->first->writer : NULL),
	    said_site(r->second ? &r->second->writer : NULL), said_flag(r->lost_update),
	    said_flag(r->locked));
}

static void host(const struct evidence *evidence, struct said *ret)
{
	const struct host_signs *h = evidence->host;

	SAY(ret, "evidence:host", said_number(h->bit_flips), said_number(h->flip_homes),
	    said_number(h->segv), said_number(h->bus), said_number(h->ill), said_number(h->sites),
	    h->core >= 0 ? said_signed(h->core) : said_none(), said_real(h->core_p),
	    h->memory_tested ? said_real(h->memory_seconds) : said_none(),
	    said_number(h->memory_errors), said_text(h->node[0] != '\0' ? h->node : NULL),
	    said_real(h->node_p));
}

static void failure(const struct evidence *evidence, struct said *ret)
{
	const struct failure_seen *f = evidence->failure;

	if (f->failed == 0)
		SAY(ret, "evidence:no-failure", said_number(f->trials));
	else
		SAY(ret, "evidence:failure", said_text(f->summary), said_number(f->failed),
		    said_number(f->trials), said_flag(f->always));
}

static void experiment(const struct evidence *evidence, struct said *ret)
{
	const struct experiment_made *e = evidence->experiment;

	SAY(ret, "evidence:experiment", said_experiment(e->kind), said_number(e->trials),
	    said_number(e->telling), said_flag(e->shown + e->shown_passing > 0),
	    said_number(e->shown), said_number(e->shown_passing));
}

static void hop(const struct evidence *evidence, struct said *ret)
{
	const struct hop_seen *h = evidence->hop;

	SAY(ret, "evidence:hop", said_number(h->number), said_home(&h->home),
	    said_number(h->caught), said_number(h->watched), said_number(h->trials),
	    said_number(h->key_right), said_count(h->key_tried), said_text(h->inferred));
}

static void reported(const struct evidence *evidence, struct said *ret)
{
	const struct reported *r = evidence->reported;
	const struct block_life *b = r->block;

	SAY(ret, "evidence:reported", said_text(r->tool), said_text(r->what), said_flag(r->write),
	    said_count(r->width), said_site(&r->user), said_signed(r->offset),
	    said_flag(b && b->state == BLOCK_FREED), said_text(b ? b->key : NULL),
	    said_count(b ? b->size : 0), said_site(b ? &b->freed : NULL),
	    said_site(b ? &b->allocated : NULL));
}

static void part_say(const struct evidence *evidence, struct said *ret)
{
	static void (*const says[EVIDENCE_KINDS])(const struct evidence *, struct said *) = {
		[EVIDENCE_CRASH] = crash,
		[EVIDENCE_WRITE] = write_seen,
		[EVIDENCE_SIGHTING] = write_seen,
		[EVIDENCE_WATCH] = watch,
		[EVIDENCE_OUTSIDE] = outside,
		[EVIDENCE_CONFLATION] = conflation,
		[EVIDENCE_OVER_READ] = over_read,
		[EVIDENCE_FREED_USE] = freed_use,
		[EVIDENCE_REPORTED] = reported,
		[EVIDENCE_HOLDER] = holder,
		[EVIDENCE_BAD_FREE] = bad_free,
		[EVIDENCE_CANARY] = canary,
		[EVIDENCE_MAPPING] = mapping,
		[EVIDENCE_ODDS] = odds,
		[EVIDENCE_FAULT_VALUE] = fault_value,
		[EVIDENCE_ACCOUNT] = account,
		[EVIDENCE_GROWTH] = growth,
		[EVIDENCE_RACE] = race,
		[EVIDENCE_HOST] = host,
		[EVIDENCE_FAILURE] = failure,
		[EVIDENCE_HOP] = hop,
		[EVIDENCE_EXPERIMENT] = experiment,
	};

	if (evidence->kind < EVIDENCE_KINDS && says[evidence->kind])
		says[evidence->kind](evidence, ret);
}

void evidence_say(const struct evidence *evidence, struct said *ret)
{
	struct said part = { 0 };

	part_say(evidence, &part);
	if (said_anything(&evidence->note))
		SAY(ret, "noted", said_part(&part), said_copied(&evidence->note));
	else
		said_move(ret, &part);
}

struct said_value said_evidence(const struct evidence *evidence)
{
	struct said said = { 0 };

	evidence_say(evidence, &said);
	return said_part(&said);
}

struct said_value said_experiment(enum experiment_kind kind)
{
	AUTO(mem_freep) char *id = mem_printf("experiment:%s", experiment_name(kind));

	return said_word(id);
}

struct said_value said_frame(const struct frame *frame)
{
	struct strbuf sb = { 0 };

	if (!frame)
		return (struct said_value){ .kind = SAID_SITE };
	frame_describe(frame, &sb);
	return (struct said_value){ .kind = SAID_SITE, .text = strbuf_take(&sb) };
}

struct said_value said_site(const struct stack *stack)
{
	return said_frame(stack ? stack_site_or_top(stack) : NULL);
}
