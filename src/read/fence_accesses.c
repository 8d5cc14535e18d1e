/*
 * Accesses to closed pages, as the agent's fences recorded them: who read or wrote behind a block,
 * before it, or in it after its free.
 */
#include <signal.h>

#include "arch/arch.h"
#include "arch/operands.h"
#include "arch/store.h"
#include "read/backtrack.h"
#include "read/block_damage_inside.h"

#define ACCESSES_MAX 4096 /* in one process */

#define WORD 8u /* the end of a block and what malloc leaves free behind it share one */

/* Does it begin inside the block and end inside the last word that belongs to the block where
 * malloc puts it? Code that reads whole words and takes only what is its own does so on purpose.
 * Seen only where a block ends right at its fence. */
static bool within_last_word(const struct access *what, const struct registers *registers,
			     const struct heap_finding *f)
{
	uint64_t begin, from;

	if (!what->reads || what->writes || f->kind != HEAP_OVER_READ || what->width > WORD ||
	    !memory_operand_address(&what->memory, registers, &begin))
		return false;
	from = begin - f->address;
	return from < f->size && f->offset >= (int64_t)f->size && from % what->width == 0;
}

static bool points_to(int reg, const struct registers *registers, const struct heap_finding *f)
{
	return reg != NO_REGISTER && registers->known & 1u << reg &&
	       registers->value[reg] - f->address <= f->size;
}

/* Which instruction it was, and how many bytes it touched. False: it had a right to them. */
static bool tell_instruction(const struct log_fence_access *access, struct heap_finding *ret)
{
	struct registers registers = { 0 };
	struct fault_operands operands = { 0 };
	uint64_t rip = access->gregs[LOG_GREG_RIP];
	size_t len = access->code_bytes < LOG_FENCE_CODE ? access->code_bytes : LOG_FENCE_CODE;
	struct trap trap = { .code = access->code,
			     .code_len = len,
			     .code_address = rip,
			     .rip = rip,
			     .registers = &registers };
	struct access what;

	if (access->flags & LOG_FENCE_KERNEL) {
		const char *name = arch_system_call_name(access->call);

		ret->length = access->length;
		ret->instruction = name ? mem_printf("system call %s", name) : NULL;
		return true;
	}
	arch_registers_from_saved(arch_native(), access->gregs, LOG_GREGS, &registers);
	if (operands_of_fault(access->code, len, rip, rip, &registers, &operands) &&
	    operands.instruction[0] != '\0')
		ret->instruction = mem_strdup(operands.instruction);
	if (!arch_access_at(&trap, rip, &what))
		return true;
	ret->length = what.width;
	ret->unpointed = !points_to(what.memory.base, &registers, ret) &&
			 !points_to(what.memory.index, &registers, ret);
	return !within_last_word(&what, &registers, ret);
}

/* The record that the agent made of it where it was far from every block. */
static bool find_record(const struct log_findings *r, const struct log_fence_access *access,
			struct crash_place *ret)
{
	struct log_crash record;

	*ret = (struct crash_place){ .log = r->log };
	log_reader_rewind(&r->log->reader);
	while (log_reader_next(&r->log->reader, &ret->item))
		if (ret->item.head.type == LOG_CRASH &&
		    log_payload(&ret->item, &record, sizeof(record)) &&
		    record.fault_address == access->address && record.tid == access->tid &&
		    record.gregs[LOG_GREG_RIP] == access->gregs[LOG_GREG_RIP])
			return true;
	return false;
}

/* Where its pointer was loaded from: somebody may have put a bad one there. */
static void read_origin(const struct log_findings *r, const struct crash_place *place,
			struct home *ret, uint64_t *ret_pointer)
{
	struct crash_record record = { 0 };
	struct backtrack backtrack = { 0 };
	struct err why = { 0 };

	crash_record_open(place, &record);
	if (backtrack_read(&record, r->of->symbols, &backtrack, &why) == 0 &&
	    backtrack.steps.count > 0 && !backtrack.steps.items[0].by_value) {
		home_copy(ret, &backtrack.steps.items[0].home);
		*ret_pointer = backtrack.steps.items[0].value;
	}
	backtrack_deinit(&backtrack);
	crash_record_deinit(&record);
}

/* The kernel was given such a pointer: the first time. */
static void read_nowhere(const struct log_findings *r, const struct log_item *item)
{
	struct heap_fence *fence = &r->ret->fence;
	struct crash_place place = { .log = r->log, .item = *item };

	if (fence->nowhere.kind != HOME_UNKNOWN)
		return;
	read_origin(r, &place, &fence->nowhere, &fence->pointer);
	fence->trial = r->of->trial;
}

static bool is_nowhere(const struct log_item *item)
{
	struct log_crash crash;

	return item->head.type == LOG_CRASH && log_payload(item, &crash, sizeof(crash)) &&
	       crash.signo == SIGSYS && crash.flags & LOG_CRASH_FORWARDED;
}

static enum heap_kind kind_of(const struct log_fence_access *access)
{
	bool write = access->flags & LOG_FENCE_WRITE;

	switch (access->side) {
	case LOG_FENCE_BEHIND:
		return write ? HEAP_OVERFLOW : HEAP_OVER_READ;
	case LOG_FENCE_BEFORE:
		return write ? HEAP_UNDERFLOW : HEAP_OVER_READ;
	default:
		return write ? HEAP_WRITE_AFTER_FREE : HEAP_USE_AFTER_FREE;
	}
}

static void read_access(struct log_findings *r, const struct log_item *item)
{
	struct log_fence_access access;
	struct heap_finding finding;
	struct crash_place place;
	struct log_block block;

	if (!log_payload(item, &access, sizeof(access)) || access.side < LOG_FENCE_BEHIND ||
	    access.side > LOG_FENCE_FREED || !damage_owned_block(r, item, &block))
		return;
	finding = damage_finding(r, kind_of(&access));
	finding.fenced = true;
	finding.write = access.flags & LOG_FENCE_WRITE;
	finding.accesses = 1;
	finding.number = access.number;
	finding.offset = access.offset;
	damage_tell_block(r, &block, &finding);
	if (!tell_instruction(&access, &finding)) {
		heap_finding_deinit(&finding);
		return;
	}
	if (finding.unpointed && finding.kind == HEAP_OVER_READ && find_record(r, &access, &place))
		read_origin(r, &place, &finding.from, &finding.pointer);
	if (access.context != 0)
		(void)event_log_context(r->log, access.context, r->of->symbols, &finding.seen_at);
	timeline_place_record(&r->timeline, item, &finding.when);
	finding.when.check = mem_strdup("access");
	VEC_PUSH(&r->ret->findings, finding);
}

/* How often each was seen; known when the process ended by itself or crashed. */
static void read_counts(const struct log_findings *r, size_t first_finding,
			const struct log_item *item)
{
	struct log_fence_counts counts;

	if (!log_payload(item, &counts, sizeof(counts)))
		return;
	for (size_t i = first_finding; i < r->ret->findings.count; i++) {
		struct heap_finding *f = &r->ret->findings.items[i];
		uint64_t at = (uint64_t)f->number - counts.first;

		if (f->fenced && at < counts.count && at < LOG_FENCE_COUNTS &&
		    counts.counts[at] > 0)
			f->accesses = counts.counts[at];
	}
}

static void read_state(const struct log_findings *r, const struct log_item *item)
{
	struct heap_fence *fence = &r->ret->fence;
	struct log_fence start;
	struct log_fence_end end;

	if (item->head.type == LOG_FENCE && log_payload(item, &start, sizeof(start))) {
		fence->processes++;
		fence->without += start.mode == LOG_FENCE_OFF;
		fence->untold += start.mode != LOG_FENCE_OFF && start.calls != 0;
		if (start.level > fence->level)
			fence->level = start.level;
	}
	if (item->head.type == LOG_FENCE_END && log_payload(item, &end, sizeof(end))) {
		fence->fenced += end.fenced;
		fence->passed += end.passed;
		fence->let_through += end.let_through;
		if (end.level > fence->level)
			fence->level = end.level;
	}
}

void fences_read(struct log_findings *r)
{
	size_t first = r->ret->findings.count;
	VEC(struct log_item) items = { 0 };
	struct log_item item;

	/* Records that name others walk the log themselves: first all of them are found. */
	log_reader_rewind(&r->log->reader);
	while (log_reader_next(&r->log->reader, &item))
		if (((item.head.type >= LOG_FENCE && item.head.type <= LOG_FENCE_END) ||
		     is_nowhere(&item)) &&
		    items.count < ACCESSES_MAX)
			VEC_PUSH(&items, item);
	VEC_FOREACH (&items, found)
		if (found->head.type == LOG_CRASH)
			read_nowhere(r, found);
		else if (found->head.type == LOG_FENCE_ACCESS)
			read_access(r, found);
		else if (found->head.type == LOG_FENCE_COUNT)
			read_counts(r, first, found);
		else
			read_state(r, found);
	VEC_DEINIT(&items);
}
