#include "doctor/probe.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/auto.h"
#include "base/fd.h"
#include "base/mem.h"

void probe_say(struct finding *finding, enum finding_status status, const char *fmt, ...)
{
	va_list args;

	finding->status = status;
	va_start(args, fmt);
	(void)vsnprintf(finding->found, sizeof(finding->found), fmt, args);
	va_end(args);
}

void probe_lost(struct finding *finding, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	(void)vsnprintf(finding->lost, sizeof(finding->lost), fmt, args);
	va_end(args);
}

void probe_enable(struct finding *finding, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	(void)vsnprintf(finding->enable, sizeof(finding->enable), fmt, args);
	va_end(args);
}

long probe_read_sysctl(const char *path)
{
	AUTO(mem_freep) char *text = NULL;
	char *end;
	long value;

	if (file_read(path, 256, &text, NULL, NULL) < 0)
		return PROBE_NO_SYSCTL;
	errno = 0;
	value = strtol(text, &end, 10);
	return end == text || errno != 0 ? PROBE_NO_SYSCTL : value;
}
