#include "base/value.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct unit {
	const char *name;
	double factor;
};

/* A number and one of these units; the unit "" is the default. */
static bool number_with_unit(const char *text, const struct unit *units, double *ret)
{
	double number;
	char *end;

	/* strtod() would also take hexadecimal, "inf" and leading white space. */
	if (!isdigit((unsigned char)text[0]) && text[0] != '.')
		return false;
	if (text[0] == '0' && (text[1] == 'x' || text[1] == 'X'))
		return false;
	errno = 0;
	number = strtod(text, &end);
	if (end == text || errno == ERANGE || !isfinite(number))
		return false;
	for (const struct unit *unit = units; unit->name; unit++) {
		if (strcasecmp(end, unit->name) == 0) {
			*ret = number * unit->factor;
			return true;
		}
	}
	return false;
}

int value_count(const char *text, uint64_t min, uint64_t max, uint64_t *ret, struct err *err)
{
	unsigned long long number = 0;
	bool ok = isdigit((unsigned char)text[0]);
	char *end;

	if (ok) {
		errno = 0;
		number = strtoull(text, &end, 10);
		ok = errno == 0 && *end == '\0' && number >= min && (max == 0 || number <= max);
	}
	if (!ok && max > 0)
		return err_set(err, -EINVAL, "wants a whole number from %llu to %llu, not '%s'",
			       (unsigned long long)min, (unsigned long long)max, text);
	if (!ok)
		return err_set(err, -EINVAL, "wants a whole number of at least %llu, not '%s'",
			       (unsigned long long)min, text);
	*ret = number;
	return 0;
}

int value_share(const char *text, double *ret, struct err *err)
{
	static const struct unit units[] = { { "", 1 }, { "%", 0.01 }, { NULL, 0 } };
	double share;

	if (!number_with_unit(text, units, &share) || share <= 0 || share >= 1)
		return err_set(err, -EINVAL,
			       "wants a share between 0 and 1 (or 0%% and 100%%), not '%s'", text);
	*ret = share;
	return 0;
}

int value_size(const char *text, uint64_t *ret, struct err *err)
{
	static const struct unit units[] = {
		{ "", 1 },	    { "k", 1024 },	 { "kib", 1024 },	{ "m", 1048576 },
		{ "mib", 1048576 }, { "g", 1073741824 }, { "gib", 1073741824 }, { NULL, 0 },
	};
	double size;

	if (!number_with_unit(text, units, &size) || size > 1e15)
		return err_set(err, -EINVAL, "wants a size such as 64K or 1M, not '%s'", text);
	*ret = (uint64_t)size;
	return 0;
}

int value_duration(const char *text, uint64_t *ret_ns, struct err *err)
{
	static const struct unit units[] = {
		{ "", 1e9 },	 { "ms", 1e6 },	  { "s", 1e9 }, { "m", 60e9 },
		{ "min", 60e9 }, { "h", 3600e9 }, { NULL, 0 },
	};
	double ns;

	if (!number_with_unit(text, units, &ns) || ns > 1e18)
		return err_set(err, -EINVAL, "wants a time such as 250ms, 30s, 5m or 1h, not '%s'",
			       text);
	*ret_ns = (uint64_t)ns;
	return 0;
}
