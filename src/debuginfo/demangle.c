#include "debuginfo/demangle.h"

#include <string.h>

#include <libiberty/demangle.h>

#undef ARRAY_SIZE /* libiberty.h brings its own */

#include "base/mem.h"

/* libiberty's demangler knows C++, D and both Rust schemes and is the one that binutils and gdb
 * use. It limits its own recursion, but a short crafted name can still expand without bound; longer
 * ones than any compiler makes are left alone. */
#define SYMBOL_MAX 8192

/* Copies of a function that the compiler made for itself ("f.constprop.0", "f.cold") are the
 * function, to its author. Cuts such endings off; returns the new length. */
static size_t without_clone_suffix(const char *symbol, size_t len)
{
	static const char *const words[] = { ".constprop", ".isra", ".part",	  ".cold",
					     ".lto_priv",  ".llvm", ".localalias" };

	for (;;) {
		size_t end = len, word = 0;

		while (end > 0 && symbol[end - 1] >= '0' && symbol[end - 1] <= '9')
			end--;
		if (end < len && end > 0 && symbol[end - 1] == '.')
			end--;
		else
			end = len;
		for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
			size_t n = strlen(words[i]);

			if (end > n && memcmp(symbol + end - n, words[i], n) == 0)
				word = n;
		}
		if (word == 0)
			return len;
		len = end - word;
	}
}

char *demangle(const char *symbol)
{
	size_t len = strlen(symbol);
	const char *at = strchr(symbol, '@');
	AUTO(mem_freep) char *plain = NULL;
	char *text;

	if (at && at > symbol)
		len = (size_t)(at - symbol);
	len = without_clone_suffix(symbol, len);
	plain = mem_strndup(symbol, len);
	if (len > SYMBOL_MAX || len < 3 || plain[0] != '_')
		return TAKE(plain);
	/* D's names go on with the length of a package's; _Dmain is its author's main. */
	if (plain[1] == 'D' && plain[2] >= '1' && plain[2] <= '9') {
		text = cplus_demangle(plain, DMGL_PARAMS | DMGL_DLANG);
		return text ? text : TAKE(plain);
	}
	/* Only the two prefixes that are certain: automatic mode would otherwise read plain C names
	 * as some other scheme. */
	if (strncmp(plain, "_Z", 2) != 0 && strncmp(plain, "_R", 2) != 0)
		return TAKE(plain);
	text = cplus_demangle(plain, DMGL_PARAMS | DMGL_ANSI | DMGL_AUTO);
	return text ? text : TAKE(plain);
}

/* Where the arguments begin: "operator()" and "(anonymous namespace)" have brackets of their own.
 */
static size_t without_arguments(const char *name)
{
	static const char *const own[] = { "operator()", "(anonymous namespace)" };
	unsigned int angles = 0;

	for (const char *at = name; *at != '\0'; at++) {
		for (size_t i = 0; i < ARRAY_SIZE(own); i++)
			if (strncmp(at, own[i], strlen(own[i])) == 0)
				at += strlen(own[i]);
		angles += *at == '<';
		angles -= *at == '>' && angles > 0;
		if (*at == '(' && angles == 0 && at != name)
			return (size_t)(at - name);
		if (*at == '\0')
			break;
	}
	return strlen(name);
}

bool demangled_matches(const char *name, const char *wanted)
{
	size_t len = without_arguments(name), wanted_len = strlen(wanted);

	if (strcmp(name, wanted) == 0)
		return true;
	if (wanted_len > len || memcmp(name + len - wanted_len, wanted, wanted_len) != 0)
		return false;
	/* Templates come with the type of their result before the name. */
	return wanted_len == len || name[len - wanted_len - 1] == ' ' ||
	       (len - wanted_len >= 2 && memcmp(name + len - wanted_len - 2, "::", 2) == 0);
}
