/*
 * Evidence in words: one sentence about each piece, the same in every report.
 */
#include "model/evidence.h"

#include <inttypes.h>
#include <string.h>

#include "model/signature.h"

static void add_site(struct strbuf *sb, const char *before, const struct stack *stack)
{
	const struct frame *site = stack_site(stack);

	if (!site && stack->count > 0)
		site = &stack->frames[0];
	if (!site)
		return;
	strbuf_adds(sb, before);
	frame_describe(site, sb);
}

static void add_values(struct strbuf *sb, uint64_t old, uint64_t new, unsigned int len)
{
	int digits = len > 0 && len <= 8 ? (int)len * 2 : 1;

	strbuf_addf(sb, "0x%0*" PRIx64 " -> 0x%0*" PRIx64, digits, old, digits, new);
}

static void add_block(struct strbuf *sb, const struct block_life *block)
{
	if (!block) {
		strbuf_adds(sb, "a block");
		return;
	}
	strbuf_addf(sb, "%s block of %" PRIu64 " bytes",
		    block->state == BLOCK_FREED || block->former ? "the freed" : "the live",
		    block->size);
	if (block->key)
		strbuf_addf(sb, " (%s)", block->key);
}

static void crash(const struct crash *c, struct strbuf *sb)
{
	const struct frame *site = crash_site(c);

	strbuf_adds(sb, c->words ? c->words : signal_name(c->signal));
	if (site) {
		strbuf_adds(sb, ", in ");
		frame_describe(site, sb);
	}
}

static void write_seen(const struct write_seen *w, struct strbuf *sb)
{
	/* A string instruction writes as much as its counter says. */
	if (w->width > 0)
		strbuf_addf(sb, "a write of %s%u byte%s (%s) to ",
			    w->flags & WRITE_AT_MOST ? "up to " : "", w->width,
			    w->width == 1 ? "" : "s", store_fit_name(w->fit));
	else
		strbuf_adds(sb, "a write to ");
	home_describe(&w->home, sb);
	if (w->value_len > 0) {
		strbuf_adds(sb, ", ");
		add_values(sb, w->old, w->new, w->value_len);
	}
	add_site(sb, ", by ", &w->writer);
	if (w->flags & WRITE_LAST)
		strbuf_adds(sb, "; the last one before the failure");
	if (w->flags & WRITE_ASYNC)
		strbuf_adds(sb, "; imprecise, the instruction is not the writer's");
}

static void watch(const struct watch_account *w, struct strbuf *sb)
{
	home_describe(&w->home, sb);
	strbuf_addf(sb, " was watched (%s%s%s), %" PRIu64 " writes by %u thread%s",
		    w->mode ? w->mode : "how is unknown", w->since_birth ? ", since its birth" : "",
		    w->kernel_writes ? ", system calls included" : "", w->hits, w->threads,
		    w->threads == 1 ? "" : "s");
	if (!w->victim_watched)
		strbuf_adds(sb, "; the block that failed was another");
}

static void outside(const struct outside_change *o, struct strbuf *sb)
{
	home_describe(&o->home, sb);
	strbuf_adds(sb, " changed ");
	add_values(sb, o->old, o->new, o->value_len);
	strbuf_adds(sb, " and no write was caught");
	if (o->gap)
		strbuf_adds(sb, " (the watch was off for some of the time)");
	for (size_t i = 0; i < o->between.count && i < 3; i++)
		strbuf_addf(sb, "%s%s", i == 0 ? "; in between: " : ", ", o->between.items[i]);
}

static void conflation(const struct conflation_seen *c, struct strbuf *sb)
{
	strbuf_addf(sb, "at one address, offset %" PRId64 ", two blocks: #%" PRIu64 " had ",
		    c->offset, c->first_id);
	strbuf_addf(sb, "0x%" PRIx64 ", #%" PRIu64 " has 0x%" PRIx64, c->first_value, c->second_id,
		    c->second_value);
	if (c->watched)
		strbuf_adds(sb, "; no write turned the one into the other");
}

static void freed_use(const struct freed_use *u, struct strbuf *sb)
{
	add_block(sb, u->block);
	strbuf_addf(sb, " was %s at offset %" PRId64, u->write ? "written" : "read", u->offset);
	add_site(sb, " by ", &u->user);
	if (u->block) {
		add_site(sb, "; allocated by ", &u->block->allocated);
		add_site(sb, "; freed by ", &u->block->freed);
		if (u->block->freed_events > 0)
			strbuf_addf(sb, ", at most %" PRIu64 " allocations and frees ago",
				    u->block->freed_events);
	}
}

static void over_read(const struct freed_use *u, struct strbuf *sb)
{
	int64_t behind = u->block ? u->offset - (int64_t)u->block->size : 0;

	add_block(sb, u->block);
	if (u->offset < 0)
		strbuf_addf(sb, " was read %" PRId64 " bytes before its start", -u->offset);
	else
		strbuf_addf(sb, " was read %" PRId64 " bytes behind its end", behind);
	add_site(sb, " by ", &u->user);
	if (u->block)
		add_site(sb, "; allocated by ", &u->block->allocated);
}

static void holder(const struct holder_seen *h, struct strbuf *sb)
{
	home_describe(&h->home, sb);
	strbuf_adds(sb, " still pointed to ");
	if (h->frame && h->target) {
		add_site(sb, "a variable of ", &h->target->allocated);
		strbuf_adds(sb, ", which had returned");
	} else {
		add_block(sb, h->target);
		if (h->target)
			add_site(sb, ", freed by ", &h->target->freed);
	}
	add_site(sb, "; the pointer was put there by ", &h->written_by);
	strbuf_adds(sb, h->used ? "; the failing instruction used it" : "; nobody used it");
}

static void bad_free(const struct bad_free *b, struct strbuf *sb)
{
	static const char *const words[BAD_FREE_KINDS] = {
		[BAD_FREE_DOUBLE] = "a block was freed twice",
		[BAD_FREE_INTERIOR] = "a pointer into the middle of a block was freed",
		[BAD_FREE_MISMATCHED] = "a block was freed by the wrong function",
		[BAD_FREE_FOREIGN] = "a pointer to no block was freed",
	};

	strbuf_adds(sb, b->named ? "an object was given back twice"
				 : words[b->kind < BAD_FREE_KINDS ? b->kind : BAD_FREE_FOREIGN]);
	if (b->how)
		strbuf_addf(sb, " (%s)", b->how);
	add_site(sb, " by ", &b->second);
	if (b->block && b->kind == BAD_FREE_DOUBLE)
		add_site(sb, "; first by ", &b->block->freed);
	else if (b->block)
		add_site(sb, "; allocated by ", &b->block->allocated);
}

static void canary(const struct canary_broken *c, struct strbuf *sb)
{
	static const char *const words[CANARY_SIDES] = {
		[CANARY_BEFORE] = "before the start of ",
		[CANARY_AFTER] = "behind the end of ",
		[CANARY_FREED] = "inside ",
	};

	strbuf_addf(sb, "%" PRIu64 " damaged byte%s %s", c->len, c->len == 1 ? "" : "s",
		    words[c->side < CANARY_SIDES ? c->side : CANARY_FREED]);
	add_block(sb, c->block);
	strbuf_addf(sb, ", from offset %" PRId64, c->offset);
	if (c->last_whole && c->first_broken)
		strbuf_addf(sb, "; whole at '%s', broken at '%s'", c->last_whole, c->first_broken);
	add_site(sb, ", written by ", &c->writer);
}

static void mapping(const struct mapping_cut *m, struct strbuf *sb)
{
	strbuf_addf(sb, "%s was mapped with %" PRIu64 " bytes and has %" PRIu64 " now",
		    m->file ? m->file : "a file", m->mapped, m->present);
	if (!m->cut)
		return;
	strbuf_addf(sb, "; process %d of trial %" PRIu64 " made it shorter with %s", m->cut->pid,
		    m->cut->trial, m->cut->how ? m->cut->how : "an unknown call");
	add_site(sb, " in ", &m->cut->stack);
}

static void odds(const struct odds_seen *o, struct strbuf *sb)
{
	strbuf_addf(sb, "it failed %sin %" PRIu64 " of %" PRIu64 " trials in which ",
		    o->otherwise ? "in another way " : "", o->garbage_failed, o->garbage);
	home_describe(&o->home, sb);
	strbuf_addf(sb,
		    ", held garbage when it was allocated, and in %" PRIu64 " of %" PRIu64
		    " in which it held zeros (p = %.2g)",
		    o->zeroed_failed, o->zeroed, o->p);
	add_site(sb, "; allocated by ", &o->allocated);
}

static void fault_value(const struct fault_value *f, struct strbuf *sb)
{
	strbuf_addf(sb, "the %s was 0x%" PRIx64, f->divisor ? "divisor" : "pointer", f->value);
	switch (f->source) {
	case POINTER_LOADED:
		strbuf_adds(sb, ", read from ");
		home_describe(&f->home, sb);
		break;
	case POINTER_RETURNED:
		strbuf_addf(sb, ", returned by %s", f->returned_by ? f->returned_by : "a call");
		break;
	case POINTER_GIVEN:
		strbuf_adds(sb, ", an argument of the function");
		break;
	default:
		break;
	}
}

static void account(const struct reference_account *r, struct strbuf *sb)
{
	strbuf_adds(sb, "references in ");
	home_describe(&r->home, sb);
	VEC_FOREACH (&r->parties, party) {
		add_site(sb, party == r->parties.items ? ": " : "; ", &party->at);
		strbuf_addf(sb, " took %" PRIu64 " and gave back %" PRIu64, party->taken,
			    party->given);
	}
}

static void growth(const struct growth_seen *g, struct strbuf *sb)
{
	strbuf_addf(sb, "%.1f blocks, %.0f bytes more per test", g->blocks_per_test,
		    g->bytes_per_test);
	add_site(sb, ", allocated by ", &g->site);
	strbuf_addf(sb, "; in %u of %u trials, after %" PRIu64 " of %" PRIu64 " tests", g->trials,
		    g->usable, g->rises, g->tests);
	if (g->holder)
		strbuf_addf(sb, "; held by %s", g->holder);
}

static void race(const struct race_seen *r, struct strbuf *sb)
{
	strbuf_addf(sb, "two threads wrote ");
	home_describe(&r->home, sb);
	strbuf_addf(sb, " within %.3f µs", (double)r->gap_ns / 1000);
	if (r->first)
		add_site(sb, ": ", &r->first->writer);
	if (r->second)
		add_site(sb, " and ", &r->second->writer);
	if (r->lost_update)
		strbuf_adds(sb, "; the second was made from a value already replaced");
	if (r->locked)
		strbuf_adds(sb, "; both held a lock");
}

static void host(const struct host_signs *h, struct strbuf *sb)
{
	strbuf_addf(sb,
		    "signs of the machine: %u single flipped bits without a writer in %u places, "
		    "signals SEGV %u, BUS %u, ILL %u in %u functions",
		    h->bit_flips, h->flip_homes, h->segv, h->bus, h->ill, h->sites);
	if (h->core >= 0)
		strbuf_addf(sb, ", failures on core %d (p = %.3g)", h->core, h->core_p);
	if (h->node[0] != '\0')
		strbuf_addf(sb, ", failures on the machine '%s' (p = %.3g)", h->node, h->node_p);
	if (h->memory_tested)
		strbuf_addf(sb, ", memory test of %.1f s: %" PRIu64 " errors", h->memory_seconds,
			    h->memory_errors);
}

static void failure(const struct failure_seen *f, struct strbuf *sb)
{
	if (f->failed == 0)
		strbuf_addf(sb, "none of %" PRIu64 " trials failed", f->trials);
	else
		strbuf_addf(sb, "%s: in %" PRIu64 " of %" PRIu64 " trials%s",
			    f->summary ? f->summary : "a failure", f->failed, f->trials,
			    f->always ? ", every one that got that far" : "");
}

static void experiment(const struct experiment_made *e, struct strbuf *sb)
{
	strbuf_addf(sb, "%s: %" PRIu64 " trials, of which %" PRIu64 " could tell; ",
		    experiment_words(e->kind), e->trials, e->telling);
	if (e->shown + e->shown_passing == 0)
		strbuf_adds(sb, "nothing was seen");
	else
		strbuf_addf(sb, "something was seen in %" PRIu64 " of these and %" PRIu64 " others",
			    e->shown, e->shown_passing);
}

static void hop(const struct hop_seen *h, struct strbuf *sb)
{
	strbuf_addf(sb, "hop %u: ", h->number);
	home_describe(&h->home, sb);
	strbuf_addf(sb,
		    ": caught in %" PRIu64 " of %" PRIu64
		    " failing trials in which the victim was watched, %" PRIu64 " trials run",
		    h->caught, h->watched, h->trials);
	if (h->key_tried > 0)
		strbuf_addf(sb,
			    "; the block's key led to the victim in %" PRIu64 " of %" PRIu64
			    " failing trials",
			    h->key_right, h->key_tried);
	if (h->inferred)
		strbuf_addf(sb, "; %s", h->inferred);
}

static void site_or(const struct stack *stack, struct strbuf *sb)
{
	const struct frame *at = stack_site(stack);

	if (!at && stack->count > 0)
		at = &stack->frames[0];
	if (at)
		frame_describe(at, sb);
	else
		strbuf_adds(sb, "somebody");
}

static void reported(const struct reported *r, struct strbuf *sb)
{
	strbuf_addf(sb, "%s reported %s", r->tool ? r->tool : "a tool", r->what ? r->what : "");
	if (r->width > 0)
		strbuf_addf(sb, ", a %s of %" PRIu64 " byte%s", r->write ? "write" : "read",
			    r->width, r->width == 1 ? "" : "s");
	strbuf_adds(sb, ", by ");
	site_or(&r->user, sb);
	if (r->block && r->block->size > 0)
		strbuf_addf(sb, ", at offset %" PRId64 " of a %s%s%s of %" PRIu64 " bytes",
			    r->offset, r->block->state == BLOCK_FREED ? "freed " : "",
			    r->block->key ? "variable " : "block",
			    r->block->key ? r->block->key : "", r->block->size);
	if (r->block && r->block->freed.count > 0) {
		strbuf_adds(sb, ", freed by ");
		site_or(&r->block->freed, sb);
	}
	if (r->block && r->block->allocated.count > 0) {
		strbuf_adds(sb, ", allocated by ");
		site_or(&r->block->allocated, sb);
	}
}

void evidence_describe(const struct evidence *evidence, struct strbuf *sb)
{
	switch (evidence->kind) {
	case EVIDENCE_CRASH:
		crash(evidence->crash, sb);
		break;
	case EVIDENCE_WRITE:
	case EVIDENCE_SIGHTING:
		write_seen(evidence->write, sb);
		break;
	case EVIDENCE_WATCH:
		watch(evidence->watch, sb);
		break;
	case EVIDENCE_OUTSIDE:
		outside(evidence->outside, sb);
		break;
	case EVIDENCE_CONFLATION:
		conflation(evidence->conflation, sb);
		break;
	case EVIDENCE_OVER_READ:
		over_read(evidence->freed_use, sb);
		break;
	case EVIDENCE_FREED_USE:
		freed_use(evidence->freed_use, sb);
		break;
	case EVIDENCE_REPORTED:
		reported(evidence->reported, sb);
		break;
	case EVIDENCE_HOLDER:
		holder(evidence->holder, sb);
		break;
	case EVIDENCE_BAD_FREE:
		bad_free(evidence->bad_free, sb);
		break;
	case EVIDENCE_CANARY:
		canary(evidence->canary, sb);
		break;
	case EVIDENCE_MAPPING:
		mapping(evidence->mapping, sb);
		break;
	case EVIDENCE_ODDS:
		odds(evidence->odds, sb);
		break;
	case EVIDENCE_FAULT_VALUE:
		fault_value(evidence->fault_value, sb);
		break;
	case EVIDENCE_ACCOUNT:
		account(evidence->account, sb);
		break;
	case EVIDENCE_GROWTH:
		growth(evidence->growth, sb);
		break;
	case EVIDENCE_RACE:
		race(evidence->race, sb);
		break;
	case EVIDENCE_HOST:
		host(evidence->host, sb);
		break;
	case EVIDENCE_FAILURE:
		failure(evidence->failure, sb);
		break;
	case EVIDENCE_HOP:
		hop(evidence->hop, sb);
		break;
	case EVIDENCE_EXPERIMENT:
		experiment(evidence->experiment, sb);
		break;
	default:
		break;
	}
	if (evidence->note)
		strbuf_addf(sb, "%s%s", sb->len > 0 ? "; " : "", evidence->note);
}
