#include "studies/sentinel/make.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/cstr.h"
#include "base/fd.h"
#include "base/path.h"
#include "base/tree.h"
#include "base/when.h"
#include "case/stored_notebook.h"
#include "model/known_secrets.h"
#include "studies/overview/surroundings.h"
#include "studies/sentinel/trust.h"

struct making {
	struct case_store *cs;
	const struct sentinel_source *source;
	const struct sentinel_request *request;
	struct sentinel_made *made;
	char *root; /* plain path of the project */
	char *dir;  /* plain path of the sentinel */
	char *case_path;
	bool git; /* the project is a git checkout */
};

void sentinel_made_deinit(struct sentinel_made *made)
{
	sentinel_deinit(&made->sentinel);
	said_list_deinit(&made->copied);
	said_list_deinit(&made->notes);
}

static void making_deinit(struct making *m)
{
	MEM_FREE(m->root, m->dir, m->case_path);
}

static bool is_empty(const char *path)
{
	DIR *stream = opendir(path);
	struct dirent *entry;
	bool empty = true;

	while (stream && empty && (entry = readdir(stream)) != NULL)
		empty = strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0;
	if (stream)
		(void)closedir(stream);
	return empty;
}

static int prepare_dir(struct making *m, struct err *err)
{
	const char *dir = m->request->dir;
	AUTO(mem_freep) char *file = mem_printf("%s/" SENTINEL_FILE, dir);
	AUTO(mem_freep) char *copies = mem_printf("%s/" SENTINEL_FILES, dir);
	bool sentinel = access(file, F_OK) == 0;
	int r;

	if (sentinel && !m->request->replace) {
		(void)err_set(err, -EEXIST, "there is a sentinel in '%s' already", dir);
		return err_set_remedy(err, "--replace, or another directory with --dir DIR");
	}
	if (!sentinel && !is_empty(dir)) {
		(void)err_set(err, -EEXIST, "'%s' is not empty", dir);
		return err_set_remedy(err, "name another directory with --dir DIR");
	}
	r = tree_make(dir, err);
	if (r == 0)
		r = tree_remove_at(AT_FDCWD, copies, err);
	if (r < 0)
		return r;
	m->dir = realpath(dir, NULL);
	return m->dir ? 0 : err_set_errno(err, -errno, "cannot find '%s'", dir);
}

/* Writes a file somewhere below the sentinel; folders on the way are made. */
static int write_file(const struct making *m, const char *name, const char *bytes, size_t len,
		      mode_t mode, struct err *err)
{
	AUTO(mem_freep) char *path = mem_printf("%s/%s", m->dir, name);
	AUTO(mem_freep) char *folder = mem_strndup(path, (size_t)(strrchr(path, '/') - path));
	AUTO(fd_closep) int fd = -1;
	int r = tree_make(folder, err);

	if (r < 0)
		return r;
	fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return err_set_errno(err, -errno, "cannot open '%s'", folder);
	r = file_write_at(fd, strrchr(path, '/') + 1, bytes, len, err);
	if (r == 0 && fchmodat(fd, strrchr(path, '/') + 1, mode, 0) < 0)
		r = err_set_errno(err, -errno, "cannot set the mode of '%s'", path);
	return r;
}

/* A word with no path of this machine in it. */
static char *portable(const struct making *m, const char *word)
{
	AUTO(mem_freep)
	char *from_case = path_rename(word, "{case}", "{sentinel}/" SENTINEL_FILES "/minimal");

	return path_rename(from_case, m->root, "{root}");
}

/* More is no script that somebody wrote. */
#define COPY_MAX (256u << 10)

/* A file that a word of the command names. */
struct mention {
	size_t start, len; /* of its path within the word */
	char *path;	   /* plain */
};

static bool names_file(const char *cwd, const char *word, size_t start, size_t len,
		       struct mention *ret)
{
	AUTO(mem_freep) char *text = mem_strndup(word + start, len);
	AUTO(mem_freep) char *path = path_join(cwd, text);
	struct stat st;

	if (len == 0 || stat(path, &st) < 0 || !S_ISREG(st.st_mode))
		return false;
	*ret = (struct mention){ .start = start, .len = len, .path = realpath(path, NULL) };
	return ret->path != NULL;
}

/* tests/x.py, --config=tests/x.py, tests/x.py::test_one */
static bool find_mention(const char *cwd, const char *word, struct mention *ret)
{
	const char *equals = strchr(word, '='), *colons = strstr(word, "::");
	size_t starts[2] = { 0, equals ? (size_t)(equals - word) + 1 : 0 };

	for (size_t i = 0; i < (equals ? 2 : 1); i++) {
		size_t to_end = strlen(word) - starts[i];

		if (names_file(cwd, word, starts[i], to_end, ret))
			return true;
		if (colons && colons > word + starts[i] &&
		    names_file(cwd, word, starts[i], (size_t)(colons - word) - starts[i], ret))
			return true;
	}
	return false;
}

/* A file with the value of a secret in it. */
static int refuse_content(const char *path, const char *content, size_t len, struct err *err)
{
	AUTO(mem_freep) char *hidden = mem_alloc(len + 1);

	memcpy(hidden, content, len);
	secret_hide(hidden, len);
	if (memcmp(hidden, content, len) == 0)
		return 0;
	(void)err_set(err, -EINVAL, "'%s' holds a secret, which a sentinel must not", path);
	return err_set_remedy(err, "have it read the value from a variable");
}

static int copy_file(struct making *m, const char *from, const char *name, struct err *err)
{
	AUTO(mem_freep) char *content = NULL;
	AUTO(mem_freep) char *to = mem_printf(SENTINEL_FILES "/%s", name);
	struct stat st = { .st_mode = 0644 };
	size_t len = 0;
	int r = file_read(from, COPY_MAX, &content, &len, err);

	if (r < 0)
		return r;
	r = refuse_content(from, content, len, err);
	if (r < 0)
		return r;
	(void)stat(from, &st);
	if (strlen(m->root) > 1 && memmem(content, len, m->root, strlen(m->root)))
		SAY_TOO(&m->made->notes, "note:names-directory", said_text(name),
			said_text(m->root));
	return write_file(m, to, content, len, st.st_mode & 0111 ? 0755 : 0644, err);
}

static bool is_text(const char *path)
{
	AUTO(mem_freep) char *content = NULL;
	size_t len = 0;

	return file_read(path, COPY_MAX, &content, &len, NULL) == 0 && !memchr(content, '\0', len);
}

/* Other machines have these of their own. */
static bool of_the_system(const char *path)
{
	static const char *const folders[] = { "/usr", "/bin", "/sbin", "/lib", "/etc",
					       "/opt", "/dev", "/proc", "/sys", "/nix" };

	for (size_t i = 0; i < ARRAY_SIZE(folders); i++)
		if (path_below(folders[i], path))
			return true;
	return false;
}

static int copy_found(struct making *m, const char *path, struct err *err)
{
	const char *below = path_below(m->root, path);

	if (path_below(m->case_path, path) || of_the_system(path) || !is_text(path))
		return 0;
	if (!below) {
		SAY_TOO(&m->made->notes, "note:not-copied", said_text(path));
		return 0;
	}
	/* What git leaves out may hold secrets, and is no part of a checkout. */
	if (m->git && surroundings_ignored(m->root, path))
		return 0;
	for (size_t i = 0; i < m->made->sentinel.files.count; i++)
		if (strcmp(m->made->sentinel.files.items[i], below) == 0)
			return 0;
	strv_add(&m->made->sentinel.files, below);
	SAY_TOO(&m->made->copied, "copied:in-place", said_text(below));
	return copy_file(m, path, below, err);
}

static int copy_mentioned(struct making *m, const char *word, struct err *err)
{
	struct mention mention;
	int r;

	if (!find_mention(m->source->settings.cwd, word, &mention))
		return 0;
	r = copy_found(m, mention.path, err);
	mem_free(mention.path);
	return r;
}

/* Has the command use the copy, where a word names that file. */
static bool use_copy(const struct making *m, const char *word, const char *path, const char *use,
		     char **slot)
{
	struct mention mention;
	bool same;

	if (!find_mention(m->source->settings.cwd, word, &mention))
		return false;
	same = strcmp(mention.path, path) == 0;
	if (same) {
		AUTO(mem_freep)
		char *other = mem_printf("%.*s%s%s", (int)mention.start, word, use,
					 word + mention.start + mention.len);

		mem_free(*slot);
		*slot = portable(m, other);
	}
	mem_free(mention.path);
	return same;
}

/* The user's --file: its copy is what the command uses. */
static int copy_own(struct making *m, const char *said, const struct strv *words, struct err *err)
{
	struct sentinel *s = &m->made->sentinel;
	AUTO(mem_freep) char *path = realpath(said, NULL);
	AUTO(mem_freep) char *use = NULL;
	const char *name;
	bool used = false;
	int r;

	if (!path)
		return err_set_errno(err, -errno, "--file '%s'", said);
	name = path_below(m->root, path);
	if (!name)
		name = strrchr(path, '/') + 1;
	for (size_t i = 0; i < s->own.count; i++)
		if (strcmp(s->own.items[i], name) == 0)
			return err_set(err, -EINVAL, "two files would have the name '%s'", name);
	r = copy_file(m, path, name, err);
	if (r < 0)
		return err_set_prefix(err, "--file");
	strv_add(&s->own, name);
	use = mem_printf("{sentinel}/" SENTINEL_FILES "/%s", name);
	for (size_t i = 0; i < words->count; i++)
		used |= use_copy(m, words->items[i], path, use, &s->trial.program.items[i]);
	SAY_TOO(&m->made->copied, "copied:own", said_text(name), said_flag(used));
	return 0;
}

/* Files that minimize has left in the case: lists, and redhand's own modules for them. */
static int copy_case_file(struct making *m, const char *name, struct err *err)
{
	AUTO(mem_freep) char *path = mem_printf("%s/%s", case_dir(m->cs), name);
	AUTO(mem_freep) char *to = mem_printf("minimal/%s", name);
	DIR *stream = opendir(path);
	struct dirent *entry;
	int r = 0;

	if (!stream)
		return copy_file(m, path, to, err);
	while (r == 0 && (entry = readdir(stream)) != NULL) {
		AUTO(mem_freep) char *inner = mem_printf("%s/%s", path, entry->d_name);
		AUTO(mem_freep) char *inner_to = mem_printf("%s/%s", to, entry->d_name);
		struct stat st;

		if (lstat(inner, &st) == 0 && S_ISREG(st.st_mode))
			r = copy_file(m, inner, inner_to, err);
	}
	(void)closedir(stream);
	return r;
}

/* "{case}/minimal-3.d/tests.txt" in a word: the first part behind {case} is copied, once. */
static int copy_from_case(struct making *m, const char *word, struct strv *done, struct err *err)
{
	static const char head[] = "{case}/";
	int r = 0;

	while (r == 0 && (word = strstr(word, head)) != NULL) {
		size_t len = strcspn(word + strlen(head), "/: =");
		AUTO(mem_freep) char *name = mem_strndup(word + strlen(head), len);

		word += strlen(head) + len;
		if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || strv_has(done, name))
			continue;
		strv_add(done, name);
		r = copy_case_file(m, name, err);
		SAY_TOO(&m->made->copied, "copied:minimal", said_text(name));
	}
	return r;
}

/* What users may have written themselves must not be taken for ours later. */
static int refuse_placeholders(const char *word, struct err *err)
{
	if (!strstr(word, "{root}") && !strstr(word, "{sentinel}"))
		return 0;
	return err_set(err, -EINVAL,
		       "'%s' has {root} or {sentinel} in it, which mean something in a sentinel",
		       word);
}

static int add_portable(const struct making *m, const struct strv *from, struct strv *to,
			struct err *err)
{
	int r = 0;

	for (size_t i = 0; i < from->count && r == 0; i++) {
		r = refuse_placeholders(from->items[i], err);
		strv_take(to, portable(m, from->items[i]));
	}
	return r;
}

/* A sentinel is committed. The value of a secret is not: whoever runs it has it in the environment.
 */
static void add_variable(struct making *m, const char *entry)
{
	AUTO(mem_freep) char *open = secret_word(entry);

	if (!strstr(open, SECRET_MARK)) {
		strv_take(&m->made->sentinel.trial.env, portable(m, entry));
		return;
	}
	strv_take(&m->made->sentinel.trial.env, mem_strndup(entry, strcspn(entry, "=")));
	SAY_TOO(&m->made->notes, "note:value-unrecorded",
		said_take(mem_strndup(entry, strcspn(entry, "="))));
}

static int add_variables(struct making *m, const struct strv *from, struct err *err)
{
	int r = 0;

	for (size_t i = 0; i < from->count && r == 0; i++) {
		r = refuse_placeholders(from->items[i], err);
		add_variable(m, from->items[i]);
	}
	return r;
}

static int refuse_secrets(const struct strv *words, struct err *err)
{
	if (!secret_is_marked(words))
		return 0;
	(void)err_set(err, -EINVAL, "the command holds a secret, which a sentinel must not");
	return err_set_remedy(err,
			      "give it to the program in a variable, and run the trials again");
}

static bool is_recorded(const struct strv *env, const char *name)
{
	size_t len = strlen(name);

	for (size_t i = 0; i < env->count; i++)
		if (strncmp(env->items[i], name, len) == 0 &&
		    (env->items[i][len] == '=' || env->items[i][len] == '\0'))
			return true;
	return false;
}

/* By which programs find their code, lay out their memory, or choose their tests: where they are
 * set, the command may fail otherwise without them. */
static void add_telling(struct making *m)
{
	static const char *const names[] = {
		"PYTHONPATH",	    "PYTHONHOME",	 "PYTHONMALLOC",    "PYTHONDEVMODE",
		"PYTHONHASHSEED",   "PYTEST_ADDOPTS",	 "LD_LIBRARY_PATH", "GLIBC_TUNABLES",
		"MALLOC_ARENA_MAX", "MALLOC_PERTURB_",	 "MALLOC_CHECK_",   "ASAN_OPTIONS",
		"UBSAN_OPTIONS",    "TSAN_OPTIONS",	 "MSAN_OPTIONS",    "OMP_NUM_THREADS",
		"PERL5LIB",	    "RUBYLIB",		 "NODE_PATH",	    "NODE_OPTIONS",
		"CLASSPATH",	    "JAVA_TOOL_OPTIONS", "GOMAXPROCS",	    "GODEBUG",
		"GTEST_FILTER",	    "GTEST_SHUFFLE",	 "GTEST_REPEAT",    "CUDA_VISIBLE_DEVICES",
	};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		const char *value = getenv(names[i]);
		AUTO(mem_freep) char *word = mem_printf("%s=%s", names[i], value ? value : "");

		if (value && *value && !is_recorded(&m->made->sentinel.trial.env, names[i]) &&
		    refuse_placeholders(word, NULL) == 0)
			add_variable(m, word);
	}
}

/* What the user named, at this or an earlier command, and what tells; never the environment as a
 * whole. */
static int add_env(struct making *m, struct err *err)
{
	int r = add_variables(m, &m->source->settings.env, err);

	for (size_t i = 0; i < m->request->env_count && r == 0; i++) {
		const char *said = m->request->env[i], *value = getenv(said);
		AUTO(mem_freep) char *word = NULL;

		if (!strchr(said, '=') && !value)
			return err_set(err, -EINVAL, "--env %s: it is not set here", said);
		word = strchr(said, '=') ? mem_strdup(said) : mem_printf("%s=%s", said, value);
		r = refuse_placeholders(word, err);
		add_variable(m, word);
	}
	if (r == 0)
		r = add_variables(m, &m->source->minimal.env, err);
	/* A command that was shrunk has the variables that it needs. */
	if (r == 0 && m->source->minimal.env.count == 0)
		add_telling(m);
	return r;
}

static int add_command(struct making *m, struct err *err)
{
	const struct sentinel_source *source = m->source;
	const struct strv *words =
		source->minimal.series != 0 ? &source->minimal.argv : &source->settings.program;
	struct sentinel *s = &m->made->sentinel;
	AUTO(strv_deinit) struct strv done = { 0 };
	int r = refuse_secrets(words, err);

	if (r == 0)
		r = add_portable(m, words, &s->trial.program, err);
	for (size_t i = 0; i < words->count && r == 0; i++)
		r = copy_from_case(m, words->items[i], &done, err);
	for (size_t i = 0; i < source->minimal.env.count && r == 0; i++)
		r = copy_from_case(m, source->minimal.env.items[i], &done, err);
	for (size_t i = 0; i < m->request->file_count && r == 0; i++)
		r = copy_own(m, m->request->files[i], words, err);
	for (size_t i = 0; i < s->trial.program.count && r == 0; i++)
		/* A program without a slash comes from PATH. */
		if (!strstr(s->trial.program.items[i], "{sentinel}") &&
		    (i > 0 || strchr(words->items[i], '/')))
			r = copy_mentioned(m, words->items[i], err);
	return r < 0 ? r : add_env(m, err);
}

static void add_origin(struct making *m)
{
	struct sentinel *s = &m->made->sentinel;
	char now[WHEN_MAX];

	s->made = mem_strdup(when_text((int64_t)time(NULL) * 1000, now));
	s->redhand = mem_strdup(m->request->words->redhand);
	if (m->git)
		s->commit = surroundings_commit(m->root);
	if (path_below(m->root, m->dir)) {
		s->root = path_relative(m->dir, m->root);
	} else {
		/* It is of no use to another checkout, but here it can be run, as by case resume.
		 */
		s->root = mem_strdup(m->root);
		SAY_TOO(&m->made->notes, "note:outside-project", said_text(m->request->dir),
			said_text(m->root));
	}
}

static void add_settings(struct making *m)
{
	const struct series_settings *from = &m->source->settings;
	struct series_settings *to = &m->made->sentinel.trial;

	to->cwd = portable(m, from->cwd);
	to->stdin_path = from->stdin_path ? portable(m, from->stdin_path) : NULL;
	to->breadcrumb = cstr_dup(from->breadcrumb);
	for (size_t i = 0; i < from->ignore.count; i++)
		strv_add(&to->ignore, from->ignore.items[i]);
	for (size_t i = 0; i < from->fail_on.count; i++)
		strv_add(&to->fail_on, from->fail_on.items[i]);
	to->observer = from->observer;
	to->jobs = from->jobs;
	to->timeout_ns = from->timeout_ns;
	to->linger_ns = from->linger_ns;
	to->share_tmp = from->share_tmp;
	to->pty = from->pty;
	to->chaos = from->chaos;
	to->chaos_seed = cstr_dup(from->chaos_seed);
}

static int write_all(struct making *m, struct err *err)
{
	struct sentinel *s = &m->made->sentinel;
	AUTO(strbuf_deinit) struct strbuf text = { 0 };
	AUTO(strbuf_deinit) struct strbuf readme = { 0 };
	AUTO(strbuf_deinit) struct strbuf tests = { 0 };
	int r;

	sentinel_write(s, &text);
	m->request->words->readme(s, &readme);
	for (size_t i = 0; i < s->tests.count; i++)
		strbuf_addf(&tests, "%s\n", s->tests.items[i]);
	r = write_file(m, "run.sh", m->request->words->run_sh, strlen(m->request->words->run_sh),
		       0755, err);
	if (r == 0)
		r = write_file(m, "README.md", strbuf_str(&readme), readme.len, 0644, err);
	if (r == 0 && s->tests.count > 0)
		r = write_file(m, "tests.txt", strbuf_str(&tests), tests.len, 0644, err);
	/* Last: what makes the directory a sentinel. */
	return r < 0 ? r : write_file(m, SENTINEL_FILE, strbuf_str(&text), text.len, 0644, err);
}

/* A rate from a handful of runs can be anything, and all that is proved rests on it. */
#define FAILED_FEW 5

static void note_weak_rate(struct making *m)
{
	const struct sentinel_source *source = m->source;

	if (source->failed < FAILED_FEW)
		SAY_TOO(&m->made->notes, "note:few-failures", said_number(source->failed),
			said_number(source->trials));
}

int sentinel_make(struct case_store *cs, const struct sentinel_source *source,
		  const struct sentinel_request *request, struct sentinel_made *ret,
		  struct err *err)
{
	AUTO(making_deinit)
	struct making m = { .cs = cs, .source = source, .request = request, .made = ret };
	struct sentinel *s = &ret->sentinel;
	int r = prepare_dir(&m, err);

	if (r < 0)
		return r;
	m.case_path = realpath(case_dir(cs), NULL);
	if (!m.case_path)
		return err_set_errno(err, -errno, "cannot find '%s'", case_dir(cs));
	m.root = path_find_up(source->settings.cwd, ".git");
	m.git = m.root != NULL;
	if (!m.root)
		m.root = mem_strdup(source->settings.cwd);
	add_settings(&m);
	signature_copy(&s->signature, &source->target.signature);
	s->failed = source->failed;
	s->trials = source->trials;
	for (size_t i = 0; i < source->known.count; i++)
		strv_add(&s->known, source->known.items[i]);
	for (size_t i = 0; i < source->minimal.tests.count; i++)
		strv_add(&s->tests, source->minimal.tests.items[i]);
	add_origin(&m);
	note_weak_rate(&m);
	r = add_command(&m, err);
	if (r == 0)
		r = write_all(&m, err);
	if (r == 0)
		sentinel_trust(m.dir);
	return r;
}

int sentinel_remember(struct case_store *cs, const char *dir, const struct sentinel_source *source,
		      struct err *err)
{
	AUTO(mem_freep) char *from = realpath(case_dir(cs), NULL);
	AUTO(mem_freep) char *to = realpath(dir, NULL);
	struct sentinel_note note = { .series = source->series.value,
				      .failed = source->failed,
				      .trials = source->trials };
	int r;

	if (!from || !to)
		return err_set_errno(err, -errno, "cannot find '%s'", dir);
	note.dir = path_relative(from, to);
	memcpy(note.signature, source->target.signature.id, sizeof(note.signature));
	r = case_add_sentinel(cs, &note, err);
	mem_free(note.dir);
	return r;
}
