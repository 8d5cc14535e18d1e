#include "model/family.h"

#include <string.h>

#include "base/cstr.h"
#include "model/test_name.h"

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
		return a->test && b->test && test_name_same(a->test, b->test);
	if (a->kind != b->kind)
		return false;
	switch (a->kind) {
	case FAILURE_SIGNAL:
		return a->signal == b->signal &&
		       (!a->site || !b->site || cstr_same(a->site, b->site));
	case FAILURE_EXIT:
		return a->exit_status == b->exit_status && lines_alike(a->crumb, b->crumb);
	case FAILURE_OUTPUT:
		return lines_alike(a->crumb, b->crumb);
	default:
		return true;
	}
}

void failure_family_deinit(struct failure_family *family)
{
	VEC_FREE(&family->members, member, signature_deinit(member));
	VEC_DEINIT(&family->counts);
	mem_free(family->block);
}

void failure_families_deinit(struct failure_families *families)
{
	VEC_FREE(&families->list, family, failure_family_deinit(family));
}

const struct failure_family *family_of(const struct failure_families *families, const char *id)
{
	return VEC_FIND(&families->list, family, family_has(family, id));
}

bool family_has(const struct failure_family *family, const char *id)
{
	return VEC_ANY(&family->members, member, strcmp(member->id, id) == 0);
}

bool family_takes(const struct failure_family *family, const struct signature *signature)
{
	return VEC_ANY(&family->members, member,
		       strcmp(member->id, signature->id) == 0 ||
			       signatures_akin(member, signature));
}

void family_count(struct failure_family *family, const struct signature *signature)
{
	struct signature copy;

	for (size_t i = 0; i < family->members.count; i++)
		if (strcmp(family->members.items[i].id, signature->id) == 0) {
			family->counts.items[i]++;
			return;
		}
	signature_copy(&copy, signature);
	VEC_PUSH(&family->members, copy);
	VEC_PUSH(&family->counts, 1);
}

const struct signature *family_name(const struct failure_family *family)
{
	size_t most = 0;

	for (size_t i = 1; i < family->members.count; i++)
		if (family->counts.items[i] > family->counts.items[most])
			most = i;
	return &family->members.items[most];
}

const char *family_test(const struct failure_family *family)
{
	const char *test = family->members.items[0].test;

	VEC_FOREACH (&family->members, member)
		if (!test || !member->test || !test_name_same(member->test, test))
			return NULL;
	return test;
}
