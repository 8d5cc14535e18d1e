/*
 * Writes a plan file: make_plan FILE crash|ids|heap|fence [growth] [jit_code] [wild_values] [pages]
 * [no_python] [python] [sampled] [fresh] [field=value...] [item=TYPE...]
 * [chaos=WEIGHT,GAP_BYTES,HEAP_BYTES,ARM_US]
 * [watch=BLOCK_BYTES,OFFSET,BYTES,FLAGS,POLICY,FROM_BLOCK_BYTES]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "wire/plan.h"

/* Blocks by their size alone, whoever allocates them. */
static struct plan_watch watch_parse(char *text)
{
	unsigned long numbers[6] = { 0 };
	size_t i;

	for (i = 0; i < 6 && *text; i++) {
		numbers[i] = strtoul(text, &text, 0);
		text += *text == ',';
	}
	return (struct plan_watch){ .item = { PLAN_ITEM_WATCH, 0, sizeof(struct plan_watch) },
				    .kind = PLAN_WATCH_CONTEXT,
				    .size_high = numbers[0],
				    .size_low = numbers[5] ? numbers[5] : numbers[0],
				    .offset = (int64_t)numbers[1],
				    .bytes = (uint32_t)numbers[2],
				    .flags = (uint32_t)numbers[3],
				    .policy = (uint32_t)numbers[4] };
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		size_t offset;
	} fields[] = {
		{ "ring_records", offsetof(struct plan_header, ring_records) },
		{ "thread_slots", offsetof(struct plan_header, thread_slots) },
		{ "context_rows", offsetof(struct plan_header, context_rows) },
		{ "stack_slice_bytes", offsetof(struct plan_header, stack_slice_bytes) },
		{ "context_slice_bytes", offsetof(struct plan_header, context_slice_bytes) },
		{ "register_window_bytes", offsetof(struct plan_header, register_window_bytes) },
		{ "events_mib", offsetof(struct plan_header, events_mib) },
		{ "checkpoint_gap_ms", offsetof(struct plan_header, checkpoint_gap_ms) },
	};
	static const struct {
		const char *name;
		size_t offset;
	} heap_fields[] = {
		{ "quarantine_mib", offsetof(struct plan_heap, quarantine_mib) },
		{ "poison_ppm", offsetof(struct plan_heap, poison_ppm) },
		{ "timer_ms", offsetof(struct plan_heap, timer_ms) },
		{ "sweep", offsetof(struct plan_heap, sweep) },
		{ "sweep_at", offsetof(struct plan_heap, sweep_at) },
		{ "seed", offsetof(struct plan_heap, seed) },
	};
	static const struct {
		const char *name;
		size_t offset;
	} fence_fields[] = {
		{ "fence_turn", offsetof(struct plan_fence, turn) },
		{ "fence_level", offsetof(struct plan_fence, level) },
		{ "fence_memory_mib", offsetof(struct plan_fence, memory_mib) },
		{ "fence_time_percent", offsetof(struct plan_fence, time_percent) },
	};
	struct plan_heap heap = { .item = { PLAN_ITEM_CANARY, 0, sizeof(heap) },
				  .seed = 0x1234567,
				  .quarantine_mib = 64,
				  .poison_ppm = 1000000,
				  .timer_ms = 20,
				  .sweep_at = PLAN_SWEEP_AT_FREE };
	struct plan_fence fence = { .item = { PLAN_ITEM_FENCE, 0, sizeof(fence) } };
	struct plan_header plan;
	static _Alignas(8) unsigned char items[32768];
	size_t item_bytes = 0;
	static char bytes[sizeof(items) + sizeof(plan)];
	size_t len, f;
	FILE *file;
	int i;

	if (argc < 3)
		return 2;
	plan_init(&plan, strcmp(argv[2], "crash") ? PLAN_OBSERVE_IDS : PLAN_OBSERVE_CRASH);
	plan.flags |= plan.observer >= PLAN_OBSERVE_IDS ? PLAN_PYTHON : 0;
	for (i = 3; i < argc; i++) {
		char *equals = strchr(argv[i], '=');
		uint32_t value;

		if (!strcmp(argv[i], "growth"))
			plan.flags |= PLAN_GROWTH;
		if (!strcmp(argv[i], "jit_code"))
			plan.flags |= PLAN_JIT_CODE;
		if (!strcmp(argv[i], "wild_values"))
			plan.flags |= PLAN_WILD_VALUES;
		if (!strcmp(argv[i], "pages"))
			plan.flags |= PLAN_PAGES;
		if (!strcmp(argv[i], "no_python"))
			plan.flags &= ~(uint32_t)PLAN_PYTHON;
		if (!strcmp(argv[i], "python"))
			heap.item.flags |= PLAN_HEAP_PYTHON;
		if (!strcmp(argv[i], "sampled"))
			heap.item.flags |= PLAN_HEAP_SAMPLED;
		if (!strcmp(argv[i], "fresh"))
			heap.item.flags |= PLAN_HEAP_FRESH;
		if (!equals)
			continue;
		*equals = 0;
		value = (uint32_t)strtoul(equals + 1, NULL, 0);
		if (!strcmp(argv[i], "item") && item_bytes < 128) {
			struct plan_item item = { .type = (uint16_t)value, .bytes = sizeof(item) };

			memcpy(items + item_bytes, &item, sizeof(item));
			item_bytes += sizeof(item);
		}
		if (!strcmp(argv[i], "chaos") && item_bytes < 128) {
			struct plan_chaos chaos = { .item = { PLAN_ITEM_CHAOS, 0, sizeof(chaos) },
						    .seed = 4711,
						    .hold_weight = value };
			char *rest = strchr(equals + 1, ',');

			chaos.gap_bytes = rest ? strtoul(rest + 1, &rest, 0) : 0;
			chaos.heap_bytes = rest ? (uint32_t)strtoul(rest + 1, &rest, 0) : 0;
			chaos.arm_us = rest && *rest ? (uint32_t)strtoul(rest + 1, NULL, 0) : 0;
			memcpy(items + item_bytes, &chaos, sizeof(chaos));
			item_bytes += sizeof(chaos);
		}
		for (f = 0; f < sizeof(fence_fields) / sizeof(fence_fields[0]); f++)
			if (!strcmp(argv[i], fence_fields[f].name))
				memcpy((char *)&fence + fence_fields[f].offset, &value,
				       sizeof(value));
		if (!strcmp(argv[i], "fence_flags"))
			fence.item.flags = (uint16_t)value;
		for (f = 0; f < sizeof(heap_fields) / sizeof(heap_fields[0]); f++)
			if (!strcmp(argv[i], heap_fields[f].name))
				memcpy((char *)&heap + heap_fields[f].offset, &value,
				       sizeof(value));
		if (!strcmp(argv[i], "watch") && item_bytes < sizeof(items) / 2) {
			struct plan_watch watch = watch_parse(equals + 1);

			memcpy(items + item_bytes, &watch, sizeof(watch));
			item_bytes += sizeof(watch);
		}
		for (f = 0; f < sizeof(fields) / sizeof(fields[0]); f++)
			if (!strcmp(argv[i], fields[f].name))
				memcpy((char *)&plan + fields[f].offset, &value, sizeof(value));
	}
	if (!strcmp(argv[2], "heap") || !strcmp(argv[2], "fence")) {
		memcpy(items + item_bytes, &heap, sizeof(heap));
		item_bytes += sizeof(heap);
	}
	if (!strcmp(argv[2], "fence")) {
		memcpy(items + item_bytes, &fence, sizeof(fence));
		item_bytes += sizeof(fence);
	}
	len = plan_seal(&plan, items, item_bytes, bytes, sizeof(bytes));
	file = fopen(argv[1], "wb");
	if (!len || !file || fwrite(bytes, 1, len, file) != len || fclose(file))
		return 1;
	return 0;
}
