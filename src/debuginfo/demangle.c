#include "debuginfo/demangle.h"

#include <string.h>

#include <libiberty/demangle.h>

#undef ARRAY_SIZE /* libiberty.h brings its own */

#include "base/mem.h"

/* libiberty's demangler knows C++ and both Rust schemes and is the one that binutils and gdb use.
 * It limits its own recursion, but a short crafted name can still expand without bound; longer
 * ones than any compiler makes are left alone. */
#define SYMBOL_MAX 8192

char *demangle(const char *symbol)
{
	size_t len = strlen(symbol);
	const char *at = strchr(symbol, '@');
	AUTO(mem_freep) char *plain = NULL;
	char *text;

	if (at && at > symbol)
		len = (size_t)(at - symbol);
	plain = mem_strndup(symbol, len);
	if (len > SYMBOL_MAX || len < 3 || plain[0] != '_')
		return TAKE(plain);
	/* Only the two prefixes that are certain: automatic mode would otherwise read plain C names
	 * as some other scheme. */
	if (strncmp(plain, "_Z", 2) != 0 && strncmp(plain, "_R", 2) != 0)
		return TAKE(plain);
	text = cplus_demangle(plain, DMGL_PARAMS | DMGL_ANSI | DMGL_AUTO);
	return text ? text : TAKE(plain);
}
