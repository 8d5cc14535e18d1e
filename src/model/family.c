#include "model/family.h"

#include <string.h>

#include "base/strbuf.h"

static bool same_or_none(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) == 0 : a == b;
}

/* Lines of output with as many words, most of them the same: the others are values. */
static bool lines_alike(const char *a, const char *b)
{
	size_t words = 0, same = 0;

	if (!a || !b)
		return a == b;
	while (*a != '\0' && *b != '\0') {
		size_t n = strcspn(a, " "), m = strcspn(b, " ");

		words++;
		same += n == m && memcmp(a, b, n) == 0;
		a += n + strspn(a + n, " ");
		b += m + strspn(b + m, " ");
	}
	return *a == *b && same * 2 >= words;
}

bool signatures_akin(const struct signature *a, const struct signature *b)
{
	if (a->test || b->test)
		return a->test && b->test && strcmp(a->test, b->test) == 0;
	if (a->kind != b->kind)
		return false;
	switch (a->kind) {
	case FAILURE_SIGNAL:
		return a->signal == b->signal &&
		       (!a->site || !b->site || same_or_none(a->site, b->site));
	case FAILURE_EXIT:
		return a->exit_status == b->exit_status && lines_alike(a->crumb, b->crumb);
	case FAILURE_OUTPUT:
		return lines_alike(a->crumb, b->crumb);
	default:
		return true;
	}
}

void failure_families_deinit(struct failure_families *families)
{
	VEC_FOREACH (&families->list, family) {
		VEC_FOREACH (&family->members, member)
			signature_deinit(member);
		VEC_DEINIT(&family->members);
		VEC_DEINIT(&family->counts);
	}
	VEC_DEINIT(&families->list);
}

const struct failure_family *family_of(const struct failure_families *families, const char *id)
{
	VEC_FOREACH (&families->list, family)
		VEC_FOREACH (&family->members, member)
			if (strcmp(member->id, id) == 0)
				return family;
	return NULL;
}
