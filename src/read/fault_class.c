/*
 * What kind of fault it was. See fault_class.h.
 */
#include "read/fault_class.h"

#include <signal.h>
#include <string.h>

#include "wire/plan.h"

#define NULL_REACH 0x10000u    /* as far as field offsets from NULL go */
#define STACK_REACH (1u << 20) /* a frame that large may jump over the guard page */
#define FRAME_REACH (1u << 30) /* and one that large may be meant by its author */
#define STACK_NEAR 4096u
#define BLOCK_NEAR 4096u
#define STRIDE_REACH (64u << 10)
#define TRAP_PAGE 14
#define TRAP_PROTECTION 13    /* general protection: x86, Intel SDM volume 3, 6.15 */
#define TRAP_STACK 12	      /* the same with rsp or rbp as base; the kernel makes it SIGBUS */
#define ERROR_WRITE (1u << 1) /* page-fault error code */
#define ERROR_FETCH (1u << 4)
#define GREG_ERR 19
#define GREG_TRAPNO 20

static const struct mapping *mapping_at(const struct mappings *mappings, uint64_t address)
{
	return VEC_FIND(mappings, item, address >= item->start && address < item->end);
}

static bool canonical(uint64_t address)
{
	return address >> 47 == 0 || address >> 47 == 0x1ffff;
}

/* A value that is not an address and that an instruction may well have used as one. */
static bool wild_register(const struct log_crash *crash)
{
	for (int i = 0; i < LOG_GREG_RSP; i++)
		if (!canonical(crash->gregs[i]) && crash->gregs[i] + NULL_REACH > 2 * NULL_REACH)
			return true;
	return false;
}

static bool in_own_memory(const struct fault_facts *facts, uint64_t address)
{
	const struct mapping *mapping = mapping_at(facts->mappings, address);

	return mapping && mapping->path &&
	       (strstr(mapping->path, WIRE_LOG_SUFFIX) ||
		strstr(mapping->path, "libredhand-agent"));
}

static bool writable_at(const struct fault_facts *facts, uint64_t address)
{
	const struct mapping *mapping = mapping_at(facts->mappings, address);

	return mapping && (mapping->perms & MAPPING_WRITE);
}

/* A stack that is not the thread's own, as coroutines have them: the stack pointer is at the lowest
 * end of something that can be written, or has just left it there, and what was touched is below.
 */
static bool overflowed_other(const struct fault_facts *facts, uint64_t address)
{
	uint64_t rsp = facts->crash->gregs[LOG_GREG_RSP];

	if (address + STACK_NEAR < rsp || address > rsp + STACK_REACH)
		return false;
	for (size_t i = 0; i < facts->mappings->count; i++) {
		const struct mapping *stack = &facts->mappings->items[i];

		if ((stack->perms & MAPPING_WRITE) && address < stack->start &&
		    rsp < stack->start + STACK_NEAR &&
		    stack->start - rsp + STACK_NEAR < STACK_REACH)
			return true;
	}
	return false;
}

/* Just below the lowest page of the thread's own stack, or the stack pointer has left it. */
static bool overflowed(const struct fault_facts *facts, uint64_t address)
{
	const struct log_crash *crash = facts->crash;
	uint64_t rsp = crash->gregs[LOG_GREG_RSP];
	const struct mapping *stack =
		crash->stack_high > 0 ? mapping_at(facts->mappings, crash->stack_high - 1) : NULL;

	if (address < NULL_REACH || writable_at(facts, address))
		return false;
	if (!stack || address >= stack->start)
		return overflowed_other(facts, address);
	if (stack->start - address <= STACK_REACH)
		return rsp < stack->start + STACK_REACH;
	/* A frame of many megabytes: the stack pointer is deep below, and so is its variable. */
	if (rsp < stack->start && stack->start - rsp < FRAME_REACH && !writable_at(facts, rsp) &&
	    address + STACK_NEAR >= rsp)
		return true;
	return overflowed_other(facts, address);
}

static const struct log_file_size *file_of(const struct fault_facts *facts, uint64_t address)
{
	for (size_t i = 0; i < facts->file_count; i++)
		if (address - facts->files[i].map_low < facts->files[i].map_bytes)
			return &facts->files[i];
	return NULL;
}

static bool shrank(const struct fault_facts *facts, uint64_t address, struct crash *ret)
{
	const struct log_file_size *file = file_of(facts, address);
	const struct mapping *mapping = mapping_at(facts->mappings, address);
	uint64_t needed;

	if (!file || !mapping || !mapping->path || facts->crash->signo != SIGBUS)
		return false;
	needed = address - file->map_low + file->file_offset;
	if (file->same_file && file->size >= 0 && (uint64_t)file->size > needed)
		return false;
	ret->mapped = file->file_offset + file->map_bytes;
	ret->present = file->size > 0 && file->same_file ? (uint64_t)file->size : 0;
	ret->file_inode = file->inode;
	ret->file_device = file->device;
	mem_free(ret->file);
	ret->file = mem_strdup(mapping->path);
	return true;
}

static const struct block_life *block_via(const struct crash *crash, bool former, bool beyond)
{
	return VEC_FIND(&crash->blocks, block,
			block->former == former && block->beyond == beyond &&
				strstr(block->via, "the address"));
}

/* A freed block whose poison the faulting instruction took for a pointer. */
static const struct block_life *block_read(const struct crash *crash)
{
	return VEC_FIND(&crash->blocks, block, block->poison && block->telling);
}

/* What lay behind the register, or the variable, that the bad pointer was loaded through. */
static const struct block_life *block_source(const struct fault_facts *facts, const char *source,
					     const struct crash *crash, bool former)
{
	return VEC_FIND(
		&crash->blocks, block,
		block->telling && !block->poison && !block->beyond && block->former == former &&
			(source ? strstr(block->via, source) != NULL
				: facts->has_source_value && block->value == facts->source_value));
}

/* The live block that an index led out of, to where the bad pointer was read. */
static const struct block_life *block_left(const struct fault_facts *facts,
					   const struct crash *crash)
{
	const struct block_life *block =
		facts->has_load ? block_source(facts, facts->source, crash, false) : NULL;

	/* A pointer to elsewhere may have been moved there by the compiler. */
	return block && block->state == BLOCK_LIVE && block->size > 0 &&
			       block->value == block->start &&
			       facts->load - block->start >= block->size
		       ? block
		       : NULL;
}

static enum fault_class classify_block(const struct crash *ret)
{
	const struct block_life *inside = block_via(ret, false, false);

	if (inside && inside->state == BLOCK_FREED)
		return FAULT_FREED;
	if (block_via(ret, true, false))
		return FAULT_RECYCLED;
	if (block_via(ret, false, true))
		return FAULT_BEYOND;
	return FAULT_UNKNOWN;
}

static bool is_privileged(const struct crash *crash)
{
	static const char *const names[] = { "hlt",   "cli",   "sti",	 "in ",	 "out ", "int ",
					     "rdmsr", "wrmsr", "invlpg", "lgdt", "lidt", "ltr" };

	for (size_t i = 0; crash->instruction && i < ARRAY_SIZE(names); i++)
		if (strncmp(crash->instruction, names[i], strlen(names[i])) == 0)
			return true;
	return false;
}

/* Only vector instructions insist on an aligned address. */
static bool uses_vector(const struct crash *crash)
{
	return crash->instruction &&
	       (strstr(crash->instruction, "xmm") || strstr(crash->instruction, "ymm") ||
		strstr(crash->instruction, "zmm"));
}

bool fault_jumped(const struct log_crash *crash)
{
	return (crash->signo == SIGSEGV || crash->signo == SIGBUS) &&
	       (crash->fault_address == crash->gregs[LOG_GREG_RIP] ||
		(crash->gregs[GREG_ERR] & ERROR_FETCH));
}

/* A general-protection fault has no address: the kernel says 0. FAULT_UNKNOWN: it is none. */
static enum fault_class classify_protection(const struct fault_facts *facts, struct crash *ret)
{
	const struct log_crash *crash = facts->crash;
	uint64_t trap = crash->gregs[GREG_TRAPNO];

	if (trap != TRAP_PROTECTION && trap != TRAP_STACK)
		return FAULT_UNKNOWN;
	if (block_read(ret) && !block_left(facts, ret))
		return FAULT_FREED;
	if (trap == TRAP_STACK)
		return FAULT_NON_CANONICAL;
	if (crash->signo != SIGSEGV)
		return FAULT_UNKNOWN;
	if (is_privileged(ret))
		return FAULT_ILLEGAL;
	return (facts->has_wanted ? canonical(facts->wanted) : !wild_register(crash)) &&
			       uses_vector(ret)
		       ? FAULT_MISALIGNED
		       : FAULT_NON_CANONICAL;
}

static bool is_near_null(const struct fault_facts *facts, uint64_t address, bool mapped)
{
	return address < NULL_REACH || address > UINT64_MAX - NULL_REACH ||
	       (facts->null_based && !mapped);
}

static enum fault_class classify_address(const struct fault_facts *facts, struct crash *ret)
{
	const struct log_crash *crash = facts->crash;
	uint64_t address = crash->fault_address, error = crash->gregs[GREG_ERR];
	const struct mapping *mapping = mapping_at(facts->mappings, address);
	enum fault_class class = classify_protection(facts, ret);

	if (class != FAULT_UNKNOWN)
		return class;
	if (crash->signo == SIGBUS && crash->code == BUS_ADRALN)
		return FAULT_MISALIGNED;
	if (fault_jumped(crash))
		return FAULT_EXECUTE;
	if (shrank(facts, address, ret))
		return FAULT_MAPPING_SHRANK;
	if (overflowed(facts, address))
		return FAULT_STACK_OVERFLOW;
	if (is_near_null(facts, address, mapping != NULL))
		return FAULT_NULL;
	if (!canonical(address))
		return FAULT_NON_CANONICAL;
	if (in_own_memory(facts, address))
		return FAULT_OWN;
	class = classify_block(ret);
	if (class != FAULT_UNKNOWN)
		return class;
	if (mapping && (error & ERROR_WRITE) && !(mapping->perms & MAPPING_WRITE) &&
	    (mapping->perms & MAPPING_READ))
		return FAULT_READ_ONLY;
	return FAULT_UNMAPPED;
}

static enum fault_class classify(const struct fault_facts *facts, struct crash *ret)
{
	if (facts->crash->signo == SIGABRT)
		return FAULT_ABORT;
	if (facts->crash->flags & LOG_CRASH_SENT)
		return FAULT_SENT;
	switch (facts->crash->signo) {
	case SIGSEGV:
	case SIGBUS:
		return classify_address(facts, ret);
	case SIGFPE:
		return FAULT_ARITHMETIC;
	case SIGILL:
		return FAULT_ILLEGAL;
	case SIGTRAP:
		return FAULT_TRAP;
	case SIGSYS:
		return FAULT_SYSCALL;
	default:
		return FAULT_UNKNOWN;
	}
}

static struct said_value block_value(const struct block_life *block)
{
	struct said said = { 0 };
	char name[BLOCK_NAME_BYTES];

	if (block)
		SAY(&said, "crash-block", said_text(block_name(block->id, name)),
		    said_number(block->size), said_flag(block->state == BLOCK_FREED),
		    said_count(block->freed_events));
	return said_part(&said);
}

static struct said_value access_value(const struct fault_facts *facts)
{
	return said_word(facts->crash->gregs[GREG_ERR] & ERROR_WRITE ? "access:write"
								     : "access:read");
}

/* Where the bad pointer was loaded from, where that is a story. */
static struct said_value source_value(const struct fault_facts *facts, const char *source,
				      const struct crash *crash)
{
	const struct block_life *now = block_source(facts, source, crash, false);
	const struct block_life *former = block_source(facts, source, crash, true);
	const struct block_life *left = block_left(facts, crash);
	struct said said = { 0 };

	if (left && source == facts->source) {
		uint64_t end = left->start + left->size;
		bool behind = facts->load >= end;

		SAY(&said, "pointer:outside",
		    said_number(behind ? facts->load - end : left->start - facts->load),
		    said_flag(behind), block_value(left));
	} else if (now && now->state == BLOCK_FREED) {
		SAY(&said, "pointer:freed", block_value(now));
	} else if (now && former) {
		SAY(&said, "pointer:recycled", block_value(now), block_value(former));
	}
	return said_part(&said);
}

static void say_freed(const struct fault_facts *facts, struct crash *ret)
{
	if (block_read(ret))
		SAY(&ret->words, "fault:poison", block_value(block_read(ret)));
	else
		SAY(&ret->words, "fault:freed", access_value(facts),
		    said_number(facts->crash->fault_address),
		    block_value(block_via(ret, false, false)));
}

static void say_non_canonical(const struct fault_facts *facts, struct crash *ret)
{
	if (facts->has_wanted && !canonical(facts->wanted)) {
		SAY(&ret->words, "fault:non-canonical", said_number(facts->wanted),
		    said_flag(false), source_value(facts, facts->source, ret));
		return;
	}
	/* A call through memory that could be read: what it read there is bad. */
	SAY(&ret->words, "fault:non-canonical",
	    facts->has_jump && !canonical(facts->jump) ? said_number(facts->jump) : said_none(),
	    said_flag(true),
	    source_value(facts, facts->has_wanted ? facts->base : facts->source, ret));
}

static void say_execute(const struct fault_facts *facts, struct crash *ret)
{
	const struct block_life *at = block_via(ret, false, false);
	uint64_t rip = facts->crash->gregs[LOG_GREG_RIP];

	SAY(&ret->words, "fault:execute", said_number(rip), said_flag(rip < NULL_REACH),
	    said_flag(at && at->state == BLOCK_FREED), block_value(at),
	    source_value(facts, facts->source, ret));
}

static void say_arithmetic(const struct fault_facts *facts, struct crash *ret)
{
	SAY(&ret->words, facts->crash->code != FPE_INTDIV ? "fault:arithmetic"
			 : !facts->has_divisor		  ? "fault:division-some"
			 : facts->divisor == 0		  ? "fault:division-zero"
							  : "fault:division-range");
}

static void say_address(const struct fault_facts *facts, struct crash *ret)
{
	uint64_t address = facts->crash->fault_address;
	bool below = (int64_t)address < 0;

	switch (ret->fault) {
	case FAULT_NULL:
		SAY(&ret->words, "fault:near-null", access_value(facts), said_flag(below),
		    said_number(below ? (uint64_t)0 - address : address),
		    source_value(facts, facts->source, ret));
		break;
	case FAULT_RECYCLED:
		SAY(&ret->words, "fault:recycled", access_value(facts), said_number(address),
		    block_value(block_via(ret, true, false)));
		break;
	case FAULT_BEYOND:
		SAY(&ret->words, "fault:beyond", access_value(facts), said_number(address),
		    block_value(block_via(ret, false, true)));
		break;
	case FAULT_MISALIGNED:
		SAY(&ret->words, "fault:misaligned",
		    facts->has_wanted ? said_number(facts->wanted) : said_none());
		break;
	case FAULT_READ_ONLY:
		SAY(&ret->words, "fault:read-only", said_number(address));
		break;
	case FAULT_OWN:
		SAY(&ret->words, "fault:own", said_number(address));
		break;
	default:
		SAY(&ret->words, "fault:unmapped", access_value(facts), said_number(address),
		    source_value(facts, facts->source, ret));
	}
}

static void say(const struct fault_facts *facts, struct crash *ret)
{
	switch (ret->fault) {
	case FAULT_FREED:
		say_freed(facts, ret);
		break;
	case FAULT_NON_CANONICAL:
		say_non_canonical(facts, ret);
		break;
	case FAULT_EXECUTE:
		say_execute(facts, ret);
		break;
	case FAULT_STACK_OVERFLOW:
		SAY(&ret->words, "fault:stack-full", said_text(ret->thread ? ret->thread : "?"));
		break;
	case FAULT_MAPPING_SHRANK:
		SAY(&ret->words, "fault:shrank", said_text(ret->file), said_number(ret->mapped),
		    said_number(ret->present));
		break;
	case FAULT_ABORT:
		SAY(&ret->words, "fault:abort", said_text(ret->abort_message));
		break;
	case FAULT_SENT:
		SAY(&ret->words, "fault:sent", said_number(facts->crash->sender_pid),
		    said_flag((int)facts->crash->sender_pid == ret->pid));
		break;
	case FAULT_ARITHMETIC:
		say_arithmetic(facts, ret);
		break;
	case FAULT_ILLEGAL:
		SAY(&ret->words, is_privileged(ret) ? "fault:privileged" : "fault:illegal");
		break;
	case FAULT_TRAP:
		SAY(&ret->words, "fault:trap");
		break;
	case FAULT_SYSCALL:
		SAY(&ret->words, "fault:syscall", said_number(facts->crash->syscall_number));
		break;
	case FAULT_UNKNOWN:
		SAY(&ret->words, "fault:unknown");
		break;
	default:
		say_address(facts, ret);
	}
}

/* Far behind a live block's end it is that block's business only if what holds it ends there: then
 * whoever ran over its end went on up to that point. */
static bool ran_off(const struct fault_facts *facts, const struct block_life *block)
{
	uint64_t address = facts->crash->fault_address, end = block->start + block->size;
	const struct mapping *holds =
		end > block->start ? mapping_at(facts->mappings, end - 1) : NULL;

	if (address - end < BLOCK_NEAR)
		return true;
	return block->state == BLOCK_LIVE && holds && address >= holds->end &&
	       address - holds->end < STRIDE_REACH && !writable_at(facts, address);
}

static void drop_unrelated(const struct fault_facts *facts, struct crash *ret)
{
	size_t kept = 0;

	for (size_t i = 0; i < ret->blocks.count; i++) {
		struct block_life *block = &ret->blocks.items[i];

		if (block->beyond && strcmp(block->via, "the address") == 0 &&
		    !ran_off(facts, block))
			block_life_deinit(block);
		else
			ret->blocks.items[kept++] = *block;
	}
	ret->blocks.count = kept;
}

void fault_classify(const struct fault_facts *facts, struct crash *ret)
{
	drop_unrelated(facts, ret);
	VEC_FOREACH (&ret->blocks, block)
		block->left = block == block_left(facts, ret);
	ret->fault = classify(facts, ret);
	ret->write = facts->crash->gregs[GREG_TRAPNO] == TRAP_PAGE &&
		     (facts->crash->gregs[GREG_ERR] & ERROR_WRITE);
	/* A protection fault comes without an address: it is what the instruction asked for. */
	if (facts->crash->gregs[GREG_TRAPNO] == TRAP_PROTECTION && ret->address == 0) {
		if (facts->has_jump && !canonical(facts->jump))
			ret->address = facts->jump;
		if (facts->has_wanted && (ret->address == 0 || !canonical(facts->wanted)))
			ret->address = facts->wanted;
	}
	say(facts, ret);
}
