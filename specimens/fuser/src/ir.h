/*
 * The fusion IR.
 *
 * A container is what users hold: one fusion, or one kernel lowered from it. It
 * owns a storage, and the storage owns the statements: vals (scalars and tensors)
 * and exprs (operations on vals). Every statement knows the container it is in.
 */
#ifndef FUSER_IR_H
#define FUSER_IR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "op.h"

#define IR_MAX_DIMS 4
#define IR_MAX_INPUTS 3
#define IR_MAX_ATTRS 8
#define IR_LABEL_SIZE 64
#define IR_DYNAMIC (-1) /* an extent that only the launch knows */

struct ir_cloner;
struct ir_container;
struct ir_expr;

enum ir_kind { IR_KIND_FUSION, IR_KIND_KERNEL };

enum ir_flags {
	IR_KEEP_NAMES = 1 << 0, /* copies of this container's statements keep their names */
};

enum ir_stmt_type { IR_STMT_VAL, IR_STMT_EXPR };

struct ir_stmt {
	enum ir_stmt_type type;
	uint32_t name; /* unique within one container, per statement type */
	struct ir_container *container;
};

enum ir_val_role { IR_ROLE_INTERNAL, IR_ROLE_INPUT, IR_ROLE_CONSTANT };

struct ir_val {
	struct ir_stmt stmt;
	enum ir_dtype dtype;
	enum ir_val_role role;
	bool is_tensor;
	int rank; /* 0 for scalars */
	int64_t extent[IR_MAX_DIMS];
	int8_t stride_order[IR_MAX_DIMS]; /* outermost first; all zero: row major */
	double value;			  /* IR_ROLE_CONSTANT only */
	struct ir_expr *definition;	  /* NULL for inputs and constants */
};

struct ir_expr {
	struct ir_stmt stmt;
	enum ir_op op;
	int ninputs;
	struct ir_val *inputs[IR_MAX_INPUTS];
	struct ir_val *output;
	int nattrs;
	int64_t attrs[IR_MAX_ATTRS];
};

struct ir_alias {
	struct ir_val *output;
	struct ir_val *input;
};

struct ir_vals {
	struct ir_val **at;
	size_t count;
	size_t capacity;
};

struct ir_exprs {
	struct ir_expr **at;
	size_t count;
	size_t capacity;
};

struct ir_aliases {
	struct ir_alias *at;
	size_t count;
	size_t capacity;
};

struct ir_storage {
	struct ir_container *parent;
	enum ir_kind kind;
	uint32_t next_val;
	uint32_t next_expr;
	struct ir_vals vals;   /* owned, in order of creation */
	struct ir_exprs exprs; /* owned, producers before consumers */
	struct ir_vals inputs;
	struct ir_vals outputs;
	struct ir_aliases aliases;
};

struct ir_launch {
	int64_t grid[3];
	int64_t block[3];
	int64_t shared_bytes;
	int64_t index_bits;
};

struct ir_counters {
	uint64_t created;
	uint64_t cloned;
	uint64_t swapped;
	uint64_t cleared;
};

struct ir_container {
	uint64_t serial;
	uint32_t flags;
	uint32_t users;
	char label[IR_LABEL_SIZE];
	struct ir_storage *storage;
	struct ir_launch launch;
	struct ir_counters counters;
	uint64_t definition_hash;
	int64_t max_elements;
};

/* container.c */
struct ir_container *ir_container_create(enum ir_kind kind, const char *label);
void ir_container_destroy(struct ir_container *c);
void ir_container_clear(struct ir_container *c);

/* A new container of the same kind with copies of every statement. */
struct ir_container *ir_container_copy(const struct ir_container *src);

/* The same as a kernel, whose statements keep the fusion's names. */
struct ir_container *ir_container_lower(const struct ir_container *fusion);

/* Exchanges everything the two containers hold. */
void ir_container_swap(struct ir_container *a, struct ir_container *b);

/* Takes back an ir_container_swap() of the same two. */
void ir_container_restore(struct ir_container *a, struct ir_container *b);

void ir_container_add_input(struct ir_container *c, struct ir_val *v);
void ir_container_add_output(struct ir_container *c, struct ir_val *v);
void ir_container_add_alias(struct ir_container *c, struct ir_val *out, struct ir_val *in);
bool ir_container_is_dynamic(const struct ir_container *c);

/* Writes the statements one per line; returns the length as snprintf does. */
size_t ir_container_print(const struct ir_container *c, char *text, size_t size);

/* storage.c */
struct ir_storage *ir_storage_create(struct ir_container *parent, enum ir_kind kind);
void ir_storage_destroy(struct ir_storage *s);
void ir_storage_clear(struct ir_storage *s);
void ir_storage_copy(const struct ir_storage *src, struct ir_storage *dst);
void ir_storage_swap(struct ir_storage *a, struct ir_storage *b);
void ir_storage_add_val(struct ir_storage *s, struct ir_val *v);
void ir_storage_add_expr(struct ir_storage *s, struct ir_expr *e);
void ir_vals_push(struct ir_vals *vals, struct ir_val *v);
void ir_aliases_push(struct ir_aliases *aliases, struct ir_alias alias);

/* node.c: everything made here belongs to the container's storage at once. */
struct ir_val *ir_scalar_create(struct ir_container *c, enum ir_dtype dtype);
struct ir_val *ir_constant_create(struct ir_container *c, enum ir_dtype dtype, double value);
struct ir_val *ir_tensor_create(struct ir_container *c, enum ir_dtype dtype, int rank,
				const int64_t *extent);

/* NULL when the operands do not fit the operation. */
struct ir_expr *ir_expr_create(struct ir_container *c, enum ir_op op, int ninputs,
			       struct ir_val *const *inputs, int nattrs, const int64_t *attrs);
struct ir_val *ir_val_clone(const struct ir_val *src, struct ir_cloner *cloner);
struct ir_expr *ir_expr_clone(const struct ir_expr *src, struct ir_cloner *cloner);
bool ir_val_is_dynamic(const struct ir_val *v);
int64_t ir_val_elements(const struct ir_val *v);

/* shape.c: fills in type, rank and extents of e->output from its operands. */
bool ir_expr_infer(struct ir_expr *e);

#endif
