#pragma once

#include "debuginfo/symbols.h"
#include "model/crash.h"
#include "read/recorded_crash.h"

/*
 * From the records of a trial's crashes to what happened, in words and with names.
 */
enum crash_depth {
	CRASH_SITE,  /* class and stack: enough for a signature */
	CRASH_WHOLE, /* and the life of every block it touched */
	CRASH_DEPTHS,
};

/* All of them, in the order of `places`; CRASH_SITE: only the first. `notes` are those of the logs.
 */
void crash_report_read(const struct crash_places *places, const struct said_list *notes,
		       struct symbols *symbols, enum crash_depth depth, struct crash_report *ret);
