#include "model/layout.h"

#include "base/mem.h"

void block_layout_deinit(struct block_layout *layout)
{
	VEC_FREE(&layout->fields, field, mem_free(field->name));
	mem_free(layout->type);
	mem_free(layout->by);
	*layout = (struct block_layout){ 0 };
}

const struct layout_field *block_layout_at(const struct block_layout *layout, uint64_t offset)
{
	return VEC_FIND(&layout->fields, field,
			offset >= field->offset &&
				(field->size == 0 || offset - field->offset < field->size));
}
