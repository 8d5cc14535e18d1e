/*
 * Allocators of the program's own: named by the user, or linked into the program. See
 * trial_options_inside.h.
 */
#include "cmd/trial_options_inside.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/talk.h"
#include "base/which.h"
#include "plan/hooks/allocator.h"
#include "plan/hooks/own_malloc.h"
#include "report/wording.h"
#include "run/observe.h"
#include "studies/loaded_modules.h"

static bool is_one_of(const char *name, const char *const *names, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(name, names[i]) == 0)
			return true;
	return false;
}

/* --allocator none: not even what is found. */
static bool is_none(const char *functions)
{
	return strcmp(functions, "none") == 0;
}

static size_t named_count(const struct trial_options *options)
{
	size_t count = 0;

	for (size_t i = 0; i < options->allocators.count; i++)
		count += !is_none(options->allocators.items[i]);
	return count;
}

/* These begin without: a block of malloc's is found again by its key, which an object that is
 * handed out for the ten thousandth time is not. They follow the objects when that is the question
 * (hunt/experiments/allocator_probe.c). */
static const char *const asking[] = { "chase", "hunt" };

static void keep_named(struct trial_setup *setup, const struct trial_options *options)
{
	for (size_t i = 0; i < options->allocators.count; i++)
		if (!is_none(options->allocators.items[i]))
			strv_add(&setup->settings.allocators, options->allocators.items[i]);
}

static int try_named(struct trial_setup *setup, const struct trial_options *options,
		     const char *command, struct err *err)
{
	AUTO(hook_planner_freep) struct hook_planner *planner = NULL;
	AUTO(strbuf_deinit) struct strbuf items = { 0 };
	struct libraries_request files = trial_setup_files(setup);
	int r = hook_planner_new(&files, &planner, err);

	for (size_t i = 0; r == 0 && i < options->allocators.count; i++) {
		if (is_none(options->allocators.items[i]))
			continue;
		r = allocator_plan(planner, options->allocators.items[i], &items, err);
		if (r < 0)
			(void)err_set_prefix(err, "--allocator");
	}
	if (r < 0)
		return r;
	if (is_one_of(command, asking, ARRAY_SIZE(asking)))
		keep_named(setup, options);
	else
		strbuf_add(&setup->settings.plan_items, items.data, items.len);
	words_list(hook_planner_notes(planner), &setup->notes);
	return 0;
}

/* Where the program itself does not have them, the command is looked on. */
static int plan_named(struct trial_setup *setup, const struct trial_options *options,
		      const char *command, char *const *program, struct err *err)
{
	struct lookout_request look = { .settings = &setup->settings,
					.program = program,
					.slot_env = &setup->slot_env };
	struct libraries_request files = trial_setup_files(setup);
	int r = -ENOENT;

	if (setup->observer < OBSERVE_IDS) {
		setup->observer = OBSERVE_IDS;
		strv_add(&setup->notes, "--allocator needs --observe ids, so that is used");
	}
	if (!libraries_launches(&files))
		r = try_named(setup, options, command, err);
	if (r != -ENOENT || !libraries_load_more(&files))
		return r;
	log_note("--allocator: the command is run once, to see which programs and libraries it "
		 "loads");
	r = lookout_run(&look, &setup->seen, err);
	return r < 0 ? r : try_named(setup, options, command, err);
}

/* Commands that look at blocks at some time, and those that put guards around them, whatever is
 * asked for. */
static const char *const closer[] = { "chase", "compare", "heap", "hunt", "watch" };
static const char *const guarding[] = { "chase", "heap", "hunt" };

#define REMEDY                                                             \
	"its blocks are not followed and have no guards; try --allocator " \
	"'alloc=malloc(size@0) free=free(ptr@0)', or link that allocator as a shared library"

/* A plan has an end (PLAN_BYTES_MAX), and there is more to go into it: this is for a dozen
 * programs. */
#define ITEMS_MAX (256u << 10)

static int plan_inside(struct trial_setup *setup, const char *path, struct strbuf *ret_unseen,
		       struct err *err)
{
	AUTO(hook_planner_freep) struct hook_planner *planner = NULL;
	struct libraries_request files = trial_setup_files(setup);
	int r = hook_planner_new(&files, &planner, err);

	return r < 0 ? r
		     : own_malloc_plan(planner, path, &setup->settings.plan_items, ret_unseen, err);
}

/* A second allocator under names of its own, as je_malloc: which of its functions are called, and
 * how, is for the user to say. */
static void note_beside(struct trial_setup *setup, const struct trial_options *options,
			const char *path, const char *name)
{
	int prefix = (int)(strlen(name) - strlen("malloc"));

	if (named_count(options) == 0)
		strv_take(&setup->notes,
			  mem_printf("'%s' has a second allocator inside, %s: what it hands out is "
				     "not followed; try --allocator 'alloc=%s(size@0) "
				     "free=%.*sfree(ptr@0)', and the others of its functions that "
				     "the program calls",
				     path, name, name, prefix, name));
}

static void follow_inside(struct trial_setup *setup, const struct trial_options *options,
			  const char *path, bool guards)
{
	AUTO(strbuf_deinit) struct strbuf unseen = { 0 };
	AUTO(mem_freep) char *name = NULL;
	struct err err = { 0 };
	int r;

	if (setup->settings.plan_items.len > ITEMS_MAX)
		return;
	switch (observe_malloc_of(path, &name)) {
	case OBSERVE_MALLOC_OUTSIDE:
		return;
	case OBSERVE_MALLOC_BESIDE:
		note_beside(setup, options, path, name);
		return;
	case OBSERVE_MALLOC_HIDDEN:
		strv_take(&setup->notes,
			  mem_printf("'%s' has a malloc of its own inside, which it hides from the "
				     "libraries: " REMEDY,
				     path));
		return;
	case OBSERVE_MALLOC_INSIDE:
		break;
	}
	r = plan_inside(setup, path, &unseen, &err);
	if (r == -EBUSY) /* the user's --allocator is about it */
		return;
	if (r < 0)
		strv_take(&setup->notes,
			  mem_printf("'%s' has a malloc of its own inside, and %s: " REMEDY, path,
				     err.message));
	else if (unseen.len > 0)
		strv_take(&setup->notes, mem_printf("'%s' has a malloc of its own inside: what its "
						    "%s hand out is not followed",
						    path, unseen.data));
	if (r == 0 && guards)
		strv_take(
			&setup->notes,
			mem_printf("'%s' has a malloc of its own inside: its blocks are followed, "
				   "but have no guards and cannot be put on watched pages",
				   path));
}

#define WORDS_MAX 512u
#define SCRIPT_MAX (64u << 10)

static const char between[] = " \t\r\n;|&()<>{}\"'`$=#";

static void follow_word(struct trial_setup *setup, const struct trial_options *options,
			const char *text, size_t len, bool guards)
{
	AUTO(mem_freep) char *word = mem_strndup(text, len);
	AUTO(mem_freep) char *path = NULL;

	if (len > 0 && which(word, setup->settings.cwd, &path, NULL) == 0)
		follow_inside(setup, options, path, guards);
}

/* A word that has some of them in its name: in quotes, or an argument by itself. */
static void follow_whole(struct trial_setup *setup, const struct trial_options *options,
			 const char *text, size_t len, bool guards)
{
	if (strcspn(text, between) < len)
		follow_word(setup, options, text, len, guards);
}

/* Programs among the words of a text, as a shell would take it apart: one that is not run after all
 * costs nothing. What stands in variables or other scripts is not found. */
static void follow_words(struct trial_setup *setup, const struct trial_options *options,
			 const char *text, size_t len, bool guards)
{
	size_t words = 0;

	for (size_t at = 0; at < len && text[at] != '\0' && words < WORDS_MAX; words++) {
		size_t end;

		for (; at < len && text[at] != '\0' && strchr(between, text[at]); at++) {
			bool quoted = text[at] == '"' || text[at] == '\'';
			const char *close =
				quoted ? memchr(text + at + 1, text[at], len - at - 1) : NULL;

			if (close && words++ < WORDS_MAX)
				follow_whole(setup, options, text + at + 1,
					     (size_t)(close - text) - at - 1, guards);
		}
		for (end = at; end < len && !strchr(between, text[end]);)
			end++;
		follow_word(setup, options, text + at, end - at, guards);
		at = end;
	}
}

static void follow_script(struct trial_setup *setup, const struct trial_options *options,
			  bool guards)
{
	AUTO(fd_closep) int fd = open(setup->program_path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	AUTO(mem_freep) char *text = mem_alloc(SCRIPT_MAX);
	ssize_t len = fd >= 0 ? read(fd, text, SCRIPT_MAX - 1) : -1;

	text[len > 0 ? len : 0] = '\0';
	if (len > 2 && text[0] == '#' && text[1] == '!')
		follow_words(setup, options, text, (size_t)len, guards);
}

static void follow_launched(struct trial_setup *setup, const struct trial_options *options,
			    char *const *program, bool guards)
{
	struct libraries_request files = trial_setup_files(setup);

	if (!libraries_launches(&files))
		return;
	follow_script(setup, options, guards);
	for (size_t i = 1; program[i]; i++) {
		follow_whole(setup, options, program[i], strlen(program[i]), guards);
		follow_words(setup, options, program[i], strlen(program[i]), guards);
	}
}

static void plan_found(struct trial_setup *setup, const struct trial_options *options,
		       const char *command, char *const *program)
{
	bool guards = setup->observer >= OBSERVE_HEAP ||
		      is_one_of(command, guarding, ARRAY_SIZE(guarding));

	if (setup->observer < OBSERVE_IDS && !is_one_of(command, closer, ARRAY_SIZE(closer)))
		return;
	for (size_t i = 0; i < options->allocators.count; i++)
		if (is_none(options->allocators.items[i]))
			return;
	follow_inside(setup, options, setup->program_path, guards);
	follow_launched(setup, options, program, guards);
	VEC_FOREACH (&setup->seen.list, seen)
		if (seen->program && strcmp(seen->path, setup->program_path) != 0)
			follow_inside(setup, options, seen->path, guards);
}

int trial_allocators_plan(struct trial_setup *setup, const struct trial_options *options,
			  const char *command, char *const *program, struct err *err)
{
	int r;

	if (setup->unobserved)
		return 0;
	r = named_count(options) > 0 ? plan_named(setup, options, command, program, err) : 0;
	if (r == 0)
		plan_found(setup, options, command, program);
	return r;
}
