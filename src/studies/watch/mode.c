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

static int refuse(const char *what, const struct finding *finding, struct err *err)
{
	(void)err_set(err, -ENOTSUP, "%s: %s", what, finding->found);
	return finding->enable[0] != '\0' ? err_set_remedy(err, "%s", finding->enable) : -ENOTSUP;
}

static int choose_hw(struct err *err)
{
	struct finding perf;

	return works("watch-perf", &perf) ? 0 : refuse("--mode hw does not work here", &perf, err);
}

static int choose_ptrace(struct err *err)
{
	struct finding ptrace;

	return works("watch-ptrace", &ptrace)
		       ? 0
		       : refuse("--mode ptrace does not work here", &ptrace, err);
}

static int choose_pages(struct err *err)
{
	struct finding pages;

	return works("watch-pages", &pages)
		       ? 0
		       : refuse("--mode pages does not work here", &pages, err);
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
	int r;

	switch (wanted) {
	case WATCH_AUTO:
		return choose_auto(ret, ret_reason, err);
	default:
		r = wanted == WATCH_HW	    ? choose_hw(err)
		    : wanted == WATCH_PAGES ? choose_pages(err)
					    : choose_ptrace(err);
		if (r < 0)
			return r;
		*ret = wanted;
		*ret_reason = mem_strdup("as asked for");
		return 0;
	}
}
