#include "agent/hooks/hooked.h"

#include <cpuid.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>

#include "agent/arch/x86_64.h"
#include "agent/core/agent.h"
#include "agent/core/log.h"
#include "agent/core/memory.h"
#include "agent/core/real.h"
#include "agent/core/signals.h"
#include "agent/core/start.h"
#include "agent/core/text.h"
#include "agent/hooks/stub.h"
#include "agent/ids/blocks.h"

#define LIBRARIES_MAX 4096u
#define ARCH_SHSTK_STATUS 0x5005

/* For the gate: which vector registers there are (XCR0), 0: only what FXSAVE knows. */
uint64_t hooked_vectors HIDDEN;

static bool shadow_stack;

static struct hooked_site *site_find(uint64_t key)
{
	uint32_t i;

	for (i = 0; i < hooked.site_count; i++)
		if (hooked.sites[i].plan->key == key)
			return &hooked.sites[i];
	return NULL;
}

static bool hook_is_sound(const struct plan_hook *hook)
{
	uint32_t i;

	if (hook->covered < 1 || hook->covered > PLAN_HOOK_COVERED ||
	    hook->before > PLAN_HOOK_MOVED || hook->moved_bytes > PLAN_HOOK_MOVED ||
	    hook->before > hook->moved_bytes || hook->fixup_count > PLAN_HOOK_FIXUPS ||
	    hook->mark_count > PLAN_HOOK_MARKS ||
	    hook->place.build_id_bytes > sizeof(hook->place.build_id) ||
	    hook->place.module[sizeof(hook->place.module) - 1] ||
	    (hook->form == PLAN_HOOK_JUMP && hook->covered < 5))
		return false;
	for (i = 0; i < hook->fixup_count; i++)
		if (hook->fixups[i].at + 4u > hook->moved_bytes)
			return false;
	return true;
}

bool hooked_plan_hook(const struct plan_hook *hook)
{
	if (!hook_is_sound(hook))
		return false;
	if (site_find(hook->key))
		return true;
	if (hooked.site_count == HOOKED_SITES)
		return false;
	hooked.sites[hooked.site_count++].plan = hook;
	blocks_state.hooks_planned = true;
	return true;
}

/* Actions of one site lie together, wherever they stand in the plan. */
bool hooked_plan_action(const struct plan_action *action)
{
	struct hooked_site *site = site_find(action->key);
	uint32_t at, i;

	if (!site || hooked.action_count == HOOKED_ACTIONS)
		return false;
	if (action->what == PLAN_REPLACE) {
		if (!hooked_replacement.gate(action->number) || site->plan->before ||
		    site->plan->flags & PLAN_HOOK_EXIT)
			return false;
		site->replaced = action->number + 1;
	}
	at = site->action_count ? site->first_action + site->action_count : hooked.action_count;
	memmove(&hooked.actions[at + 1], &hooked.actions[at],
		(hooked.action_count - at) * sizeof(*action));
	hooked.actions[at] = *action;
	hooked.action_count++;
	for (i = 0; i < hooked.site_count; i++)
		if (hooked.sites[i].action_count && hooked.sites[i].first_action >= at)
			hooked.sites[i].first_action++;
	if (!site->action_count)
		site->first_action = at;
	site->action_count++;
	return true;
}

static void site_record(const struct hooked_site *site)
{
	const struct plan_hook *plan = site->plan;
	struct log_hook record = { .address = site->bias + plan->place.offset,
				   .state = site->state ? site->state : LOG_HOOK_WAITING,
				   .covered = plan->covered };
	uint32_t i;

	if (site->state == LOG_HOOK_PLACED) {
		record.stub = site->stub;
		record.tail = site->tail;
		record.stub_bytes = site->stub_bytes;
	}
	for (i = 0; i < plan->mark_count && i < LOG_HOOK_MARKS; i++) {
		uint32_t at = plan->marks[i].moved;

		if (site->replaced)
			at += STUB_ORIGINAL_AT;
		else if (at >= plan->before && !(plan->flags & PLAN_HOOK_TAIL))
			at += STUB_GATE_BYTES;
		record.marks[i].stub_offset = (uint16_t)at;
		record.marks[i].offset = plan->marks[i].original;
		record.mark_count++;
	}
	memcpy(record.original, plan->expected, sizeof(record.original));
	memcpy(record.label, plan->label, sizeof(record.label) - 1);
	log_event_sigsafe(LOG_HOOK, &record, sizeof(record));
}

static void site_refuse(struct hooked_site *site, enum log_hook_state why)
{
	site->state = why;
	log_drop_sigsafe(LOG_DROP_PLAN_ITEM);
	site_record(site);
}

/* No function of libc between the two calls: it may be what is being patched. */
static bool code_write(uint64_t address, const unsigned char *bytes, size_t len, uint32_t rights)
{
	uint64_t low = address & ~(PAGE - 1), high = (address + len + PAGE - 1) & ~(PAGE - 1);
	volatile unsigned char *to = (volatile unsigned char *)address;
	size_t i;

	if (raw_syscall3(SYS_mprotect, low, high - low, PROT_READ | PROT_WRITE))
		return false;
	for (i = 0; i < len; i++)
		to[i] = bytes[i];
	(void)raw_syscall3(SYS_mprotect, low, high - low, rights);
	return true;
}

static bool site_patch(struct hooked_site *site)
{
	uint64_t address = site->bias + site->plan->place.offset;
	int64_t distance = (int64_t)(site->stub - (address + 5));
	unsigned char jump[5] = { 0xe9 };

	if (site->plan->form == PLAN_HOOK_TRAP)
		return code_write(address, (const unsigned char *)"\xcc", 1, site->plan->rights);
	if (distance != (int32_t)distance)
		return false;
	memcpy(jump + 1, &(int32_t){ (int32_t)distance }, 4);
	return code_write(address, jump, sizeof(jump), site->plan->rights);
}

/* Is the code what the tool saw? */
static bool code_is_expected(const struct hooked_site *site)
{
	unsigned char now[PLAN_HOOK_COVERED];
	uint32_t len = site->plan->covered;

	return memory_read_sigsafe(now, site->bias + site->plan->place.offset, len) == len &&
	       !memcmp(now, site->plan->expected, len);
}

static void site_place(struct hooked_site *site)
{
	if (site->plan->form == PLAN_HOOK_TRAP)
		hooked.traps++;
	signals_breakpoints = true;
	site->address = site->bias + site->plan->place.offset;
	if (!site_patch(site)) {
		site->address = 0;
		site_refuse(site, LOG_HOOK_TOO_FAR);
		return;
	}
	site->state = LOG_HOOK_PLACED;
	site_record(site);
}

static const char *last_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static bool is_program(const char *name)
{
	char path[1024];
	long got = raw_syscall4(SYS_readlinkat, -100, "/proc/self/exe", path, sizeof(path) - 1);

	path[got > 0 ? got : 0] = 0;
	return !strcmp(last_name(path), name);
}

static bool is_module(const struct plan_place *place, const struct link_map *map, bool program)
{
	unsigned char id[sizeof(place->build_id)];
	bool for_program = place->module[0] == '/';

	if (for_program != program)
		return false;
	if (place->build_id_bytes)
		return memory_read_sigsafe(id, map->l_addr + place->build_id_at,
					   place->build_id_bytes) == place->build_id_bytes &&
		       !memcmp(id, place->build_id, place->build_id_bytes);
	return program ? is_program(place->module + 1)
		       : !strcmp(last_name(map->l_name), place->module);
}

/* Nobody named those that are replaced: in another program there is nothing to be said of them. */
static bool site_is_told(const struct hooked_site *site)
{
	return !site->replaced || site->state;
}

/* Where blocks are not followed, a malloc is left as it is; nor where others than the program would
 * come to ours, and from there to the program's. */
static bool site_is_wanted(const struct hooked_site *site)
{
	return !site->replaced || (real.past_us && !(agent.plan.flags & PLAN_NO_BLOCKS));
}

/* A malloc whose free is not seen would be worse than none: all of its functions, or none. Called
 * when stubs are written and nothing is patched. */
static void replacements_check(bool executable)
{
	bool whole = executable;
	uint32_t i, count = 0;

	for (i = 0; i < hooked.site_count; i++) {
		const struct hooked_site *site = &hooked.sites[i];

		whole = whole && !(site->replaced && site->state);
		count += site->replaced && site->stub > 1;
	}
	for (i = 0; i < hooked.site_count && count; i++) {
		struct hooked_site *site = &hooked.sites[i];

		if (!site->replaced || site->stub <= 1 || site->state)
			continue;
		if (whole)
			hooked_replacement.bind(site->replaced - 1, site->stub + STUB_ORIGINAL_AT);
		else
			site_refuse(site, LOG_HOOK_NO_MEMORY);
	}
	if (whole && count)
		hooked_replacement.take_over();
}

/* Where one could not be patched after all, the others are as they were. */
static void replacements_undo_half(void)
{
	bool half = false;
	uint32_t i;

	for (i = 0; i < hooked.site_count; i++)
		half |= hooked.sites[i].replaced && hooked.sites[i].stub > 1 &&
			hooked.sites[i].state != LOG_HOOK_PLACED;
	for (i = 0; i < hooked.site_count && half; i++) {
		struct hooked_site *site = &hooked.sites[i];

		if (!site->replaced || site->state != LOG_HOOK_PLACED ||
		    !code_write(site->address, site->plan->expected, site->plan->covered,
				site->plan->rights))
			continue;
		site->address = 0;
		site_refuse(site, LOG_HOOK_NO_MEMORY);
	}
	if (half)
		builtin_replaced = false;
}

/* Sites of this module that are still to be placed: refused, or with their stub written. */
/* Those of a module that get a stub, and where it is to be near to. */
static uint32_t sites_choose(const struct link_map *map, bool program, uint64_t *ret_near)
{
	uint32_t i, wanted = 0;

	for (i = 0; i < hooked.site_count; i++) {
		struct hooked_site *site = &hooked.sites[i];

		if (site->state || !site_is_wanted(site) ||
		    !is_module(&site->plan->place, map, program))
			continue;
		site->bias = map->l_addr;
		if (shadow_stack && (site->plan->flags & PLAN_HOOK_PUSHES)) {
			site_refuse(site, LOG_HOOK_SHADOW);
		} else if (!code_is_expected(site)) {
			site_refuse(site, LOG_HOOK_OTHER_CODE);
		} else {
			site->stub = 1;
			*ret_near = site->bias + site->plan->place.offset;
			wanted++;
		}
	}
	return wanted;
}

static void stubs_write(struct stub_area *area)
{
	uint32_t i;

	for (i = 0; i < hooked.site_count; i++) {
		struct hooked_site *site = &hooked.sites[i];

		if (site->state || site->stub != 1)
			continue;
		if (!area->base)
			site_refuse(site, LOG_HOOK_NO_MEMORY);
		else if (!stub_write(area, site))
			site_refuse(site, stub_tails_full() && (site->plan->flags & PLAN_HOOK_TAIL)
						  ? LOG_HOOK_FULL
						  : LOG_HOOK_TOO_FAR);
	}
}

static void module_place(const struct link_map *map, bool program)
{
	struct stub_area area = { 0 };
	uint64_t near = 0;
	uint32_t i, wanted = sites_choose(map, program, &near);
	bool executable;

	if (!wanted)
		return;
	stub_area_map(&area, near, (size_t)wanted * STUB_BYTES);
	stubs_write(&area);
	executable = area.base &&
		     !raw_syscall3(SYS_mprotect, area.base, area.bytes, PROT_READ | PROT_EXEC);
	if (program)
		replacements_check(executable);
	for (i = 0; i < hooked.site_count && area.base; i++) {
		struct hooked_site *site = &hooked.sites[i];

		if (site->state || site->stub - (uint64_t)area.base >= area.bytes)
			continue;
		if (executable)
			site_place(site);
		else
			site_refuse(site, LOG_HOOK_NO_MEMORY);
	}
	if (program)
		replacements_undo_half();
}

/* What was in a library that is gone waits for it to come again. */
static void forget_gone(const struct link_map *first)
{
	const struct link_map *map;
	uint32_t i, n;

	for (i = 0; i < hooked.site_count; i++) {
		struct hooked_site *site = &hooked.sites[i];

		if (!site->state)
			continue;
		for (map = first, n = 0; map && n < LIBRARIES_MAX; map = map->l_next, n++)
			if (map->l_addr == site->bias)
				break;
		if (map)
			continue;
		if (site->area_bytes)
			(void)raw_syscall2(SYS_munmap, site->stub, site->area_bytes);
		site->area_bytes = 0;
		site->state = 0;
		site->address = 0;
		site->stub = 0;
	}
}

static void libraries_place(void)
{
	const struct link_map *map = real.loader->r_map;
	uint32_t n;

	for (n = 0; map && n < LIBRARIES_MAX; map = map->l_next, n++)
		module_place(map, n == 0);
}

/* The loader holds its lock and is in the middle of its work; its list is whole when it says so. */
void hooked_libraries_changed(void)
{
	if (real.loader->r_state != RT_CONSISTENT)
		return;
	forget_gone(real.loader->r_map);
	libraries_place();
}

uint64_t hooked_original_sigsafe(uint64_t rip)
{
	uint32_t i;

	for (i = 0; i < hooked.site_count; i++)
		if (hooked.sites[i].address &&
		    rip - 1 - hooked.sites[i].stub < hooked.sites[i].stub_bytes)
			return hooked.sites[i].address + 1;
	return rip;
}

/* SSE, AVX and the three of AVX-512: what the agent or libc's memcpy may change. */
#define VECTOR_STATES 0xe6u

static bool vectors_look(void)
{
	unsigned eax, ebx, ecx, edx, i;
	uint32_t low, high;
	uint64_t states;

	if (!__get_cpuid(1, &eax, &ebx, &ecx, &edx) || !(ecx & bit_OSXSAVE))
		return true;
	__asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
	states = low & VECTOR_STATES;
	for (i = 2; i < 8; i++) {
		if (!(states & 1u << i) || !__get_cpuid_count(0xd, i, &eax, &ebx, &ecx, &edx))
			continue;
		if (ebx + eax > HOOKED_VECTOR_BYTES - 64)
			return false;
	}
	hooked_vectors = states;
	return true;
}

static bool in_program(void)
{
	uint32_t i;

	for (i = 0; i < hooked.site_count; i++)
		if (hooked.sites[i].state == LOG_HOOK_PLACED &&
		    hooked.sites[i].plan->place.module[0] == '/')
			return true;
	return false;
}

static void place_all(void)
{
	uint64_t enabled = 0;
	uint32_t i;

	if (!hooked.site_count || !real.loader || !vectors_look())
		return;
	shadow_stack = !raw_syscall2(SYS_arch_prctl, ARCH_SHSTK_STATUS, &enabled) && (enabled & 1);
	libraries_place();
	for (i = 0; i < hooked.site_count; i++)
		if (!hooked.sites[i].state && site_is_told(&hooked.sites[i]))
			site_record(&hooked.sites[i]);
}

void hooked_init(void)
{
	if (!agent.tight)
		place_all();
	if (agent.plan.observer >= PLAN_OBSERVE_IDS && real.past_us &&
	    !(agent.plan.flags & PLAN_NO_BLOCKS) && !in_program())
		agent_unobserved(LOG_UNOBSERVED_MALLOC);
}

void hooked_after_fork(void)
{
	uint32_t i;

	for (i = 0; i < hooked.site_count; i++)
		if (site_is_told(&hooked.sites[i]))
			site_record(&hooked.sites[i]);
}

bool hooked_signal_sigsafe(int signo, const siginfo_t *info, ucontext_t *context)
{
	greg_t *gregs = context->uc_mcontext.gregs;
	uint64_t at = (uint64_t)gregs[REG_RIP] - 1;
	uint32_t i;

	if (!hooked.traps || signo != SIGTRAP || info->si_code != SI_KERNEL)
		return false;
	for (i = 0; i < hooked.site_count; i++)
		if (hooked.sites[i].address == at && hooked.sites[i].plan->form == PLAN_HOOK_TRAP) {
			gregs[REG_RIP] = (greg_t)hooked.sites[i].stub;
			return true;
		}
	return false;
}
