#include "studies/series/arm.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "base/value.h"
#include "base/words.h"
#include "model/known_secrets.h"

void arm_deinit(struct arm *arm)
{
	mem_free(arm->name);
	strv_deinit(&arm->env);
	strv_deinit(&arm->args);
	strv_deinit(&arm->cmd);
}

/* Length of a variable's name at `text` that is followed by '=', else 0. */
static size_t assigned_name(const char *text)
{
	size_t n = 0;

	if (!isalpha((unsigned char)text[0]) && text[0] != '_')
		return 0;
	while (isalnum((unsigned char)text[n]) || text[n] == '_')
		n++;
	return text[n] == '=' ? n : 0;
}

static const char *setting_end(const char *text)
{
	for (; *text != '\0'; text++)
		if ((*text == ',' || *text == ':') && assigned_name(text + 1) > 0)
			break;
	return text;
}

static int set_jobs(struct arm *arm, const char *value, struct err *err)
{
	uint64_t jobs;
	int r = value_count(value, 1, 1024, &jobs, err);

	if (r == 0)
		arm->jobs = (unsigned int)jobs;
	return r < 0 ? err_set_prefix(err, "jobs=") : 0;
}

static int set_args(struct arm *arm, const char *value, struct err *err)
{
	return words_split(value, &arm->args, err);
}

static int set_cmd(struct arm *arm, const char *value, struct err *err)
{
	int r = words_split(value, &arm->cmd, err);

	if (r == 0 && arm->cmd.count == 0)
		r = err_set(err, -EINVAL, "cmd= wants a command");
	return r;
}

static int set_env(struct arm *arm, const char *value, struct err *err)
{
	if (assigned_name(value) == 0)
		return err_set(err, -EINVAL, "env= wants NAME=VALUE, not '%s'", value);
	strv_add(&arm->env, value);
	return 0;
}

static int set_unset(struct arm *arm, const char *value, struct err *err)
{
	if (value[0] == '\0' || strchr(value, '='))
		return err_set(err, -EINVAL, "unset= wants the name of a variable, not '%s'",
			       value);
	strv_add(&arm->env, value);
	return 0;
}

static int set_observe(struct arm *arm, const char *value, struct err *err)
{
	for (unsigned int i = 0; observer_names[i]; i++) {
		if (strcmp(observer_names[i], value) == 0) {
			arm->observed = true;
			arm->observer = i;
			return 0;
		}
	}
	return err_set(err, -EINVAL,
		       "observe= wants none, valgrind, crash, ids, heap or watch, not '%s'", value);
}

static int set_chaos(struct arm *arm, const char *value, struct err *err)
{
	int r = chaos_parse(value, &arm->chaos, err);

	arm->disturbed = r == 0;
	return r < 0 ? err_set_prefix(err, "chaos=") : 0;
}

static const struct {
	const char *name;
	int (*set)(struct arm *arm, const char *value, struct err *err);
} settings[] = {
	{ "jobs", set_jobs },	{ "args", set_args },	{ "env", set_env },
	{ "cmd", set_cmd },	{ "unset", set_unset }, { "observe", set_observe },
	{ "chaos", set_chaos },
};

static int apply(struct arm *arm, const char *setting, struct err *err)
{
	size_t len = assigned_name(setting);

	if (len == 0) {
		(void)err_set(err, -EINVAL, "'%s' is not a setting", setting);
		return err_set_remedy(
			err,
			"NAME=VALUE, jobs=N, cmd=WORDS, args=WORDS, unset=NAME, observe=OBSERVER or "
			"chaos=KNOBS");
	}
	for (size_t i = 0; i < ARRAY_SIZE(settings); i++)
		if (strlen(settings[i].name) == len && strncmp(settings[i].name, setting, len) == 0)
			return settings[i].set(arm, setting + len + 1, err);
	strv_add(&arm->env, setting);
	return 0;
}

static void learn(const struct arm *arm)
{
	if (arm->env.count > 0)
		secret_learn(arm->env.items);
	if (arm->args.count > 0)
		secret_learn(arm->args.items);
	if (arm->cmd.count > 0)
		secret_learn(arm->cmd.items);
}

int arm_parse(const char *text, struct arm *ret, struct err *err)
{
	size_t name = strcspn(text, ":");
	const char *at = text + name;
	int r = 0;

	if (name == 0)
		return err_set(err, -EINVAL, "--arm '%s' has no name", text);
	ret->name = mem_strndup(text, name);
	while (r == 0 && *at != '\0') {
		const char *end = setting_end(at + 1);
		AUTO(mem_freep) char *setting = mem_strndup(at + 1, (size_t)(end - at - 1));

		r = apply(ret, setting, err);
		at = end;
	}
	learn(ret);
	return r < 0 ? err_set_prefix(err, "--arm '%s'", text) : 0;
}
