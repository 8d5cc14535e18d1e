/* Emits x86-64 instructions, as far as scopes need them. Registers: rbx holds the object. */
#ifndef TAGFLIP_EMIT_H
#define TAGFLIP_EMIT_H

#include <stddef.h>
#include <stdint.h>

struct emitter {
	uint8_t *start;
	uint8_t *next;
	uint8_t *end;
};

/* A forward jump whose target is not known yet. */
struct jump {
	uint8_t *displacement;
};

void emit_prologue(struct emitter *self); /* keeps rdi in rbx */
void emit_epilogue(struct emitter *self); /* returns 0 */
void emit_call(struct emitter *self, const void *function, const void *argument); /* NULL: rbx */
void emit_or_dword(struct emitter *self, uint8_t offset, uint8_t bits);
void emit_and_dword(struct emitter *self, uint8_t offset, uint32_t mask);
void emit_and_qword(struct emitter *self, uint8_t offset, uint64_t mask);
void emit_and_byte(struct emitter *self, uint8_t offset, uint8_t mask);
void emit_load_store(struct emitter *self, const void *from, uint8_t offset);
void emit_store(struct emitter *self, uint8_t offset, uint64_t value);
void emit_save_object(struct emitter *self, void *to);

/* and byte [*from + offset], mask; then *from = NULL. Does nothing while *from is NULL. */
void emit_and_byte_through(struct emitter *self, void *from, uint8_t offset, uint8_t mask);

struct jump emit_jump_if_set(struct emitter *self, uint8_t offset, uint8_t bits);
struct jump emit_jump(struct emitter *self);
void emit_land(struct emitter *self, struct jump jump);

#endif
