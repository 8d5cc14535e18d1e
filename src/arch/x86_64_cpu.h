#pragma once

/*
 * Register numbers of x86-64: DWARF's up to the return address (psABI, figure 3.36), then
 * redhand's own.
 */
enum x86_64_register {
	X86_64_RAX,
	X86_64_RDX,
	X86_64_RCX,
	X86_64_RBX,
	X86_64_RSI,
	X86_64_RDI,
	X86_64_RBP,
	X86_64_RSP,
	X86_64_R8,
	X86_64_R9,
	X86_64_R10,
	X86_64_R11,
	X86_64_R12,
	X86_64_R13,
	X86_64_R14,
	X86_64_R15,
	X86_64_RIP,
	X86_64_RFLAGS,
	X86_64_FS_BASE,
	X86_64_GS_BASE,
	X86_64_REGISTERS,
};
