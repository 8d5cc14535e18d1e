#include "studies/watch/mode.h"

#include <errno.h>

#include "base/mem.h"
#include "doctor/doctor.h"

const char *const watch_mode_names[] = { [WATCH_AUTO] = "auto",
					 [WATCH_HW] = "hw",
					 [WATCH_PAGES] = "pages",
					 [WATCH_PTRACE] = "ptrace",
					 NULL };

static bool works(const char *id, struct finding *ret)
{
	doctor_try(id, ret);
	return ret->status != FINDING_NO;
}

static int choose(enum watch_mode mode, const char *probe, struct err *err)
{
	struct finding finding;

	if (works(probe, &finding))
		return 0;
	(void)err_set(err, -ENOTSUP, "--mode %s does not work here: %s", watch_mode_names[mode],
		      finding.found);
	return finding.enable[0] != '\0' ? err_set_remedy(err, "%s", finding.enable) : -ENOTSUP;
}

static int choose_auto(enum watch_mode *ret, char **ret_reason, struct err *err)
{
	struct finding perf, ptrace;

	if (works("watch-perf", &perf)) {
		*ret = WATCH_HW;
		*ret_reason = NULL;
		return 0;
	}
	if (!works("watch-ptrace", &ptrace)) {
		(void)err_set(err, -ENOTSUP, "nothing can be watched here: %s; %s", perf.found,
			      ptrace.found);
		return err_set_remedy(err, "%s", perf.enable);
	}
	*ret = WATCH_PTRACE;
	*ret_reason = mem_strdup(perf.found);
	return 0;
}

int watch_mode_choose(enum watch_mode wanted, enum watch_mode *ret, char **ret_reason,
		      struct err *err)
{
	static const char *const probes[] = { [WATCH_HW] = "watch-perf",
					      [WATCH_PAGES] = "watch-pages",
					      [WATCH_PTRACE] = "watch-ptrace" };
	int r;

	if (wanted == WATCH_AUTO)
		return choose_auto(ret, ret_reason, err);
	r = choose(wanted, probes[wanted], err);
	if (r == 0)
		*ret = wanted;
	return r;
}
