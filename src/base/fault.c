#include "base/fault.h"

#ifdef REDHAND_FAULTS

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

static const struct {
	const char *name;
	int number;
} fault_errors[] = {
	{ "ENOSPC", ENOSPC }, { "EIO", EIO },	    { "EMFILE", EMFILE },
	{ "ENOMEM", ENOMEM }, { "EACCES", EACCES }, { "EAGAIN", EAGAIN },
};

static int fault_errno(const char *name)
{
	for (size_t i = 0; i < sizeof(fault_errors) / sizeof(fault_errors[0]); i++)
		if (strcmp(name, fault_errors[i].name) == 0)
			return fault_errors[i].number;
	return EIO;
}

int fault_hits(const char *point)
{
	static atomic_long calls;
	const char *spec = getenv("REDHAND_FAULT");
	size_t len = strlen(point);
	char *end;
	long wanted;

	if (!spec || strncmp(spec, point, len) != 0 || spec[len] != ':')
		return 0;
	wanted = strtol(spec + len + 1, &end, 10);
	if (atomic_fetch_add(&calls, 1) + 1 != wanted)
		return 0;
	return fault_errno(*end == ':' ? end + 1 : "EIO");
}

#else
/* ISO C wants at least one declaration in a translation unit. */
typedef int fault_not_compiled_in;
#endif
