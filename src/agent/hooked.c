#include "agent/hooked.h"

#include <cpuid.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>

#include "agent/agent.h"
#include "agent/arch/x86_64.h"
#include "agent/blocks.h"
#include "agent/guard.h"
#include "agent/log.h"
#include "agent/memory.h"
#include "agent/real.h"
#include "agent/sighted.h"
#include "agent/text.h"
#include "agent/watch.h"

#define PAGE 4096ull
#define GATE_BYTES 18u /* of a stub: push, push, call, lea, pop */
#define STUB_ROOM 192u /* moved code, the call of the gate, alignment */
#define REACH (1ull << 30)
#define STEP (256ull << 10)
#define ABOVE (512ull << 20) /* room that is left to the heap behind the program */
#define LIBRARIES_MAX 4096u
#define FRAME_END 16u /* from hooked_call.frame: the saved rbp, the return address */
#define ARCH_SHSTK_STATUS 0x5005

struct hooked_state hooked;

/* For the gate: which vector registers there are (XCR0), 0: only what FXSAVE knows. */
uint64_t hooked_vectors HIDDEN;
uint64_t hooked_tail_targets[HOOKED_TAILS] HIDDEN;
uint64_t hooked_tail_sites[HOOKED_TAILS] HIDDEN;

extern HIDDEN const char hooked_gate[], hooked_tails[];

static uint32_t tails_used;
static bool shadow_stack;

/* ---- the plan ------------------------------------------------------------------------------- */

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
	return true;
}

/* Actions of one site lie together, wherever they stand in the plan. */
bool hooked_plan_action(const struct plan_action *action)
{
	struct hooked_site *site = site_find(action->key);
	uint32_t at, i;

	if (!site || hooked.action_count == HOOKED_ACTIONS)
		return false;
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

/* ---- what a hook does, the rare half --------------------------------------------------------- */

static uint64_t argument(const struct hooked_call *call, uint32_t number)
{
	const uint64_t in_order[PLAN_ARGUMENTS] = { call->rdi, call->rsi, call->rdx,
						    call->rcx, call->r8,  call->r9 };

	return number < PLAN_ARGUMENTS ? in_order[number] : 0;
}

/* The newest call of this allocator at this very frame; those above it in the list never returned.
 */
static struct thread_pending *pending_take(struct thread *self, uint64_t frame, uint32_t number)
{
	uint32_t i;

	for (i = 1; i <= THREAD_PENDING; i++) {
		struct thread_pending *pending =
			&self->pending[(self->pending_next - i) % THREAD_PENDING];

		if (pending->frame != frame || pending->number != number)
			continue;
		self->pending_next -= i;
		pending->frame = 0;
		return pending;
	}
	return NULL;
}

static struct thread_pending *pending_add(struct thread *self, uint64_t frame, uint32_t number)
{
	struct thread_pending *pending = &self->pending[self->pending_next++ % THREAD_PENDING];

	pending->frame = frame;
	pending->number = number;
	return pending;
}

static uint64_t size_asked(const struct hooked_call *call, const struct plan_action *action)
{
	uint64_t size = action->size == PLAN_NO_ARGUMENT ? action->fixed_size
							 : argument(call, action->size);

	return action->count == PLAN_NO_ARGUMENT ? size : size * argument(call, action->count);
}

/* The object is over before the function runs: afterwards another thread may have the place. */
static void realloc_enter(struct guard *guard, const struct hooked_call *call,
			  const struct plan_action *action, struct caller caller)
{
	uint64_t start = argument(call, action->pointer);
	struct block *block = start ? block_at_sigsafe(BLOCKS_SUB, start) : NULL;
	struct thread_pending *pending = pending_add(guard->self, caller.frame, action->number);

	pending->size = size_asked(call, action);
	pending->pointer = start;
	pending->old_size = block && block->state == LOG_BLOCK_LIVE ? block_size(block) : 0;
	if (start)
		block_end_guarded(guard, BLOCKS_SUB, start, caller);
}

/* When it failed, the old object lives on, under a new id. */
static void realloc_leave(struct guard *guard, const struct hooked_call *call,
			  const struct thread_pending *pending, struct caller caller)
{
	if (call->rax)
		block_begin_guarded(guard, BLOCKS_SUB, call->rax, pending->size, LOG_API_HOOKED,
				    caller);
	else if (pending->pointer && pending->size && pending->old_size)
		block_begin_guarded(guard, BLOCKS_SUB, pending->pointer, pending->old_size,
				    LOG_API_HOOKED, caller);
}

static void allocator_act(struct guard *guard, const struct hooked_call *call,
			  const struct plan_action *action, struct caller caller)
{
	const struct thread_pending *pending;

	switch (action->what) {
	case PLAN_ALLOC_ENTER:
		pending_add(guard->self, caller.frame, action->number)->size =
			size_asked(call, action);
		return;
	case PLAN_REALLOC_ENTER:
		realloc_enter(guard, call, action, caller);
		return;
	case PLAN_FREE:
		if (argument(call, action->pointer))
			block_end_guarded(guard, BLOCKS_SUB, argument(call, action->pointer),
					  caller);
		return;
	default:
		break;
	}
	pending = pending_take(guard->self, caller.frame, action->number);
	if (!pending)
		log_drop_sigsafe(LOG_DROP_BLOCK); /* its beginning was not seen */
	else if (action->what == PLAN_REALLOC_LEAVE)
		realloc_leave(guard, call, pending, caller);
	else if (call->rax)
		block_begin_guarded(guard, BLOCKS_SUB, call->rax, pending->size, LOG_API_HOOKED,
				    caller);
}

static void act(struct guard *guard, const struct hooked_call *call,
		const struct plan_action *action, struct caller caller)
{
	uint64_t object;

	if (action->what == PLAN_WATCH_ARGUMENT || action->what == PLAN_WATCH_RESULT) {
		object = action->what == PLAN_WATCH_RESULT ? call->rax
							   : argument(call, action->pointer);
		if (object)
			watch_object(guard, action->number, object, caller);
		guard->self->place_python = false;
	} else if (action->what == PLAN_WATCH_FRAME) {
		watch_object(guard, action->number, caller.frame + FRAME_END, caller);
	} else if (action->what == PLAN_FRAME_LEAVE) {
		watch_frame_left(guard, action->number, caller.frame + FRAME_END);
	} else if (action->what == PLAN_PLACE_PYTHON) {
		if (watch_wants_python(action->number, argument(call, action->pointer)))
			guard->self->place_python = true;
	} else if (action->what == PLAN_SIGHT_ENTER) {
		sighted_enter(guard, action, call);
	} else if (action->what == PLAN_SIGHT_LEAVE) {
		sighted_leave(guard, action, call);
	} else if (agent_switch.ids) {
		allocator_act(guard, call, action, caller);
	}
}

static void libraries_changed(void);

void hooked_slow(struct hooked_call *call)
{
	const struct hooked_site *site = &hooked.sites[call->site];
	struct caller caller = { call->frame[1], (uint64_t)call->frame, call->frame[0] };
	struct guard guard;

	if (!guard_enter_any(&guard))
		return;
	if (site->plan->flags & PLAN_HOOK_LOADER)
		libraries_changed();
	for (; call->next < site->action_count; call->next++)
		act(&guard, call, &hooked.actions[site->first_action + call->next], caller);
	guard_leave(&guard);
}

/* ---- memory for stubs ------------------------------------------------------------------------ */

/* Where stubs of one module are written, before they are made executable. Never written to again:
 * later ones get memory of their own. */
struct area {
	unsigned char *base;
	size_t bytes, used;
};

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
static void area_map(struct area *area, uint64_t near, size_t bytes)
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

static void area_put(struct area *area, const void *bytes, size_t len)
{
	memcpy(area->base + area->used, bytes, len);
	area->used += len;
}

/* ---- writing a stub -------------------------------------------------------------------------- */

static bool put_fixups(struct area *area, const struct hooked_site *site, size_t moved_at,
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

static bool put_moved(struct area *area, const struct hooked_site *site, uint32_t from, uint32_t to)
{
	size_t at = area->used;

	area_put(area, site->plan->moved + from, to - from);
	return put_fixups(area, site, at, from, to);
}

/* A call or a jump through a word that lies behind the code. */
static void put_indirect(struct area *area, const char *opcode, size_t len, size_t word)
{
	int32_t distance;

	area_put(area, opcode, len);
	distance = (int32_t)(word - (area->used + 4));
	area_put(area, &distance, sizeof(distance));
}

static void put_word(struct area *area, uint64_t word)
{
	area_put(area, &word, sizeof(word));
}

/* A library that comes again finds its slot again. */
static bool put_tail(struct area *area, struct hooked_site *site, size_t word)
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
static bool put_gate(struct area *area, struct hooked_site *site, size_t word)
{
	uint32_t number = (uint32_t)(site - hooked.sites);

	area_put(area, "\x55\x68", 2); /* push rbp; push number */
	area_put(area, &number, sizeof(number));
	put_indirect(area, "\xff\x15", 2, word);       /* call [rip + …] */
	area_put(area, "\x48\x8d\x64\x24\x08\x5d", 6); /* lea rsp, [rsp + 8]; pop rbp */
	if (!put_moved(area, site, site->plan->before, site->plan->moved_bytes))
		return false;
	area->used = word;
	put_word(area, (uint64_t)hooked_gate);
	return true;
}

static bool stub_write(struct area *area, struct hooked_site *site)
{
	size_t start = area->used, word = start + STUB_ROOM - 8;
	bool fits;

	site->stub = (uint64_t)(area->base + start);
	site->stub_bytes = STUB_ROOM;
	site->area_bytes = start ? 0 : (uint32_t)area->bytes;
	fits = put_moved(area, site, 0, site->plan->before) &&
	       (site->plan->flags & PLAN_HOOK_TAIL ? put_tail(area, site, word)
						   : put_gate(area, site, word));
	area->used = start + STUB_ROOM;
	return fits;
}

_Static_assert(HOOKED_TAIL_BYTES == LOG_HOOK_TAIL_BYTES, "told to the tool");
_Static_assert(PLAN_HOOK_MOVED + 32 + 8 <= STUB_ROOM, "a stub fits");

/* ---- patching -------------------------------------------------------------------------------- */

static void site_record(const struct hooked_site *site)
{
	const struct plan_hook *plan = site->plan;
	struct log_hook record = { .address = site->bias + plan->place.offset,
				   .state = site->state ? site->state : LOG_HOOK_WAITING,
				   .covered = plan->covered };
	struct log_writer writer;
	uint32_t i;

	if (site->state == LOG_HOOK_PLACED) {
		record.stub = site->stub;
		record.tail = site->tail;
		record.stub_bytes = site->stub_bytes;
	}
	for (i = 0; i < plan->mark_count && i < LOG_HOOK_MARKS; i++) {
		uint32_t at = plan->marks[i].moved;

		if (at >= plan->before && !(plan->flags & PLAN_HOOK_TAIL))
			at += GATE_BYTES;
		record.marks[i].stub_offset = (uint16_t)at;
		record.marks[i].offset = plan->marks[i].original;
		record.mark_count++;
	}
	memcpy(record.original, plan->expected, sizeof(record.original));
	memcpy(record.label, plan->label, sizeof(record.label) - 1);
	log_writer_init_sigsafe(&writer, LOG_TO_EVENTS);
	(void)log_append_sigsafe(&writer, LOG_HOOK, &record, sizeof(record), NULL, 0);
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
	site->address = site->bias + site->plan->place.offset;
	if (!site_patch(site)) {
		site->address = 0;
		site_refuse(site, LOG_HOOK_TOO_FAR);
		return;
	}
	site->state = LOG_HOOK_PLACED;
	site_record(site);
}

/* ---- modules --------------------------------------------------------------------------------- */

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

/* Sites of this module that are still to be placed: refused, or with their stub written. */
static void module_place(const struct link_map *map, bool program)
{
	struct area area = { 0 };
	bool executable = true;
	uint32_t i, wanted = 0;
	uint64_t near = 0;

	for (i = 0; i < hooked.site_count; i++) {
		struct hooked_site *site = &hooked.sites[i];

		if (site->state || !is_module(&site->plan->place, map, program))
			continue;
		site->bias = map->l_addr;
		if (shadow_stack && (site->plan->flags & PLAN_HOOK_PUSHES)) {
			site_refuse(site, LOG_HOOK_SHADOW);
		} else if (!code_is_expected(site)) {
			site_refuse(site, LOG_HOOK_OTHER_CODE);
		} else {
			site->stub = 1;
			near = site->bias + site->plan->place.offset;
			wanted++;
		}
	}
	if (!wanted)
		return;
	area_map(&area, near, (size_t)wanted * STUB_ROOM);
	for (i = 0; i < hooked.site_count; i++) {
		struct hooked_site *site = &hooked.sites[i];

		if (site->state || site->stub != 1)
			continue;
		if (!area.base)
			site_refuse(site, LOG_HOOK_NO_MEMORY);
		else if (!stub_write(&area, site))
			site_refuse(site, tails_used == HOOKED_TAILS &&
							  (site->plan->flags & PLAN_HOOK_TAIL)
						  ? LOG_HOOK_FULL
						  : LOG_HOOK_TOO_FAR);
	}
	if (area.base && raw_syscall3(SYS_mprotect, area.base, area.bytes, PROT_READ | PROT_EXEC))
		executable = false;
	for (i = 0; i < hooked.site_count && area.base; i++) {
		struct hooked_site *site = &hooked.sites[i];

		if (site->state || site->stub - (uint64_t)area.base >= area.bytes)
			continue;
		if (executable)
			site_place(site);
		else
			site_refuse(site, LOG_HOOK_NO_MEMORY);
	}
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
static void libraries_changed(void)
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

/* ---- beginning ------------------------------------------------------------------------------- */

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

void hooked_init(void)
{
	uint64_t features = 0;
	uint32_t i;

	if (!hooked.site_count || !real.loader || !vectors_look())
		return;
	shadow_stack =
		!raw_syscall2(SYS_arch_prctl, ARCH_SHSTK_STATUS, &features) && (features & 1);
	libraries_place();
	for (i = 0; i < hooked.site_count; i++)
		if (!hooked.sites[i].state)
			site_record(&hooked.sites[i]);
}

void hooked_after_fork(void)
{
	uint32_t i;

	for (i = 0; i < hooked.site_count; i++)
		site_record(&hooked.sites[i]);
}

bool hooked_trap_sigsafe(ucontext_t *context)
{
	greg_t *gregs = context->uc_mcontext.gregs;
	uint64_t at = (uint64_t)gregs[REG_RIP] - 1;
	uint32_t i;

	if (!hooked.traps)
		return false;
	for (i = 0; i < hooked.site_count; i++)
		if (hooked.sites[i].address == at && hooked.sites[i].plan->form == PLAN_HOOK_TRAP) {
			gregs[REG_RIP] = (greg_t)hooked.sites[i].stub;
			return true;
		}
	return false;
}
