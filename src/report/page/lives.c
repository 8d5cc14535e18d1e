/*
 * Lives of the address: the blocks that had the place one after the other, and who still points
 * there.
 *
 * Ids count allocations, so they say which block is older; blocks that share bytes cannot live at
 * the same time, so the older one was freed in between. No more order than that is told. Ids of
 * small Python objects are none of that kind (wire/ids.h): such blocks are drawn by what a place
 * says alone.
 */
#include "report/page/page_told.h"

#include <inttypes.h>
#include <stdlib.h>

#include "model/crash.h"

#define LANES_MOST 8u
#define COUNTED_IDS (UINT64_C(1) << 52)

struct life {
	const struct block_life *block;
	bool victim, holder;
	int born, died; /* moments; died -1: it lives on */
};

struct life_moment {
	const struct block_life *block; /* NULL: the failure */
	bool free;
};

struct block_lives {
	VEC(struct life) list;
	VEC(struct life_moment) moments;
	const struct holder_seen *holder;
};

static bool is_freed(const struct block_life *block)
{
	return block->state == BLOCK_FREED || block->former;
}

static bool overlap(const struct block_life *a, const struct block_life *b)
{
	return a->start < b->start + (b->size > 0 ? b->size : 1) &&
	       b->start < a->start + (a->size > 0 ? a->size : 1);
}

static void add_block(struct block_lives *lives, const struct block_life *block)
{
	if (!block || block->id == 0 || block->start == 0)
		return;
	VEC_FOREACH (&lives->list, life)
		if (same_block(life->block, block)) {
			/* Who knows of its end knows more. */
			if (is_freed(block) && !is_freed(life->block))
				life->block = block;
			return;
		}
	if (lives->list.count < 64)
		VEC_PUSH(&lives->list, ((struct life){ .block = block, .died = -1 }));
}

static void add_piece(struct block_lives *lives, const struct evidence *e)
{
	switch (e->kind) {
	case EVIDENCE_CRASH:
		VEC_FOREACH (&e->crash->blocks, block)
			add_block(lives, block);
		break;
	case EVIDENCE_WRITE:
		add_block(lives, e->write->victim);
		add_block(lives, e->write->base);
		break;
	case EVIDENCE_FREED_USE:
	case EVIDENCE_OVER_READ:
		add_block(lives, e->freed_use->block);
		break;
	case EVIDENCE_HOLDER:
		add_block(lives, e->holder->target);
		add_block(lives, e->holder->holder);
		break;
	case EVIDENCE_BAD_FREE:
		add_block(lives, e->bad_free->block);
		break;
	case EVIDENCE_CANARY:
		add_block(lives, e->canary->block);
		break;
	case EVIDENCE_CONFLATION:
		add_block(lives, e->conflation->first);
		add_block(lives, e->conflation->second);
		break;
	default:
		break;
	}
}

static int by_id(const void *a, const void *b)
{
	uint64_t left = ((const struct life *)a)->block->id;
	uint64_t right = ((const struct life *)b)->block->id;

	return left < right ? -1 : left > right;
}

/* The place that the story is about: that of the freed block, else of the damaged one. */
static const struct block_life *told_place(const struct investigation *inv,
					   const struct block_lives *lives)
{
	if (lives->holder && lives->holder->target && !lives->holder->frame)
		return lives->holder->target;
	return inv->verdict.victim;
}

static void keep_relevant(const struct investigation *inv, struct block_lives *lives)
{
	const struct block_life *place = told_place(inv, lives);
	const struct block_life *holder = lives->holder ? lives->holder->holder : NULL;
	size_t kept = 0;

	for (size_t i = 0; i < lives->list.count; i++) {
		struct life life = lives->list.items[i];

		life.victim = place && same_block(life.block, place);
		life.holder = holder && same_block(life.block, holder);
		if (kept < LANES_MOST &&
		    (life.victim || life.holder || (place && overlap(life.block, place))))
			lives->list.items[kept++] = life;
	}
	lives->list.count = kept;
}

static void gather(const struct investigation *inv, struct block_lives *lives)
{
	uint64_t trial = inv->judged ? told_trial(inv) : 0;

	if (trial == 0)
		return;
	lives->holder = told_holder(inv);
	VEC_FOREACH (&inv->evidence.list, e)
		if (e->trial == trial)
			add_piece(lives, e);
	add_block(lives, inv->verdict.victim);
	keep_relevant(inv, lives);
	VEC_SORT(&lives->list, by_id);
}

static int add_moment(struct block_lives *lives, const struct block_life *block, bool free)
{
	VEC_PUSH(&lives->moments, ((struct life_moment){ block, free }));
	return (int)lives->moments.count - 1;
}

/* Whose place the block takes is freed by then. */
static void free_before(struct block_lives *lives, const struct life *next)
{
	VEC_FOREACH (&lives->list, life)
		if (life < next && life->died < 0 && is_freed(life->block) &&
		    overlap(life->block, next->block))
			life->died = add_moment(lives, life->block, true);
}

static void order(struct block_lives *lives)
{
	VEC_FOREACH (&lives->list, life) {
		free_before(lives, life);
		life->born = add_moment(lives, life->block, false);
	}
	VEC_FOREACH (&lives->list, life)
		if (life->died < 0 && is_freed(life->block))
			life->died = add_moment(lives, life->block, true);
	(void)add_moment(lives, NULL, false);
}

static bool is_told(const struct block_lives *lives)
{
	bool freed = false;

	VEC_FOREACH (&lives->list, life) {
		freed |= is_freed(life->block);
		if (life->block->id >= COUNTED_IDS && lives->list.count > 1)
			return false;
	}
	return freed || lives->list.count > 1;
}

static void lives_deinit(struct block_lives *lives)
{
	VEC_DEINIT(&lives->list);
	VEC_DEINIT(&lives->moments);
}

static char *lane_name(const struct life *life)
{
	char name[BLOCK_NAME_BYTES];

	return mem_printf("%s %s, %" PRIu64 " bytes",
			  life->holder	 ? "holder"
			  : life->victim ? "the block"
					 : "block",
			  block_name(life->block->id, name), life->block->size);
}

/* A holder that is no block lives as long as the program. */
static void add_holder_lane(const struct block_lives *lives, struct lane_picture *picture)
{
	const struct home *home = &lives->holder->home;

	VEC_PUSH(&picture->lanes,
		 ((struct life_lane){ .name = home->name ? mem_printf("%s %s",
								      home_kind_name(home->kind),
								      home->name)
							 : mem_strdup(home_kind_name(home->kind)),
				      .from = 0,
				      .to = (int)lives->moments.count,
				      .kind = LANE_HOLDER }));
}

/* Its place is another one's by now, and nobody saw it freed: an allocator of the program's own,
 * or a block within a block. */
static bool is_lost(const struct block_lives *lives, const struct life *life)
{
	return life->died < 0 &&
	       VEC_ANY(&lives->list, other, other > life && overlap(other->block, life->block));
}

static void picture_of(const struct block_lives *lives, struct lane_picture *ret)
{
	size_t victim = SIZE_MAX, holder = SIZE_MAX;

	ret->moments = (int)lives->moments.count;
	ret->failure = ret->moments - 1;
	VEC_FOREACH (&lives->list, life) {
		if (life->victim)
			victim = ret->lanes.count;
		if (life->holder)
			holder = ret->lanes.count;
		VEC_PUSH(&ret->lanes,
			 ((struct life_lane){ .name = lane_name(life),
					      .from = life->born,
					      .to = life->died >= 0 ? life->died : ret->moments,
					      .lost = is_lost(lives, life),
					      .kind = life->holder   ? LANE_HOLDER
						      : life->victim ? LANE_VICTIM
								     : LANE_PLAIN }));
	}
	if (lives->holder && holder == SIZE_MAX && lives->holder->home.kind != HOME_UNKNOWN) {
		add_holder_lane(lives, ret);
		holder = ret->lanes.count - 1;
	}
	if (lives->holder && victim != SIZE_MAX && holder != SIZE_MAX)
		ret->arrow = (struct lane_arrow){ true, holder, victim, ret->failure };
}

static void put_moments(const struct page *page, const struct block_lives *lives)
{
	char name[BLOCK_NAME_BYTES];

	el(page->h, "ol", "class", "moments", NULL);
	VEC_FOREACH (&lives->moments, moment) {
		el(page->h, "li", NULL);
		if (!moment->block) {
			txt(page->h, "It fails.");
		} else {
			txtf(page->h, "Block %s is %s: ", block_name(moment->block->id, name),
			     moment->free ? "freed" : "allocated");
			put_place(page,
				  moment->free ? &moment->block->freed : &moment->block->allocated);
		}
		el_end(page->h);
	}
	el_end(page->h);
}

bool has_lives(const struct page *page)
{
	struct block_lives lives = { 0 };
	bool told;

	gather(page->inv, &lives);
	told = is_told(&lives);
	lives_deinit(&lives);
	return told;
}

void page_lives(const struct page *page)
{
	struct block_lives lives = { 0 };
	struct lane_picture picture = { 0 };

	gather(page->inv, &lives);
	order(&lives);
	picture_of(&lives, &picture);
	draw_lanes(page->h, &picture);
	put_moments(page, &lives);
	VEC_FREE(&picture.lanes, lane, mem_free(lane->name));
	lives_deinit(&lives);
}
