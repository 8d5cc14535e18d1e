#include "studies/overview/surroundings.h"

#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/ask.h"
#include "base/fd.h"
#include "base/fingerprint.h"
#include "base/which.h"
#include "debuginfo/program.h"

/* /proc/cpuinfo of a large machine is some hundred KiB, its first lines are enough. */
#define CPUINFO_MAX (8u << 20)

/* What git answers, or NULL. */
static char *answer(const char *const *argv)
{
	struct strbuf out = { 0 };
	int status = 0;

	if (ask(argv, &out, &status, NULL) == 0 && status == 0 && out.len > 0)
		return strbuf_take(&out);
	strbuf_deinit(&out);
	return NULL;
}

static char *first_line(const char *const *argv)
{
	char *line = answer(argv);

	if (line)
		line[strcspn(line, "\n")] = '\0';
	return line;
}

char *surroundings_commit(const char *dir)
{
	/* Without locks: somebody may be working there. */
	const char *argv[] = {
		"git",	   "--no-optional-locks", "-C",		 dir, "describe", "--always",
		"--dirty", "--abbrev=40",	  "--exclude=*", NULL
	};

	return first_line(argv);
}

static char *surroundings_branch(const char *dir)
{
	const char *argv[] = {
		"git", "-C", dir, "symbolic-ref", "--quiet", "--short", "HEAD", NULL
	};

	return first_line(argv);
}

char *surroundings_diff(const char *dir)
{
	const char *argv[] = {
		"git",		 "--no-optional-locks", "-C",	dir, "diff", "--no-color",
		"--no-ext-diff", "--no-textconv",	"HEAD", NULL
	};

	return answer(argv);
}

bool surroundings_ignored(const char *dir, const char *path)
{
	const char *argv[] = { "git", "-C", dir, "check-ignore", "-q", "--", path, NULL };
	AUTO(strbuf_deinit) struct strbuf out = { 0 };
	int status = 0;

	return ask(argv, &out, &status, NULL) == 0 && status == 0;
}

static char *program_identity(const char *cwd, const char *name)
{
	AUTO(mem_freep) struct program_facts *facts = mem_alloc(sizeof(*facts));
	AUTO(mem_freep) char *path = NULL;
	AUTO(strbuf_deinit) struct strbuf content = { 0 };

	if (which(name, cwd, &path, NULL) < 0)
		return NULL;
	/* The interpreter of a script is not what somebody rebuilds. */
	if (program_read(path, facts, NULL) == 0 && facts->script[0] == '\0' &&
	    facts->build_id[0] != '\0')
		return mem_printf("build-id %s", facts->build_id);
	file_fingerprint(path, &content);
	return mem_printf("content %s", strbuf_str(&content));
}

static char *cpu_model(void)
{
	AUTO(mem_freep) char *text = NULL;
	const char *model;

	if (file_read("/proc/cpuinfo", CPUINFO_MAX, &text, NULL, NULL) < 0)
		return NULL;
	model = strstr(text, "model name");
	model = model ? strchr(model, ':') : NULL;
	if (!model)
		return NULL;
	model += 1 + strspn(model + 1, " \t");
	return mem_strndup(model, strcspn(model, "\n"));
}

void surroundings_look(const char *cwd, const char *program, const char *redhand, struct world *ret)
{
	AUTO(mem_freep) char *cpu = cpu_model();
	struct utsname name;

	ret->commit = surroundings_commit(cwd ? cwd : ".");
	ret->branch = ret->commit ? surroundings_branch(cwd ? cwd : ".") : NULL;
	ret->program = program ? program_identity(cwd, program) : NULL;
	if (uname(&name) == 0) {
		ret->kernel = mem_printf("%s %s", name.sysname, name.release);
		ret->machine = mem_printf("%s (%s, %ld cores)", name.nodename,
					  cpu ? cpu : name.machine, sysconf(_SC_NPROCESSORS_ONLN));
	}
	ret->redhand = mem_strdup(redhand);
	world_set_variables(ret, environ);
}
