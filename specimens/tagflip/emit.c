#include "emit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void emit(struct emitter *self, const void *bytes, size_t count)
{
	if ((size_t)(self->end - self->next) < count) {
		fputs("tagflip: code memory is full\n", stderr);
		exit(2);
	}
	memcpy(self->next, bytes, count);
	self->next += count;
}

#define EMIT(self, ...) \
	emit((self), (const uint8_t[]){ __VA_ARGS__ }, sizeof((const uint8_t[]){ __VA_ARGS__ }))

static void emit_address(struct emitter *self, const void *address)
{
	emit(self, &address, sizeof(address));
}

void emit_prologue(struct emitter *self)
{
	EMIT(self, 0x55);		    /* push rbp */
	EMIT(self, 0x48, 0x89, 0xe5);	    /* mov rbp, rsp */
	EMIT(self, 0x53);		    /* push rbx */
	EMIT(self, 0x48, 0x83, 0xec, 0x08); /* sub rsp, 8 */
	EMIT(self, 0x48, 0x89, 0xfb);	    /* mov rbx, rdi */
}

void emit_epilogue(struct emitter *self)
{
	EMIT(self, 0x31, 0xc0);		    /* xor eax, eax */
	EMIT(self, 0x48, 0x83, 0xc4, 0x08); /* add rsp, 8 */
	EMIT(self, 0x5b, 0x5d, 0xc3);	    /* pop rbx; pop rbp; ret */
}

void emit_call(struct emitter *self, const void *function, const void *argument)
{
	if (argument) {
		EMIT(self, 0x48, 0xbf); /* mov rdi, imm64 */
		emit_address(self, argument);
	} else {
		EMIT(self, 0x48, 0x89, 0xdf); /* mov rdi, rbx */
	}
	EMIT(self, 0x48, 0xb8); /* mov rax, imm64 */
	emit_address(self, function);
	EMIT(self, 0xff, 0xd0); /* call rax */
}

void emit_or_dword(struct emitter *self, uint8_t offset, uint8_t bits)
{
	EMIT(self, 0x83, 0x4b, offset, bits); /* or dword [rbx+offset], bits */
}

void emit_and_dword(struct emitter *self, uint8_t offset, uint32_t mask)
{
	EMIT(self, 0x81, 0x63, offset); /* and dword [rbx+offset], mask */
	emit(self, &mask, sizeof(mask));
}

void emit_and_qword(struct emitter *self, uint8_t offset, uint64_t mask)
{
	EMIT(self, 0x48, 0xb9); /* mov rcx, mask */
	emit(self, &mask, sizeof(mask));
	EMIT(self, 0x48, 0x8b, 0x43, offset); /* mov rax, [rbx+offset] */
	EMIT(self, 0x48, 0x21, 0xc8);	      /* and rax, rcx */
	EMIT(self, 0x48, 0x89, 0x43, offset); /* mov [rbx+offset], rax */
}

void emit_and_byte(struct emitter *self, uint8_t offset, uint8_t mask)
{
	EMIT(self, 0x80, 0x63, offset, mask); /* and byte [rbx+offset], mask */
}

void emit_load_store(struct emitter *self, const void *from, uint8_t offset)
{
	EMIT(self, 0x48, 0xb8); /* mov rax, from */
	emit_address(self, from);
	EMIT(self, 0x48, 0x8b, 0x00);	      /* mov rax, [rax] */
	EMIT(self, 0x48, 0x89, 0x43, offset); /* mov [rbx+offset], rax */
}

void emit_store(struct emitter *self, uint8_t offset, uint64_t value)
{
	EMIT(self, 0x48, 0xb8); /* mov rax, value */
	emit(self, &value, sizeof(value));
	EMIT(self, 0x48, 0x89, 0x43, offset); /* mov [rbx+offset], rax */
}

void emit_save_object(struct emitter *self, void *to)
{
	EMIT(self, 0x48, 0xb8); /* mov rax, to */
	emit_address(self, to);
	EMIT(self, 0x48, 0x89, 0x18); /* mov [rax], rbx */
}

void emit_and_byte_through(struct emitter *self, void *from, uint8_t offset, uint8_t mask)
{
	struct jump skip;

	EMIT(self, 0x48, 0xb8); /* mov rax, from */
	emit_address(self, from);
	EMIT(self, 0x48, 0x8b, 0x08); /* mov rcx, [rax] */
	EMIT(self, 0x48, 0x85, 0xc9); /* test rcx, rcx */
	EMIT(self, 0x74, 0x00);	      /* jz skip */
	skip.displacement = self->next - 1;
	EMIT(self, 0x48, 0xc7, 0x00, 0x00, 0x00, 0x00, 0x00); /* mov qword [rax], 0 */
	EMIT(self, 0x80, 0x61, offset, mask);		      /* and byte [rcx+offset], mask */
	emit_land(self, skip);
}

struct jump emit_jump_if_set(struct emitter *self, uint8_t offset, uint8_t bits)
{
	EMIT(self, 0xf6, 0x43, offset, bits); /* test byte [rbx+offset], bits */
	EMIT(self, 0x75, 0x00);		      /* jnz target */
	return (struct jump){ self->next - 1 };
}

struct jump emit_jump(struct emitter *self)
{
	EMIT(self, 0xeb, 0x00); /* jmp target */
	return (struct jump){ self->next - 1 };
}

void emit_land(struct emitter *self, struct jump jump)
{
	*jump.displacement = (uint8_t)(self->next - (jump.displacement + 1));
}
