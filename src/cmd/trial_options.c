#include "cmd/trial_options.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cstr.h"
#include "base/fingerprint.h"
#include "base/talk.h"
#include "base/tmpdir.h"
#include "base/value.h"
#include "base/when.h"
#include "base/which.h"
#include "case/stored_notebook.h"
#include "cmd/progress.h"
#include "cmd/trial_options_inside.h"
#include "model/known_secrets.h"
#include "report/wording.h"
#include "run/observe.h"
#include "run/remote/fleet.h"
#include "run/tmp_dirs.h"
#include "search/stats/rng.h"
#include "studies/overview/surroundings.h"

#define FIELD(name) offsetof(struct trial_options, name)

static const char *const keep_names[] = {
	[KEEP_FAILED] = "failed", [KEEP_ALL] = "all", [KEEP_NONE] = "none", NULL
};

static const struct {
	const char *name;
	enum failure_kind kind; /* FAILURE_KINDS: crashes of children */
} ignorable[] = {
	{ "signal", FAILURE_SIGNAL },
	{ "exit", FAILURE_EXIT },
	{ "timeout", FAILURE_TIMEOUT },
	{ "child", FAILURE_KINDS },
};

const struct option trial_option_table[] = {
	OPTION(COUNT, "jobs", "SLOTS", FIELD(jobs),
	       "Run so many trials side by side, each in a slot (default: the number of cores). {slot} in "
	       "the program's arguments is replaced by the slot's number, from 0, {trial} by the "
	       "trial's",
	       .letter = 'j', .min = 1, .max = 1024),
	OPTION(LIST, "slot-env", "NAME=VALUE", FIELD(slot_env),
	       "Set an environment variable for the program; {slot} and {trial} are replaced in "
	       "VALUE, as in --slot-env CUDA_VISIBLE_DEVICES={slot}. May be given more than once"),
	OPTION(TEXT, "cwd", "DIR", FIELD(cwd),
	       "Run the program in DIR (default: the current directory)"),
	OPTION(TEXT, "stdin", "FILE", FIELD(stdin_path),
	       "Let the program read FILE on its standard input (default: nothing)"),
	OPTION(DURATION, "timeout", "TIME", FIELD(timeout_ns),
	       "End a trial, with every process that it started, after TIME (250ms, 30s, 5m, 1h; "
	       "default: never) and count it as failed"),
	OPTION(DURATION, "linger", "TIME", FIELD(linger_ns),
	       "How long processes that outlive the program may go on before they are ended "
	       "(default 1s)"),
	OPTION(FLAG, "share-tmp", NULL, FIELD(share_tmp),
	       "Leave TMPDIR as it is instead of giving each trial a new one"),
	OPTION(FLAG, "pty", NULL, FIELD(pty),
	       "Make the program's output a terminal, so that it prints line by line and a crash "
	       "loses no buffered lines; stdout and stderr become one stream"),
	OPTION(SIZE, "output-limit", "SIZE", FIELD(output_limit),
	       "Keep at most SIZE of each output stream, its beginning and its end (default 1M); "
	       "what is left out is still searched"),
	OPTION(CHOICE, "keep", "WHICH", FIELD(keep),
	       "Which trials' directories to keep: failed (default), all, none",
	       .choices = keep_names),
	OPTION(CHOICE, "observe", "OBSERVER", FIELD(observe),
	       "How closely to look: none loads nothing into the program; crash (default) records "
	       "registers, stack and memory when it dies; ids also follows every allocation, to tell the "
	       "life of a damaged block, and who made a mapped file shorter; heap also puts guards around "
	       "blocks and delays the reuse of freed ones, as redhand heap does; fence also lets blocks end "
	       "at protected pages, so that reads out of bounds are seen; valgrind runs the program under "
	       "Memcheck: an error that Memcheck reports makes a trial fail. heap, watch and chase have "
	       "observers of their own and take no other",
	       .choices = observer_names),
	OPTION(TEXT, "chaos", "[KNOBS]", FIELD(chaos),
	       "Disturb each trial in a way drawn for it, so that a rare failure shows itself more "
	       "often: pad (environment of random length), gap (mappings and heap lie elsewhere), pin "
	       "(on one core, or all), starve (threads held back at allocations, at most a fifth of "
	       "the time), arm (a delay after arming a watch); without KNOBS all of them. The agent "
	       "does gap, starve and arm, so --observe none leaves them out. Whether it helps, "
	       "compare tells",
	       .bare = "all"),
	OPTION(TEXT, "chaos-seed", "N", FIELD(chaos_seed),
	       "Disturb every trial exactly as the one with this seed was (redhand show TRIAL names "
	       "it); implies --chaos"),
	OPTION(LIST, "allocator", "FUNCTIONS", FIELD(allocators),
	       "Follow the objects of an allocator of the program's own, as in --allocator "
	       "'alloc=pool_get(size@0) free=pool_put(ptr@0)': @N is the integer argument (from 0) "
	       "that holds the size or the object. Also alloc=F(size=32), alloc=F(count@0*size@1), "
	       "realloc=F(ptr@0,size@1). Functions are named as in the source, FILE!NAME in a library, "
	       "FILE+0xADDRESS where names are stripped. Implies --observe ids. May be given more than "
	       "once. A malloc that is linked into the program is followed without being asked, "
	       "--allocator none leaves it alone"),
	OPTION(LIST, "ignore", "KIND", FIELD(ignore),
	       "What is no failure here: exit (a status other than 0), signal, timeout, or child "
	       "(a crash in a process whose parent hides it). May be given more than once"),
	OPTION(LIST, "fail-on", "REGEX", FIELD(fail_on),
	       "A line of output that matches REGEX (POSIX extended, as in grep -E) is a failure, "
	       "too. May be given more than once"),
	OPTION(TEXT, "breadcrumb", "REGEX", FIELD(breadcrumb),
	       "Lines of output that mark the program's progress (default: every line). The "
	       "summary says between which two of them it dies"),
	OPTION(TEXT, "runner", "WHERE", FIELD(elsewhere.runner),
	       "Who runs the trials: local (default), slurm or slurm:SBATCH-OPTIONS (a job array with "
	       "a task for each slot), ssh:HOST,HOST (slots are dealt to the hosts in turn), or "
	       "exec:COMMAND, which starts redhand worker somewhere: {worker} in it stands for the "
	       "worker's command line, {slot} for each slot's number; without {slot} it is run once "
	       "and sees to {slots} workers. A trial whose machine is lost is run again"),
	OPTION(TEXT, "bind", "ADDRESS", FIELD(elsewhere.bind),
	       "Where to listen for workers of --runner, with :PORT if it must be a certain one "
	       "(default: the address that routes to them)"),
	OPTION(LIST, "ship", "FILE", FIELD(elsewhere.ship),
	       "Take a file or directory along to the workers of --runner, which then run the "
	       "program in a directory of their own that has them under the same relative names. "
	       "Without it the machines must have the program where this one has it. May be given "
	       "more than once"),
	OPTION(FLAG, "fresh", NULL, FIELD(fresh),
	       "Forget the trials of this same command that the case already has and start over; "
	       "without it redhand goes on where it was"),
	OPTIONS_END,
};

uint64_t trial_options_cores(void)
{
	long cores = sysconf(_SC_NPROCESSORS_ONLN);

	return cores > 0 ? (uint64_t)cores : 1;
}

void trial_options_defaults(void *ptr)
{
	struct trial_options *options = ptr;

	options->jobs = trial_options_cores();
	options->observe = OBSERVE_CRASH;
	options->linger_ns = 1000000000;
	options->output_limit = 1 << 20;
}

static int compile(const char *option, const char *pattern, regex_t *ret, struct err *err)
{
	int code = regcomp(ret, pattern, REG_EXTENDED | REG_NEWLINE);
	char why[128];

	if (code == 0)
		return 0;
	(void)regerror(code, ret, why, sizeof(why));
	(void)err_set(err, -EINVAL, "--%s '%s': %s", option, pattern, why);
	return err_set_remedy(err, "an extended regular expression as for grep -E");
}

static int set_rules(struct trial_settings *settings, const struct trial_options *options,
		     struct err *err)
{
	settings->children = true;
	for (size_t i = 0; i < options->fail_on.count; i++) {
		struct fail_on rule;
		int r = compile("fail-on", options->fail_on.items[i], &rule.regex, err);

		if (r < 0)
			return r;
		rule.pattern = mem_strdup(options->fail_on.items[i]);
		VEC_PUSH(&settings->fail_on, rule);
	}
	for (size_t i = 0; i < options->ignore.count; i++) {
		size_t k = 0;

		while (k < ARRAY_SIZE(ignorable) &&
		       strcmp(ignorable[k].name, options->ignore.items[i]) != 0)
			k++;
		if (k == ARRAY_SIZE(ignorable))
			return err_set(err, -EINVAL,
				       "--ignore wants exit, signal, timeout or child, not '%s'",
				       options->ignore.items[i]);
		if (ignorable[k].kind == FAILURE_KINDS)
			settings->children = false;
		else
			settings->ignored |= 1u << ignorable[k].kind;
	}
	if (options->breadcrumb) {
		int r = compile("breadcrumb", options->breadcrumb, &settings->breadcrumb.regex,
				err);

		if (r < 0)
			return r;
		settings->breadcrumb.given = true;
		settings->breadcrumb.text = mem_strdup(options->breadcrumb);
	}
	return 0;
}

static int set_chaos(struct trial_settings *settings, const struct trial_options *options,
		     struct err *err)
{
	const char *knobs = options->chaos;
	int r = 0;

	if (options->chaos_seed) {
		r = value_count(options->chaos_seed, 0, 0, &settings->chaos_seed.value, err);
		if (r < 0)
			return err_set_prefix(err, "--chaos-seed");
		settings->chaos_seed.given = true;
		if (!knobs)
			knobs = "all";
	}
	if (knobs)
		r = chaos_parse(knobs, &settings->chaos, err);
	return r < 0 ? err_set_prefix(err, "--chaos") : 0;
}

static int check_slot_env(const struct trial_options *options, struct err *err)
{
	for (size_t i = 0; i < options->slot_env.count; i++) {
		const char *text = options->slot_env.items[i];
		const char *equals = strchr(text, '=');

		if (!equals || equals == text)
			return err_set(err, -EINVAL, "--slot-env wants NAME=VALUE, not '%s'", text);
	}
	return 0;
}

/* Before anything is written: a mistyped name must not make a case. */
static int find_program(const char *template, const char *cwd, char **ret, struct err *err)
{
	AUTO(mem_freep)
	char *name = trial_substitute(template, 0, (struct trial_number){ .value = 1 });

	return which(name, cwd, ret, err);
}

static int check_paths(const struct trial_options *options, struct err *err)
{
	struct stat st;

	if (options->cwd && (stat(options->cwd, &st) < 0 || !S_ISDIR(st.st_mode)))
		return err_set(err, -ENOTDIR, "--cwd '%s' is not a directory", options->cwd);
	if (options->stdin_path && access(options->stdin_path, R_OK) < 0)
		return err_set_errno(err, -errno, "--stdin '%s' cannot be read",
				     options->stdin_path);
	/* Who opens a pipe without a writer waits, and cannot be ended meanwhile. */
	if (options->stdin_path && stat(options->stdin_path, &st) == 0 && S_ISFIFO(st.st_mode))
		return err_set(err, -EINVAL,
			       "--stdin '%s' is a pipe: trials would take turns at it",
			       options->stdin_path);
	return 0;
}

/* Values are written with their length, so that no two different settings look alike. */
static void identify(struct strbuf *sb, const char *name, const char *value)
{
	strbuf_addf(sb, "%s %zu:%s\n", name, strlen(value), value);
}

static void identify_list(struct strbuf *sb, const char *name, const struct option_list *list)
{
	for (size_t i = 0; i < list->count; i++) {
		AUTO(mem_freep) char *open = mem_strdup(list->items[i]);

		secret_hide(open, strlen(open));
		identify(sb, name, open);
	}
}

/* Words that may hold secrets: these stay outside of the case. Another secret is another series, as
 * far as sixteen bits tell. */
static void identify_words(struct strbuf *sb, const char *name, char *const *words)
{
	AUTO(strv_deinit) struct strv open = { 0 };
	unsigned int print = secret_print(words);

	secret_words(words, &open);
	for (size_t i = 0; i < open.count; i++)
		identify(sb, name, open.items[i]);
	if (print != 0)
		strbuf_addf(sb, "%s-secrets %u\n", name, print);
}

static void build_identity(struct strbuf *sb, const struct trial_options *o, const char *command,
			   char *const *program)
{
	AUTO(mem_freep) char *cwd = realpath(o->cwd ? o->cwd : ".", NULL);
	AUTO(strv_deinit) struct strv env = { 0 };

	identify(sb, "command", command);
	for (size_t i = 0; i < o->slot_env.count; i++)
		strv_add(&env, o->slot_env.items[i]);
	identify_words(sb, "arg", program);
	identify(sb, "cwd", cwd ? cwd : "");
	if (env.count > 0)
		identify_words(sb, "slot-env", env.items);
	identify(sb, "stdin", o->stdin_path ? o->stdin_path : "");
	identify_list(sb, "ignore", &o->ignore);
	identify_list(sb, "fail-on", &o->fail_on);
	identify(sb, "breadcrumb", o->breadcrumb ? o->breadcrumb : "");
	identify(sb, "observe", observer_names[o->observe]);
	identify_list(sb, "allocator", &o->allocators);
	strbuf_addf(sb, "jobs %llu\ntimeout %llu\nlinger %llu\nshare-tmp %d\npty %d\n",
		    (unsigned long long)o->jobs, (unsigned long long)o->timeout_ns,
		    (unsigned long long)o->linger_ns, o->share_tmp, o->pty);
}

/* Nothing when there is none: series of before there was chaos go on. */
static void identify_chaos(struct strbuf *sb, const struct trial_settings *settings)
{
	if (settings->chaos != 0)
		strbuf_addf(sb, "chaos %u\n", settings->chaos);
	if (settings->chaos_seed.given)
		strbuf_addf(sb, "chaos-seed %llu\n",
			    (unsigned long long)settings->chaos_seed.value);
}

static int set_observer(struct trial_setup *setup, const struct trial_options *options,
			const char *path, struct err *err)
{
	AUTO(said_deinit) struct said obstacle = { 0 };
	AUTO(mem_freep) char *valgrind = NULL;
	int r;

	if (options->observe == OBSERVE_VALGRIND && which("valgrind", NULL, &valgrind, NULL) < 0) {
		(void)err_set(err, -ENOENT, "--observe valgrind: valgrind is not installed");
		return err_set_remedy(err, "--observe heap or fence need nothing else");
	}
	setup->observer = options->observe;
	if (path && observe_obstacle(path, &obstacle))
		setup->unobserved = words_of(&obstacle);
	if (setup->unobserved)
		setup->observer = OBSERVE_NONE;
	/* Arms of a comparison may want it even when the option does not. */
	r = observe_find_agent(&setup->settings.agent_dir, err);
	if (r == 0)
		observe_alias_agent(&setup->settings.agent_dir, &setup->agent_link_dir);
	return setup->observer < OBSERVE_CRASH ? 0 : r;
}

struct libraries_request trial_setup_files(const struct trial_setup *setup)
{
	return (struct libraries_request){ .program = setup->program_path,
					   .cwd = setup->settings.cwd,
					   .env = &setup->slot_env,
					   .seen = setup->seen.list.count > 0 ? &setup->seen
									      : NULL };
}

/* `path` is the program's file, NULL when it is not there yet. */
static int set_runner(struct trial_setup *setup, const struct trial_options *options,
		      struct err *err)
{
	bool remote = false;
	int r = options->elsewhere.runner ? fleet_check(options->elsewhere.runner, &remote, err)
					  : 0;

	if (r < 0)
		return err_set_prefix(err, "--runner");
	if (!remote && (options->elsewhere.bind || options->elsewhere.ship.count > 0))
		return err_set(err, -EINVAL, "--%s is for workers on other machines: name --runner",
			       options->elsewhere.bind ? "bind" : "ship");
	setup->runner = remote ? options->elsewhere.runner : NULL;
	setup->bind = options->elsewhere.bind;
	setup->slots = (unsigned int)options->jobs;
	for (size_t i = 0; i < options->elsewhere.ship.count; i++)
		strv_add(&setup->ship, options->elsewhere.ship.items[i]);
	return 0;
}

static int fill_setup(struct trial_setup *setup, const struct trial_options *options,
		      const char *command, char *const *program, const char *path, struct err *err)
{
	struct trial_settings *settings = &setup->settings;
	int r = set_rules(settings, options, err);

	if (r == 0)
		r = set_chaos(settings, options, err);
	if (r == 0)
		r = set_runner(setup, options, err);
	if (r < 0)
		return r;
	for (size_t i = 0; i < options->slot_env.count; i++)
		strv_add(&setup->slot_env, options->slot_env.items[i]);
	if (secret_is_lost(program) || secret_is_lost(setup->slot_env.items)) {
		(void)err_set(err, -EINVAL,
			      "the command has " SECRET_MARK " in the place of a secret");
		return err_set_remedy(err,
				      "put back what redhand left out when it printed the command");
	}
	secret_learn(program);
	if (setup->slot_env.count > 0)
		secret_learn(setup->slot_env.items);
	r = set_observer(setup, options, path, err);
	if (r < 0)
		return r;
	settings->cwd = cstr_dup(options->cwd);
	settings->stdin_path = mem_strdup(options->stdin_path ? options->stdin_path : "/dev/null");
	settings->flags =
		(options->share_tmp ? TRIAL_SHARE_TMP : 0) | (options->pty ? TRIAL_PTY : 0);
	settings->keep = options->keep;
	settings->timeout_ns = options->timeout_ns;
	settings->linger_ns = options->linger_ns;
	settings->output_limit = options->output_limit;
	(void)sigprocmask(SIG_BLOCK, NULL, &settings->signal_mask);
	/* A rebuilt program is another program: its trials must not be mixed with those of the old
	 * one. Told by content, so that a build that changed nothing makes no difference. */
	if (!path)
		return 0;
	file_fingerprint(path, &setup->program);
	setup->program_path = mem_strdup(path);
	return trial_allocators_plan(setup, options, command, program, err);
}

/* Commands that watch have their own way of saying what, and no other observer. */
static int check_observer(enum observer observer, const char *command, struct err *err)
{
	bool watches = strcmp(command, "watch") == 0 || strcmp(command, "chase") == 0;

	if (watches && observer != OBSERVE_WATCH)
		return err_set(err, -EINVAL, "%s is an observer of its own: leave --observe out",
			       command);
	/* compare's arms have --on; a sentinel does as was done. */
	if (!watches && observer == OBSERVE_WATCH && strcmp(command, "compare") != 0 &&
	    strcmp(command, "sentinel") != 0) {
		(void)err_set(err, -EINVAL, "--observe watch: nothing to watch was named");
		return err_set_remedy(err,
				      "redhand watch --on WHAT -- PROGRAM; --observe ids follows "
				      "allocations without watching any");
	}
	return 0;
}

static int init(struct trial_setup *setup, const struct trial_options *options, const char *command,
		char *const *program, bool later, struct err *err)
{
	AUTO(mem_freep) char *path = NULL;
	int r = check_paths(options, err);

	if (r == 0)
		r = check_slot_env(options, err);
	if (r == 0)
		r = check_observer(options->observe, command, err);
	if (r == 0 && !later)
		r = find_program(program[0], options->cwd, &path, err);
	if (r == 0)
		r = fill_setup(setup, options, command, program, path, err);
	if (r < 0)
		return r;
	build_identity(&setup->identity, options, command, program);
	identify_chaos(&setup->identity, &setup->settings);
	return 0;
}

int trial_setup_init(struct trial_setup *setup, const struct trial_options *options,
		     const char *command, char *const *program, struct err *err)
{
	return init(setup, options, command, program, false, err);
}

int trial_setup_init_later(struct trial_setup *setup, const struct trial_options *options,
			   const char *command, char *const *program, struct err *err)
{
	bool relative = program[0][0] != '/' && strchr(program[0], '/');

	return init(setup, options, command, program, relative, err);
}

static int place(struct trial_setup *setup, const char *case_dir, const struct case_store *cs,
		 struct err *err)
{
	AUTO(mem_freep) char *trials = mem_printf("%s/trials", case_dir);
	struct stat st;

	setup->settings.trials.path = realpath(trials, NULL);
	if (!setup->settings.trials.path || fstat(case_trials_dir(cs), &st) < 0)
		return err_set_errno(err, -errno, "cannot find '%s'", trials);
	setup->settings.trials.device = st.st_dev;
	setup->settings.trials.inode = st.st_ino;
	return setup->settings.flags & TRIAL_SHARE_TMP ? 0 : tmp_dirs_make(&setup->settings, err);
}

static void say(void *ctx, const struct said *said)
{
	AUTO(mem_freep) char *sentence = words_of(said);

	(void)ctx;
	log_note("%s", sentence);
}

/* Other machines are asked for when there is a case to put their trials into. */
static int call_workers(struct trial_setup *setup, struct case_store *cs, struct err *err)
{
	if (!setup->runner)
		return 0;
	for (size_t i = 0; i < setup->ship.count; i++) {
		char path[PATH_MAX];
		int r = realpath(setup->ship.items[i], path) ? case_add_shipped(cs, path, err) : 0;

		if (r < 0)
			return r;
	}
	return fleet_open(&(struct fleet_request){ .runner = setup->runner,
						   .bind = setup->bind,
						   .slots = setup->slots,
						   .agent_dir = setup->settings.agent_dir,
						   .ship = &setup->ship,
						   .say = say },
			  &setup->settings.shared.fleet, err);
}

/* A case that was set aside is taken up again only knowingly. */
static void say_parked(const struct notebook *notebook)
{
	const struct parking *parking = notebook_parked(notebook);
	char when[WHEN_MAX];

	if (parking)
		log_note("this case is parked since %s, because %s; until %s. redhand case resume "
			 "ends that",
			 when_text(parking->made_ms, when), parking->because, parking->until);
}

/* Where these trials run: reports say it. */
static int look_around(const struct trial_setup *setup, struct case_store *cs, struct err *err)
{
	AUTO(notebook_deinit) struct notebook notebook = { 0 };
	struct world world = { 0 };
	int r = case_notebook(cs, &notebook, err);

	if (r < 0)
		return r;
	say_parked(&notebook);
	surroundings_look(setup->settings.cwd, setup->program_path, REDHAND_VERSION, &world);
	r = case_add_surroundings(cs, &world, err);
	world_deinit(&world);
	return r;
}

int trial_setup_open(struct trial_setup *setup, const char *case_dir, struct case_store **ret,
		     struct err *err)
{
	int r = case_open(case_dir, CASE_WRITE, ret, err);

	if (r == 0)
		r = look_around(setup, *ret, err);
	if (r == 0)
		r = place(setup, case_dir, *ret, err);
	if (r == 0 && setup->unobserved)
		log_note("%s", setup->unobserved);
	if (r == 0 && setup->observer < OBSERVE_CRASH &&
	    setup->settings.chaos & ~(unsigned int)(CHAOS_PAD | CHAOS_PIN))
		log_note("unobserved, so of --chaos only pad and pin are in force");
	for (size_t i = 0; r == 0 && i < setup->notes.count; i++)
		log_note("%s", setup->notes.items[i]);
	if (r == 0)
		r = call_workers(setup, *ret, err);
	return r;
}

int trial_setup_watch(struct trial_setup *setup, enum watch_mode wanted, char **ret_reason,
		      struct err *err)
{
	enum watch_mode mode = WATCH_AUTO;
	int r = watch_mode_choose(wanted, &mode, ret_reason, err);

	if (r == 0 && wanted != WATCH_AUTO)
		*ret_reason = mem_strdup("as asked for");
	if (r < 0 || mode == WATCH_HW)
		return r;
	setup->settings.flags |= mode == WATCH_PAGES ? TRIAL_PAGES : TRIAL_TRACED;
	strbuf_addf(&setup->identity, "mode %s\n", watch_mode_names[mode]);
	return 0;
}

void trial_setup_join(struct trial_setup *setup, const struct trial_setup *opened)
{
	const struct trial_settings *from = &opened->settings;

	setup->settings.trials.path = mem_strdup(from->trials.path);
	setup->settings.trials.device = from->trials.device;
	setup->settings.trials.inode = from->trials.inode;
	setup->settings.trials.tmp_dirs = cstr_dup(from->trials.tmp_dirs);
	setup->settings.shared.readings = from->shared.readings;
	setup->settings.shared.fleet = from->shared.fleet;
	setup->joined = true;
}

int trial_seed(const char *text, uint64_t *ret, struct err *err)
{
	int r = 0;

	if (text)
		r = value_count(text, 0, 0, ret, err);
	else
		*ret = rng_fresh_seed();
	return r < 0 ? err_set_prefix(err, "--seed") : 0;
}

struct series_identity trial_setup_identity(const struct trial_setup *setup, const char *command)
{
	return (struct series_identity){ .command = command,
					 .settings = strbuf_str(&setup->identity),
					 .program = strbuf_str(&setup->program) };
}

struct series_request trial_setup_series(const struct trial_setup *setup,
					 const struct trial_options *options,
					 const struct invocation *inv, struct progress *progress)
{
	progress_init(progress);
	return (struct series_request){ .identity = trial_setup_identity(setup, inv->command->name),
					.settings = &setup->settings,
					.observer = setup->observer,
					.program = inv->program,
					.slot_env = &setup->slot_env,
					.jobs = (unsigned int)options->jobs,
					.fresh = options->fresh,
					.progress = progress_show,
					.progress_ctx = progress };
}

void trial_progress_end(struct progress *progress, bool program_changed)
{
	progress_end(progress);
	if (program_changed)
		log_note("the program has changed since the case was made: its earlier trials are "
			 "kept there but not counted here");
}

/* A build meanwhile: whoever reads the result must know that it is of two programs. */
static void tell_changed(const struct trial_setup *setup)
{
	AUTO(strbuf_deinit) struct strbuf now = { 0 };

	if (!setup->program_path || setup->joined || access(setup->program_path, F_OK) < 0)
		return;
	file_fingerprint(setup->program_path, &now);
	if (strcmp(strbuf_str(&now), strbuf_str(&setup->program)) != 0)
		log_note("'%s' is another build now than the one that these trials began with; "
			 "the same command counts anew",
			 setup->program_path);
}

static void dismiss_workers(struct fleet *fleet)
{
	uint64_t lost = fleet_lost(fleet);

	fleet_close(fleet);
	if (lost > 0)
		log_note("%llu trial%s lost with %s machine and run again",
			 (unsigned long long)lost, lost == 1 ? " was" : "s were",
			 lost == 1 ? "its" : "their");
}

void trial_setup_deinit(struct trial_setup *setup)
{
	tell_changed(setup);
	if (!setup->joined && setup->settings.shared.fleet)
		dismiss_workers(setup->settings.shared.fleet);
	if (!setup->joined)
		tmpdir_remove(setup->settings.trials.tmp_dirs);
	tmpdir_remove(setup->agent_link_dir);
	MEM_FREE(setup->agent_link_dir, setup->unobserved, setup->program_path);
	library_list_deinit(&setup->seen);
	strv_deinit(&setup->notes);
	strv_deinit(&setup->ship);
	trial_settings_deinit(&setup->settings);
	strv_deinit(&setup->slot_env);
	strbuf_deinit(&setup->identity);
	strbuf_deinit(&setup->program);
}
