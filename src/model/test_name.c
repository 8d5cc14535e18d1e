#include "model/test_name.h"

#include <string.h>

#include "base/auto.h"

static bool ends_with(const char *text, size_t len, const char *end, size_t end_len)
{
	return len >= end_len && memcmp(text + len - end_len, end, end_len) == 0;
}

/* "NAME (PLACE)" of unittest: PLACE holds the name already, or not. */
static bool spell_unittest(const char *name, struct strbuf *ret)
{
	size_t len = strcspn(name, " "), place;
	const char *open = name + len;

	if (len == 0 || strncmp(open, " (", 2) != 0)
		return false;
	place = strcspn(open + 2, " )");
	if (open[2 + place] != ')' || open[3 + place] != '\0' || place == 0)
		return false;
	strbuf_add(ret, open + 2, place);
	if (!ends_with(open + 2, place, name, len) || place <= len ||
	    open[2 + place - len - 1] != '.') {
		strbuf_addc(ret, '.');
		strbuf_add(ret, name, len);
	}
	return true;
}

/* Behind the file's name pytest -v prints "::" for each dot, but not among the parameters. */
static bool spell_pytest(const char *name, struct strbuf *ret)
{
	const char *file = strstr(name, ".py::");
	size_t end;

	if (!file)
		return false;
	end = strcspn(file + 5, "[");
	strbuf_add(ret, name, (size_t)(file + 5 - name));
	for (size_t i = 0; i < end; i++)
		if (file[5 + i] == '.')
			strbuf_adds(ret, "::");
		else
			strbuf_addc(ret, file[5 + i]);
	strbuf_adds(ret, file + 5 + end);
	return true;
}

char *test_name_dotted(const char *name)
{
	AUTO(strbuf_deinit) struct strbuf sb = { 0 };

	return spell_unittest(name, &sb) ? strbuf_take(&sb) : NULL;
}

void test_name_spell(const char *name, struct strbuf *ret)
{
	if (!spell_pytest(name, ret) && !spell_unittest(name, ret))
		strbuf_adds(ret, name);
}

bool test_name_same(const char *a, const char *b)
{
	AUTO(strbuf_deinit) struct strbuf x = { 0 };
	AUTO(strbuf_deinit) struct strbuf y = { 0 };

	if (strcmp(a, b) == 0)
		return true;
	test_name_spell(a, &x);
	test_name_spell(b, &y);
	return strcmp(strbuf_str(&x), strbuf_str(&y)) == 0;
}
