#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/*
 * What to watch, as the user writes it: --on SPEC.
 *
 *	global:NAME   addr:0x…   alloc:FUNC[,size=N]   alloc:FILE:LINE   key:CONTEXT[@LANE]#ORDINAL
 *	ret:FUNC      argN:FUNC  pytype:NAME           struct NAME
 *
 * each with +OFFSET[:LEN] or, with debug information, .field at its end. What a function returns or
 * is given, and an object of Python's, may have -OFFSET: an object has words of the interpreter's
 * before its address. NAME of pytype: may be MODULE.NAME.
 */
enum spec_kind {
	SPEC_GLOBAL,
	SPEC_ADDRESS,
	SPEC_ALLOC,	 /* by function */
	SPEC_ALLOC_LINE, /* by file and line */
	SPEC_KEY,
	SPEC_RETURN,
	SPEC_ARGUMENT,
	SPEC_PYTHON_TYPE,
	SPEC_STRUCT, /* blocks as large as this struct */
};

struct spec {
	enum spec_kind kind;
	char *name;	   /* function, global, file, type; NULL for addresses and keys */
	size_t name_at;	   /* where it stands in the text */
	unsigned int line; /* SPEC_ALLOC_LINE */
	unsigned int argument;
	uint64_t address;
	uint64_t hash; /* SPEC_KEY */
	uint32_t lane, ordinal;
	bool lane_given;
	uint64_t size; /* 0: any */
	bool offset_given;
	int64_t offset;
	uint64_t len; /* 0: not given */
	char *field;  /* "a.b", "struct x.y"; NULL */
	size_t field_at;
};

/* Of SPEC_PYTHON_TYPE, a field may be one of these: where they are goes by Python's version. */
enum spec_python_word {
	SPEC_REFCNT,
	SPEC_TYPE,
	SPEC_MANAGED_DICT,
	SPEC_VALUES, /* of the instance's attributes */
	SPEC_PYTHON_WORDS,
};

/* SPEC_PYTHON_WORDS: it is none. */
enum spec_python_word spec_python_word(const char *field);

/* -EINVAL with the place of the mistake under the text. */
int spec_parse(const char *text, struct spec *ret, struct err *err);
void spec_deinit(struct spec *spec);

/* For later trouble with a part of it: the same kind of message. */
int err_set_in_spec(const char *text, size_t at, struct err *err, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
