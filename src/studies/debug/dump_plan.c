/*
 * What a plan asks for, a line each: the header, then the items.
 */
#include "studies/debug/dump.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/auto.h"
#include "base/fd.h"
#include "base/mem.h"
#include "wire/plan.h"

/* In the order of their bits. */
static const char *const flag_names[] = { "growth",	 "python", "truncations", "jit-code",
					  "wild-values", "pages",  "no-blocks" };

static void add_flags(struct strbuf *out, uint32_t flags)
{
	const char *between = "";

	strbuf_adds(out, " flags=");
	for (unsigned int bit = 0; bit < 32; bit++) {
		if (!(flags >> bit & 1))
			continue;
		if (bit < ARRAY_SIZE(flag_names))
			strbuf_addf(out, "%s%s", between, flag_names[bit]);
		else
			strbuf_addf(out, "%s%u", between, bit);
		between = ",";
	}
}

static void add_header(struct strbuf *out, const struct plan_header *plan)
{
	static const char *const observers[] = { "?", "crash", "ids" };

	strbuf_addf(out, "PLAN version=%u observer=%s", plan->version,
		    observers[plan->observer < ARRAY_SIZE(observers) ? plan->observer : 0]);
	add_flags(out, plan->flags);
	strbuf_addf(out,
		    " items=%u ring_records=%u thread_slots=%u context_rows=%u events_mib=%u"
		    " checkpoint_gap_ms=%u tracer=%u seed=%" PRIu64 "\n",
		    plan->item_count, plan->ring_records, plan->thread_slots, plan->context_rows,
		    plan->events_mib, plan->checkpoint_gap_ms, plan->tracer, plan->seed);
}

static void add_hook(struct strbuf *out, const struct plan_hook *hook)
{
	strbuf_addf(out, "HOOK key=%" PRIu64 " form=%u flags=%#x offset=%#" PRIx64 " covered=%u",
		    hook->key, hook->form, hook->flags, hook->place.offset, hook->covered);
	dump_text(out, "module", hook->place.module,
		  strnlen(hook->place.module, sizeof(hook->place.module)));
	dump_text(out, "label", hook->label, strnlen(hook->label, sizeof(hook->label)));
	strbuf_addc(out, '\n');
}

static void add_watch(struct strbuf *out, const struct plan_watch *watch)
{
	strbuf_addf(out,
		    "WATCH kind=%u flags=%#x policy=%u bytes=%u offset=%" PRId64
		    " address=%#" PRIx64 " size_low=%" PRIu64 " size_high=%" PRIu64
		    " hash=%016" PRIx64 " ordinal=%u reach=%u ranges=%u steps=%u",
		    watch->kind, watch->flags, watch->policy, watch->bytes, watch->offset,
		    watch->address, watch->size_low, watch->size_high, watch->key.stack_hash,
		    watch->key.ordinal, watch->ordinal_reach, watch->range_count,
		    watch->step_count);
	dump_text(out, "type", watch->python_type,
		  strnlen(watch->python_type, sizeof(watch->python_type)));
	strbuf_addc(out, '\n');
}

static void add_heap(struct strbuf *out, const struct plan_heap *heap)
{
	strbuf_addf(out,
		    "HEAP flags=%#x seed=%" PRIu64
		    " quarantine_mib=%u poison_ppm=%u timer_ms=%u sweep=%u sweep_at=%u contexts=",
		    heap->item.flags, heap->seed, heap->quarantine_mib, heap->poison_ppm,
		    heap->timer_ms, heap->sweep, heap->sweep_at);
	for (uint32_t i = 0; i < heap->sweep_count && i < PLAN_SWEEP_MAX; i++)
		strbuf_addf(out, "%s%016" PRIx64, i > 0 ? "," : "", heap->sweep_hashes[i]);
	strbuf_addc(out, '\n');
}

static void add_item(struct strbuf *out, const struct plan_item *item)
{
	switch (item->type) {
	case PLAN_ITEM_ACTION: {
		const struct plan_action *action = (const void *)item;

		strbuf_addf(out,
			    "ACTION key=%" PRIu64
			    " what=%u number=%u pointer=%u size=%u count=%u fixed_size=%#" PRIx64
			    "\n",
			    action->key, action->what, action->number, action->pointer,
			    action->size, action->count, action->fixed_size);
		break;
	}
	case PLAN_ITEM_HOOK:
		add_hook(out, (const void *)item);
		break;
	case PLAN_ITEM_WATCH:
		add_watch(out, (const void *)item);
		break;
	case PLAN_ITEM_CANARY:
		add_heap(out, (const void *)item);
		break;
	case PLAN_ITEM_FENCE: {
		const struct plan_fence *fence = (const void *)item;

		strbuf_addf(out, "FENCE flags=%#x turn=%u level=%u memory_mib=%u time_percent=%u\n",
			    item->flags, fence->turn, fence->level, fence->memory_mib,
			    fence->time_percent);
		break;
	}
	case PLAN_ITEM_HOLDERS: {
		const struct plan_holders *holders = (const void *)item;

		strbuf_addf(out, "HOLDERS after_lines=%u contexts=%u\n", holders->after_lines,
			    holders->count);
		break;
	}
	case PLAN_ITEM_CHAOS: {
		const struct plan_chaos *chaos = (const void *)item;

		strbuf_addf(out,
			    "CHAOS seed=%" PRIu64 " gap_bytes=%" PRIu64
			    " heap_bytes=%u hold_weight=%u hold_share=%u arm_us=%u\n",
			    chaos->seed, chaos->gap_bytes, chaos->heap_bytes, chaos->hold_weight,
			    chaos->hold_share, chaos->arm_us);
		break;
	}
	default:
		strbuf_addf(out, "ITEM type=%u bytes=%u\n", item->type, item->bytes);
	}
}

int dump_plan(const char *path, struct strbuf *out, struct err *err)
{
	AUTO(mem_freep) char *bytes = NULL;
	const struct plan_item *item = NULL;
	struct plan_header plan;
	enum plan_fault fault;
	size_t len;
	int r = file_read(path, PLAN_BYTES_MAX, &bytes, &len, err);

	if (r < 0)
		return r;
	fault = plan_check(bytes, len, &plan);
	if (fault != PLAN_OK)
		return err_set(err, -EINVAL, "'%s' is no plan: %s", path, plan_fault_text(fault));
	add_header(out, &plan);
	while ((item = plan_next(bytes, item)) != NULL)
		add_item(out, item);
	return 0;
}
