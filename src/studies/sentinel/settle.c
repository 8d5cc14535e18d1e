/*
 * A sentinel in its place: where the project is, and which files are used.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/path.h"
#include "studies/sentinel/sentinel.h"

#define COPY_MAX (16u << 20)

struct settled_places {
	char *root, *sentinel; /* plain paths; root may be NULL */
};

static void places_deinit(struct settled_places *places)
{
	mem_free(places->root);
	mem_free(places->sentinel);
}

static bool mentions(const char *text, const char *word)
{
	return text && strstr(text, word);
}

static bool needs_root(const struct sentinel *s)
{
	bool found = mentions(s->trial.cwd, "{root}") || mentions(s->trial.stdin_path, "{root}");

	for (size_t i = 0; i < s->trial.program.count; i++)
		found |= mentions(s->trial.program.items[i], "{root}");
	for (size_t i = 0; i < s->trial.env.count; i++)
		found |= mentions(s->trial.env.items[i], "{root}");
	return found;
}

static char *replace(const char *text, const char *word, const char *by)
{
	AUTO(strbuf_deinit) struct strbuf sb = { 0 };
	size_t len = strlen(word);

	while (*text != '\0') {
		if (strncmp(text, word, len) == 0) {
			strbuf_adds(&sb, by);
			text += len;
		} else {
			strbuf_addc(&sb, *text++);
		}
	}
	return strbuf_take(&sb);
}

static void fill(char **text, const struct settled_places *places)
{
	AUTO(mem_freep) char *half = NULL;

	if (!*text)
		return;
	half = replace(*text, "{sentinel}", places->sentinel);
	mem_free(*text);
	*text = replace(half, "{root}", places->root ? places->root : "");
}

/* How much speaks for this being the project: 0 when the command could not even start there, else
 * one for that and one for each thing that was there when the sentinel was made. */
static size_t fitness(const struct sentinel *s, const char *root)
{
	AUTO(mem_freep) char *cwd = NULL;
	AUTO(mem_freep) char *git = NULL;
	struct stat st;
	size_t found = 1;

	if (!root)
		return 0;
	cwd = replace(s->trial.cwd ? s->trial.cwd : "{root}", "{root}", root);
	git = mem_printf("%s/.git", root);
	if (stat(cwd, &st) < 0 || !S_ISDIR(st.st_mode))
		return 0;
	found += s->commit && access(git, F_OK) == 0;
	for (size_t i = 0; i < s->files.count; i++) {
		AUTO(mem_freep) char *file = mem_printf("%s/%s", root, s->files.items[i]);

		found += access(file, F_OK) == 0;
	}
	return found;
}

static int no_root(const struct sentinel *s, const struct settled_places *places, struct err *err)
{
	(void)err_set(err, -ENOENT,
		      "the project of the sentinel in '%s' is not around it: it wants to run in "
		      "'%s'",
		      places->sentinel, s->trial.cwd ? s->trial.cwd : "{root}");
	return err_set_remedy(err, "name the project's directory with --root DIR");
}

static int find_root(const struct sentinel *s, const char *said, struct settled_places *places,
		     struct err *err)
{
	AUTO(mem_freep) char *way = NULL;
	AUTO(mem_freep) char *git = NULL;

	if (said) {
		places->root = realpath(said, NULL);
		return places->root ? 0 : err_set_errno(err, -errno, "--root '%s'", said);
	}
	way = s->root ? path_join(places->sentinel, s->root) : NULL;
	places->root = way ? realpath(way, NULL) : NULL;
	/* It may have been moved within its project, or taken to another one. */
	git = path_find_up(places->sentinel, ".git");
	if (fitness(s, git) > fitness(s, places->root)) {
		mem_free(places->root);
		places->root = TAKE(git);
	}
	/* A directory of which nothing at all is known again is another project. */
	if (fitness(s, places->root) > (s->commit || s->files.count > 0) || !needs_root(s))
		return 0;
	return no_root(s, places, err);
}

static bool same_content(const char *a, const char *b)
{
	AUTO(mem_freep) char *x = NULL;
	AUTO(mem_freep) char *y = NULL;
	size_t len_x = 0, len_y = 0;

	return file_read(a, COPY_MAX, &x, &len_x, NULL) == 0 &&
	       file_read(b, COPY_MAX, &y, &len_y, NULL) == 0 && len_x == len_y &&
	       memcmp(x, y, len_x) == 0;
}

static void swap_mentions(struct sentinel *s, const char *from, const char *to)
{
	for (size_t i = 0; i < s->trial.program.count; i++) {
		char *word = s->trial.program.items[i];

		s->trial.program.items[i] = path_rename(word, from, to);
		mem_free(word);
	}
}

/* A file of the project is used where it lies, for it belongs to what is tested. The copy stands
 * in when this checkout does not have it, and tells when it is another one. */
static void settle_file(struct sentinel *s, const char *name, const struct settled_places *places,
			struct said_list *notes)
{
	AUTO(mem_freep) char *place = mem_printf("%s/%s", places->root ? places->root : "", name);
	AUTO(mem_freep)
	char *copy = mem_printf("%s/" SENTINEL_FILES "/%s", places->sentinel, name);

	if (access(place, F_OK) < 0) {
		/* All ways in which the command may name it. */
		AUTO(mem_freep) char *from_cwd = path_relative(s->trial.cwd, place);
		AUTO(mem_freep) char *from_here = mem_printf("./%s", from_cwd);

		swap_mentions(s, place, copy);
		swap_mentions(s, from_here, copy);
		swap_mentions(s, from_cwd, copy);
		SAY_TOO(notes, "note:copy-used", said_text(name));
	} else if (!same_content(place, copy)) {
		SAY_TOO(notes, "note:changed-since", said_text(name), said_text(SENTINEL_FILES));
	}
}

/* Secrets are recorded by name. They stay where they are: trials have this environment. */
static int settle_env(struct strv *env, struct err *err)
{
	struct strv given = { 0 };

	for (size_t i = 0; i < env->count; i++) {
		if (strchr(env->items[i], '=')) {
			strv_add(&given, env->items[i]);
		} else if (!getenv(env->items[i])) {
			strv_deinit(&given);
			(void)err_set(err, -EINVAL,
				      "the sentinel wants the variable %s, which is not set",
				      env->items[i]);
			return err_set_remedy(err,
					      "set it: its value is a secret and not recorded");
		}
	}
	strv_deinit(env);
	*env = given;
	return 0;
}

int sentinel_settle(struct sentinel *s, const char *dir, const char *root, struct said_list *notes,
		    struct err *err)
{
	AUTO(places_deinit) struct settled_places places = { .sentinel = realpath(dir, NULL) };
	int r;

	if (!places.sentinel)
		return err_set_errno(err, -errno, "cannot find '%s'", dir);
	r = find_root(s, root, &places, err);
	if (r < 0)
		return r;
	if (!s->trial.cwd)
		s->trial.cwd = mem_strdup("{root}");
	fill(&s->trial.cwd, &places);
	fill(&s->trial.stdin_path, &places);
	for (size_t i = 0; i < s->trial.program.count; i++)
		fill(&s->trial.program.items[i], &places);
	for (size_t i = 0; i < s->trial.env.count; i++)
		fill(&s->trial.env.items[i], &places);
	for (size_t i = 0; i < s->files.count; i++)
		settle_file(s, s->files.items[i], &places, notes);
	return settle_env(&s->trial.env, err);
}
