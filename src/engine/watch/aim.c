#include "engine/watch/aim.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "debuginfo/module.h"
#include "engine/watch/spec.h"
#include "engine/watch/when.h"

#define WATCHED_DEFAULT 8u

/* One watch while it is being planned. */
struct aim {
	const struct aim_request *request;
	const char *text;
	struct spec spec;
	struct plan_watch watch;
	VEC(struct plan_range) ranges;
	struct strbuf words; /* what it is, for the report */
};

static void aim_deinit(struct aim *aim)
{
	spec_deinit(&aim->spec);
	VEC_DEINIT(&aim->ranges);
	strbuf_deinit(&aim->words);
}

static int aim_key(struct aim *aim)
{
	aim->watch.kind = PLAN_WATCH_KEY;
	aim->watch.policy = PLAN_WATCH_OLDEST;
	aim->watch.key = (struct block_key){ .stack_hash = aim->spec.hash,
					     .lane = aim->spec.lane,
					     .ordinal = aim->spec.ordinal };
	strbuf_addf(&aim->words, "block %016" PRIx64 "#%u", aim->spec.hash, aim->spec.ordinal);
	return 0;
}

static int aim_one(struct aim *aim, struct err *err)
{
	int r = spec_parse(aim->text, &aim->spec, err);

	if (r < 0)
		return r;
	aim->watch.bytes = aim->spec.len > 0 ? (uint32_t)aim->spec.len : WATCHED_DEFAULT;
	aim->watch.offset = aim->spec.offset;
	aim->watch.policy = aim->request->policy;
	aim->watch.flags = (aim->request->flags & AIM_AFTER_FREE ? PLAN_WATCH_AFTER_FREE : 0) |
			   (aim->request->flags & AIM_STOP ? PLAN_WATCH_STOP : 0);
	switch (aim->spec.kind) {
	case SPEC_KEY:
		return aim_key(aim);
	case SPEC_ADDRESS:
		aim->watch.kind = PLAN_WATCH_ADDRESS;
		aim->watch.address = aim->spec.address;
		strbuf_addf(&aim->words, "address 0x%" PRIx64, aim->spec.address);
		return 0;
	default:
		return spec_mistake(aim->text, 0, err, "not yet");
	}
}

static int aim_when(struct aim *aim, struct err *err)
{
	struct when when = { 0 };
	int r = when_compile(aim->request->when, &when, err);

	memcpy(aim->watch.steps, when.steps, sizeof(when.steps));
	aim->watch.step_count = (uint32_t)when.count;
	when_deinit(&when);
	return r;
}

static void aim_write(struct aim *aim, struct strbuf *items)
{
	size_t bytes = sizeof(aim->watch) + aim->ranges.count * sizeof(aim->ranges.items[0]);

	aim->watch.item = (struct plan_item){ .type = PLAN_ITEM_WATCH, .bytes = (uint32_t)bytes };
	aim->watch.range_count = (uint32_t)aim->ranges.count;
	strbuf_add(items, &aim->watch, sizeof(aim->watch));
	if (aim->ranges.count > 0)
		strbuf_add(items, aim->ranges.items,
			   aim->ranges.count * sizeof(aim->ranges.items[0]));
}

int aim_plan(const struct aim_request *request, struct strbuf *items, struct watch_report *report,
	     struct err *err)
{
	for (size_t i = 0; i < request->count; i++) {
		AUTO(aim_deinit) struct aim aim = { .request = request, .text = request->on[i] };
		int r = aim_one(&aim, err);

		if (r == 0 && request->when)
			r = aim_when(&aim, err);
		if (r < 0)
			return r;
		aim_write(&aim, items);
		VEC_PUSH(&report->targets,
			 ((struct watch_target){ .text = mem_strdup(request->on[i]),
						 .described = strbuf_take(&aim.words) }));
	}
	return 0;
}
