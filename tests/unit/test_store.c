/* Instructions that write to memory, found from code bytes: what they are, which one made a trapped
 * write, and where it had the value from. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "arch/arch.h"
#include "arch/operands.h"
#include "arch/store.h"
#include "arch/x86_64_cpu.h"

/* The assembler writes the code; none of it runs. */
#define CODE(name, text)                                                                     \
	__asm__(".pushsection .rodata\n.intel_syntax noprefix\n" #name ":\n" text "\n" #name \
		"_end:\n.att_syntax prefix\n.popsection\n");                                 \
	extern const uint8_t name[], name##_end[]

#define AT 0x401000u /* where the code pretends to lie */

/* clang-format off */
CODE(each,
     "mov byte ptr [rbx+0x18], al\n"
     "mov word ptr [rbx+0x18], 7\n"
     "mov qword ptr [rdi+rcx*8+0x18], rax\n"
     "and byte ptr [rbx+0x18], 0xfe\n"
     "lock cmpxchg qword ptr [rsi], rdx\n"
     "xchg [rdx+8], rax\n"
     "bts dword ptr [rdx], 3\n"
     "bts dword ptr [rdx], eax\n"
     "movups [rdi+0x10], xmm5\n"
     "vmovdqu ymmword ptr [rdi+0x20], ymm9\n"
     "vmaskmovps [rdi+4], ymm1, ymm2\n"
     "rep stosb\n"
     "rep movsq\n"
     "movsd\n"
     "stosq\n"
     "push rbx\n"
     "push qword ptr [rax+8]\n"
     "mov qword ptr fs:[0x28], rax\n"
     "mov qword ptr [rip+0x100], rax\n"
     "mov [0x7654321], eax\n"
     "sete byte ptr [rax]\n"
     "fxsave [rax]\n"
     "cmpxchg16b [rsi+0x10]\n"
     "inc dword ptr [r13]\n"
     "vmovdqu32 zmmword ptr [rax+0x40]{k1}, zmm3\n"
     "vpscatterdd [rax+zmm1*4]{k1}, zmm3\n"
     "call rax\n");
CODE(none,
     "mov rax, [rbx+0x18]\nlea rax, [rbx+0x18]\ncmp byte ptr [rbx], 1\ntest [rbx], eax\n"
     "bt dword ptr [rbx], 1\nprefetcht0 [rbx]\npop rax\nret\nnop dword ptr [rax+rax]\n");
/* clang-format on */

struct row {
	enum store_kind kind;
	unsigned int width;
	int base;
	int64_t displacement;
	enum store_source source;
};

static const struct row rows[] = {
	{ STORE_PLAIN, 1, X86_64_RBX, 0x18, SOURCE_REGISTER },
	{ STORE_PLAIN, 2, X86_64_RBX, 0x18, SOURCE_IMMEDIATE },
	{ STORE_PLAIN, 8, X86_64_RDI, 0x18, SOURCE_REGISTER },
	{ STORE_MODIFY, 1, X86_64_RBX, 0x18, SOURCE_IMMEDIATE },
	{ STORE_MODIFY, 8, X86_64_RSI, 0, SOURCE_REGISTER },
	{ STORE_MODIFY, 8, X86_64_RDX, 8, SOURCE_REGISTER },
	{ STORE_MODIFY, 4, X86_64_RDX, 0, SOURCE_IMMEDIATE },
	{ STORE_MODIFY, 0, X86_64_RDX, 0, SOURCE_REGISTER },
	{ STORE_PLAIN, 16, X86_64_RDI, 0x10, SOURCE_REGISTER },
	{ STORE_PLAIN, 32, X86_64_RDI, 0x20, SOURCE_REGISTER },
	{ STORE_MASKED, 32, X86_64_RDI, 4, SOURCE_REGISTER },
	{ STORE_REPEATED, 0, X86_64_RDI, 0, SOURCE_REGISTER },
	{ STORE_REPEATED, 0, X86_64_RDI, 0, SOURCE_MEMORY },
	{ STORE_PLAIN, 4, X86_64_RDI, 0, SOURCE_MEMORY },
	{ STORE_PLAIN, 8, X86_64_RDI, 0, SOURCE_REGISTER },
	{ STORE_PUSH, 8, X86_64_RSP, -8, SOURCE_REGISTER },
	{ STORE_PUSH, 8, X86_64_RSP, -8, SOURCE_MEMORY },
	{ STORE_PLAIN, 8, NO_REGISTER, 0x28, SOURCE_REGISTER },
	{ STORE_PLAIN, 8, X86_64_RIP, 0x100, SOURCE_REGISTER },
	{ STORE_PLAIN, 4, NO_REGISTER, 0x7654321, SOURCE_REGISTER },
	{ STORE_PLAIN, 1, X86_64_RAX, 0, SOURCE_OTHER },
	{ STORE_STATE, 512, X86_64_RAX, 0, SOURCE_OTHER },
	{ STORE_MODIFY, 16, X86_64_RSI, 0x10, SOURCE_OTHER },
	{ STORE_MODIFY, 4, X86_64_R13, 0, SOURCE_OTHER },
	{ STORE_MASKED, 64, X86_64_RAX, 0x40, SOURCE_REGISTER },
	{ STORE_SCATTERED, 0, X86_64_RAX, 0, SOURCE_REGISTER },
	{ STORE_PUSH, 8, X86_64_RSP, -8, SOURCE_REGISTER },
};

static void test_each(void **state)
{
	uint64_t at = AT;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct store store;

		assert_true(store_decode(each, (size_t)(each_end - each), AT, at, &store));
		print_message("# %s\n", store.text);
		assert_int_equal(store.kind, rows[i].kind);
		assert_int_equal(store.width, rows[i].width);
		assert_int_equal(store.to.base, rows[i].base);
		assert_int_equal(store.to.displacement, rows[i].displacement);
		if (i + 1 <
		    sizeof(rows) / sizeof(rows[0])) /* what a call pushes is its own affair */
			assert_int_equal(store.source, rows[i].source);
		assert_int_equal(store.to.fixed, i == 18 || i == 19);
		assert_int_equal(store.locked, i == 4);
		at += store.length;
	}
	assert_int_equal(at, AT + (uint64_t)(each_end - each));
}

static void test_no_store(void **state)
{
	size_t len = (size_t)(none_end - none);
	struct store store;

	(void)state;
	/* From every byte, not only from where instructions begin: nothing may be read beyond. */
	for (size_t i = 0; i < len; i++)
		(void)store_decode(none, len, AT, AT + i, &store);
	assert_false(store_decode(none, len, AT, AT, &store));
	assert_false(store_decode(none, len, AT, AT + 4, &store));
	assert_false(store_decode(none, len, AT, AT + 8, &store));
	assert_false(store_decode(none, len, AT, AT + 11, &store));
	assert_false(store_decode(none, len, AT, AT + len, &store));
	assert_false(store_decode(none, len, AT, AT - 1, &store));
}

static void know(struct registers *registers, int reg, uint64_t value)
{
	registers->value[reg] = value;
	registers->known |= 1u << reg;
}

/* ---- the instruction before a trap ---- */

/* clang-format off */
CODE(object_close,
     "push rbx\n"
     "mov rbx, rdi\n"
     "mov rax, [rsi+0x10]\n"
     "mov ecx, 0x48\n" /* ends in zeros */
     "mov byte ptr [rsi], 0x48\n" /* its last byte is a REX prefix for what follows … */
     "mov [rbx+0x18], eax\n" /* … which would make this mov [rbx+0x18], rax */
     ".globl object_close_narrow\nobject_close_narrow:\n"
     "mov [rbx+0x20], rax\n"
     ".globl object_close_whole\nobject_close_whole:\n"
     "and byte ptr [rbx+0x18], 0xfe\n"
     ".globl object_close_and\nobject_close_and:\n"
     "pop rbx\n"
     "ret\n");
/* clang-format on */
extern const uint8_t object_close_narrow[], object_close_whole[], object_close_and[];

static struct trap trap_at(const uint8_t *code, const uint8_t *end, const uint8_t *rip, bool hint,
			   const struct registers *registers, uint64_t low, uint64_t high)
{
	return (struct trap){ .code = code,
			      .code_len = (size_t)(end - code),
			      .code_address = AT,
			      .rip = AT + (uint64_t)(rip - code),
			      .start_hint = hint ? AT : 0,
			      .registers = registers,
			      .low = low,
			      .high = high };
}

static void test_before(void **state)
{
	static const struct {
		const uint8_t *rip;
		const char *text;
		unsigned int width;
		uint64_t low;
	} traps[] = {
		{ object_close_narrow, "mov [rbx+0x18], eax", 4, 0x5018 },
		{ object_close_whole, "mov [rbx+0x20], rax", 8, 0x5020 },
		{ object_close_and, "and byte ptr [rbx+0x18], 0xFE", 1, 0x5018 },
	};
	struct registers registers = { 0 };

	(void)state;
	know(&registers, X86_64_RBX, 0x5000);
	know(&registers, X86_64_RSI, 0x9000);
	for (size_t i = 0; i < sizeof(traps) / sizeof(traps[0]); i++) {
		struct trap trap = trap_at(object_close, object_close_end, traps[i].rip, true,
					   &registers, traps[i].low, traps[i].low + 8);
		struct writer writer;

		assert_int_equal(arch_decode_before(&trap, &writer), 0);
		assert_string_equal(writer.store.text, traps[i].text);
		assert_int_equal(writer.store.width, traps[i].width);
		assert_true(writer.certain);
		assert_true(writer.covers);
		assert_int_equal(writer.others, 0);
		assert_int_equal(writer.low, traps[i].low);
		assert_int_equal(writer.high, traps[i].low + traps[i].width);
	}
}

/* Without the start of the function the bytes leave it open, and that is said. */
static void test_before_without_start(void **state)
{
	struct registers registers = { 0 };
	struct trap trap;
	struct writer writer;

	(void)state;
	know(&registers, X86_64_RBX, 0x5000);
	know(&registers, X86_64_RSI, 0x9000);
	trap = trap_at(object_close, object_close_end, object_close_whole, false, &registers,
		       0x5020, 0x5028);
	assert_int_equal(arch_decode_before(&trap, &writer), 0);
	assert_int_equal(writer.store.width, 8); /* not the same without its first byte */
	assert_true(writer.others > 0);
	assert_false(writer.certain);

	trap.low = 0x7000; /* nobody wrote there */
	trap.high = 0x7008;
	assert_int_equal(arch_decode_before(&trap, &writer), -ENOENT);

	trap.registers = NULL; /* nothing to judge by but the code */
	assert_int_equal(arch_decode_before(&trap, &writer), 0);
	assert_int_equal(writer.store.width, 8);
	assert_false(writer.covers);
}

/* clang-format off */
CODE(fill, "mov rdi, rdx\nmov [rsi], al\n.globl fill_rep\nfill_rep:\nrep stosb\n"
     ".globl fill_done\nfill_done:\nstosq\n.globl fill_string\nfill_string:\n"
     "push rax\n.globl fill_push\nfill_push:\nmov eax, 0\nsyscall\n.globl fill_call\nfill_call:\nret\n");
/* clang-format on */
extern const uint8_t fill_rep[], fill_done[], fill_string[], fill_push[], fill_call[];

static void test_before_strings(void **state)
{
	struct registers registers = { 0 };
	struct writer writer;
	struct trap trap;

	(void)state;
	know(&registers, X86_64_RDI, 0x8100);
	know(&registers, X86_64_RCX, 0x700);
	know(&registers, X86_64_RSI, 0x9000);
	know(&registers, X86_64_RSP, 0xf000);
	/* Not finished: rip at the rep, rdi some way behind the watched word. */
	trap = trap_at(fill, fill_end, fill_rep, false, &registers, 0x80c0, 0x80c8);
	assert_int_equal(arch_decode_before(&trap, &writer), 0);
	assert_int_equal(writer.store.kind, STORE_REPEATED);
	assert_int_equal(writer.store.at, trap.rip);
	/* The same place, but the word is what the instruction before wrote. */
	trap.low = 0x9000, trap.high = 0x9008;
	assert_int_equal(arch_decode_before(&trap, &writer), 0);
	assert_int_equal(writer.store.kind, STORE_PLAIN);
	assert_int_equal(writer.store.width, 1);
	/* Finished. */
	trap = trap_at(fill, fill_end, fill_done, true, &registers, 0x80c0, 0x80c8);
	assert_int_equal(arch_decode_before(&trap, &writer), 0);
	assert_int_equal(writer.store.kind, STORE_REPEATED);
	/* One element, up and down. */
	trap = trap_at(fill, fill_end, fill_string, true, &registers, 0x80f8, 0x8100);
	assert_int_equal(arch_decode_before(&trap, &writer), 0);
	assert_int_equal(writer.low, 0x80f8);
	assert_int_equal(writer.high, 0x8100);
	know(&registers, X86_64_RFLAGS, 0x400);
	trap.low = 0x8108, trap.high = 0x8110;
	assert_int_equal(arch_decode_before(&trap, &writer), 0);
	assert_int_equal(writer.low, 0x8108);
	trap = trap_at(fill, fill_end, fill_push, true, &registers, 0xf000, 0xf008);
	assert_int_equal(arch_decode_before(&trap, &writer), 0);
	assert_int_equal(writer.store.kind, STORE_PUSH);
	assert_true(writer.covers);
	/* The kernel's own store. */
	trap = trap_at(fill, fill_end, fill_call, true, &registers, 0x9000, 0x9008);
	assert_int_equal(arch_decode_before(&trap, &writer), 0);
	assert_true(writer.system_call);
}

/* clang-format off */
CODE(masked,
     "vmovdqu32 zmmword ptr [rbx]{k1}, zmm3\n"
     "vmovdqu8 ymmword ptr [rbx]{k2}, ymm17\n"
     "vpcompressd zmmword ptr [rbx]{k3}, zmm3\n"
     "vpmovqd ymmword ptr [rbx]{k4}, zmm3\n"
     "vmaskmovpd ymmword ptr [rbx], ymm12, ymm2\n"
     "vpmaskmovd xmmword ptr [rbx], xmm1, xmm2\n"
     "maskmovdqu xmm3, xmm4\n"
     "vmovdqu32 zmmword ptr [rbx]{k5}, zmm3\n");
/* clang-format on */

static const struct {
	unsigned int written;
	uint64_t low, high; /* from the operand's start */
	bool covers;	    /* bytes 8 to 16 */
} mask_rows[] = {
	{ 12, 8, 44, true }, { 3, 1, 4, false }, { 12, 0, 12, true }, { 8, 24, 32, false },
	{ 16, 8, 32, true }, { 4, 0, 4, false }, { 2, 15, 18, true }, { 0, 0, 64, false },
};

static void mask_fill(struct mask_registers *ret)
{
	*ret = (struct mask_registers){ .masks = { 0, 0x40c, 0xe, 0x121, 0xc0, 0 } };
	ret->vectors[12][15] = 0x80; /* the second and the fourth of four doubles */
	ret->vectors[12][31] = 0x80;
	ret->vectors[1][3] = 0xff;
	memset(ret->vectors[1] + 4, 0x7f, 12);
	memset(ret->vectors[1] + 16, 0xff, 16); /* not in the xmm */
	ret->vectors[4][0] = 0x80;
	ret->vectors[4][2] = 0x80;
}

static void test_masks(void **state)
{
	struct registers registers = { 0 };
	struct mask_registers masks;
	struct writer writer;
	uint64_t at = AT;

	(void)state;
	mask_fill(&masks);
	know(&registers, X86_64_RBX, 0x5000);
	know(&registers, X86_64_RDI, 0x500f);
	for (size_t i = 0; i < sizeof(mask_rows) / sizeof(mask_rows[0]); i++) {
		struct trap trap = { .code = masked,
				     .code_len = (size_t)(masked_end - masked),
				     .code_address = AT,
				     .rip = at,
				     .registers = &registers,
				     .low = 0x5008,
				     .high = 0x5010,
				     .masks = &masks };
		unsigned int length;

		assert_int_equal(arch_decode_at(&trap, &writer), 0);
		print_message("# %s\n", writer.store.text);
		length = writer.store.length;
		assert_int_equal(writer.store.kind, STORE_MASKED);
		assert_true(writer.mask_known);
		assert_int_equal(writer.written, mask_rows[i].written);
		assert_int_equal(writer.low, 0x5000 + mask_rows[i].low);
		assert_int_equal(writer.high, 0x5000 + mask_rows[i].high);
		assert_int_equal(writer.covers, mask_rows[i].covers);
		trap.masks = NULL;
		assert_int_equal(arch_decode_at(&trap, &writer), 0);
		assert_false(writer.mask_known);
		assert_int_equal(writer.high - writer.low, writer.store.width);
		/* Behind it, as a debug register stops it: the mask is as it was. */
		trap.masks = &masks;
		trap.rip = at + length;
		trap.start_hint = AT;
		assert_int_equal(arch_decode_before(&trap, &writer), 0);
		assert_int_equal(writer.written, mask_rows[i].written);
		at += length;
	}
}

/* ---- where the value came from ---- */

/* clang-format off */
CODE(copies,
     "push rbp\n"
     "mov rbp, rsp\n"
     "mov r12, [rdi+0x30]\n"   /* the load */
     "call rax\n"              /* leaves r12 alone */
     "mov [rbp-0x10], r12\n"
     "xor eax, eax\n"
     "mov rdx, [rbp-0x10]\n"
     "mov rcx, rdx\n"
     "and rcx, -2\n"
     ".globl copies_store\ncopies_store:\n"
     "mov [rbx+0x18], rcx\n"
     ".globl copies_trap\ncopies_trap:\n"
     "mov [rbx+0x20], rax\n"
     ".globl copies_zero\ncopies_zero:\n"
     "mov [rbx+0x28], r9\n"
     ".globl copies_entry\ncopies_entry:\n"
     "movdqu xmm3, [rsi+0x40]\n"
     "movups [rbx+0x30], xmm3\n"
     ".globl copies_vector\ncopies_vector:\n"
     "lea rdx, [rsi+8]\n"
     "mov [rbx], rdx\n"
     ".globl copies_address\ncopies_address:\n"
     "call rax\n"
     "mov [rbx], rax\n"
     ".globl copies_call\ncopies_call:\n"
     "mov rsi, [rsi+8]\n"
     "mov [rbx], rsi\n"
     ".globl copies_own\ncopies_own:\n"
     "mov eax, [r8+4]\n"
     "cdqe\n"
     "mov [rbx], rax\n"
     ".globl copies_wider\ncopies_wider:\n"
     "ret\n");
/* clang-format on */
extern const uint8_t copies_store[], copies_trap[], copies_zero[], copies_entry[], copies_vector[],
	copies_address[], copies_call[], copies_own[], copies_wider[];

/* The store that ends at `rip`, and where it had its value from. */
static void origin_before(const uint8_t *rip, const struct registers *registers, struct origin *ret)
{
	struct trap trap = trap_at(copies, copies_end, rip, true, registers, 0, 0);
	struct writer writer;

	assert_int_equal(arch_decode_before(&trap, &writer), 0);
	assert_int_equal(writer.store.source, SOURCE_REGISTER);
	arch_value_origin(&trap, writer.store.at, writer.store.source_register, ret);
	print_message("# %s <- %d %s\n", writer.store.text, (int)ret->kind, ret->text);
}

static void test_origin(void **state)
{
	struct registers registers = { 0 };
	struct origin origin;

	(void)state;
	know(&registers, X86_64_RBX, 0x5000);
	know(&registers, X86_64_RDI, 0x6000);
	know(&registers, X86_64_RSI, 0x7000);
	know(&registers, X86_64_RBP, 0xf000);

	/* Through a register, a slot of the frame and a call, with arithmetic on the way. rdi may
	 * have been changed by the call, so where the load was from is not known. */
	origin_before(copies_trap, &registers, &origin);
	assert_int_equal(origin.kind, ORIGIN_LOAD);
	assert_int_equal(origin.from.base, X86_64_RDI);
	assert_int_equal(origin.from.displacement, 0x30);
	assert_int_equal(origin.width, 8);
	assert_true(origin.changed);
	assert_true(origin.certain);
	assert_false(origin.joined);
	assert_false(origin.from_known);

	origin_before(copies_zero, &registers, &origin);
	assert_int_equal(origin.kind, ORIGIN_IMMEDIATE);
	assert_int_equal(origin.immediate, 0);

	/* r9 is the function's sixth argument, but the call may change it. */
	origin_before(copies_entry, &registers, &origin);
	assert_int_equal(origin.kind, ORIGIN_UNKNOWN);

	origin_before(copies_vector, &registers, &origin);
	assert_int_equal(origin.kind, ORIGIN_LOAD);
	assert_int_equal(origin.width, 16);
	assert_true(origin.from_known);
	assert_int_equal(origin.from_address, 0x7040);
	assert_false(origin.changed);

	origin_before(copies_address, &registers, &origin);
	assert_int_equal(origin.kind, ORIGIN_ADDRESS);
	assert_int_equal(origin.from_address, 0x7008);

	origin_before(copies_call, &registers, &origin);
	assert_int_equal(origin.kind, ORIGIN_CALL);

	origin_before(copies_own, &registers, &origin);
	assert_int_equal(origin.kind, ORIGIN_LOAD);
	assert_false(origin.from_known); /* the base is what was loaded */

	/* Half a word, made a whole one. */
	origin_before(copies_wider, &registers, &origin);
	assert_int_equal(origin.kind, ORIGIN_LOAD);
	assert_int_equal(origin.from.base, X86_64_R8);
	assert_int_equal(origin.width, 4);
	assert_false(origin.changed);
}

/* clang-format off */
CODE(joined,
     "mov rax, rdi\n"
     "test rsi, rsi\n"
     "je 1f\n"
     "mov rax, [rsi+8]\n"
     "1:\n"
     "mov [rbx], rax\n"
     ".globl joined_trap\njoined_trap:\n"
     "mov [rbx+8], rdx\n"
     ".globl joined_entry\njoined_entry:\nret\n");
/* clang-format on */
extern const uint8_t joined_trap[], joined_entry[];

/* clang-format off */
CODE(running,
     "1:\n"
     "mov [rax+4], edx\n"        /* moved on at once */
     ".globl running_down\nrunning_down:\n"
     "sub rax, 4\n"
     "mov [rcx], edx\n"          /* by way of another */
     ".globl running_round\nrunning_round:\n"
     "lea rsi, [rcx+8]\n"
     "mov rcx, rsi\n"
     "lea r8, [rdi+8]\n"         /* the same place at each turn */
     "mov [r8], edx\n"
     ".globl running_fixed\nrunning_fixed:\n"
     "mov r9, [r9+8]\n"          /* along a list */
     "mov [r9], edx\n"
     ".globl running_list\nrunning_list:\n"
     "cmp rax, r10\n"
     "jne 1b\n"
     "mov [rax], edx\n"          /* behind the loop */
     ".globl running_behind\nrunning_behind:\nret\n");
/* clang-format on */
extern const uint8_t running_down[], running_round[], running_fixed[], running_list[],
	running_behind[];

static unsigned int runs_before(const uint8_t *rip)
{
	struct trap trap = trap_at(running, running_end, rip, true, NULL, 0, 0);
	struct writer writer;

	assert_int_equal(arch_decode_before(&trap, &writer), 0);
	return arch_pointer_runs(&trap, writer.store.at, writer.store.to.base);
}

static void test_running(void **state)
{
	(void)state;
	assert_int_equal(runs_before(running_down), RUNS_DOWN);
	assert_int_equal(runs_before(running_round), RUNS_UP);
	assert_int_equal(runs_before(running_fixed), 0);
	assert_int_equal(runs_before(running_list), 0);
	assert_int_equal(runs_before(running_behind), 0);
}

static void test_origin_joined(void **state)
{
	struct trap trap = trap_at(joined, joined_end, joined_trap, true, NULL, 0, 0);
	struct writer writer;
	struct origin origin;

	(void)state;
	assert_int_equal(arch_decode_before(&trap, &writer), 0);
	arch_value_origin(&trap, writer.store.at, writer.store.source_register, &origin);
	assert_int_equal(origin.kind, ORIGIN_LOAD);
	assert_true(origin.joined);

	trap = trap_at(joined, joined_end, joined_entry, true, NULL, 0, 0);
	assert_int_equal(arch_decode_before(&trap, &writer), 0);
	arch_value_origin(&trap, writer.store.at, writer.store.source_register, &origin);
	assert_int_equal(origin.kind, ORIGIN_ENTRY);
	assert_int_equal(origin.reg, X86_64_RDX);
}

/* clang-format off */
__asm__(".text\n.intel_syntax noprefix\n"
	".globl shifts\nshifts:\n"
	"mov rdx, [rax]\n"
	"add rax, 8\n"
	"mov rcx, [rdx+16]\n"
	"add rcx, 32\n"
	"sub rcx, 16\n"
	".globl shifts_trap\nshifts_trap:\n"
	"mov r8, [rcx]\n"
	"mov [rbp-8], rbx\n"
	"mov rsi, [rbp-8]\n"
	"mov rdi, [rsi+8]\n"
	"shl r9, 3\n"
	"add r9, rdi\n"
	".globl shifts_sum\nshifts_sum:\n"
	"mov r8, [r9]\n"
	".globl shifts_end\nshifts_end:\n"
	".att_syntax\n");
/* clang-format on */
extern const uint8_t shifts[], shifts_trap[], shifts_sum[], shifts_end[];

static void test_origin_shifted(void **state)
{
	struct registers registers = { 0 };
	struct trap trap = trap_at(shifts, shifts_end, shifts_trap, true, &registers, 0, 0);
	struct origin origin;

	(void)state;
	know(&registers, X86_64_RAX, 0x6008);
	know(&registers, X86_64_RBP, 0xf000);
	/* Constants that were added are known in sum. */
	arch_value_origin(&trap, trap.rip, X86_64_RCX, &origin);
	assert_int_equal(origin.kind, ORIGIN_LOAD);
	assert_true(origin.changed && origin.shifted);
	assert_int_equal(origin.added, 16);
	/* A pointer that has moved on is moved back. */
	arch_value_origin(&trap, origin.at, X86_64_RDX, &origin);
	assert_int_equal(origin.kind, ORIGIN_LOAD);
	assert_true(origin.from_known);
	assert_int_equal(origin.from_address, 0x6000);
	assert_int_equal(origin.from_kept, 0);

	/* An index and a pointer in one register: the pointer is followed, if it can be told. */
	trap = trap_at(shifts, shifts_end, shifts_sum, true, &registers, 0, 0);
	know(&registers, X86_64_RDI, 0x7878787878787878);
	know(&registers, X86_64_R9, 0x7878787878787880);
	arch_value_origin(&trap, trap.rip, X86_64_R9, &origin);
	assert_int_equal(origin.kind, ORIGIN_LOAD);
	assert_int_equal(origin.from.base, X86_64_RSI);
	assert_true(origin.shifted);
	assert_int_equal(origin.added, 8);
	/* And what it was loaded through still stands in its slot. */
	arch_value_origin(&trap, origin.at, X86_64_RSI, &origin);
	assert_true(origin.slot_known);
	assert_int_equal(origin.slot_address, 0xeff8);
	know(&registers, X86_64_RDI, 5);
	arch_value_origin(&trap, trap.rip, X86_64_R9, &origin);
	assert_int_not_equal(origin.kind, ORIGIN_LOAD);
}

/* What is rarely needed stands far from where it is jumped to from, behind padding. */
/* clang-format off */
__asm__(".text\n.intel_syntax noprefix\n"
	".globl far_piece\nfar_piece:\n"
	"mov rax, [rbp-0x20]\n"
	"mov rdi, [rax+rcx*8]\n"
	".globl far_jump\nfar_jump:\n"
	"test rdi, rdi\n"
	"jne 2f\n"
	"1: mov rdi, [rdx]\n"
	".fill 6000, 1, 0x90\n"
	"ret\n"
	".byte 0x66, 0x0f, 0x1f, 0x44, 0x00, 0x00\n"
	".globl far_trap\nfar_trap:\n"
	"2: sub qword ptr [rdi], 1\n"
	"jmp 1b\n"
	".globl far_end\nfar_end:\n"
	".att_syntax\n");
/* clang-format on */
extern const uint8_t far_piece[], far_jump[], far_trap[], far_end[];

static void test_origin_far(void **state)
{
	struct registers registers = { 0 };
	struct trap trap = trap_at(far_piece, far_end, far_trap, true, &registers, 0, 0);
	struct origin origin;

	(void)state;
	know(&registers, X86_64_RAX, 0x6000);
	know(&registers, X86_64_RCX, 2);
	know(&registers, X86_64_RBP, 0xf000);
	arch_value_origin(&trap, trap.rip, X86_64_RDI, &origin);
	assert_int_equal(origin.kind, ORIGIN_LOAD);
	assert_true(origin.certain);
	assert_true(origin.from_known);
	assert_int_equal(origin.from_address, 0x6010);
	/* The jump back leads to between the two pieces, into none of them. */
	assert_false(origin.joined);
	arch_value_origin(&trap, origin.at, X86_64_RAX, &origin);
	assert_int_equal(origin.kind, ORIGIN_LOAD);
	assert_int_equal(origin.from_address, 0xefe0);
}

/* Every prefix of every piece of code, and noise: nothing may be read outside of it. */
static void test_any_bytes(void **state)
{
	struct registers registers = { .known = ~0u };
	unsigned int seed = 7;

	(void)state;
	print_message("# seed %u\n", seed);
	for (int round = 0; round < 20000; round++) {
		size_t len = (size_t)rand_r(&seed) % 300;
		uint8_t *bytes = malloc(len + 1);
		struct fault_operands operands;
		struct writer writer;
		struct origin origin;
		struct roots roots;
		struct trap trap = { .code = bytes,
				     .code_len = len,
				     .code_address = AT,
				     .rip = AT + (uint64_t)rand_r(&seed) % 310,
				     .start_hint = rand_r(&seed) % 2 ? AT + rand_r(&seed) % 64 : 0,
				     .registers = rand_r(&seed) % 2 ? &registers : NULL,
				     .low = 0,
				     .high = rand_r(&seed) % 2 ? 0x100000 : 0 };

		assert_non_null(bytes);
		bytes = realloc(bytes, len > 0 ? len : 1);
		trap.code = bytes;
		for (size_t i = 0; i < len; i++)
			bytes[i] = (uint8_t)(rand_r(&seed) >> 8);
		if (arch_decode_before(&trap, &writer) == 0)
			arch_value_origin(&trap, writer.store.at, writer.store.source_register,
					  &origin);
		arch_value_origin(&trap, trap.rip, X86_64_RAX, &origin);
		arch_roots(&trap, trap.rip,
			   &(struct memory_operand){ .base = X86_64_RAX,
						     .index = X86_64_RDX,
						     .scale = 1,
						     .segment = NO_REGISTER },
			   true, &roots);
		(void)operands_of_fault(bytes, len, AT, trap.rip, trap.registers, &operands);
		free(bytes);
	}
}

/* Four functions: a fixed address and an index; one of two addresses; an address that a loop moves
 * on; an argument that is kept in the frame, and an index of 32 bits. */
static const uint8_t rooted[] = {
	0x48, 0x8d, 0x15, 0x00, 0x01, 0x00, 0x00, /* lea rdx, [rip+0x100] */
	0x89, 0x04, 0x8a,			  /* mov [rdx+rcx*4], eax */
	0xc3,					  /* ret */
	0x85, 0xff,				  /* 0x0b: test edi, edi */
	0x74, 0x09,				  /* je 0x18 */
	0x48, 0x8d, 0x15, 0x00, 0x01, 0x00, 0x00, /* lea rdx, [rip+0x100] */
	0xeb, 0x07,				  /* jmp 0x1f */
	0x48, 0x8d, 0x15, 0x00, 0x02, 0x00, 0x00, /* 0x18: lea rdx, [rip+0x200] */
	0x89, 0x02,				  /* 0x1f: mov [rdx], eax */
	0xc3,					  /* ret */
	0x48, 0x8d, 0x15, 0x00, 0x01, 0x00, 0x00, /* 0x22: lea rdx, [rip+0x100] */
	0x89, 0x02,				  /* 0x29: mov [rdx], eax */
	0x48, 0x83, 0xc2, 0x04,			  /* add rdx, 4 */
	0xff, 0xc9,				  /* dec ecx */
	0x75, 0xf6,				  /* jne 0x29 */
	0xc3,					  /* ret */
	0x55,					  /* 0x34: push rbp */
	0x48, 0x89, 0xe5,			  /* mov rbp, rsp */
	0x48, 0x89, 0x7d, 0xe8,			  /* mov [rbp-0x18], rdi */
	0x8b, 0x45, 0xfc,			  /* mov eax, [rbp-4] */
	0x48, 0x98,				  /* cdqe */
	0x48, 0x8b, 0x55, 0xe8,			  /* mov rdx, [rbp-0x18] */
	0x48, 0x01, 0xd0,			  /* add rax, rdx */
	0xc6, 0x00, 0x01,			  /* 0x48: mov byte [rax], 1 */
	0xc3					  /* ret */
};

static struct roots roots_of(uint64_t start, uint64_t at, bool framed)
{
	struct registers registers = { 0 };
	struct trap trap = { .code = rooted,
			     .code_len = sizeof(rooted),
			     .code_address = AT,
			     .start_hint = AT + start,
			     .rip = AT + at,
			     .registers = &registers };
	struct roots roots;
	struct store store;

	know(&registers, X86_64_RBP, 0xf000);
	assert_true(store_decode(rooted, sizeof(rooted), AT, AT + at, &store));
	arch_roots(&trap, AT + at, &store.to, framed, &roots);
	return roots;
}

static void what_an_address_was_made_from(void **state)
{
	struct roots roots = roots_of(0, 7, false);

	(void)state;
	assert_false(roots.several);
	assert_int_equal(roots.count, 1);
	assert_int_equal(roots.list[0].address, AT + 0x107);
	assert_int_equal(roots.list[0].at, AT);
	/* Two ways, two addresses. */
	assert_true(roots_of(0xb, 0x1f, false).several);
	roots = roots_of(0x22, 0x29, false);
	assert_false(roots.several);
	assert_int_equal(roots.count, 1);
	assert_int_equal(roots.list[0].address, AT + 0x129);
	/* Through a slot of the frame; the index is left out. */
	roots = roots_of(0x34, 0x48, true);
	assert_false(roots.several);
	assert_int_equal(roots.count, 1);
	assert_true(roots.list[0].argument);
	assert_int_equal(roots.list[0].reg, X86_64_RDI);
	/* Where rbp is a register like the others, what is behind it may be anybody's. */
	assert_int_equal(roots_of(0x34, 0x48, false).count, 0);
}

/* On watched pages the instruction is known, and the registers are those before it. */
static void test_at(void **state)
{
	struct registers registers = { 0 };
	struct writer writer;
	struct trap trap;

	(void)state;
	know(&registers, X86_64_RDI, 0x8000);
	know(&registers, X86_64_RCX, 0x100);
	know(&registers, X86_64_RFLAGS, 0);
	trap = trap_at(fill, fill_end, fill_rep, false, &registers, 0x80c0, 0x80c8);
	assert_int_equal(arch_decode_at(&trap, &writer), 0);
	assert_int_equal(writer.store.kind, STORE_REPEATED);
	assert_true(writer.certain && writer.covers);
	assert_int_equal(writer.low, 0x8000);
	assert_int_equal(writer.high, 0x8100);
	/* Down: it ends where rdi is. */
	know(&registers, X86_64_RFLAGS, 0x400);
	assert_int_equal(arch_decode_at(&trap, &writer), 0);
	assert_int_equal(writer.low, 0x7f01);
	assert_int_equal(writer.high, 0x8001);
	assert_false(writer.covers);
	/* No store. */
	trap.rip = AT + (uint64_t)(fill_call - fill);
	assert_int_equal(arch_decode_at(&trap, &writer), -ENOENT);
	assert_string_equal(arch_system_call_name(0), "read");
	assert_null(arch_system_call_name(100000));
}

/* sub rsp, 0x38; mov rax, fs:[0x28]; mov [rsp+0x28], rax; xor eax, eax; ret */
static const uint8_t guarded[] = { 0x48, 0x83, 0xec, 0x38, 0x64, 0x48, 0x8b, 0x04, 0x25, 0x28, 0x00,
				   0x00, 0x00, 0x48, 0x89, 0x44, 0x24, 0x28, 0x31, 0xc0, 0xc3 };

static void the_guard_of_a_frame_is_found(void **state)
{
	struct trap trap = { .code = guarded,
			     .code_len = sizeof(guarded),
			     .code_address = 0x1000,
			     .start_hint = 0x1000,
			     .rip = 0x1000 + sizeof(guarded) };
	uint8_t other[sizeof(guarded)];
	struct memory_operand guard;

	assert_true(arch_frame_guard(&trap, &guard));
	assert_int_equal(guard.base, arch_native()->sp);
	assert_int_equal(guard.displacement, 0x28);
	/* Not yet stored; and another word of the thread's. */
	trap.rip = 0x1000 + 13;
	assert_false(arch_frame_guard(&trap, &guard));
	trap.rip = 0x1000 + sizeof(guarded);
	memcpy(other, guarded, sizeof(other));
	other[9] = 0x30;
	trap.code = other;
	assert_false(arch_frame_guard(&trap, &guard));
}

/* clang-format off */
__asm__(".text\n.intel_syntax noprefix\n"
	".globl again\nagain:\n"
	"mov rbp, rdi\n"
	"mov ebx, 0\n"
	"jmp 2f\n"
	"1: add ebx, 1\n"
	"2: movsxd rax, ebx\n"
	"imul rax, rax, 0x55555556\n"
	"shr rax, 32\n"
	"mov edx, ebx\n"
	"sar edx, 31\n"
	"sub eax, edx\n"
	"cdqe\n"
	"lea rax, [rax+rax*2]\n"
	"shl rax, 4\n"
	"add rax, rbp\n"
	"cmp dword ptr [rax+0x18], 1\n"
	"jne 1b\n"
	".globl again_load\nagain_load:\n"
	"mov rdi, [rax+0x20]\n"
	"call rcx\n"
	".globl again_trap\nagain_trap:\n"
	"jmp 1b\n"
	".globl again_end\nagain_end:\n"
	"ret\n.att_syntax\n");
/* clang-format on */
extern const uint8_t again[], again_load[], again_trap[], again_end[];

/* An address that a call has overwritten since, from the registers that it was made of. */
static void test_computed(void **state)
{
	struct registers registers = { 0 };
	struct trap trap = trap_at(again, again_end, again_trap, true, &registers, 0, 0);
	uint64_t load = trap.rip - (uint64_t)(again_trap - again_load), value = 1;

	know(&registers, X86_64_RBP, 0x5000);
	assert_false(arch_value_computed(&trap, load, X86_64_RAX, &value));
	know(&registers, X86_64_RBX, 7);
	assert_true(arch_value_computed(&trap, load, X86_64_RAX, &value));
	assert_int_equal(value, 0x5000 + 7 / 3 * 3 * 16);
	/* What nobody computes, and what was loaded, is not known. */
	assert_false(arch_value_computed(&trap, load, X86_64_RCX, &value));
	assert_false(arch_value_computed(&trap, load, X86_64_RDI, &value));
	/* Of emitted code whose start nobody knows, it may have come another way. */
	trap.start_hint = 0;
	assert_false(arch_value_computed(&trap, load, X86_64_RAX, &value));
}

static void returns_are_told(void **state)
{
	struct trap trap = { .code = guarded,
			     .code_len = sizeof(guarded),
			     .code_address = 0x1000,
			     .start_hint = 0x1000 };

	assert_true(arch_returns_at(&trap, 0x1000 + sizeof(guarded) - 1));
	assert_false(arch_returns_at(&trap, 0x1000));
	assert_false(arch_returns_at(&trap, 0x2000));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_each),
		cmocka_unit_test(test_no_store),
		cmocka_unit_test(test_before),
		cmocka_unit_test(test_before_without_start),
		cmocka_unit_test(test_before_strings),
		cmocka_unit_test(test_masks),
		cmocka_unit_test(test_at),
		cmocka_unit_test(test_origin),
		cmocka_unit_test(test_origin_joined),
		cmocka_unit_test(test_running),
		cmocka_unit_test(test_any_bytes),
		cmocka_unit_test(test_origin_shifted),
		cmocka_unit_test(test_origin_far),
		cmocka_unit_test(test_computed),
		cmocka_unit_test(the_guard_of_a_frame_is_found),
		cmocka_unit_test(what_an_address_was_made_from),
		cmocka_unit_test(returns_are_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
