#pragma once

#include "base/command.h"

/* One per file cmd_NAME.c; listed in the table in main.c. */
extern const struct command cmd_repro;
extern const struct command cmd_show;
extern const struct command cmd_heap;
extern const struct command cmd_scan;
extern const struct command cmd_compare;
extern const struct command cmd_minimize;
extern const struct command cmd_hunt;
extern const struct command cmd_watch;
extern const struct command cmd_chase;
extern const struct command cmd_bisect;
extern const struct command cmd_bisect_step;
extern const struct command cmd_doctor;
extern const struct command cmd_sentinel;
extern const struct command cmd_case;
extern const struct command cmd_report;
extern const struct command cmd_serve;
extern const struct command cmd_debug;
extern const struct command cmd_worker;
