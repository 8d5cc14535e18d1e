#pragma once

#include "base/vec.h"
#include "model/snapshot.h"
#include "wire/log_reader.h"

/*
 * What a record of a log brought along: memory of the target, byte for byte.
 */

/* A blob's bytes, the caller's to free; NULL when it is not there. */
void *blob_read(const struct log_reader *reader, const struct log_item *owner,
		enum log_blob_kind kind, unsigned int index, uint64_t *ret_address,
		size_t *ret_len);

/* The memory that names a thread's Python frames, as kept with a crash or a hit. */
struct python_memory {
	struct log_python record;
	void *blob;		  /* NULL: none was kept */
	VEC(struct piece) pieces; /* of the blob */
};

void python_memory_read(const struct log_reader *reader, const struct log_item *owner,
			struct python_memory *ret);
/* The memory alone; `record` stays empty. */
void python_memory_pieces(const struct log_reader *reader, const struct log_item *owner,
			  struct python_memory *ret);
void python_memory_deinit(struct python_memory *memory);
