/*
 * Writes a plan file: make_plan FILE crash|ids [growth] [jit_code] [field=value...] [item=TYPE...]
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "wire/plan.h"

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
	struct plan_header plan;
	struct plan_item items[16];
	size_t item_count = 0;
	char bytes[512];
	size_t len, f;
	FILE *file;
	int i;

	if (argc < 3)
		return 2;
	plan_init(&plan, strcmp(argv[2], "ids") ? PLAN_OBSERVE_CRASH : PLAN_OBSERVE_IDS);
	for (i = 3; i < argc; i++) {
		char *equals = strchr(argv[i], '=');
		uint32_t value;

		if (!strcmp(argv[i], "growth"))
			plan.flags |= PLAN_GROWTH;
		if (!strcmp(argv[i], "jit_code"))
			plan.flags |= PLAN_JIT_CODE;
		if (!equals)
			continue;
		*equals = 0;
		value = (uint32_t)strtoul(equals + 1, NULL, 0);
		if (!strcmp(argv[i], "item") && item_count < 16)
			items[item_count++] = (struct plan_item){ .type = (uint16_t)value,
								  .bytes = sizeof(*items) };
		for (f = 0; f < sizeof(fields) / sizeof(fields[0]); f++)
			if (!strcmp(argv[i], fields[f].name))
				memcpy((char *)&plan + fields[f].offset, &value, sizeof(value));
	}
	len = plan_seal(&plan, items, item_count * sizeof(*items), bytes, sizeof(bytes));
	file = fopen(argv[1], "wb");
	if (!len || !file || fwrite(bytes, 1, len, file) != len || fclose(file))
		return 1;
	return 0;
}
