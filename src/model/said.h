#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/strbuf.h"
#include "base/vec.h"

/*
 * A statement for people, without its words: which one it is, and its values.
 *
 * Whoever finds something out says SAY(&said, "verdict:race", said_home(&home), …); the sentence
 * stands under that id in report/words_*.c, where {0}, {1} are the values in that order
 * (docs/howto-words.md). What is stored keeps ids and values, so that a better sentence is told
 * about an old case, too.
 */
struct home;	 /* model/home.h */
struct stack;	 /* model/frame.h */
struct frame;	 /* model/frame.h */
struct evidence; /* model/evidence.h */
struct said;

enum said_kind {
	SAID_NONE, /* not known: what is said about it is left out */
	SAID_NUMBER,
	SAID_SIGNED,
	SAID_REAL,
	SAID_TEXT, /* a name, a command, somebody's own words */
	SAID_SITE, /* `text`: a place in the code; NULL: nobody knows which */
	SAID_HOME,
	SAID_PART, /* another statement */
	SAID_KINDS,
};

struct said_value {
	enum said_kind kind;
	union {
		uint64_t number;
		int64_t integer;
		double real;
		char *text;
		struct home *home;
		struct said *part;
	};
};

/* All zero: nothing is said. Owns everything in it. */
struct said {
	char *id;
	char *text; /* of a person, or of an older redhand: said as it is; NULL: `id` has the words
		     */
	VEC(struct said_value) values;
};

struct said_list {
	VEC(struct said) list;
};

/* Replaces what `ret` said. The values become its own. */
#define SAY(ret, id, ...) \
	said_make(ret, id, (struct said_value[]){ { 0 }, ##__VA_ARGS__, { .kind = SAID_KINDS } })
void said_make(struct said *ret, const char *id, struct said_value *values);

/* The same at the end of a list. */
#define SAY_TOO(ret_list, id, ...) SAY(said_new(ret_list), id, ##__VA_ARGS__)
struct said *said_new(struct said_list *list);
/* Takes the statement over, unless the list says the same already. */
void said_add_once(struct said_list *list, struct said *said);

/* Copies what is given; NULL and "no such thing" become SAID_NONE. */
struct said_value said_none(void);
struct said_value said_number(uint64_t value);
struct said_value said_count(uint64_t value); /* none for 0 */
struct said_value said_flag(bool value);      /* likewise */
struct said_value said_signed(int64_t value);
struct said_value said_real(double value);
struct said_value said_text(const char *text);
struct said_value said_take(char *text);     /* takes it */
struct said_value said_word(const char *id); /* a part without values */
struct said_value said_site(const struct stack *stack);
struct said_value said_frame(const struct frame *frame);
struct said_value said_home(const struct home *home);
struct said_value said_part(struct said *part);		/* takes it, and leaves it empty */
struct said_value said_copied(const struct said *part); /* …leaves it as it is */
struct said_value said_change(uint64_t old, uint64_t new, unsigned int len); /* none for len 0 */

/* Adds one more value. */
void said_add(struct said *said, struct said_value value);

bool said_anything(const struct said *said);
bool said_same(const struct said *a, const struct said *b);

/* The id and the values, for whoever has no words: "verdict:race (…)". Adds nothing where nothing
 * is said. */
void said_plainly(const struct said *said, struct strbuf *sb);

/* As bytes for the case and back (archive.c). False: damaged, or of a newer redhand; `ret` is as it
 * was. */
void said_pack(const struct said *said, struct strbuf *sb);
bool said_unpack(const void *bytes, size_t len, struct said *ret);

void said_as_text(struct said *ret, const char *text); /* replaces what was said; NULL: nothing */
void said_copy(struct said *to, const struct said *from); /* `to` is not freed before */
void said_move(struct said *to, struct said *from);	  /* `to` is; `from` says nothing then */
void said_deinit(struct said *said);
void said_list_copy(struct said_list *to, const struct said_list *from); /* adds */
void said_list_deinit(struct said_list *list);
