#pragma once

#include "base/pack.h"
#include "model/evidence.h"

/*
 * Model types as bytes. Private to model/.
 *
 * One function per type walks its fields in order, for writing and for reading alike, so that
 * what is written is what is read. Reading takes any bytes: lengths and choices are checked, text
 * is made printable again, and after the first fault everything is zero.
 */
struct archive {
	struct strbuf *out; /* NULL: reading */
	struct unpacker in;
	uint64_t version; /* of what is read or written; a field that came later asks for it */
};

/* Reads the version. -EPROTO: newer than `newest`. -EBADMSG: nobody ever wrote such a number. */
int archive_begin(struct archive *a, uint64_t newest);

void archive_u64(struct archive *a, uint64_t *value);
void archive_i64(struct archive *a, int64_t *value);
void archive_uint(struct archive *a, unsigned int *value);
void archive_int(struct archive *a, int *value);
void archive_bool(struct archive *a, bool *value);
void archive_double(struct archive *a, double *value);
void archive_text(struct archive *a, char **text);
void archive_chars(struct archive *a, char *text, size_t room); /* a NUL-terminated array */
void archive_strv(struct archive *a, struct strv *strv);
void archive_bytes(struct archive *a, struct strbuf *bytes);
void archive_stack(struct archive *a, struct stack *stack);
void archive_home(struct archive *a, struct home *home);
void archive_block(struct archive *a, struct block_life *block);
void archive_block_or_null(struct archive *a, struct block_life **block);

/* Is there one? When reading, allocates it. */
bool archive_part(struct archive *a, void **part, size_t size);

/* How many items follow; when reading, no more than bytes are left. */
uint64_t archive_count(struct archive *a, uint64_t count);

/* A value of an enum: anything from `count` on is damage. */
unsigned int archive_choice(struct archive *a, unsigned int value, unsigned int count);
#define ARCHIVE_CHOICE(a, slot, count) (*(slot) = archive_choice(a, (unsigned int)*(slot), count))

#define ARCHIVE_PART(a, slot) archive_part(a, (void **)(slot), sizeof(**(slot)))

#define ARCHIVE_NUMBERS(a, vec)                                   \
	do {                                                      \
		uint64_t count_ = archive_count(a, (vec)->count); \
		for (uint64_t i_ = 0; i_ < count_; i_++) {        \
			if (!(a)->out)                            \
				VEC_PUSH(vec, 0);                 \
			archive_u64(a, &(vec)->items[i_]);        \
		}                                                 \
	} while (0)
