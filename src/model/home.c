/*
 * Where a value lives, and whether it is the same place in another run.
 */
#include "model/home.h"

#include <string.h>

#include "base/cstr.h"

const char *home_kind_name(enum home_kind kind)
{
	static const char *const names[HOME_KINDS] = {
		[HOME_UNKNOWN] = "unknown", [HOME_BLOCK] = "block",	[HOME_GLOBAL] = "global",
		[HOME_STACK] = "stack",	    [HOME_ADDRESS] = "address", [HOME_THREAD] = "thread",
	};

	return kind < HOME_KINDS ? names[kind] : "unknown";
}

/* Of some blocks only the stack is known, not the thread either. */
bool key_same_context(const char *a, const char *b)
{
	const char *end_a = a ? strrchr(a, '#') : NULL, *end_b = b ? strrchr(b, '#') : NULL;
	size_t len_a, len_b;

	if (!a || !b)
		return false;
	len_a = end_a && end_b ? (size_t)(end_a - a) : strcspn(a, "@#");
	len_b = end_a && end_b ? (size_t)(end_b - b) : strcspn(b, "@#");
	return len_a > 0 && len_a == len_b && memcmp(a, b, len_a) == 0;
}

bool key_same_stack(const char *a, const char *b)
{
	size_t len = a ? strcspn(a, "@#") : 0;

	return len > 0 && b && strcspn(b, "@#") == len && memcmp(a, b, len) == 0;
}

bool same_variable(const struct home *a, const struct home *b)
{
	return a->kind == HOME_GLOBAL && b->kind == HOME_GLOBAL && a->name && b->name &&
	       strcmp(a->name, b->name) == 0 && a->module && b->module &&
	       strcmp(a->module, b->module) == 0;
}

bool home_same(const struct home *a, const struct home *b)
{
	if (a->kind != b->kind || a->offset != b->offset)
		return false;
	switch (a->kind) {
	case HOME_BLOCK:
		return key_same_context(a->key, b->key);
	case HOME_GLOBAL:
		/* Without a name the offset is the one in the file. */
		if (!a->name && !b->name)
			return cstr_known_same(a->module, b->module);
		return cstr_known_same(a->name, b->name);
	case HOME_STACK:
		return cstr_known_same(a->name, b->name);
	case HOME_THREAD:
		return true;
	case HOME_ADDRESS:
		return a->address != 0 && a->address == b->address;
	default:
		return false;
	}
}
