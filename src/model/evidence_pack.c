/*
 * Evidence as bytes, and back.
 *
 * A new field raises the version and is walked only `if (a->version >= THAT)`, so that older
 * cases stay readable.
 */
#include <errno.h>

#include "model/archive.h"

#define EVIDENCE_VERSION 10

static void cut(struct archive *a, struct file_cut *c)
{
	archive_u64(a, &c->trial);
	archive_int(a, &c->pid);
	archive_text(a, &c->program);
	archive_text(a, &c->how);
	archive_i64(a, &c->old_size);
	archive_i64(a, &c->new_size);
	archive_double(a, &c->before_s);
	archive_stack(a, &c->stack);
}

static void registers(struct archive *a, struct crash *c)
{
	c->register_count =
		archive_choice(a, c->register_count, (unsigned int)ARRAY_SIZE(c->registers) + 1);
	for (unsigned int i = 0; i < c->register_count; i++) {
		archive_chars(a, c->registers[i].name, sizeof(c->registers[i].name));
		archive_u64(a, &c->registers[i].value);
	}
}

static void crash_blocks(struct archive *a, struct crash *c)
{
	uint64_t count = archive_count(a, c->blocks.count);

	for (uint64_t i = 0; i < count && !a->in.broken; i++) {
		if (!a->out)
			VEC_PUSH(&c->blocks, (struct block_life){ 0 });
		archive_block(a, &c->blocks.items[i]);
	}
}

static void crash(struct archive *a, struct crash *c)
{
	archive_int(a, &c->pid);
	archive_int(a, &c->tid);
	archive_text(a, &c->program);
	archive_text(a, &c->command);
	archive_text(a, &c->thread);
	archive_int(a, &c->signal);
	archive_int(a, &c->code);
	archive_bool(a, &c->hidden);
	archive_bool(a, &c->from_outside);
	archive_u64(a, &c->address);
	archive_u64(a, &c->realtime_ns);
	ARCHIVE_CHOICE(a, &c->fault, FAULT_CLASSES);
	archive_text(a, &c->words);
	archive_text(a, &c->abort_message);
	archive_text(a, &c->instruction);
	archive_text(a, &c->origin);
	archive_stack(a, &c->stack);
	crash_blocks(a, c);
	archive_text(a, &c->file);
	archive_u64(a, &c->file_inode);
	archive_u64(a, &c->file_device);
	archive_u64(a, &c->mapped);
	archive_u64(a, &c->present);
	if (ARCHIVE_PART(a, &c->cut))
		cut(a, c->cut);
	registers(a, c);
	archive_u64(a, &c->write_us);
	archive_bool(a, &c->cut_short);
	if (a->version >= 2)
		archive_bool(a, &c->write);
}

static void store_code(struct archive *a, struct store_code *c)
{
	archive_bool(a, &c->certain);
	ARCHIVE_CHOICE(a, &c->form, STORE_FORMS);
	ARCHIVE_CHOICE(a, &c->base, ADDRESS_BASES);
	archive_u64(a, &c->pointer);
	archive_i64(a, &c->displacement);
	archive_bool(a, &c->string);
	archive_bool(a, &c->indexed);
	archive_bool(a, &c->moves_base);
	archive_bool(a, &c->immediate);
	ARCHIVE_CHOICE(a, &c->source, POINTER_SOURCES);
	archive_bool(a, &c->changed);
	archive_bool(a, &c->joined);
	archive_uint(a, &c->motion);
}

static void value_found(struct archive *a, struct value_found *f)
{
	archive_bool(a, &f->known);
	archive_uint(a, &f->step);
	archive_uint(a, &f->steps);
	ARCHIVE_CHOICE(a, &f->leads, VALUE_LEADS);
	archive_bool(a, &f->at_start);
	archive_bool(a, &f->leads_recycled);
	archive_bool(a, &f->jumped);
	archive_bool(a, &f->indexed);
	archive_bool(a, &f->read_by_code);
	archive_uint(a, &f->other_places);
	archive_bool(a, &f->replaced);
	archive_bool(a, &f->outlived);
	archive_bool(a, &f->strayed);
	archive_bool(a, &f->runtime);
	archive_bool(a, &f->place_reused);
	archive_bool(a, &f->owner_reached);
}

static void write_parts(struct archive *a, struct write_parts *p)
{
	archive_bool(a, &p->known);
	archive_uint(a, &p->whole);
	archive_uint(a, &p->writers);
	archive_bool(a, &p->covered);
}

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

static void from_old_flags(struct write_seen *w)
{
	unsigned int old = w->flags;

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

static void write_seen(struct archive *a, struct write_seen *w)
{
	archive_home(a, &w->home);
	archive_block_or_null(a, &w->victim);
	archive_text(a, &w->instruction);
	archive_uint(a, &w->width);
	archive_u64(a, &w->store_start);
	archive_u64(a, &w->store_len);
	ARCHIVE_CHOICE(a, &w->fit, FIT_KINDS);
	archive_u64(a, &w->old);
	archive_u64(a, &w->new);
	w->value_len = archive_choice(a, w->value_len, sizeof(w->new) + 1);
	archive_uint(a, &w->flags);
	archive_stack(a, &w->writer);
	archive_int(a, &w->tid);
	archive_text(a, &w->thread);
	archive_u64(a, &w->when_ns);
	archive_block_or_null(a, &w->base);
	archive_block_or_null(a, &w->target);
	archive_home(a, &w->source);
	ARCHIVE_CHOICE(a, &w->source_state, SOURCE_STATES);
	archive_u64(a, &w->age);
	if (a->version < 5) {
		from_old_flags(w);
		return;
	}
	store_code(a, &w->code);
	value_found(a, &w->found);
	write_parts(a, &w->parts);
	archive_u64(a, &w->nth_of_block);
	archive_u64(a, &w->nth_of_object);
	archive_bool(a, &w->new_was_block);
	ARCHIVE_CHOICE(a, &w->free_basis, FREE_BASES);
	if (a->version >= 7)
		archive_bool(a, &w->copy);
}

static void watch(struct archive *a, struct watch_account *w)
{
	archive_home(a, &w->home);
	archive_block_or_null(a, &w->victim);
	archive_text(a, &w->mode);
	archive_bool(a, &w->victim_watched);
	archive_bool(a, &w->since_birth);
	archive_bool(a, &w->kernel_writes);
	archive_u64(a, &w->hits);
	archive_uint(a, &w->threads);
	archive_bool(a, &w->value_known);
	archive_u64(a, &w->value);
	archive_u64(a, &w->birth_value);
}

static void outside(struct archive *a, struct outside_change *o)
{
	archive_home(a, &o->home);
	archive_block_or_null(a, &o->victim);
	archive_u64(a, &o->old);
	archive_u64(a, &o->new);
	o->value_len = archive_choice(a, o->value_len, sizeof(o->new) + 1);
	archive_bool(a, &o->kernel_writes);
	archive_bool(a, &o->gap);
	archive_strv(a, &o->between);
}

static void conflation(struct archive *a, struct conflation_seen *c)
{
	archive_u64(a, &c->address);
	archive_i64(a, &c->offset);
	archive_u64(a, &c->first_id);
	archive_u64(a, &c->second_id);
	archive_text(a, &c->first_key);
	archive_text(a, &c->second_key);
	archive_u64(a, &c->first_value);
	archive_u64(a, &c->second_value);
	c->value_len = archive_choice(a, c->value_len, sizeof(c->first_value) + 1);
	archive_block_or_null(a, &c->first);
	archive_block_or_null(a, &c->second);
	archive_bool(a, &c->watched);
}

static void freed_use(struct archive *a, struct freed_use *u)
{
	archive_block_or_null(a, &u->block);
	archive_i64(a, &u->offset);
	archive_bool(a, &u->write);
	archive_text(a, &u->instruction);
	archive_stack(a, &u->user);
	archive_bool(a, &u->poison);
	if (a->version >= 4)
		archive_bool(a, &u->place_reused);
	if (a->version >= 6) {
		archive_bool(a, &u->fenced);
		archive_u64(a, &u->width);
	}
	if (a->version >= 8)
		archive_bool(a, &u->first);
}

static void reported(struct archive *a, struct reported *r)
{
	ARCHIVE_CHOICE(a, &r->kind, REPORTED_KINDS);
	archive_text(a, &r->tool);
	archive_text(a, &r->what);
	archive_bool(a, &r->write);
	archive_u64(a, &r->width);
	archive_i64(a, &r->offset);
	archive_block_or_null(a, &r->block);
	archive_stack(a, &r->user);
	archive_stack(a, &r->other);
}

static void holder(struct archive *a, struct holder_seen *h)
{
	archive_home(a, &h->home);
	archive_block_or_null(a, &h->holder);
	archive_block_or_null(a, &h->target);
	archive_stack(a, &h->written_by);
	archive_bool(a, &h->used);
	archive_bool(a, &h->exact);
	archive_bool(a, &h->on_stack_too);
	if (a->version >= 3)
		archive_bool(a, &h->frame);
}

static void bad_free(struct archive *a, struct bad_free *b)
{
	ARCHIVE_CHOICE(a, &b->kind, BAD_FREE_KINDS);
	archive_u64(a, &b->pointer);
	archive_block_or_null(a, &b->block);
	archive_stack(a, &b->second);
	archive_text(a, &b->how);
	if (a->version >= 4)
		archive_bool(a, &b->named);
}

/* Where the damage went on was a yes or no before version 5, and which block it was is lost. */
static void old_canary(struct archive *a, struct canary_broken *c)
{
	bool adjacent = false, contested = false;

	archive_bool(a, &adjacent);
	if (a->version >= 4)
		archive_bool(a, &contested);
	if (contested)
		c->goes_on_at = mem_strdup("another block");
}

static void canary(struct archive *a, struct canary_broken *c)
{
	ARCHIVE_CHOICE(a, &c->side, CANARY_SIDES);
	archive_block_or_null(a, &c->block);
	archive_i64(a, &c->offset);
	archive_u64(a, &c->len);
	if (a->version >= 5)
		archive_text(a, &c->goes_on_at);
	else
		old_canary(a, c);
	archive_bytes(a, &c->expected);
	archive_bytes(a, &c->found);
	archive_text(a, &c->last_whole);
	archive_text(a, &c->first_broken);
	if (a->version >= 7) {
		archive_stack(a, &c->writer);
		archive_text(a, &c->instruction);
	}
}

static void mapping(struct archive *a, struct mapping_cut *m)
{
	archive_text(a, &m->file);
	archive_u64(a, &m->mapped);
	archive_u64(a, &m->present);
	if (ARCHIVE_PART(a, &m->cut))
		cut(a, m->cut);
	archive_stack(a, &m->user);
}

static void odds(struct archive *a, struct odds_seen *o)
{
	archive_home(a, &o->home);
	archive_stack(a, &o->allocated);
	archive_u64(a, &o->garbage);
	archive_u64(a, &o->garbage_failed);
	archive_u64(a, &o->zeroed);
	archive_u64(a, &o->zeroed_failed);
	archive_double(a, &o->p);
	if (a->version >= 7)
		archive_bool(a, &o->otherwise);
}

static void fault_value(struct archive *a, struct fault_value *f)
{
	archive_bool(a, &f->divisor);
	archive_u64(a, &f->value);
	ARCHIVE_CHOICE(a, &f->source, POINTER_SOURCES);
	archive_home(a, &f->home);
	archive_text(a, &f->returned_by);
}

static void account(struct archive *a, struct reference_account *r)
{
	uint64_t count;

	archive_home(a, &r->home);
	archive_block_or_null(a, &r->block);
	count = archive_count(a, r->parties.count);
	for (uint64_t i = 0; i < count && !a->in.broken; i++) {
		if (!a->out)
			VEC_PUSH(&r->parties, (struct reference_party){ 0 });
		archive_stack(a, &r->parties.items[i].at);
		archive_u64(a, &r->parties.items[i].taken);
		archive_u64(a, &r->parties.items[i].given);
	}
}

static void growth(struct archive *a, struct growth_seen *g)
{
	archive_text(a, &g->key);
	archive_stack(a, &g->site);
	archive_double(a, &g->blocks_per_test);
	archive_double(a, &g->bytes_per_test);
	archive_double(a, &g->p);
	archive_u64(a, &g->tests);
	archive_u64(a, &g->rises);
	archive_uint(a, &g->trials);
	archive_uint(a, &g->usable);
	archive_text(a, &g->holder);
}

static void race(struct archive *a, struct race_seen *r)
{
	archive_home(a, &r->home);
	archive_block_or_null(a, &r->victim);
	if (ARCHIVE_PART(a, &r->first))
		write_seen(a, r->first);
	if (ARCHIVE_PART(a, &r->second))
		write_seen(a, r->second);
	archive_u64(a, &r->gap_ns);
	archive_bool(a, &r->lost_update);
	archive_bool(a, &r->locked);
}

static void host(struct archive *a, struct host_signs *h)
{
	archive_uint(a, &h->bit_flips);
	archive_uint(a, &h->flip_homes);
	archive_uint(a, &h->flip_bits);
	archive_uint(a, &h->segv);
	archive_uint(a, &h->bus);
	archive_uint(a, &h->ill);
	archive_uint(a, &h->sites);
	archive_int(a, &h->core);
	archive_double(a, &h->core_p);
	archive_bool(a, &h->memory_tested);
	archive_u64(a, &h->memory_errors);
	archive_double(a, &h->memory_seconds);
	h->node_p = a->version >= 10 ? h->node_p : 1;
	if (a->version >= 10) {
		archive_chars(a, h->node, sizeof(h->node));
		archive_double(a, &h->node_p);
	}
}

static void failure(struct archive *a, struct failure_seen *f)
{
	archive_chars(a, f->signature, sizeof(f->signature));
	archive_bool(a, &f->always);
	archive_text(a, &f->summary);
	archive_u64(a, &f->trials);
	archive_u64(a, &f->failed);
	if (a->version < 5) {
		/* Only what was no fault was stored then. */
		f->kind = FAILURE_EXIT;
		return;
	}
	ARCHIVE_CHOICE(a, &f->kind, FAILURE_KINDS);
	archive_int(a, &f->signal);
	archive_bool(a, &f->fault);
	archive_u64(a, &f->ran);
	archive_u64(a, &f->ran_failed);
	archive_uint(a, &f->obstacles);
	archive_double(a, &f->limit_s);
}

static void experiment(struct archive *a, struct experiment_made *e)
{
	ARCHIVE_CHOICE(a, &e->kind, EXPERIMENT_KINDS);
	archive_u64(a, &e->trials);
	archive_u64(a, &e->telling);
	archive_u64(a, &e->shown);
	archive_u64(a, &e->shown_passing);
	archive_double(a, &e->coverage);
}

static void hop(struct archive *a, struct hop_seen *h)
{
	archive_uint(a, &h->number);
	archive_home(a, &h->home);
	archive_u64(a, &h->caught);
	archive_u64(a, &h->watched);
	archive_u64(a, &h->trials);
	archive_u64(a, &h->key_right);
	archive_u64(a, &h->key_tried);
	ARCHIVE_CHOICE(a, &h->end, HOP_ENDS);
	archive_text(a, &h->inferred);
	ARCHIVE_NUMBERS(a, &h->evidence);
}

static void part(struct archive *a, struct evidence *e)
{
	switch (e->kind) {
	case EVIDENCE_CRASH:
		crash(a, e->crash);
		break;
	case EVIDENCE_WRITE:
	case EVIDENCE_SIGHTING:
		write_seen(a, e->write);
		break;
	case EVIDENCE_WATCH:
		watch(a, e->watch);
		break;
	case EVIDENCE_OUTSIDE:
		outside(a, e->outside);
		break;
	case EVIDENCE_CONFLATION:
		conflation(a, e->conflation);
		break;
	case EVIDENCE_FREED_USE:
	case EVIDENCE_OVER_READ:
		freed_use(a, e->freed_use);
		break;
	case EVIDENCE_REPORTED:
		reported(a, e->reported);
		break;
	case EVIDENCE_HOLDER:
		holder(a, e->holder);
		break;
	case EVIDENCE_BAD_FREE:
		bad_free(a, e->bad_free);
		break;
	case EVIDENCE_CANARY:
		canary(a, e->canary);
		break;
	case EVIDENCE_MAPPING:
		mapping(a, e->mapping);
		break;
	case EVIDENCE_GROWTH:
		growth(a, e->growth);
		break;
	case EVIDENCE_RACE:
		race(a, e->race);
		break;
	case EVIDENCE_HOST:
		host(a, e->host);
		break;
	case EVIDENCE_FAILURE:
		failure(a, e->failure);
		break;
	case EVIDENCE_HOP:
		hop(a, e->hop);
		break;
	case EVIDENCE_ODDS:
		odds(a, e->odds);
		break;
	case EVIDENCE_FAULT_VALUE:
		fault_value(a, e->fault_value);
		break;
	case EVIDENCE_ACCOUNT:
		account(a, e->account);
		break;
	case EVIDENCE_EXPERIMENT:
		experiment(a, e->experiment);
		break;
	default:
		break;
	}
}

/* The id is not among the bytes: it is the row's. */
void evidence_pack(const struct evidence *evidence, struct strbuf *sb)
{
	struct archive a = { .out = sb, .version = EVIDENCE_VERSION };
	struct evidence e = *evidence; /* a walk takes what it could change */

	pack_u64(sb, EVIDENCE_VERSION);
	ARCHIVE_CHOICE(&a, &e.kind, EVIDENCE_KINDS);
	archive_u64(&a, &e.trial);
	archive_bool(&a, &e.failing);
	archive_chars(&a, e.signature, sizeof(e.signature));
	archive_text(&a, &e.note);
	part(&a, &e);
}

int evidence_unpack(const void *bytes, size_t len, struct evidence *ret, struct err *err)
{
	struct archive a = { .in = { .at = bytes, .left = len } };
	struct evidence e = { 0 };
	int r = archive_begin(&a, EVIDENCE_VERSION);

	if (r == -EPROTO)
		return err_set(err, r, "a newer redhand wrote this evidence");
	ARCHIVE_CHOICE(&a, &e.kind, EVIDENCE_KINDS);
	if (r < 0 || a.in.broken)
		return err_set(err, -EBADMSG, "this evidence is damaged");
	e = evidence_new(e.kind, 0, false);
	archive_u64(&a, &e.trial);
	archive_bool(&a, &e.failing);
	archive_chars(&a, e.signature, sizeof(e.signature));
	archive_text(&a, &e.note);
	part(&a, &e);
	if (a.in.broken || a.in.left > 0) {
		evidence_deinit(&e);
		return err_set(err, -EBADMSG, "this evidence is damaged");
	}
	*ret = e;
	return 0;
}
