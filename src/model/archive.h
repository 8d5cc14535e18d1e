#pragma once

#include "base/members.h"
#include "base/pack.h"
#include "model/frame.h"
#include "model/home.h"
#include "model/said.h"

/*
 * What a type is made of, and what follows from that: its bytes in the case and back, a copy, its
 * end. One table of fields per type does all of it. Private to model/.
 *
 * Reading takes any bytes: lengths and choices are checked, text is made printable again, and after
 * the first fault everything is zero. A new field raises the version of what it belongs to and is
 * `since` that one, so that older cases stay readable.
 */
struct archive {
	struct strbuf *out; /* NULL: reading */
	struct unpacker in;
	uint64_t version;   /* of what is read or written; a field that came later asks for it */
	unsigned int depth; /* of statements in statements */
};

enum field_kind {
	FIELD_END,
	FIELD_U64, /* int64_t, too */
	FIELD_UINT,
	FIELD_INT,
	FIELD_BOOL,
	FIELD_REAL,
	FIELD_CHOICE, /* an enum, or a count: anything from `limit` on is damage */
	FIELD_CHARS,  /* an array of `limit` bytes that ends in NUL */
	FIELD_TEXT,   /* from here on it owns something */
	FIELD_STRV,
	FIELD_BYTES,   /* struct strbuf */
	FIELD_NUMBERS, /* VEC(uint64_t) */
	FIELD_STACK,
	FIELD_SAID,	 /* a text before `since` */
	FIELD_SAID_LIST, /* texts before `since` */
	FIELD_STRUCT,	 /* `of` */
	FIELD_PART,	 /* a pointer to one of `of`, or NULL */
	FIELD_LIST,	 /* VEC of them */
	FIELD_HOOK,	 /* `hook` does it */
	FIELD_OLD,	 /* `hook` reads what stood there before `since` */
};

struct model_fields;

struct model_field {
	enum field_kind kind;
	unsigned short offset, limit;
	unsigned char since; /* version; 0: always */
	const struct model_fields *of;
	void (*hook)(struct archive *a, void *object);
};

struct model_fields {
	size_t size;
	const struct model_field *list; /* ends in FIELD_END */
};

/* Rows of a table. FIELD: members as their types are told; an enum must be a choice. */
#define FIELD(type, ...) FOR_MEMBERS(FIELD_ROW, (0, type), __VA_ARGS__)
#define FIELD_SINCE(version, type, ...) FOR_MEMBERS(FIELD_ROW, (version, type), __VA_ARGS__)
#define FIELD_CHOICE(type, member, end) FIELD_CHOICE_SINCE(0, type, member, end)
#define FIELD_CHOICE_SINCE(version, type, member, end) \
	FIELD_AS(FIELD_CHOICE, version, type, member, .limit = (end))
#define FIELD_NUMBERS(type, ...) FOR_MEMBERS(FIELD_ROW_NUMBERS, type, __VA_ARGS__)
#define FIELD_LIST(table, type, ...) \
	FOR_MEMBERS(FIELD_ROW_OF, (FIELD_LIST, table, type), __VA_ARGS__)
#define FIELD_PART(table, type, ...) \
	FOR_MEMBERS(FIELD_ROW_OF, (FIELD_PART, table, type), __VA_ARGS__)
#define FIELD_STRUCT(table, type, ...) \
	FOR_MEMBERS(FIELD_ROW_OF, (FIELD_STRUCT, table, type), __VA_ARGS__)
#define FIELD_STRUCT_SINCE(version, table, type, member) \
	FIELD_AS(FIELD_STRUCT, version, type, member, .of = &(table))
#define FIELD_BY(function)                             \
	{                                              \
		.kind = FIELD_HOOK, .hook = (function) \
	}
#define FIELD_BEFORE(version, function)                                   \
	{                                                                 \
		.kind = FIELD_OLD, .since = (version), .hook = (function) \
	}

#define FIELD_AS(as, version, type, member, ...)                                           \
	{                                                                                  \
		.kind = (as), .offset = offsetof(struct type, member), .since = (version), \
		__VA_ARGS__                                                                \
	}
#define FIELD_ROW(of, member) FIELD_ROW_IN(FIELD_BOTH of, member)
#define FIELD_ROW_IN(...) FIELD_ROW_AS(__VA_ARGS__)
#define FIELD_ROW_AS(version, type, member)                                     \
	FIELD_AS(FIELD_KIND(((struct type *)0)->member), version, type, member, \
		 .limit = FIELD_ROOM(((struct type *)0)->member))
#define FIELD_ROW_OF(of, member) FIELD_ROW_OF_IN(FIELD_BOTH of, member)
#define FIELD_ROW_OF_IN(...) FIELD_ROW_OF_AS(__VA_ARGS__)
#define FIELD_ROW_OF_AS(as, table, type, member) FIELD_AS(as, 0, type, member, .of = &(table))
#define FIELD_ROW_NUMBERS(type, member) FIELD_AS(FIELD_NUMBERS, 0, type, member)
#define FIELD_BOTH(...) __VA_ARGS__
#define FIELD_ROOM(member) (FIELD_KIND(member) == FIELD_CHARS ? sizeof(member) : 0)
#define FIELD_KIND(member) \
	_Generic(&(member),                            \
		 char(*)[sizeof(member)]: FIELD_CHARS, \
		 char **: FIELD_TEXT,                  \
		 const char **: FIELD_TEXT,            \
		 uint64_t *: FIELD_U64,                \
		 int64_t *: FIELD_U64,                 \
		 unsigned int *: FIELD_UINT,           \
		 int *: FIELD_INT,                     \
		 bool *: FIELD_BOOL,                   \
		 double *: FIELD_REAL,                 \
		 struct strv *: FIELD_STRV,            \
		 struct strbuf *: FIELD_BYTES,         \
		 struct stack *: FIELD_STACK,          \
		 struct said *: FIELD_SAID,            \
		 struct said_list *: FIELD_SAID_LIST)
#define MODEL_FIELDS(name, type, ...)                                                           \
	const struct model_fields name = {                                                      \
		sizeof(struct type), (const struct model_field[]){ __VA_ARGS__, { FIELD_END } } \
	}

/* Of the types that several others have in them. */
extern const struct model_fields home_fields, block_fields, cut_fields, crash_fields;

/* Writes or reads all of them, in their order. */
void fields_walk(struct archive *a, const struct model_fields *fields, void *object);

/* `to` is not freed before. */
void fields_copy(const struct model_fields *fields, void *to, const void *from);
void fields_free(const struct model_fields *fields, void *object); /* all zero then */

/* In memory of its own; NULL gives NULL. */
void *fields_dup(const struct model_fields *fields, const void *object);
void fields_drop(const struct model_fields *fields, void *object);

/* Reads the version. -EPROTO: newer than `newest`. -EBADMSG: nobody ever wrote such a number. */
int archive_begin(struct archive *a, uint64_t newest);

/* For hooks. */
void archive_u64(struct archive *a, uint64_t *value);
void archive_bool(struct archive *a, bool *value);
void archive_chars(struct archive *a, char *text, size_t room);
void archive_strv(struct archive *a, struct strv *strv);
unsigned int archive_choice(struct archive *a, unsigned int value, unsigned int count);
