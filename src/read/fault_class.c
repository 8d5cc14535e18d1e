#include "read/fault_class.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/strbuf.h"
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
	for (size_t i = 0; i < mappings->count; i++)
		if (address >= mappings->items[i].start && address < mappings->items[i].end)
			return &mappings->items[i];
	return NULL;
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
	VEC_FOREACH (&crash->blocks, block)
		if (block->former == former && block->beyond == beyond &&
		    strstr(block->via, "the address"))
			return block;
	return NULL;
}

/* A freed block whose poison the faulting instruction took for a pointer. */
static const struct block_life *block_read(const struct crash *crash)
{
	VEC_FOREACH (&crash->blocks, block)
		if (block->poison && block->telling)
			return block;
	return NULL;
}

/* What lay behind the register, or the variable, that the bad pointer was loaded through. */
static const struct block_life *block_source(const struct fault_facts *facts, const char *source,
					     const struct crash *crash, bool former)
{
	VEC_FOREACH (&crash->blocks, block)
		if (block->telling && !block->poison && !block->beyond && block->former == former &&
		    (source ? strstr(block->via, source) != NULL
			    : facts->has_source_value && block->value == facts->source_value))
			return block;
	return NULL;
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

static enum fault_class classify_address(const struct fault_facts *facts, struct crash *ret)
{
	const struct log_crash *crash = facts->crash;
	uint64_t address = crash->fault_address, error = crash->gregs[GREG_ERR];
	const struct mapping *mapping = mapping_at(facts->mappings, address);
	enum fault_class block;

	/* A general-protection fault has no address: the kernel says 0. */
	if ((crash->gregs[GREG_TRAPNO] == TRAP_PROTECTION ||
	     crash->gregs[GREG_TRAPNO] == TRAP_STACK) &&
	    block_read(ret) && !block_left(facts, ret))
		return FAULT_FREED;
	if (crash->gregs[GREG_TRAPNO] == TRAP_STACK)
		return FAULT_NON_CANONICAL;
	if (crash->signo == SIGSEGV && crash->gregs[GREG_TRAPNO] == TRAP_PROTECTION) {
		bool address_known =
			facts->has_wanted ? canonical(facts->wanted) : !wild_register(crash);

		if (is_privileged(ret))
			return FAULT_ILLEGAL;
		return address_known && uses_vector(ret) ? FAULT_MISALIGNED : FAULT_NON_CANONICAL;
	}
	if (crash->signo == SIGBUS && crash->code == BUS_ADRALN)
		return FAULT_MISALIGNED;
	if (address == crash->gregs[LOG_GREG_RIP] || (error & ERROR_FETCH))
		return FAULT_EXECUTE;
	if (shrank(facts, address, ret))
		return FAULT_MAPPING_SHRANK;
	if (overflowed(facts, address))
		return FAULT_STACK_OVERFLOW;
	if (address < NULL_REACH || address > UINT64_MAX - NULL_REACH ||
	    (facts->null_based && !mapping))
		return FAULT_NULL;
	if (!canonical(address))
		return FAULT_NON_CANONICAL;
	if (in_own_memory(facts, address))
		return FAULT_OWN;
	block = classify_block(ret);
	if (block != FAULT_UNKNOWN)
		return block;
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

static void add_block(struct strbuf *sb, const struct block_life *block)
{
	char name[BLOCK_NAME_BYTES];

	if (!block)
		return;
	strbuf_addf(sb, "block %s (%" PRIu64 " bytes", block_name(block->id, name), block->size);
	if (block->state == BLOCK_FREED && block->freed_events > 0)
		strbuf_addf(sb, ", freed at most %" PRIu64 " allocations and frees ago",
			    block->freed_events);
	else if (block->state == BLOCK_FREED)
		strbuf_adds(sb, ", freed");
	strbuf_adds(sb, ")");
}

static void say_access(struct strbuf *sb, const struct log_crash *crash)
{
	strbuf_adds(sb, crash->gregs[GREG_ERR] & ERROR_WRITE ? "a write to " : "a read of ");
}

static void say_left(const struct fault_facts *facts, const struct block_life *left,
		     struct strbuf *sb)
{
	uint64_t end = left->start + left->size;
	bool behind = facts->load >= end;

	strbuf_addf(sb, ", with a pointer that was read %" PRIu64 " bytes %s ",
		    behind ? facts->load - end : left->start - facts->load,
		    behind ? "behind the end of" : "before");
	add_block(sb, left);
}

static void say_source(const struct fault_facts *facts, const char *source,
		       const struct crash *crash, struct strbuf *sb)
{
	const struct block_life *now = block_source(facts, source, crash, false);
	const struct block_life *former = block_source(facts, source, crash, true);
	const struct block_life *left = block_left(facts, crash);

	if (left && source == facts->source) {
		say_left(facts, left, sb);
		return;
	}
	if (now && now->state == BLOCK_FREED) {
		strbuf_adds(sb, ", with a pointer that was loaded from a freed block: ");
		add_block(sb, now);
	} else if (now && former) {
		strbuf_adds(sb, ", with a pointer that was loaded from ");
		add_block(sb, now);
		strbuf_adds(sb, ", whose place belonged to ");
		add_block(sb, former);
		strbuf_adds(sb, " before");
	}
}

static void say_null(const struct fault_facts *facts, const struct crash *ret, struct strbuf *sb)
{
	say_access(sb, facts->crash);
	if ((int64_t)facts->crash->fault_address < 0)
		strbuf_addf(sb, "NULL-0x%" PRIx64, (uint64_t)0 - facts->crash->fault_address);
	else
		strbuf_addf(sb, "NULL+0x%" PRIx64, facts->crash->fault_address);
	say_source(facts, facts->source, ret, sb);
}

static void say_freed(const struct fault_facts *facts, const struct crash *ret, struct strbuf *sb)
{
	if (block_read(ret)) {
		strbuf_adds(sb, "used as a pointer what was read from a freed block: ");
		add_block(sb, block_read(ret));
		return;
	}
	say_access(sb, facts->crash);
	strbuf_addf(sb, "0x%" PRIx64 " in a freed block: ", facts->crash->fault_address);
	add_block(sb, block_via(ret, false, false));
}

static void say_recycled(const struct fault_facts *facts, const struct crash *ret,
			 struct strbuf *sb)
{
	say_access(sb, facts->crash);
	strbuf_addf(sb, "0x%" PRIx64 ", which belonged to ", facts->crash->fault_address);
	add_block(sb, block_via(ret, true, false));
	strbuf_adds(sb, " and has another owner now");
}

static void say_beyond(const struct fault_facts *facts, const struct crash *ret, struct strbuf *sb)
{
	say_access(sb, facts->crash);
	strbuf_addf(sb, "0x%" PRIx64 ", behind the end of ", facts->crash->fault_address);
	add_block(sb, block_via(ret, false, true));
}

static void say_non_canonical(const struct fault_facts *facts, const struct crash *ret,
			      struct strbuf *sb)
{
	if (facts->has_wanted && !canonical(facts->wanted)) {
		strbuf_addf(sb, "0x%" PRIx64 ", which is no address at all (non-canonical)",
			    facts->wanted);
		say_source(facts, facts->source, ret, sb);
		return;
	}
	/* A call through memory that could be read: what it read there is bad. */
	if (facts->has_jump && !canonical(facts->jump))
		strbuf_addf(sb,
			    "a jump to 0x%" PRIx64 ", which is no address at all "
			    "(non-canonical)",
			    facts->jump);
	else
		strbuf_adds(sb, "a pointer that is no address at all (non-canonical)");
	say_source(facts, facts->has_wanted ? facts->base : facts->source, ret, sb);
}

static void say_misaligned(const struct fault_facts *facts, const struct crash *ret,
			   struct strbuf *sb)
{
	(void)ret;
	if (facts->has_wanted)
		strbuf_addf(sb,
			    "0x%" PRIx64 ", which is not aligned as the instruction "
			    "needs it (misaligned)",
			    facts->wanted);
	else
		strbuf_adds(sb, "an instruction that needs an aligned address got another, "
				"or a protection fault of that kind");
}

static void say_execute(const struct fault_facts *facts, const struct crash *ret, struct strbuf *sb)
{
	strbuf_addf(sb, "a jump to 0x%" PRIx64 "%s, where there is no code",
		    facts->crash->gregs[LOG_GREG_RIP],
		    facts->crash->gregs[LOG_GREG_RIP] < NULL_REACH ? " (NULL)" : "");
	if (block_via(ret, false, false)) {
		strbuf_adds(sb, block_via(ret, false, false)->state == BLOCK_FREED
					? " but a freed block: "
					: " but data: ");
		add_block(sb, block_via(ret, false, false));
	}
	say_source(facts, facts->source, ret, sb);
}

static void say_stack_overflow(const struct fault_facts *facts, const struct crash *ret,
			       struct strbuf *sb)
{
	(void)facts;
	strbuf_addf(sb, "the stack of thread '%s' is full (stack overflow)",
		    ret->thread ? ret->thread : "?");
}

static void say_shrank(const struct fault_facts *facts, const struct crash *ret, struct strbuf *sb)
{
	(void)facts;
	strbuf_addf(sb,
		    "the mapped file %s has shrunk, or never was so long: %" PRIu64
		    " bytes were mapped, %" PRIu64 " are there",
		    ret->file, ret->mapped, ret->present);
}

static void say_read_only(const struct fault_facts *facts, const struct crash *ret,
			  struct strbuf *sb)
{
	(void)ret;
	strbuf_addf(sb, "a write to 0x%" PRIx64 ", which may only be read",
		    facts->crash->fault_address);
}

static void say_unmapped(const struct fault_facts *facts, const struct crash *ret,
			 struct strbuf *sb)
{
	say_access(sb, facts->crash);
	strbuf_addf(sb, "0x%" PRIx64 ", where nothing is mapped that allows it",
		    facts->crash->fault_address);
	say_source(facts, facts->source, ret, sb);
}

static void say_own(const struct fault_facts *facts, const struct crash *ret, struct strbuf *sb)
{
	(void)ret;
	strbuf_addf(sb, "an access to redhand's own memory at 0x%" PRIx64,
		    facts->crash->fault_address);
}

static void say_abort(const struct fault_facts *facts, const struct crash *ret, struct strbuf *sb)
{
	(void)facts;
	strbuf_addf(sb, "abort%s%s", ret->abort_message ? ": " : "",
		    ret->abort_message ? ret->abort_message : "");
}

static void say_sent(const struct fault_facts *facts, const struct crash *ret, struct strbuf *sb)
{
	strbuf_addf(sb, "the signal was sent by process %u%s", facts->crash->sender_pid,
		    (int)facts->crash->sender_pid == ret->pid ? ", itself" : "");
}

static void say_arithmetic(const struct fault_facts *facts, const struct crash *ret,
			   struct strbuf *sb)
{
	(void)ret;
	strbuf_adds(sb, facts->crash->code != FPE_INTDIV ? "an arithmetic error"
			: !facts->has_divisor
				? "a division by zero, or one whose result does not fit"
			: facts->divisor == 0 ? "a division by zero"
					      : "a division whose result does not fit");
}

static void say_illegal(const struct fault_facts *facts, const struct crash *ret, struct strbuf *sb)
{
	(void)facts;
	strbuf_adds(sb, is_privileged(ret) ? "an instruction that programs may not use"
					   : "an instruction that does not exist");
}

static void say_trap(const struct fault_facts *facts, const struct crash *ret, struct strbuf *sb)
{
	(void)facts;
	(void)ret;
	strbuf_adds(sb, "a trap instruction");
}

static void say_syscall(const struct fault_facts *facts, const struct crash *ret, struct strbuf *sb)
{
	(void)ret;
	strbuf_addf(sb, "system call %u is forbidden", facts->crash->syscall_number);
}

/* The words of each class; more where there is more to tell. */
static void say(const struct fault_facts *facts, const struct crash *ret, struct strbuf *sb)
{
	static void (*const words[FAULT_CLASSES])(const struct fault_facts *facts,
						  const struct crash *ret, struct strbuf *sb) = {
		[FAULT_NULL] = say_null,
		[FAULT_FREED] = say_freed,
		[FAULT_RECYCLED] = say_recycled,
		[FAULT_BEYOND] = say_beyond,
		[FAULT_NON_CANONICAL] = say_non_canonical,
		[FAULT_MISALIGNED] = say_misaligned,
		[FAULT_EXECUTE] = say_execute,
		[FAULT_STACK_OVERFLOW] = say_stack_overflow,
		[FAULT_MAPPING_SHRANK] = say_shrank,
		[FAULT_READ_ONLY] = say_read_only,
		[FAULT_UNMAPPED] = say_unmapped,
		[FAULT_OWN] = say_own,
		[FAULT_ABORT] = say_abort,
		[FAULT_SENT] = say_sent,
		[FAULT_ARITHMETIC] = say_arithmetic,
		[FAULT_ILLEGAL] = say_illegal,
		[FAULT_TRAP] = say_trap,
		[FAULT_SYSCALL] = say_syscall,
	};

	if (ret->fault < FAULT_CLASSES && words[ret->fault])
		words[ret->fault](facts, ret, sb);
	else
		strbuf_adds(sb, "a fault of unknown kind");
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
	AUTO(strbuf_deinit) struct strbuf words = { 0 };

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
	say(facts, ret, &words);
	ret->words = strbuf_take(&words);
}
