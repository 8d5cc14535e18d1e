#include "read/blobs.h"

#include <string.h>

#define BLOB_MAX (16u << 20)

void *blob_read(const struct log_reader *reader, const struct log_item *owner,
		enum log_blob_kind kind, unsigned int index, uint64_t *ret_address, size_t *ret_len)
{
	struct log_blob_info info;
	void *bytes;

	if (!log_blob_gather(reader, owner, kind, index, NULL, 0, &info) || info.total == 0 ||
	    info.total > BLOB_MAX)
		return NULL;
	bytes = mem_alloc((size_t)info.total + 1);
	if (!log_blob_gather(reader, owner, kind, index, bytes, (size_t)info.total, &info)) {
		mem_free(bytes);
		return NULL;
	}
	if (ret_address)
		*ret_address = info.address;
	*ret_len = (size_t)info.total;
	return bytes;
}

void python_memory_pieces(const struct log_reader *reader, const struct log_item *owner,
			  struct python_memory *ret)
{
	struct log_kept head;
	size_t len = 0;

	ret->blob = blob_read(reader, owner, LOG_BLOB_PYTHON, 0, NULL, &len);
	for (size_t at = 0; ret->blob && len - at > sizeof(head);) {
		struct piece piece = { .bytes = (uint8_t *)ret->blob + at + sizeof(head) };

		memcpy(&head, (uint8_t *)ret->blob + at, sizeof(head));
		at += sizeof(head);
		/* Zeros where a part of the blob was lost: what follows cannot be told apart. */
		if (head.bytes == 0 || head.bytes > len - at)
			break;
		piece.address = head.address;
		piece.len = head.bytes;
		VEC_PUSH(&ret->pieces, piece);
		at += head.bytes + (-head.bytes & 7);
		if (at > len)
			break;
	}
}

void python_memory_read(const struct log_reader *reader, const struct log_item *owner,
			struct python_memory *ret)
{
	struct log_item item = *owner;

	while (log_next_owned(reader, owner->head.seq, &item))
		if (item.head.type == LOG_PYTHON)
			(void)log_payload(&item, &ret->record, sizeof(ret->record));
	python_memory_pieces(reader, owner, ret);
}

void python_memory_deinit(struct python_memory *memory)
{
	mem_free(memory->blob);
	VEC_DEINIT(&memory->pieces);
}
