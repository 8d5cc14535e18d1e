/* `redhand doctor`: what works on this machine, and with this program. */
#include <stdio.h>
#include <stdlib.h>

#include "cmd/commands.h"
#include "cmd/common.h"
#include "doctor/doctor.h"
#include "report/report_doctor.h"

struct doctor_options {
	struct common_options common;
};

static int run(const struct invocation *inv, struct err *err)
{
	const struct doctor_options *options = inv->options;
	struct diagnosis diagnosis;
	bool usable;
	int r = doctor_examine(inv->program ? inv->program[0] : NULL, &diagnosis, err);

	if (r < 0)
		return r;
	if (options->common.json)
		report_doctor_json(&diagnosis, stdout);
	else
		report_doctor_text(&diagnosis, common_colour(), stdout);
	usable = diagnosis.usable;
	doctor_deinit(&diagnosis);
	return usable ? EXIT_AS_EXPECTED : EXIT_FOUND;
}

const struct command cmd_doctor = {
	.name = "doctor",
	.summary = "What can this machine do, and how is the rest enabled",
	.usage = "[options] [-- PROGRAM]",
	.description =
		"Tries everything that redhand may need on this machine and says for each whether "
		"it works (ok), works in part (limited) or does not (no), what is lost without it, "
		"and how to enable it. Nothing is concluded from a version: watchpoints are set and "
		"hit, a key is locked and a store faults, a process is attached to. It changes "
		"nothing and takes about a second.\n"
		"\n"
		"With PROGRAM it also reads that program without running it: static or dynamic, "
		"stripped or not, source lines, build-id, separate debug file, its own allocator. "
		"A script is followed to its interpreter.\n"
		"\n"
		"What works depends on the user: run it as the user who will hunt. The exit status "
		"is 0 when writes can be caught here, 1 when nothing works to watch memory or "
		"PROGRAM is not something that can be started, 2 when there is no such PROGRAM.",
	.examples = "  redhand doctor\n      what can this machine and this user do?\n\n"
		    "  redhand doctor -- ./build/tests\n"
		    "      and how much can be told about that program?\n\n"
		    "  redhand doctor --json\n      the same for scripts\n",
	COMMON_OPTIONS(struct doctor_options),
	.program = PROGRAM_OPTIONAL,
	.run = run,
};
