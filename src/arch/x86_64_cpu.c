#include "arch/x86_64_cpu.h"

#include <string.h>

#include "arch/arch.h"

/* The table for x86-64, and the few byte patterns that unwinding without unwind information
 * needs. Instruction lengths are not decoded here: each test looks only at bytes whose meaning
 * the surrounding facts (a return address, a function's start) make certain enough. */

extern const struct arch arch_x86_64;

static const char *const names[X86_64_REGISTERS] = {
	"rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp",	   "r8",      "r9",
	"r10", "r11", "r12", "r13", "r14", "r15", "rip", "rflags", "fs_base", "gs_base",
};

/* Length of a ModRM operand after the opcode: ModRM itself, SIB, displacement. */
static size_t modrm_len(const uint8_t *modrm, size_t room)
{
	unsigned int mod, rm;
	size_t len = 1;

	if (room < 1)
		return 0;
	mod = modrm[0] >> 6;
	rm = modrm[0] & 7;
	if (mod == 3)
		return 1;
	if (rm == 4) {
		if (room < 2)
			return 0;
		len++;
		if (mod == 0 && (modrm[1] & 7) == 5)
			return len + 4;
	} else if (mod == 0 && rm == 5) {
		return len + 4;
	}
	return len + (mod == 1 ? 1 : mod == 2 ? 4 : 0);
}

static bool ends_in_call(const uint8_t *code, size_t len)
{
	const uint8_t *end = code + len;

	if (len >= 5 && end[-5] == 0xe8)
		return true;
	/* call r/m64: FF /2, operand of 1 to 6 bytes (a REX prefix does not matter here). */
	for (size_t operand = 1; operand <= 6 && operand + 1 <= len; operand++) {
		const uint8_t *modrm = end - operand;

		if (modrm[-1] == 0xff && ((modrm[0] >> 3) & 7) == 2 &&
		    modrm_len(modrm, operand) == operand)
			return true;
	}
	return false;
}

/* mov $15,%rax; syscall: what every C library uses as the restorer. */
static const uint8_t sigreturn_code[] = { 0x48, 0xc7, 0xc0, 0x0f, 0x00, 0x00, 0x00, 0x0f, 0x05 };

static bool is_sigreturn(const uint8_t *code, size_t len)
{
	return len >= sizeof(sigreturn_code) &&
	       memcmp(code, sigreturn_code, sizeof(sigreturn_code)) == 0;
}

/* The kernel's struct ucontext (uapi/asm/sigcontext.h): 40 bytes, then gregs: r8 … r15, rdi, rsi,
 * rbp, rbx, rdx, rax, rcx, rsp, rip, eflags. At the restorer the stack pointer is at its start. */
static int saved_index(unsigned int reg)
{
	static const uint8_t number[X86_64_REGISTERS] = {
		[X86_64_R8] = 1,   [X86_64_R9] = 2,	 [X86_64_R10] = 3,  [X86_64_R11] = 4,
		[X86_64_R12] = 5,  [X86_64_R13] = 6,	 [X86_64_R14] = 7,  [X86_64_R15] = 8,
		[X86_64_RDI] = 9,  [X86_64_RSI] = 10,	 [X86_64_RBP] = 11, [X86_64_RBX] = 12,
		[X86_64_RDX] = 13, [X86_64_RAX] = 14,	 [X86_64_RCX] = 15, [X86_64_RSP] = 16,
		[X86_64_RIP] = 17, [X86_64_RFLAGS] = 18,
	};

	return reg < X86_64_REGISTERS ? number[reg] - 1 : -1;
}

/* mov %rsp,%rbp in both of its encodings. */
static bool is_frame_move(const uint8_t *code, size_t len)
{
	return len >= 3 && code[0] == 0x48 &&
	       ((code[1] == 0x89 && code[2] == 0xe5) || (code[1] == 0x8b && code[2] == 0xec));
}

static bool sets_frame_pointer(const uint8_t *code, size_t len)
{
	for (size_t i = 0; i + 3 <= len; i++)
		if (is_frame_move(code + i, len - i))
			return true;
	return false;
}

static bool return_slot(const uint8_t *before, size_t before_len, const uint8_t *at, size_t at_len,
			size_t *ret_offset)
{
	if (at_len >= 1 && at[0] == 0xc3) { /* about to return */
		*ret_offset = 0;
		return true;
	}
	if (at_len >= 4 && at[0] == 0x55 && is_frame_move(at + 1, at_len - 1)) {
		*ret_offset = 0; /* nothing pushed yet */
		return true;
	}
	if (before_len >= 1 && before[before_len - 1] == 0x55 && is_frame_move(at, at_len)) {
		*ret_offset = 8; /* only the old frame pointer pushed */
		return true;
	}
	return false;
}

const struct arch arch_x86_64 = {
	.name = "x86-64",
	.elf_machine = 62, /* EM_X86_64 */
	.register_names = names,
	.register_count = X86_64_REGISTERS,
	.dwarf_count = X86_64_RIP + 1,
	.pc = X86_64_RIP,
	.sp = X86_64_RSP,
	.fp = X86_64_RBP,
	.callee_saved = 1u << X86_64_RBX | 1u << X86_64_RBP | 1u << X86_64_R12 | 1u << X86_64_R13 |
			1u << X86_64_R14 | 1u << X86_64_R15,
	.max_call_len = 7,
	.sigreturn_len = sizeof(sigreturn_code),
	.thread_pointer = X86_64_FS_BASE,
	.ends_in_call = ends_in_call,
	.is_sigreturn = is_sigreturn,
	.saved_index = saved_index,
	.sigframe_saved = 40,
	.return_slot = return_slot,
	.sets_frame_pointer = sets_frame_pointer,
};
