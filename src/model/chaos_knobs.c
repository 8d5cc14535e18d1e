#include "model/chaos_knobs.h"

#include <errno.h>
#include <string.h>

#include "base/auto.h"
#include "base/mem.h"

const char *const chaos_knob_names[CHAOS_KNOBS + 1] = {
	"pad", "gap", "pin", "starve", "arm", NULL
};

static unsigned int knob_of(const char *name)
{
	for (unsigned int i = 0; i < CHAOS_KNOBS; i++)
		if (strcmp(chaos_knob_names[i], name) == 0)
			return 1u << i;
	return 0;
}

int chaos_parse(const char *text, unsigned int *ret, struct err *err)
{
	AUTO(mem_freep) char *copy = mem_strdup(text);
	char *rest = copy, *name;
	unsigned int knobs = 0;

	if (strcmp(text, "all") == 0)
		knobs = CHAOS_ALL;
	if (strcmp(text, "none") == 0 || knobs != 0) {
		*ret = knobs;
		return 0;
	}
	while ((name = strsep(&rest, ",")) != NULL) {
		unsigned int knob = knob_of(name);

		if (knob == 0) {
			(void)err_set(err, -EINVAL, "'%s' is no kind of chaos", name);
			(void)err_set_remedy(err,
					     "pad, gap, pin, starve, arm, several of them parted "
					     "by commas, all or none");
			return -EINVAL;
		}
		knobs |= knob;
	}
	*ret = knobs;
	return 0;
}

void chaos_list(unsigned int knobs, struct strbuf *sb)
{
	const char *before = "";

	if (knobs == 0)
		strbuf_adds(sb, "none");
	for (unsigned int i = 0; i < CHAOS_KNOBS; i++) {
		if (!(knobs & 1u << i))
			continue;
		strbuf_addf(sb, "%s%s", before, chaos_knob_names[i]);
		before = ",";
	}
}
