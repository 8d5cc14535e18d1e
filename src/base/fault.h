#pragma once

/*
 * Failure injection for the error-path tests.
 *
 * A wrapper asks fault_hits("write") before the real call. In a build with
 * -Dfaults=true and REDHAND_FAULT=write:3:ENOSPC in the environment the third
 * such call of the process is told to fail with that errno; otherwise the
 * question costs nothing, because it is compiled out.
 */
#ifdef REDHAND_FAULTS
int fault_hits(const char *point); /* 0, or the errno to fail with */
#else
static inline int fault_hits(const char *point)
{
	(void)point;
	return 0;
}
#endif
