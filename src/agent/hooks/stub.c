#include "agent/hooks/stub.h"

#include <string.h>
#include <sys/mman.h>

#include "agent/arch/x86_64.h"
#include "agent/core/agent.h"

#define REACH (1ull << 30)
#define STEP (256ull << 10)
#define ABOVE (512ull << 20) /* room that is left to the heap behind the program */

/* For the assembly. */
uint64_t hooked_tail_targets[HOOKED_TAILS] HIDDEN;
uint64_t hooked_tail_sites[HOOKED_TAILS] HIDDEN;

extern HIDDEN const char hooked_gate[], hooked_tails[], builtin_kept[];

static uint32_t tails_used;

bool stub_tails_full(void)
{
	return tails_used == HOOKED_TAILS;
}

static unsigned char *map_at(uint64_t address, size_t bytes)
{
	long r = raw_syscall6(SYS_mmap, (long)address, (long)bytes, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	if (r == (long)address)
		return (unsigned char *)r;
	if (r > 0) /* a kernel that takes the address for a wish */
		(void)raw_syscall2(SYS_munmap, r, bytes);
	return NULL;
}

/* Below the module first: the heap grows behind the program, and must find its place. */
void stub_area_map(struct stub_area *area, uint64_t near, size_t bytes)
{
	uint64_t from = near & ~(STEP - 1), distance;

	area->used = 0;
	area->bytes = (bytes + PAGE - 1) & ~(PAGE - 1);
	area->base = NULL;
	for (distance = STEP; !area->base && distance < REACH && from > distance; distance += STEP)
		area->base = map_at(from - distance, area->bytes);
	for (distance = ABOVE; !area->base && distance < REACH; distance += STEP)
		area->base = map_at(from + distance, area->bytes);
}

static void area_put(struct stub_area *area, const void *bytes, size_t len)
{
	memcpy(area->base + area->used, bytes, len);
	area->used += len;
}

static bool put_fixups(struct stub_area *area, const struct hooked_site *site, size_t moved_at,
		       uint32_t from, uint32_t to)
{
	const struct plan_hook *plan = site->plan;
	uint32_t i;

	for (i = 0; i < plan->fixup_count; i++) {
		const struct plan_fixup *fixup = &plan->fixups[i];
		uint64_t target = site->bias + (uint64_t)fixup->target;
		unsigned char *field;
		int64_t distance;
		uint32_t value;

		if (fixup->at < from || fixup->at >= to)
			continue;
		field = area->base + moved_at + (fixup->at - from);
		distance = (int64_t)(target - ((uint64_t)field + 4 + fixup->after));
		if (fixup->kind == PLAN_FIX_RELATIVE && distance != (int32_t)distance)
			return false;
		value = fixup->kind == PLAN_FIX_RELATIVE ? (uint32_t)distance
			: fixup->kind == PLAN_FIX_LOW	 ? (uint32_t)target
							 : (uint32_t)(target >> 32);
		memcpy(field, &value, sizeof(value));
	}
	return true;
}

static bool put_moved(struct stub_area *area, const struct hooked_site *site, uint32_t from,
		      uint32_t to)
{
	size_t at = area->used;

	area_put(area, site->plan->moved + from, to - from);
	return put_fixups(area, site, at, from, to);
}

/* A call or a jump through a word that lies behind the code. */
static void put_indirect(struct stub_area *area, const char *opcode, size_t len, size_t word)
{
	int32_t distance;

	area_put(area, opcode, len);
	distance = (int32_t)(word - (area->used + 4));
	area_put(area, &distance, sizeof(distance));
}

static void put_word(struct stub_area *area, uint64_t word)
{
	area_put(area, &word, sizeof(word));
}

/* A library that comes again finds its slot again. */
static bool put_tail(struct stub_area *area, struct hooked_site *site, size_t word)
{
	uint64_t tail = tails_used;

	if (site->tail)
		tail = (site->tail - (uint64_t)hooked_tails) / HOOKED_TAIL_BYTES;
	else if (tails_used == HOOKED_TAILS)
		return false;
	else
		tails_used++;
	hooked_tail_targets[tail] = site->bias + (uint64_t)site->plan->tail_target;
	hooked_tail_sites[tail] = (uint64_t)(site - hooked.sites);
	put_indirect(area, "\xff\x25", 2, word); /* jmp [rip + …] */
	area->used = word;
	site->tail = (uint64_t)hooked_tails + tail * HOOKED_TAIL_BYTES;
	put_word(area, site->tail);
	return true;
}

/* What the gate finds on the stack: see there. lea, push and pop leave the flags alone. */
static void put_call(struct stub_area *area, uint32_t number, size_t word)
{
	area_put(area, "\x55\x68", 2); /* push rbp; push number */
	area_put(area, &number, sizeof(number));
	put_indirect(area, "\xff\x15", 2, word);       /* call [rip + …] */
	area_put(area, "\x48\x8d\x64\x24\x08\x5d", 6); /* lea rsp, [rsp + 8]; pop rbp */
}

static bool put_gate(struct stub_area *area, struct hooked_site *site, size_t word)
{
	put_call(area, (uint32_t)(site - hooked.sites), word);
	if (!put_moved(area, site, site->plan->before, site->plan->moved_bytes))
		return false;
	area->used = word;
	put_word(area, (uint64_t)hooked_gate);
	return true;
}

/* Other hooks on the same entry run first. */
static bool put_replaced(struct stub_area *area, struct hooked_site *site, size_t word)
{
	size_t start = area->used, replacement = word - 8;
	uint32_t number = site->replaced - 1;
	bool kept = site->plan->flags & PLAN_HOOK_KEEP;

	if (site->action_count > 1)
		put_call(area, (uint32_t)(site - hooked.sites), word);
	if (kept) {
		put_call(area, number, replacement);
		area_put(area, "\xc3", 1); /* ret */
	} else {
		put_indirect(area, "\xff\x25", 2, replacement); /* jmp [rip + …] */
	}
	area->used = start + STUB_ORIGINAL_AT;
	if (!put_moved(area, site, 0, site->plan->moved_bytes))
		return false;
	area->used = replacement;
	put_word(area, kept ? (uint64_t)builtin_kept : hooked_replacement.gate(number));
	put_word(area, (uint64_t)hooked_gate);
	return true;
}

static bool put_hook(struct stub_area *area, struct hooked_site *site, size_t word)
{
	return put_moved(area, site, 0, site->plan->before) &&
	       (site->plan->flags & PLAN_HOOK_TAIL ? put_tail(area, site, word)
						   : put_gate(area, site, word));
}

bool stub_write(struct stub_area *area, struct hooked_site *site)
{
	size_t start = area->used, word = start + STUB_BYTES - 8;
	bool fits;

	site->stub = (uint64_t)(area->base + start);
	site->stub_bytes = STUB_BYTES;
	site->area_bytes = start ? 0 : (uint32_t)area->bytes;
	fits = site->replaced ? put_replaced(area, site, word) : put_hook(area, site, word);
	area->used = start + STUB_BYTES;
	return fits;
}

_Static_assert(HOOKED_TAIL_BYTES == LOG_HOOK_TAIL_BYTES, "told to the tool");
_Static_assert(PLAN_HOOK_MOVED + STUB_ORIGINAL_AT + 16 <= STUB_BYTES, "a stub fits");
_Static_assert(2 * STUB_GATE_BYTES + 1 <= STUB_ORIGINAL_AT, "what comes before the moved code");
