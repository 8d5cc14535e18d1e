#include "wire/plan.h"

#include "wire/checksum.h"

/* Also compiled into the agent: no allocation, no libc beyond memcpy and memset. */

#define LIMIT_RING (1u << 22)
#define LIMIT_SLOTS 16384u
#define LIMIT_ROWS (1u << 23)
#define LIMIT_SLICE (1u << 20)
#define LIMIT_CONTEXT_SLICE (1u << 15)
#define LIMIT_WINDOW 4096u
#define LIMIT_EVENTS_MIB (64u << 10)

void plan_init(struct plan_header *plan, enum plan_observer observer)
{
	memset(plan, 0, sizeof(*plan));
	plan->magic = PLAN_MAGIC;
	plan->version = PLAN_VERSION;
	plan->total_bytes = sizeof(*plan);
	plan->observer = observer;
	plan->flags = observer >= PLAN_OBSERVE_IDS ? PLAN_TRUNCATIONS : 0;
	plan->ring_records = PLAN_RING_RECORDS;
	plan->thread_slots = PLAN_THREAD_SLOTS;
	plan->context_rows = PLAN_CONTEXT_ROWS;
	plan->stack_slice_bytes = PLAN_STACK_SLICE;
	plan->context_slice_bytes = PLAN_CONTEXT_SLICE;
	plan->register_window_bytes = PLAN_REGISTER_WINDOW;
	plan->events_mib = PLAN_EVENTS_MIB;
	plan->checkpoint_gap_ms = PLAN_CHECKPOINT_GAP_MS;
}

static uint64_t plan_sum(const void *bytes, size_t len)
{
	struct plan_header head;
	uint64_t sum;

	memcpy(&head, bytes, sizeof(head));
	head.check = 0;
	sum = checksum_add(CHECKSUM_SEED, &head, sizeof(head));
	return checksum_add(sum, (const char *)bytes + sizeof(head), len - sizeof(head));
}

/* What the agent reads of an item without looking at its size again; 0: it looks. */
static const uint32_t least_bytes[] = {
	[PLAN_ITEM_ACTION] = sizeof(struct plan_action),
	[PLAN_ITEM_HOOK] = sizeof(struct plan_hook),
	[PLAN_ITEM_CANARY] = sizeof(struct plan_heap),
	[PLAN_ITEM_FENCE] = sizeof(struct plan_fence),
	[PLAN_ITEM_HOLDERS] = sizeof(struct plan_holders),
	[PLAN_ITEM_CHAOS] = sizeof(struct plan_chaos),
	[PLAN_ITEM_WATCH] = sizeof(struct plan_watch),
};

/* True when the items fill [sizeof header, len) exactly and there are `count` of them. */
static bool items_walk(const char *bytes, size_t len, uint32_t count)
{
	size_t at = sizeof(struct plan_header);
	struct plan_item item;

	for (; count; count--) {
		if (len - at < sizeof(item))
			return false;
		memcpy(&item, bytes + at, sizeof(item));
		if (item.bytes < sizeof(item) || item.bytes % 8 || item.bytes > len - at)
			return false;
		if (item.type < sizeof(least_bytes) / sizeof(least_bytes[0]) &&
		    item.bytes < least_bytes[item.type])
			return false;
		at += item.bytes;
	}
	return at == len;
}

size_t plan_seal(const struct plan_header *plan, const void *items, size_t item_bytes, void *out,
		 size_t cap)
{
	size_t total = sizeof(*plan) + item_bytes, at = 0;
	struct plan_header head = *plan;
	struct plan_item item;

	if (total > cap || total > PLAN_BYTES_MAX)
		return 0;
	head.item_count = 0;
	while (item_bytes - at >= sizeof(item)) {
		memcpy(&item, (const char *)items + at, sizeof(item));
		if (item.bytes < sizeof(item) || item.bytes > item_bytes - at)
			return 0;
		at += item.bytes;
		head.item_count++;
	}
	head.total_bytes = (uint32_t)total;
	head.check = 0;
	memcpy(out, &head, sizeof(head));
	if (item_bytes)
		memcpy((char *)out + sizeof(head), items, item_bytes);
	if (!items_walk(out, total, head.item_count))
		return 0;
	head.check = plan_sum(out, total);
	memcpy(out, &head, sizeof(head));
	return total;
}

static bool power_of_two(uint32_t value)
{
	return value && !(value & (value - 1));
}

static void default_if_zero(uint32_t *field, uint32_t value)
{
	if (!*field)
		*field = value;
}

static int values_fit(const struct plan_header *head)
{
	return (head->observer == PLAN_OBSERVE_CRASH || head->observer == PLAN_OBSERVE_IDS) &&
	       power_of_two(head->ring_records) && head->ring_records <= LIMIT_RING &&
	       head->thread_slots <= LIMIT_SLOTS && power_of_two(head->context_rows) &&
	       head->context_rows <= LIMIT_ROWS && head->stack_slice_bytes <= LIMIT_SLICE &&
	       head->context_slice_bytes <= LIMIT_CONTEXT_SLICE &&
	       head->register_window_bytes <= LIMIT_WINDOW && head->events_mib <= LIMIT_EVENTS_MIB;
}

enum plan_fault plan_check(const void *bytes, size_t len, struct plan_header *ret)
{
	struct plan_header head;

	if (len < sizeof(head))
		return PLAN_TOO_SHORT;
	memcpy(&head, bytes, sizeof(head));
	if (head.magic != PLAN_MAGIC)
		return PLAN_BAD_MAGIC;
	if (head.version != PLAN_VERSION)
		return PLAN_BAD_VERSION;
	if (head.total_bytes != len || len > PLAN_BYTES_MAX)
		return PLAN_BAD_SIZE;
	if (plan_sum(bytes, len) != head.check)
		return PLAN_BAD_CHECK;
	if (!items_walk(bytes, len, head.item_count))
		return PLAN_BAD_SIZE;
	default_if_zero(&head.ring_records, PLAN_RING_RECORDS);
	default_if_zero(&head.thread_slots, PLAN_THREAD_SLOTS);
	default_if_zero(&head.context_rows, PLAN_CONTEXT_ROWS);
	default_if_zero(&head.stack_slice_bytes, PLAN_STACK_SLICE);
	default_if_zero(&head.context_slice_bytes, PLAN_CONTEXT_SLICE);
	default_if_zero(&head.register_window_bytes, PLAN_REGISTER_WINDOW);
	default_if_zero(&head.events_mib, PLAN_EVENTS_MIB);
	default_if_zero(&head.checkpoint_gap_ms, PLAN_CHECKPOINT_GAP_MS);
	if (!values_fit(&head))
		return PLAN_BAD_VALUE;
	*ret = head;
	return PLAN_OK;
}

const struct plan_item *plan_next(const void *bytes, const struct plan_item *item)
{
	const struct plan_header *head = bytes;
	const char *next;

	next = item ? (const char *)item + item->bytes : (const char *)(head + 1);
	if (next >= (const char *)bytes + head->total_bytes)
		return NULL;
	return (const struct plan_item *)next;
}

const char *plan_fault_text(enum plan_fault fault)
{
	switch (fault) {
	case PLAN_OK:
		return "the plan is sound";
	case PLAN_TOO_SHORT:
		return "the plan is shorter than its header";
	case PLAN_BAD_MAGIC:
		return "this is not a plan";
	case PLAN_BAD_VERSION:
		return "the plan was written for another version of the agent";
	case PLAN_BAD_SIZE:
		return "the plan's items do not fit its size";
	case PLAN_BAD_CHECK:
		return "the plan's checksum does not match";
	case PLAN_BAD_VALUE:
		return "a value in the plan is out of range";
	}
	return "unknown";
}
