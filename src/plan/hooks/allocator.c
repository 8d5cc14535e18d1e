#include "plan/hooks/allocator.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/command.h"
#include "wire/plan.h"

static const struct {
	const char *name;
	enum hook_role role;
	const char *arguments; /* when none are given */
} kinds[] = {
	{ "alloc", HOOK_ALLOC, "size@0" },
	{ "free", HOOK_FREE, "ptr@0" },
	{ "realloc", HOOK_REALLOC, "ptr@0,size@1" },
};

struct allocator_parser {
	const char *text; /* the whole */
	struct err *err;
};

static int err_set_here(const struct allocator_parser *p, const char *at, const char *what)
{
	(void)err_set(p->err, -EINVAL, "%s, at character %zu of '%s'", what,
		      (size_t)(at - p->text) + 1, p->text);
	return err_set_remedy(p->err, "alloc=FUNC(size@0) free=FUNC(ptr@0)");
}

/* The end of a word: names of C++ may have spaces inside parentheses and angle brackets. */
static const char *word_end(const char *at)
{
	int depth = 0;

	for (; *at != '\0'; at++) {
		if (*at == '(' || *at == '<')
			depth++;
		else if (*at == ')' || *at == '>')
			depth--;
		else if (isspace((unsigned char)*at) && depth <= 0)
			break;
	}
	return at;
}

/* Where the description of the arguments begins: the last parentheses, if they say where something
 * is; those of a C++ name have types in them. */
static const char *arguments_at(const char *at, const char *end)
{
	const char *open = end;

	if (end == at || end[-1] != ')')
		return NULL;
	while (open > at && *open != '(')
		open--;
	for (const char *c = open; c < end; c++)
		if (*c == '@' || *c == '=')
			return open;
	return NULL;
}

/* One of "ptr@N", "size@N", "count@N", "size=BYTES". */
static int take_argument(const struct allocator_parser *p, const char **at, struct hook_use *use)
{
	static const char *const names[] = { "ptr", "size", "count" };
	unsigned int *const places[] = { &use->pointer, &use->size, &use->count };
	const char *start = *at;
	char *end;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		size_t len = strlen(names[i]);
		unsigned long long value;

		if (strncmp(start, names[i], len) != 0 || (start[len] != '@' && start[len] != '='))
			continue;
		if (!isdigit((unsigned char)start[len + 1]))
			return err_set_here(p, start + len + 1, "a number is missing");
		value = strtoull(start + len + 1, &end, 0);
		if (start[len] == '=' && places[i] == &use->size) {
			if (value == 0)
				return err_set_here(p, start + len + 1, "a size of 0 is none");
			use->fixed_size = value;
		} else if (start[len] == '=') {
			return err_set_here(p, start, "only the size can be a fixed number");
		} else if (value >= PLAN_ARGUMENTS) {
			return err_set_here(
				p, start + len + 1,
				"only the first six integer arguments, @0 to @5, can be seen");
		} else {
			*places[i] = (unsigned int)value;
		}
		*at = end;
		return 0;
	}
	return err_set_here(p, start, "ptr@N, size@N, count@N or size=BYTES is missing");
}

static int take_arguments(const struct allocator_parser *p, const char *at, struct hook_use *use)
{
	int r = take_argument(p, &at, use);

	while (r == 0 && (*at == ',' || *at == '*')) {
		at++;
		at += strspn(at, " ");
		r = take_argument(p, &at, use);
	}
	if (r == 0 && *at != ')' && *at != '\0')
		return err_set_here(p, at, "',', '*' or ')' is missing");
	return r;
}

static int check_use(const struct allocator_parser *p, const char *at, const struct hook_use *use)
{
	bool sized = use->size != HOOK_NO_ARGUMENT || use->fixed_size != 0;

	if (use->role != HOOK_FREE && !sized)
		return err_set_here(p, at, "nothing says how large the object is (size@N)");
	if (use->role != HOOK_ALLOC && use->pointer == HOOK_NO_ARGUMENT)
		return err_set_here(p, at, "nothing says which argument is the object (ptr@N)");
	return 0;
}

static int unknown_kind(const struct allocator_parser *p, const char *at)
{
	AUTO(mem_freep) char *typed = mem_strndup(at, strcspn(at, "= \t"));
	const char *names[ARRAY_SIZE(kinds)], *near;

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		names[i] = kinds[i].name;
	near = nearest_name(typed, names, ARRAY_SIZE(names));
	(void)err_set(p->err, -EINVAL,
		      "'%s' is none of alloc=, free= and realloc=, at character %zu of '%s'%s%s%s",
		      typed, (size_t)(at - p->text) + 1, p->text, near ? ": did you mean '" : "",
		      near ? near : "", near ? "='?" : "");
	return err_set_remedy(p->err, "alloc=FUNC(size@0) free=FUNC(ptr@0)");
}

static int take_word(const struct allocator_parser *p, const char *at, const char *end,
		     struct hook_planner *planner, struct strbuf *items)
{
	struct hook_use use = { .pointer = HOOK_NO_ARGUMENT,
				.size = HOOK_NO_ARGUMENT,
				.count = HOOK_NO_ARGUMENT };
	struct allocator_parser defaults = { .err = p->err };
	AUTO(mem_freep) char *function = NULL;
	const char *arguments, *name = strchr(at, '=');
	size_t kind = 0;
	int r;

	while (kind < ARRAY_SIZE(kinds) &&
	       (!name || strlen(kinds[kind].name) != (size_t)(name - at) ||
		strncmp(at, kinds[kind].name, (size_t)(name - at)) != 0))
		kind++;
	if (kind == ARRAY_SIZE(kinds))
		return unknown_kind(p, at);
	name++;
	use.role = kinds[kind].role;
	arguments = arguments_at(name, end);
	if (name == end || arguments == name)
		return err_set_here(p, name, "the name of the function is missing");
	function = mem_strndup(name, (size_t)((arguments ? arguments : end) - name));
	defaults.text = kinds[kind].arguments;
	r = arguments ? take_arguments(p, arguments + 1, &use)
		      : take_arguments(&defaults, defaults.text, &use);
	if (r == 0)
		r = check_use(p, at, &use);
	return r < 0 ? r : hook_plan(planner, function, &use, items, p->err);
}

int allocator_plan(struct hook_planner *planner, const char *text, struct strbuf *items,
		   struct err *err)
{
	struct err own = { 0 };
	struct allocator_parser p = { .text = text, .err = err ? err : &own };
	AUTO(strbuf_deinit) struct strbuf planned = { 0 };
	const char *at = text;
	int r = 0;

	while (r == 0 && *(at += strspn(at, " \t\n")) != '\0') {
		const char *end = word_end(at);

		r = take_word(&p, at, end, planner, &planned);
		at = end;
	}
	if (r == 0 && planned.len == 0)
		return err_set_here(&p, text, "there is nothing in it");
	if (r == 0)
		strbuf_add(items, planned.data, planned.len);
	return r;
}

char *allocator_hands_out(const char *text, size_t n, uint64_t *ret_size)
{
	static const char alloc[] = "alloc=";

	for (const char *at = text, *end; *(at += strspn(at, " \t\n")) != '\0'; at = end) {
		const char *arguments, *fixed;

		end = word_end(at);
		if (strncmp(at, alloc, sizeof(alloc) - 1) != 0 || n-- > 0)
			continue;
		at += sizeof(alloc) - 1;
		arguments = arguments_at(at, end);
		fixed = arguments ? strstr(arguments, "size=") : NULL;
		*ret_size = fixed && fixed < end ? strtoull(fixed + strlen("size="), NULL, 0) : 0;
		return mem_strndup(at, (size_t)((arguments ? arguments : end) - at));
	}
	return NULL;
}
