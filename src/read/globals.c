#include "read/globals.h"

#include <string.h>

/* The module whose data the address lies in: its own mapping, or the zeroed part behind it. */
static bool find_module(struct event_log *log, uint64_t address, struct log_module *ret,
			struct log_item *ret_item)
{
	struct log_item item;
	bool found = false;

	VEC_FOREACH (&log->module_records, at) {
		struct log_module module;

		if (!log_record_at(&log->reader, *at, &item) ||
		    !log_payload(&item, &module, sizeof(module)) || address < module.low ||
		    (found && module.low < ret->low))
			continue;
		*ret = module;
		*ret_item = item;
		found = true;
	}
	return found;
}

bool global_find(struct event_log *log, struct symbols *symbols, uint64_t address,
		 struct global_place *ret)
{
	struct mapping mapping = { .perms = MAPPING_READ | MAPPING_EXEC, .bias_known = true };
	struct log_module module;
	AUTO(mem_freep) char *path = NULL;
	struct log_item item;
	uint64_t offset = 0;

	*ret = (struct global_place){ 0 };
	if (!find_module(log, address, &module, &item))
		return false;
	path = event_log_module_path(&item, &module);
	mapping.start = module.text_low;
	mapping.end = module.text_high;
	mapping.bias = module.bias;
	mapping.path = path;
	if (module.build_id_bytes <= sizeof(module.build_id))
		mapping.build_id_len = module.build_id_bytes;
	memcpy(mapping.build_id, module.build_id, mapping.build_id_len);
	ret->name = symbols_global(symbols, &mapping, address - module.bias, &offset);
	/* Behind the file's own mapping only a name tells that it still belongs to it. */
	if (!ret->name && address >= module.high)
		return false;
	ret->module = mem_strdup(path);
	ret->offset = address - module.bias;
	ret->within = ret->name ? offset : 0;
	return true;
}
