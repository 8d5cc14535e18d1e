#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/auto.h"
#include "base/err.h"
#include "base/vec.h"
#include "model/layout.h"

/*
 * What the debug information of one program or library says about its source: fields of types,
 * global variables, the code of functions and lines.
 *
 * Names are written as in the source. In C++ with as much of the scope as is needed:
 * "total", "box<long>::total" and "shapes::box<long>::total" are the same function. A name that
 * does not exist is answered with -ENOENT and the nearest one; one that means several things with
 * -ENOTUNIQ and what it could mean. All addresses are the ones in the file.
 */
struct types;

/* Debug information may be in a separate file, found by build-id or .gnu_debuglink. Without any,
 * only types_global() and types_function() answer, from the symbol table. */
int types_open(const char *path, struct types **ret, struct err *err);
void types_close(struct types *types);
AUTO_DEFINE(struct types, types_close)

struct type_field {
	uint64_t offset; /* from the start of the object, in bytes */
	uint64_t size;	 /* bytes; of a bit-field those that hold it */
	unsigned int bit_offset,
		bit_size; /* within those bytes, from the lowest bit; 0 bits: none */
	char *type;	  /* as text: "struct container *" */
};

void type_field_deinit(struct type_field *field);

/* `type` is "statement", "struct statement", a typedef, "ns::Class"; `path` the field in it:
 * "container", "a.b[3].c"; "" or NULL is all of it. The first complete definition counts; units
 * that place the field differently are an error that names them. */
int types_field(struct types *types, const char *type, const char *path, struct type_field *ret,
		struct err *err);

/* The same for what a function returns (`argument` TYPES_RETURN) or takes as its argument 0, 1, …,
 * which must be a pointer (or C++ reference) to the object. "this" is argument 0 of a method. */
#define TYPES_RETURN (-1)
int types_field_of_function(struct types *types, const char *function, int argument,
			    const char *path, struct type_field *ret, struct err *err);

/* Bytes of a block, and the code that asked for it. */
struct type_place {
	uint64_t address;     /* in the file, inside the function that allocated the block */
	uint64_t size;	      /* of the block */
	uint64_t offset, len; /* in it; a length of 0: unknown */
};

/* The field there as the source calls it, "struct ir_expr.stmt.container": by the one type of that
 * size that the function returns or has a pointer to. -ENOENT when it has none or several, or there
 * is no field (type_at.c). The result is the caller's to free. */
int types_field_at(struct types *types, const struct type_place *place, char **ret,
		   struct err *err);

/* All fields of that block, by the same type; offset and length are not asked for. */
int types_layout_at(struct types *types, const struct type_place *place, struct block_layout *ret,
		    struct err *err);

struct type_global {
	uint64_t address;	 /* of the variable, in the file */
	struct type_field field; /* the part of it that was asked for, from its start */
	char *name;		 /* as its author knows it */
	bool from_symbol;	 /* no debug information: by the symbol table, type unknown */
};

void type_global_deinit(struct type_global *global);

/* `name` may have the source file before it, "unit.c:NAME": needed where several files have a
 * static variable of that name. `path` as above. Thread-local ones are refused (-EOPNOTSUPP). */
int types_global(struct types *types, const char *name, const char *path, struct type_global *ret,
		 struct err *err);

/* A variable that is in one place all the time. */
struct type_variable {
	char *name;
	uint64_t function; /* its address in the file, of one in a frame; 0: in the data */
	int64_t at;	   /* address in the file; in a frame from its end, so negative */
	uint64_t size;
	bool parts; /* an array, or a structure */
};

struct type_variables {
	VEC(struct type_variable) list; /* the data first, each ascending by `at` */
	uint64_t identity;		/* wire_module_identity() */
};

void type_variables_deinit(struct type_variables *variables);

/* Those in .data and .bss, and in frames. Thread-local ones are left out. The caller's frame
 * pointer and the return address at the end of a frame are one without a name. */
void types_variables(struct types *types, struct type_variables *ret);

enum code_piece_kind {
	CODE_FUNCTION, /* the function itself, with its entry */
	CODE_PART,     /* another part of it: what is seldom run and was moved away */
	CODE_INLINED,  /* a copy in another function */
};

struct code_piece {
	enum code_piece_kind kind;
	uint64_t low, high;
	char *into; /* CODE_INLINED: the function that it is a part of; may be NULL */
};

struct code_pieces {
	VEC(struct code_piece) list; /* ascending by low */
	uint64_t entry;		     /* where callers enter; 0 when all of it is inlined */
};

void code_pieces_deinit(struct code_pieces *pieces);

/* All code of a function, every inlined copy included. */
int types_function(struct types *types, const char *name, struct code_pieces *ret, struct err *err);

/* All code of one line; `file` is as much of the end of its path as is needed. -ENODATA when the
 * line has no code; the error says which next one has. Pieces are CODE_PART. */
int types_line(struct types *types, const char *file, uint32_t line, struct code_pieces *ret,
	       struct err *err);
