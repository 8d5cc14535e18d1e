/* `scan --global`: where a variable, or a field of it, lies in the target. */
#include <string.h>

#include "debuginfo/types.h"
#include "studies/scan/code_scan_inside.h"

/* Where the field begins in "NAME.field", "unit.c:NAME.field" or "ns::NAME[3]". */
static const char *field_of(const char *global)
{
	const char *name = global, *colon = global;

	while ((colon = strchr(colon, ':')) != NULL) {
		name = colon[1] == ':' ? name : colon + 1;
		colon += colon[1] == ':' ? 2 : 1;
	}
	return name + strcspn(name, ".[");
}

int scan_global(const char *path, const char *global, uint64_t *ret_low, uint64_t *ret_high,
		struct err *err)
{
	AUTO(types_closep) struct types *types = NULL;
	AUTO(type_global_deinit) struct type_global found = { 0 };
	AUTO(mem_freep) char *name = NULL;
	const char *field = field_of(global);
	int r = types_open(path, &types, err);

	if (r < 0)
		return r;
	name = mem_strndup(global, (size_t)(field - global));
	r = types_global(types, name, field + (*field == '.'), &found, err);
	if (r < 0)
		return r;
	*ret_low = found.address + found.field.offset;
	*ret_high = *ret_low + (found.field.size ? found.field.size : 1);
	return 0;
}
