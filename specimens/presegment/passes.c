#include "passes.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "eval.h"

/* A fusion has far fewer places to rewrite; this ends a search that would undo its own work. */
#define EDITS_MAX 4096
#define CHECK_TOLERANCE 1e-6

struct pass {
	const char *name;
	/* Is there something to do at this live operation? */
	bool (*match)(const struct fusion *f, int id);
	/* Does it; `match` no longer holds for the operation afterwards. */
	void (*apply)(struct fusion *f, int id);
};

static bool cast_match(const struct fusion *f, int id)
{
	const struct op *op = &f->ops[id], *inner;

	if (op->kind != OP_CAST)
		return false;
	inner = &f->ops[op->in[0]];
	if (inner->dtype == op->dtype)
		return true;
	/* The inner cast of two may go when it only widened. */
	return inner->kind == OP_CAST && f->ops[inner->in[0]].dtype <= inner->dtype;
}

static void cast_apply(struct fusion *f, int id)
{
	struct op *op = &f->ops[id];
	const struct op *inner = &f->ops[op->in[0]];

	if (inner->dtype == op->dtype)
		fusion_replace(f, id, op->in[0]);
	else
		op->in[0] = inner->in[0];
}

static bool empty_match(const struct fusion *f, int id)
{
	const struct op *op = &f->ops[id];

	if (op->kind == OP_PAD)
		return op->lo == 0 && op->hi == 0;
	if (op->kind == OP_SLICE)
		return op->hi - op->lo == f->ops[op->in[0]].shape.extent[op->axis];
	return op->kind == OP_REPEAT && op->lo == 1;
}

static void empty_apply(struct fusion *f, int id)
{
	fusion_replace(f, id, f->ops[id].in[0]);
}

static bool repeat_match(const struct fusion *f, int id)
{
	const struct op *op = &f->ops[id];

	return op->kind == OP_REPEAT && op->shape.rank < RANK_MAX;
}

static void repeat_apply(struct fusion *f, int id)
{
	/* The repeated tensor is the expanded one with its two outer axes as one: no copy. */
	int expanded = fusion_expand(f, f->ops[id].in[0], f->ops[id].lo);

	f->ops[id].kind = OP_RESHAPE;
	f->ops[id].in[0] = expanded;
}

static bool slice_match(const struct fusion *f, int id)
{
	const struct op *op = &f->ops[id], *inner;

	if (op->kind != OP_SLICE)
		return false;
	inner = &f->ops[op->in[0]];
	return inner->kind == OP_SLICE && inner->axis == op->axis;
}

static void slice_apply(struct fusion *f, int id)
{
	struct op *op = &f->ops[id];
	const struct op *inner = &f->ops[op->in[0]];

	op->lo += inner->lo;
	op->hi += inner->lo;
	op->in[0] = inner->in[0];
}

static bool keeps_zero(enum op_kind kind)
{
	return kind == OP_NEG || kind == OP_SCALE || kind == OP_CAST;
}

static bool pad_match(const struct fusion *f, int id)
{
	const struct op *op = &f->ops[id];

	return op->kind == OP_PAD && keeps_zero(f->ops[op->in[0]].kind) &&
	       fusion_count_uses(f, op->in[0]) == 1;
}

static void pad_apply(struct fusion *f, int id)
{
	int unary = f->ops[id].in[0];
	int pad = fusion_pad(f, f->ops[unary].in[0], f->ops[id].axis, f->ops[id].lo, f->ops[id].hi);

	f->ops[unary].in[0] = pad;
	f->ops[unary].shape = f->ops[pad].shape;
	fusion_replace(f, id, unary);
}

static bool alias_match(const struct fusion *f, int id)
{
	const struct op *op = &f->ops[id];

	if (op->alias)
		return false;
	return op->kind == OP_RESHAPE || op->kind == OP_EXPAND ||
	       (op->kind == OP_SLICE && op->axis == 0);
}

static void alias_apply(struct fusion *f, int id)
{
	f->ops[id].alias = true;
}

static bool layout_match(const struct fusion *f, int id)
{
	const struct op *op = &f->ops[id];

	return !op->contiguous && !op->alias && op->kind != OP_INPUT;
}

static void layout_apply(struct fusion *f, int id)
{
	f->ops[id].contiguous = true;
}

static const struct pass passes[] = {
	{ "ConsolidateCast", cast_match, cast_apply },
	{ "RemoveEmpty", empty_match, empty_apply },
	{ "TranslateRepeatToExpand", repeat_match, repeat_apply },
	{ "MergeSlices", slice_match, slice_apply },
	{ "MovePad", pad_match, pad_apply },
	{ "MarkAliases", alias_match, alias_apply },
	{ "AllocationDomain", layout_match, layout_apply },
};

#define NPASSES ((int)(sizeof(passes) / sizeof(passes[0])))
_Static_assert(sizeof(passes) / sizeof(passes[0]) <= PLAN_PASSES_MAX, "a plan has room for all");

const char *presegmenter_pass_name(int i)
{
	return i < NPASSES ? passes[i].name : NULL;
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* What has passed since `start`; a quarter of the new figure and three of the old, if any. */
static uint32_t cost_since(uint64_t start, uint32_t before_ns)
{
	uint64_t cost = now_ns() - start;

	if (before_ns)
		cost = (cost + 3 * (uint64_t)before_ns) / 4;
	return cost < UINT32_MAX ? (uint32_t)cost : UINT32_MAX;
}

/* Matches and applies at one operation. */
static bool try_edit(const struct pass *pass, struct fusion *f, int id, uint32_t before_ns,
		     struct plan_pass *done)
{
	struct plan_edit edit = { .op = (uint32_t)id };
	uint64_t start = now_ns();

	if (f->ops[id].dead || !pass->match(f, id))
		return false;
	edit.kind = f->ops[id].kind;
	edit.uses = (uint32_t)fusion_count_uses(f, id);
	pass->apply(f, id);
	edit.cost_ns = cost_since(start, before_ns);
	plan_add_edit(done, &edit);
	return true;
}

static void replay_edits(const struct pass *pass, struct fusion *f, const struct plan_view *cached,
			 int index, struct plan_pass *done)
{
	const struct record_pass *rp = plan_view_pass(cached, index);
	const struct record_edit *re = plan_view_first(cached, rp);

	for (int i = 0; re && i < EDITS_MAX; i++) {
		const struct plan_edit *edit = &re->edit;

		if (edit->op < (uint32_t)f->nops && f->ops[edit->op].kind == edit->kind)
			(void)try_edit(pass, f, (int)edit->op, edit->cost_ns, done);
		re = plan_view_next(cached, re);
	}
	done->cost_ns = rp->cost_ns;
}

static void search_edits(const struct pass *pass, struct fusion *f, struct plan_pass *done)
{
	bool again = true;

	while (again && done->nedits < EDITS_MAX) {
		again = false;
		for (int id = 0; id < f->nops; id++)
			again |= try_edit(pass, f, id, 0, done);
	}
}

static void sample_run(const struct fusion *f, struct result *ret)
{
	int *order = calloc((size_t)f->nops + 1, sizeof(*order));

	if (!order)
		abort();
	eval_fusion(f, order, fusion_order(f, order), ret);
	free(order);
}

int presegmenter_run(struct fusion *f, const struct plan_view *cached, struct plan *plan,
		     struct diag *diag)
{
	struct result expected;
	int r = 0;

	sample_run(f, &expected);
	for (int i = 0; i < NPASSES && r == 0; i++) {
		struct plan_pass *done = &plan->pass[plan->npasses++];
		struct result got;
		uint64_t start = now_ns();

		printf("[PreSegmenter] Running %s...\n", passes[i].name);
		if (cached)
			replay_edits(&passes[i], f, cached, i, done);
		search_edits(&passes[i], f, done);
		done->cost_ns = cost_since(start, done->cost_ns);
		sample_run(f, &got);
		if (!result_equal(&expected, &got, CHECK_TOLERANCE))
			r = diag_set(diag, -EILSEQ, "Pass %s changed what fusion '%s' computes",
				     passes[i].name, f->name);
		else
			printf("[PreSegmenter] Finished %s.\n", passes[i].name);
		result_deinit(&got);
	}
	result_deinit(&expected);
	return r;
}
