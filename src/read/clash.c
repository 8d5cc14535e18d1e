#include "read/clash.h"

#include <string.h>

#include "base/auto.h"
#include "base/mem.h"

#define LINE_MOST 120u

/* What libc says for EADDRINUSE, EEXIST, EWOULDBLOCK and ETXTBSY; what programs say themselves. */
static const char *const words[] = {
	"address already",  "eaddrinuse", "file exists",     "eexist",	  "temporarily unavailable",
	"ewouldblock",	    "file busy",  "already running", "is locked", "already locked",
	"lock held",	    "is held",	  "cannot lock",     "not lock",  "to lock",
	"another instance", "get lock",	  "port in",
};

char *clash_read(const char *text)
{
	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		const char *at = strcasestr(text, words[i]);
		const char *end = at ? at + strcspn(at, "\n") : NULL;

		while (at && at > text && at[-1] != '\n' && end - at < LINE_MOST)
			at--;
		if (at)
			return mem_strndup(at, strnlen(at, end - at < LINE_MOST ? (size_t)(end - at)
										: LINE_MOST));
	}
	return NULL;
}
