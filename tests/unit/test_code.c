#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "arch/code.h"

#define AT 0x401000u

/* Bytes as hexadecimal digits; returns how many. */
static size_t from_hex(const char *text, uint8_t *ret)
{
	size_t len = 0;
	unsigned int byte;

	for (; sscanf(text, "%2x", &byte) == 1; text += 2)
		ret[len++] = (uint8_t)byte;
	return len;
}

static void to_hex(const uint8_t *bytes, size_t len, char *ret)
{
	ret[0] = '\0';
	for (size_t i = 0; i < len; i++)
		(void)sprintf(ret + 2 * i, "%02x", bytes[i]);
}

static const struct {
	const char *what, *bytes, *moved;
	size_t fixups;
	uint16_t at;	 /* of the last fix-up */
	uint8_t after;	 /* of it */
	uint64_t target; /* of it */
	bool ended, pushes;
} moves[] = {
	{ "push rbp", "55", "55" },
	{ "sub rsp, 8", "4883ec08", "4883ec08" },
	{ "mov rax, fs:[0x28]", "64488b042528000000", "64488b042528000000" },
	{ "lea rdi, [rip + 0x100]", "488d3d00010000", "488d3d00010000", 1, 3, 0, AT + 7 + 0x100 },
	{ "cmp dword [rip + 0x10], 7", "833d1000000007", "833d1000000007", 1, 2, 1, AT + 7 + 0x10 },
	{ "mov dword [rip - 16], 0x12345678", "c705f0ffffff78563412", "c705f0ffffff78563412", 1, 2,
	  4, AT + 10 - 16 },
	{ "vmovaps ymm0, [rip + 0x20]", "c5fc280520000000", "c5fc280520000000", 1, 4, 0,
	  AT + 8 + 0x20 },
	{ "je +0x10", "7410", "0f8400000000", 1, 2, 0, AT + 2 + 0x10 },
	{ "jle -4", "7efc", "0f8e00000000", 1, 2, 0, AT + 2 - 4 },
	{ "ja +0x1000", "0f8700100000", "0f8700000000", 1, 2, 0, AT + 6 + 0x1000 },
	{ "jmp +5", "eb05", "e900000000", 1, 1, 0, AT + 2 + 5, true },
	{ "jmp +0x300", "e900030000", "e900000000", 1, 1, 0, AT + 5 + 0x300, true },
	{ "jrcxz +8", "e308", "e302eb05e900000000", 1, 5, 0, AT + 2 + 8 },
	{ "loop -6", "e2fa", "e202eb05e900000000", 1, 5, 0, AT + 2 - 6 },
	{ "jecxz +8", "67e308", "67e302eb05e900000000", 1, 6, 0, AT + 3 + 8 },
	{ "call +0x200", "e800020000", "6800000000c744240400000000e900000000", 3, 14, 0,
	  AT + 5 + 0x200, true, true },
	{ "call rax", "ffd0", "6800000000c744240400000000ffe0", 2, 9, 0, AT + 2, true, true },
	{ "call r11", "41ffd3", "6800000000c74424040000000041ffe3", 2, 9, 0, AT + 3, true, true },
	{ "call [rdi + 8]", "ff5708", "6800000000c744240400000000ff6708", 2, 9, 0, AT + 3, true,
	  true },
	{ "call [rip + 0x40]", "ff1540000000", "6800000000c744240400000000ff2540000000", 3, 15, 0,
	  AT + 6 + 0x40, true, true },
	{ "ret", "c3", "c3", 0, 0, 0, 0, true },
	{ "ret 16", "c21000", "c21000", 0, 0, 0, 0, true },
	{ "bnd ret", "f2c3", "f2c3", 0, 0, 0, 0, true },
	{ "jmp [rip + 8]", "ff2508000000", "ff2508000000", 1, 2, 0, AT + 6 + 8, true },
	{ "jmp rax", "ffe0", "ffe0", 0, 0, 0, 0, true },
	{ "syscall", "0f05", "0f05" },
	{ "rep movsq", "f348a5", "f348a5" },
	{ "lock xadd [rip + 4], eax", "f00fc10504000000", "f00fc10504000000", 1, 4, 0, AT + 8 + 4 },
};

static void test_moved_forms(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(moves) / sizeof(moves[0]); i++) {
		struct code_moved moved = { 0 };
		uint8_t bytes[32];
		char text[2 * CODE_MOVED_MAX + 1];
		size_t len = from_hex(moves[i].bytes, bytes);
		const char *why = code_move(&moved, bytes, len, AT);

		if (why)
			fail_msg("%s: %s", moves[i].what, why);
		to_hex(moved.bytes, moved.len, text);
		if (strcmp(text, moves[i].moved) != 0 || moved.fixup_count != moves[i].fixups ||
		    moved.ended != moves[i].ended || moved.pushes != moves[i].pushes)
			fail_msg("%s became %s with %zu fix-ups, ended %d, pushes %d",
				 moves[i].what, text, moved.fixup_count, moved.ended, moved.pushes);
		if (moved.fixup_count > 0) {
			const struct code_fixup *last = &moved.fixups[moved.fixup_count - 1];

			if (last->at != moves[i].at || last->after != moves[i].after ||
			    last->target != moves[i].target)
				fail_msg("%s: fix-up at %u, after %u, target %llx", moves[i].what,
					 last->at, last->after, (unsigned long long)last->target);
		}
		assert_int_equal(moved.mark_count, 1);
		assert_int_equal(moved.marks[0].original, AT);
	}
}

static const struct {
	const char *bytes, *why;
} refused[] = {
	{ "cc", "breakpoint" },
	{ "06", "no instruction" },
	{ "c7f810000000", "transaction" },
	{ "ff542408", "own stack" },
	{ "67488d0500010000", "32 bits" },
	{ "ff1f", "far call" },
	{ "48", "no instruction" },
};

static void test_what_cannot_be_moved(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		struct code_moved moved = { .len = 3, .bytes = "abc" }, before = moved;
		uint8_t bytes[32];
		const char *why = code_move(&moved, bytes, from_hex(refused[i].bytes, bytes), AT);

		if (!why || !strstr(why, refused[i].why))
			fail_msg("%s: %s", refused[i].bytes, why ? why : "moved");
		assert_memory_equal(&moved, &before, sizeof(moved));
	}
}

static void test_nothing_is_moved_behind_an_end(void **state)
{
	struct code_moved moved = { 0 };

	(void)state;
	assert_null(code_move(&moved, (const uint8_t *)"\xc3", 1, AT));
	assert_non_null(code_move(&moved, (const uint8_t *)"\x90", 1, AT + 1));
}

/* Full is told, not written over. */
static void test_room(void **state)
{
	const uint8_t bytes[] = { 0xe8, 0, 0, 0, 0 };
	struct code_moved moved = { .len = CODE_MOVED_MAX - 4 }, before = moved;

	(void)state;
	assert_non_null(code_move(&moved, bytes, sizeof(bytes), AT));
	assert_memory_equal(&moved, &before, sizeof(moved));
	assert_false(code_move_jump(&moved, AT));
}

static const struct {
	const char *bytes;
	enum code_flow flow;
	uint8_t flags;
	uint64_t target, address;
} flows[] = {
	{ "f30f1efa", CODE_NEXT, CODE_ENTRY_MARK },
	{ "90", CODE_NEXT, CODE_NOP },
	{ "6690", CODE_NEXT, CODE_NOP },
	{ "662e0f1f840000000000", CODE_NEXT, CODE_NOP },
	{ "cc", CODE_NEXT, CODE_BREAKPOINT },
	{ "e810000000", CODE_CALL, CODE_HAS_TARGET, AT + 5 + 0x10 },
	{ "ffd0", CODE_CALL, 0 },
	{ "eb10", CODE_JUMP, CODE_HAS_TARGET, AT + 2 + 0x10 },
	{ "3effe2", CODE_JUMP_INDIRECT, CODE_IN_REGISTER },
	{ "ff24c578563412", CODE_JUMP_INDIRECT, CODE_HAS_ADDRESS, 0, 0x12345678 },
	{ "4801d0", CODE_NEXT, CODE_ADDS },
	{ "488d0502000000", CODE_NEXT, CODE_HAS_ADDRESS, 0, AT + 7 + 2 },
	{ "0f0b", CODE_STOP, 0 },
	{ "f4", CODE_STOP, 0 },
	{ "c3", CODE_RETURN, 0 },
	{ "7502", CODE_BRANCH, CODE_HAS_TARGET, AT + 4 },
	{ "48634c8508", CODE_NEXT, 0 },
};

static void test_flow(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(flows) / sizeof(flows[0]); i++) {
		struct code_instruction got;
		uint8_t bytes[32];
		size_t len = from_hex(flows[i].bytes, bytes);

		if (!code_decode(bytes, len, AT, &got) || got.length != len ||
		    got.flow != flows[i].flow || got.flags != flows[i].flags ||
		    got.target != flows[i].target || got.address != flows[i].address)
			fail_msg("%s: length %u flow %u flags %x target %llx address %llx",
				 flows[i].bytes, got.length, got.flow, got.flags,
				 (unsigned long long)got.target, (unsigned long long)got.address);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_moved_forms),
		cmocka_unit_test(test_what_cannot_be_moved),
		cmocka_unit_test(test_nothing_is_moved_behind_an_end),
		cmocka_unit_test(test_room),
		cmocka_unit_test(test_flow),
	};

	return cmocka_run_group_tests_name("code", tests, NULL, NULL);
}
