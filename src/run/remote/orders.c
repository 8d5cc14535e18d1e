#include "run/remote/orders.h"

#include "base/pack.h"
#include "run/expected_tests.h"

/* The plain numbers of the settings, in one place for both directions. */
#define SETTINGS_NUMBERS(X) \
	X(flags) X(keep) X(timeout_ns) X(linger_ns) X(output_limit) X(ignored) X(children)

void orders_pack(const struct trial_settings *settings, const char *cwd, char *const *env,
		 struct strbuf *sb)
{
	AUTO(strv_deinit) struct strv variables = { 0 };
	static const struct strv none = { 0 };

#define PACK_NUMBER(field) pack_u64(sb, (uint64_t)settings->field);
	SETTINGS_NUMBERS(PACK_NUMBER)
	pack_str(sb, settings->cwd);
	pack_str(sb, settings->stdin_path);
	pack_str(sb, settings->breadcrumb.given ? settings->breadcrumb.text : NULL);
	pack_u64(sb, settings->fail_on.count);
	VEC_FOREACH (&settings->fail_on, rule)
		pack_str(sb, rule->pattern);
	pack_bytes(sb, &settings->plan_items);
	pack_u64(sb, settings->tests != NULL);
	pack_strv(sb, settings->tests ? &settings->tests->names : &none);
	strv_copy(&variables, env);
	pack_strv(sb, &variables);
	pack_str(sb, cwd);
	pack_str(sb, settings->trials.path);
}

static bool compile(const char *pattern, regex_t *ret)
{
	return pattern && regcomp(ret, pattern, REG_EXTENDED | REG_NEWLINE) == 0;
}

static bool unpack_rules(struct unpacker *u, struct trial_settings *settings)
{
	uint64_t rules;

	settings->breadcrumb.text = unpack_str(u);
	settings->breadcrumb.given = settings->breadcrumb.text != NULL;
	if (settings->breadcrumb.given &&
	    !compile(settings->breadcrumb.text, &settings->breadcrumb.regex)) {
		settings->breadcrumb.given = false;
		return false;
	}
	rules = unpack_u64(u);
	for (uint64_t i = 0; i < rules && !u->broken; i++) {
		struct fail_on rule = { .pattern = unpack_str(u) };

		if (!compile(rule.pattern, &rule.regex)) {
			mem_free(rule.pattern);
			return false;
		}
		VEC_PUSH(&settings->fail_on, rule);
	}
	return !u->broken;
}

bool orders_unpack(const char *bytes, size_t len, struct orders *ret)
{
	struct unpacker u = { .at = bytes, .left = len };
	struct trial_settings *settings = &ret->settings;
	AUTO(strv_deinit) struct strv tests = { 0 };

	*ret = (struct orders){ 0 };
#define UNPACK_NUMBER(field) settings->field = (__typeof__(settings->field))unpack_u64(&u);
	SETTINGS_NUMBERS(UNPACK_NUMBER)
	settings->cwd = unpack_str(&u);
	settings->stdin_path = unpack_str(&u);
	if (settings->keep > KEEP_NONE || !settings->stdin_path || !unpack_rules(&u, settings))
		return false;
	unpack_bytes(&u, &settings->plan_items);
	ret->tests = unpack_u64(&u) != 0;
	unpack_strv(&u, &tests);
	unpack_strv(&u, &ret->env);
	ret->cwd = unpack_str(&u);
	ret->trials = unpack_str(&u);
	if (ret->tests) {
		test_names_init(&ret->names, &tests);
		settings->tests = &ret->names;
	}
	return !u.broken && u.left == 0 && ret->cwd && ret->trials;
}

void orders_deinit(struct orders *orders)
{
	trial_settings_deinit(&orders->settings);
	if (orders->tests)
		test_names_deinit(&orders->names);
	strv_deinit(&orders->env);
	mem_free(orders->cwd);
	mem_free(orders->trials);
}
