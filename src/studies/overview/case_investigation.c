#include "studies/overview/case_investigation.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cstr.h"
#include "base/path.h"
#include "base/words.h"
#include "case/stored_notebook.h"
#include "model/known_secrets.h"
#include "model/overview.h"
#include "read/field_names.h"
#include "run/settings.h"
#include "run/tally.h"
#include "search/stats/fisher.h"
#include "search/stats/rate.h"
#include "search/stats/shift.h"
#include "studies/heap/heap_study.h"
#include "studies/overview/slot_strata.h"
#include "studies/series/arm.h"
#include "studies/series/fault_addresses.h"
#include "studies/series/series_findings.h"

#define WATCH_WITHOUT_IDS "watch without ids"

struct case_reading {
	struct case_store *cs;
	struct readings *readings;
	struct investigation *inv;
	struct series_id main; /* that tells most about the failure; 0 none */
	int weight;	       /* of it */
	struct series_id minimize;
	bool mixed;    /* the trials of `main` are not of one kind: no rate */
	bool compared; /* observers were compared with each other */
	/* The command that the verdict is about; empty: any. */
	struct strv only;
	int64_t only_ms; /* when it was last run */
	struct slot_strata slots;
};

/* `repro` and `hunt` run the command as it is; the lists of `minimize` and the arms of `compare`
 * are not alike among themselves. One that failed says more than one that did not. */
static int weight_of(const char *command, const struct rate *rate)
{
	return (rate->failed > 0 ? 4 : 0) + (command_is_plain(command) ? 2 : 0) +
	       (rate->trials > 0 ? 1 : 0);
}

static struct observer_rate *add_observer(struct investigation *inv, const char *name,
					  const struct rate *rate)
{
	VEC_FOREACH (&inv->observers, o)
		if (strcmp(o->name, name) == 0) {
			o->rate = rate_wilson(o->rate.trials + rate->trials,
					      o->rate.failed + rate->failed, RATE_CONFIDENCE);
			return o;
		}
	VEC_PUSH(&inv->observers,
		 ((struct observer_rate){ .name = mem_strdup(name), .rate = *rate }));
	return &inv->observers.items[inv->observers.count - 1];
}

struct timed_arm {
	struct observer_rate *observer;
	unsigned int arm; /* TALLY_ALL: any */
};

/* What fails ends early, mostly: it does not say how long the work takes. */
static void take_time(void *ctx, const struct run_row *row)
{
	const struct timed_arm *of = ctx;

	if ((of->arm == TALLY_ALL || row->arm == of->arm) && row->signatures[0] == '\0' &&
	    row->wall_ns > 0)
		VEC_PUSH(&of->observer->times, (double)row->wall_ns / 1e9);
}

/* What was measured by the way, without a comparison, stays where it is. */
static bool is_compared(const char *name)
{
	return strcmp(name, observer_names[OBSERVE_NONE]) == 0 ||
	       strcmp(name, observer_names[OBSERVE_CRASH]) == 0 ||
	       strcmp(name, observer_names[OBSERVE_IDS]) == 0;
}

static void observers_clear(struct investigation *inv)
{
	size_t kept = 0;

	for (size_t i = 0; i < inv->observers.count; i++) {
		struct observer_rate *o = &inv->observers.items[i];

		if (is_compared(o->name))
			observer_rate_deinit(o);
		else
			inv->observers.items[kept++] = *o;
	}
	inv->observers.count = kept;
}

/* How often what is watched and guarded fails without. */
static const struct rate *rate_without(const struct investigation *inv,
				       const struct observer_rate *base)
{
	if (inv->judged && inv->trigger.known && inv->trigger.minimal.trials > 0)
		return &inv->trigger.minimal;
	return inv->counted ? &inv->summary.rate : &base->rate;
}

/* Of each kind, to tell half a rate from the rate by a test at 5 % with a power of 80 %: by the
 * usual approximation, (1.96 + 0.84)² = 7.85. */
static uint64_t enough_trials(double rate)
{
	double half = rate / 2;

	if (rate <= 0)
		return 0;
	return (uint64_t)ceil(7.85 * (rate * (1 - rate) + half * (1 - half)) / (half * half));
}

/* Those that were run in turns are compared with the one of them that adds least, the others with
 * what is known of the whole. */
static void judge_observers(struct investigation *inv)
{
	const struct observer_rate *base = NULL;

	VEC_FOREACH (&inv->observers, o) {
		o->seconds = shift_median(o->times.items, o->times.count);
		if (!base || strcmp(o->name, observer_names[OBSERVE_NONE]) == 0)
			base = o;
	}
	if (!base || !is_compared(base->name) ||
	    strcmp(base->name, observer_names[OBSERVE_IDS]) == 0) {
		VEC_FOREACH (&inv->observers, o)
			o->enough = enough_trials(o->rate.rate);
		return;
	}
	VEC_FOREACH (&inv->observers, o) {
		const struct rate *without =
			is_compared(o->name) ? &base->rate : rate_without(inv, base);

		if (o == base || without->failed + o->rate.failed == 0)
			continue;
		o->enough = enough_trials(without->rate);
		o->p = fisher_two_sided(&(struct fisher_table){ .trials_a = without->trials,
								.failed_a = without->failed,
								.trials_b = o->rate.trials,
								.failed_b = o->rate.failed });
		o->effect = o->p >= RATES_DIFFER_P	   ? EFFECT_NONE
			    : o->rate.failed == 0	   ? EFFECT_HIDES
			    : o->rate.rate < without->rate ? EFFECT_RARER
							   : EFFECT_MORE_OFTEN;
	}
}

/* The observer that an arm asks for by itself; NULL when it asks for none. */
static char *arm_observer(const char *text)
{
	static const char setting[] = ":observe=";
	const char *at = strstr(text, setting);

	return at && !strchr(at + strlen(setting), ',') ? mem_strdup(at + strlen(setting)) : NULL;
}

static void add_arm(struct case_reading *reading, const char *name, const struct tally *tally,
		    struct series_id series, unsigned int arm)
{
	uint64_t trials, failed;
	struct rate rate;

	tally_failed(tally, arm, TALLY_ALL, &trials, &failed);
	rate = rate_wilson(trials, failed, RATE_CONFIDENCE);
	if (trials == 0)
		return;
	/* Without the times there is the rate. */
	(void)case_runs(reading->cs, series, take_time,
			&(struct timed_arm){ add_observer(reading->inv, name, &rate), arm }, NULL);
}

/* How often it failed under each observer. A comparison of them was run in turns and is worth more
 * than series of different times, so it replaces them. */
static void take_observers(struct case_reading *reading, const char *command,
			   const struct series_settings *settings, const struct tally *tally,
			   struct series_id id)
{
	if (command_is_plain(command) && !reading->compared)
		add_arm(reading, observer_names[settings->observer], tally, id, TALLY_ALL);
	if (strcmp(command, "chase") == 0) {
		add_arm(reading,
			settings->without_ids ? WATCH_WITHOUT_IDS : observer_names[OBSERVE_WATCH],
			tally, id, CHASE_ARM_WATCHED);
		add_arm(reading, observer_names[OBSERVE_HEAP], tally, id, CHASE_ARM_GUARDED);
	}
	if (strcmp(command, "heap") == 0)
		add_arm(reading, observer_names[OBSERVE_HEAP], tally, id, HEAP_ARM_HEAP);
	if (strcmp(command, "compare") != 0)
		return;
	for (size_t i = 0; i < settings->arms.count; i++) {
		AUTO(mem_freep) char *name = arm_observer(settings->arms.items[i]);

		if (!name)
			continue;
		if (!reading->compared)
			observers_clear(reading->inv);
		reading->compared = true;
		add_arm(reading, name, tally, id, (unsigned int)i);
	}
}

static void add_each(struct investigation *inv, const char *option, const struct strv *values)
{
	for (size_t i = 0; i < values->count; i++) {
		strv_add(&inv->options, option);
		strv_add(&inv->options, values->items[i]);
	}
}

static char *duration(uint64_t ns)
{
	unsigned long long ms = (ns + 999999) / 1000000;

	return ms % 1000 == 0 ? mem_printf("%llus", ms / 1000) : mem_printf("%llums", ms);
}

/* Unless it is where the user is. */
static void add_directory(struct investigation *inv, const char *cwd)
{
	AUTO(mem_freep) char *here = getcwd(NULL, 0);

	if (!cwd || (here && strcmp(here, cwd) == 0))
		return;
	strv_add(&inv->options, "--cwd");
	strv_add(&inv->options, cwd);
}

/* What makes it fail may be in how it was run: side by side, each with a variable of its own. */
static void take_options(struct investigation *inv, const struct series_settings *settings)
{
	strv_deinit(&inv->options);
	inv->options = (struct strv){ 0 };
	if (settings->jobs > 0 && (settings->env.count > 0 || settings->jobs_matter)) {
		strv_add(&inv->options, "-j");
		strv_take(&inv->options, mem_printf("%llu", (unsigned long long)settings->jobs));
	}
	if (settings->chaos != 0) {
		struct strbuf knobs = { 0 };

		chaos_list((unsigned int)settings->chaos, &knobs);
		strv_take(&inv->options,
			  mem_printf("--chaos=%s",
				     settings->chaos == CHAOS_ALL ? "all" : strbuf_str(&knobs)));
		strbuf_deinit(&knobs);
	}
	if (settings->chaos_seed) {
		strv_add(&inv->options, "--chaos-seed");
		strv_add(&inv->options, settings->chaos_seed);
	}
	/* Under our own observers it fails as it does without. */
	if (settings->observer == OBSERVE_VALGRIND)
		strv_add(&inv->options, "--observe=valgrind");
	if (settings->pty)
		strv_add(&inv->options, "--pty");
	if (settings->share_tmp)
		strv_add(&inv->options, "--share-tmp");
	add_directory(inv, settings->cwd);
	if (settings->timeout_ns > 0) {
		strv_add(&inv->options, "--timeout");
		strv_take(&inv->options, duration(settings->timeout_ns));
	}
	if (settings->breadcrumb) {
		strv_add(&inv->options, "--breadcrumb");
		strv_add(&inv->options, settings->breadcrumb);
	}
	if (settings->stdin_path) {
		strv_add(&inv->options, "--stdin");
		strv_add(&inv->options, settings->stdin_path);
	}
	add_each(inv, "--ignore", &settings->ignore);
	add_each(inv, "--fail-on", &settings->fail_on);
	add_each(inv, "--slot-env", &settings->env);
}

static void take_program(struct investigation *inv, struct series_settings *settings)
{
	if (settings->program.count == 0)
		return;
	strv_deinit(&inv->program);
	inv->program = settings->program;
	settings->program = (struct strv){ 0 };
	take_options(inv, settings);
	mem_free(inv->root);
	inv->root = settings->cwd;
	settings->cwd = NULL;
}

/* Of a command with a place for tests, all series run it with different ones in it. */
static bool has_place(const struct strv *program)
{
	for (size_t i = 0; i < program->count; i++)
		if (strstr(program->items[i], "{tests"))
			return true;
	return false;
}

static bool same_words(const struct strv *a, const struct strv *b)
{
	for (size_t i = 0; i < a->count || i < b->count; i++)
		if (i >= a->count || i >= b->count || strcmp(a->items[i], b->items[i]) != 0)
			return false;
	return true;
}

/* A case may hold more than one command, but one verdict: that of what was hunted last. */
static int find_hunted(void *ctx, const struct series_row *row, struct err *err)
{
	struct case_reading *reading = ctx;
	AUTO(series_settings_deinit) struct series_settings settings = { 0 };
	bool hunted = strcmp(row->command, "hunt") == 0 || strcmp(row->command, "chase") == 0;

	if (!hunted || row->last_ms < reading->only_ms ||
	    series_settings_read(row->settings, &settings, NULL) < 0)
		return 0;
	reading->only_ms = row->last_ms;
	strv_deinit(&reading->only);
	reading->only = settings.program;
	settings.program = (struct strv){ 0 };
	return 0;
}

static void take_arms(const struct series_settings *settings, const struct tally *tally,
		      struct series_entry *ret)
{
	for (size_t i = 0; i < settings->arms.count; i++) {
		const char *arm = settings->arms.items[i];
		AUTO(mem_freep) char *observer = arm_observer(arm);
		uint64_t trials, failed;

		if (observer) /* told with the observers */
			continue;
		tally_failed(tally, (unsigned int)i, TALLY_ALL, &trials, &failed);
		VEC_PUSH(&ret->arms,
			 ((struct arm_count){
				 .name = mem_strndup(arm, strcspn(arm, ":")),
				 .rate = rate_wilson(trials, failed, RATE_CONFIDENCE) }));
	}
}

/* The arms of a comparison are not alike: the first is what the others are compared with, and has
 * the rate. */
static void rate_of_first_arm(struct investigation *inv)
{
	const struct series_entry *main =
		inv->main_series < inv->series.count ? &inv->series.items[inv->main_series] : NULL;

	if (!main || main->arms.count == 0)
		return;
	inv->summary.rate = main->arms.items[0].rate;
	findings_clean_runs(&inv->summary);
}

/* Of a file that was cut: in which slots the two processes ran. */
static void find_cut_slots(struct case_store *cs, struct investigation *inv)
{
	VEC_FOREACH (&inv->evidence.list, e) {
		AUTO(trial_view_deinit) struct trial_view who = { 0 };
		AUTO(trial_view_deinit) struct trial_view by = { 0 };

		if (e->kind != EVIDENCE_MAPPING || !e->mapping->cut || inv->cut_known ||
		    case_trial(cs, (struct trial_number){ e->trial }, &who, NULL) < 0 ||
		    case_trial(cs, (struct trial_number){ e->mapping->cut->trial }, &by, NULL) < 0)
			continue;
		inv->cut_known = true;
		inv->cut_who = who.slot;
		inv->cut_by = by.slot;
	}
}

static int read_series(void *ctx, const struct series_row *row, struct err *err)
{
	struct case_reading *reading = ctx;
	AUTO(tally_deinit) struct tally tally = { 0 };
	AUTO(series_settings_deinit) struct series_settings settings = { 0 };
	struct series_entry entry = { .id = row->id.value,
				      .command = mem_strdup(row->command),
				      .began_ms = row->created_ms,
				      .last_ms = row->last_ms };
	uint64_t trials = 0, failed = 0;
	bool known;
	int weight, r;

	known = series_settings_read(row->settings, &settings, NULL) == 0;
	if (reading->only.count > 0 && known && !same_words(&reading->only, &settings.program) &&
	    !(has_place(&settings.program) &&
	      strcmp(reading->only.items[0], settings.program.items[0]) == 0)) {
		mem_free(entry.command);
		return 0;
	}
	r = tally_load(&tally, reading->cs, row->id, err);
	if (r == 0)
		tally_failed(&tally, TALLY_ALL, TALLY_ALL, &trials, &failed);
	entry.rate = rate_wilson(trials, failed, RATE_CONFIDENCE);
	entry.observer = known ? mem_strdup(observer_names[settings.observer]) : NULL;
	if (known && strcmp(row->command, "compare") == 0)
		take_arms(&settings, &tally, &entry);
	VEC_PUSH(&reading->inv->series, entry);
	if (r < 0)
		return r;
	slots_add(&reading->slots, &tally);
	reading->inv->slots_differ |= known && settings.jobs > 1 && settings.env.count > 0;
	weight = weight_of(row->command, &entry.rate);
	if (known)
		take_observers(reading, row->command, &settings, &tally, row->id);
	if (strcmp(row->command, "minimize") == 0)
		reading->minimize = row->id;
	if (weight >= reading->weight) {
		reading->weight = weight;
		reading->main = row->id;
		reading->mixed = !command_has_rate(row->command);
		take_program(reading->inv, &settings);
	}
	return 0;
}

static int summarise(struct case_reading *reading, struct err *err)
{
	AUTO(tally_deinit) struct tally tally = { 0 };
	int r;

	if (reading->main.value == 0)
		return 0;
	r = tally_load(&tally, reading->cs, reading->main, err);
	if (r == 0)
		r = findings_summarise(&(struct findings_source){ .tally = &tally,
								  .cs = reading->cs,
								  .series = reading->main,
								  .readings = reading->readings },
				       &reading->inv->summary, err);
	if (r == 0)
		r = fault_addresses(reading->cs, reading->main, reading->readings,
				    &reading->inv->summary, err);
	reading->inv->counted = r == 0 && tally.trials > 0 && !reading->mixed;
	if (reading->mixed)
		reading->inv->summary.clean_runs_for_99 = reading->inv->summary.clean_runs_at_low =
			0;
	return r;
}

static size_t series_of(const struct investigation *inv, struct series_id id)
{
	size_t i = 0;

	while (i < inv->series.count && inv->series.items[i].id != id.value)
		i++;
	return i;
}

/* The project's root: the nearest directory above that git keeps, else where redhand was started.
 */
static void find_root(struct investigation *inv)
{
	AUTO(mem_freep) char *dir = cstr_dup(inv->root);
	char *slash;

	if (!dir || dir[0] != '/')
		return;
	do {
		AUTO(mem_freep) char *git = mem_printf("%s/.git", dir);

		if (access(git, F_OK) == 0) {
			mem_free(inv->root);
			inv->root = mem_strdup(dir);
			return;
		}
		slash = strrchr(dir, '/');
		*slash = '\0';
	} while (slash > dir);
}

/* As a shell would take it. $'…': what would end a line, drive a terminal or turn the order of
 * letters around is spelled out. */
static void add_word(struct strbuf *sb, const char *word)
{
	AUTO(strbuf_deinit) struct strbuf shown = { 0 }, escaped = { 0 };

	strbuf_add_printable(&shown, word, strlen(word));
	if (strcmp(strbuf_str(&shown), word) == 0) {
		words_quote(sb, word);
		return;
	}
	for (; *word != '\0'; word++)
		strbuf_addf(&escaped, "%s%c", *word == '\'' || *word == '\\' ? "\\" : "", *word);
	strbuf_adds(sb, "$'");
	strbuf_add_printable(sb, strbuf_str(&escaped), escaped.len);
	strbuf_addc(sb, '\'');
}

/* `verb` is the command with its own options. */
static char *command(const struct investigation *inv, const char *verb, const struct strv *program)
{
	struct strbuf sb = { 0 };

	strbuf_addf(&sb, "redhand %s ", verb);
	if (strcmp(inv->case_dir, "redhand-case") != 0) {
		strbuf_adds(&sb, "--case ");
		add_word(&sb, inv->case_dir);
		strbuf_addc(&sb, ' ');
	}
	for (size_t i = 0; i < inv->options.count; i++) {
		add_word(&sb, inv->options.items[i]);
		strbuf_addc(&sb, ' ');
	}
	strbuf_adds(&sb, "--");
	for (size_t i = 0; i < program->count; i++) {
		strbuf_addc(&sb, ' ');
		add_word(&sb, program->items[i]);
	}
	return strbuf_take(&sb);
}

/* {tests}, {tests:SEP} or {tests_file} in one word of a command for `minimize --tests`. */
static bool fill_in(const struct trigger_set *trigger, const char *word, struct strv *ret)
{
	struct strbuf sb = { 0 };
	const char *at = strstr(word, "{tests"), *end = at ? strchr(at, '}') : NULL;
	bool file = end && strncmp(at, "{tests_file}", 12) == 0;
	size_t shown = 0;

	if (!end || (file && !trigger->file))
		return false;
	if (strcmp(word, "{tests}") == 0) {
		VEC_FOREACH (&trigger->items, item)
			strv_add(ret, item->name);
		return true;
	}
	strbuf_add(&sb, word, (size_t)(at - word));
	if (file)
		strbuf_adds(&sb, trigger->file);
	else
		VEC_FOREACH (&trigger->items, item) {
			if (shown++ > 0 && at[6] == ':')
				strbuf_add(&sb, at + 7, (size_t)(end - (at + 7)));
			else if (shown > 1)
				strbuf_addc(&sb, ' ');
			strbuf_adds(&sb, item->name);
		}
	strbuf_adds(&sb, end + 1);
	strv_take(ret, strbuf_take(&sb));
	return true;
}

/* The command of a `minimize --tests` runs only with a list in it: the shortest that fails. */
static bool fill_in_tests(struct investigation *inv)
{
	struct strv program = { 0 };
	bool filled = false;

	for (size_t i = 0; i < inv->program.count; i++) {
		if (inv->trigger.known && fill_in(&inv->trigger, inv->program.items[i], &program))
			filled = true;
		else
			strv_add(&program, inv->program.items[i]);
	}
	strv_deinit(&inv->program);
	inv->program = program;
	return filled;
}

/* A hunt that found a shorter list goes on with that: it is what to run. */
static void find_minimal(struct case_store *cs, struct series_id series, struct investigation *inv,
			 struct strv *ret)
{
	AUTO(minimal_list_deinit) struct minimal_list minimal = { 0 };
	struct err ignored = { 0 };

	if (!inv->judged || series.value == 0 || case_minimal(cs, series, &minimal, &ignored) < 0 ||
	    minimal.verdict != MINIMAL_FOUND || minimal.argv.count == 0)
		return;
	for (size_t i = 0; i < minimal.argv.count; i++)
		strv_take(ret, path_rename(minimal.argv.items[i], "{case}", inv->case_dir));
	add_each(inv, "--slot-env", &minimal.env);
}

/* Did it ever fail without guards around its blocks? A chase has some with them and some without:
 * it counts where nothing else tells. */
static bool fails_by_itself(const struct investigation *inv)
{
	bool plainly = false;

	VEC_FOREACH (&inv->series, s)
		plainly |= command_is_plain(s->command) && s->rate.trials > 0;
	return VEC_ANY(&inv->series, s,
		       s->rate.failed > 0 && strcmp(s->command, "heap") != 0 &&
			       (!plainly || strcmp(s->command, "chase") != 0));
}

/* What shows what the verdict is about when the program itself shows nothing; NULL: it fails. Its
 * exit status is 0 when there is nothing any more. */
static const char *shown_by(const struct investigation *inv)
{
	if (!inv->judged || inv->verdict.class == VERDICT_NOT_CAUGHT || fails_by_itself(inv))
		return NULL;
	if (inv->verdict.class == VERDICT_UNINITIALISED)
		return "hunt";
	return inv->verdict.class == VERDICT_LEAK_GROWTH ? "heap --growth" : "heap";
}

/* Only a hunt's budget called it a hang: that is no failure whose end could be proved. */
static bool too_slow(const struct investigation *inv)
{
	bool slow = inv->judged && inv->verdict.signature[0] == '\0' &&
		    inv->summary.signatures.list.count > 0;

	VEC_FOREACH (&inv->summary.signatures.list, s)
		slow = slow && s->always && s->signature.kind == FAILURE_TIMEOUT;
	return slow;
}

/* A sentinel that does not lie in its project must be told where that is. */
static void add_project(struct strbuf *sb, const struct investigation *inv)
{
	AUTO(mem_freep) char *place = realpath(inv->sentinel, NULL);
	size_t len = inv->root ? strlen(inv->root) : 0;

	if (!place || len == 0 || inv->root[0] != '/' ||
	    (strncmp(place, inv->root, len) == 0 && (place[len] == '/' || len == 1)))
		return;
	strbuf_adds(sb, "--root ");
	add_word(sb, inv->root);
	strbuf_addc(sb, ' ');
}

/* "redhand VERB -- CMD" becomes a command that works when it is pasted. */
static void fill_in_command(const struct investigation *inv, struct said *said)
{
	static const char begin[] = "redhand ", end[] = " -- CMD";

	VEC_FOREACH (&said->values, value) {
		const char *to = value->kind == SAID_TEXT ? strstr(value->text, end) : NULL;

		if (to && strncmp(value->text, begin, strlen(begin)) == 0 &&
		    inv->program.count > 0) {
			const char *from = value->text + strlen(begin);
			AUTO(mem_freep) char *verb = mem_strndup(from, (size_t)(to - from));

			mem_free(value->text);
			value->text = command(inv, verb, &inv->program);
		}
	}
}

static void fill_in_next(struct investigation *inv)
{
	if (inv->reproduce && strstr(inv->reproduce, SECRET_MARK))
		SAY_TOO(&inv->notes, "note:secret-left-out", said_text(SECRET_MARK));
	fill_in_command(inv, &inv->verdict.next);
	VEC_FOREACH (&inv->verdict.alternatives, alternative)
		fill_in_command(inv, &alternative->tell_apart);
}

static void add_commands(struct investigation *inv, const struct strv *minimal)
{
	const char *shown = inv->program.count > 0 ? shown_by(inv) : NULL;
	AUTO(mem_freep) char *proof = NULL;

	if (inv->program.count == 0)
		return;
	if (shown) {
		proof = mem_printf("%s --fresh", shown);
		/* A hunt that has ended runs nothing again. */
		inv->reproduce =
			command(inv, strcmp(shown, "hunt") == 0 ? proof : shown, &inv->program);
		inv->prove_fix = command(inv, proof, &inv->program);
		return;
	}
	inv->clean_runs = inv->summary.clean_runs_for_99;
	if (fill_in_tests(inv))
		inv->clean_runs = rate_clean_runs(inv->trigger.minimal.rate, 0.99);
	inv->reproduce = command(inv, "repro", minimal->count > 0 ? minimal : &inv->program);
	if (inv->sentinel) {
		struct strbuf sb = { 0 };

		strbuf_adds(&sb, "redhand sentinel run --expect fixed ");
		add_project(&sb, inv);
		add_word(&sb, inv->sentinel);
		inv->prove_fix = strbuf_take(&sb);
		return;
	}
	if (inv->clean_runs == 0 || inv->clean_runs >= 1000000 || too_slow(inv))
		return;
	/* Trials that failed before the fix are no part of the answer. */
	proof = mem_printf("repro -n %llu --fresh", (unsigned long long)inv->clean_runs);
	inv->prove_fix = command(inv, proof, &inv->program);
}

/* The newest one, if it is still there and guards what the verdict is about. A path below the
 * directory that the user is in is shown so. */
static void find_sentinel(struct case_store *cs, struct investigation *inv)
{
	AUTO(notebook_deinit) struct notebook notebook = { 0 };
	const struct sentinel_note *note;
	AUTO(mem_freep) char *joined = NULL;
	AUTO(mem_freep) char *plain = NULL;
	AUTO(mem_freep) char *here = NULL;
	struct err ignored = { 0 };
	bool ours = false;

	if (!inv->judged || case_notebook(cs, &notebook, &ignored) < 0)
		return;
	note = notebook_sentinel(&notebook);
	VEC_FOREACH (&inv->series, s)
		ours |= note && s->id == note->series;
	if (!ours)
		return;
	joined = path_join(inv->case_dir, note->dir);
	plain = realpath(joined, NULL);
	if (!plain)
		return;
	here = getcwd(NULL, 0);
	inv->sentinel =
		mem_strdup(here && path_below(here, plain) ? path_below(here, plain) : plain);
}

/* Lists of all lengths were run: only the full one has a rate that means something here. */
static void rate_of_full_list(struct investigation *inv)
{
	inv->counted = inv->trigger.known && inv->trigger.full.trials > 0;
	if (!inv->counted)
		return;
	inv->summary.rate = inv->trigger.full;
	findings_clean_runs(&inv->summary);
}

int investigation_read(struct case_store *cs, struct readings *readings, struct investigation *ret,
		       struct err *err)
{
	AUTO(readings_deinit) struct readings own = { 0 };
	struct investigation inv = { .case_dir = mem_strdup(case_dir(cs)) };
	struct case_reading reading = {
		.cs = cs, .readings = readings ? readings : &own, .inv = &inv, .weight = -1
	};
	AUTO(strv_deinit) struct strv minimal = { 0 };
	int r = judgement_read(cs, &inv.evidence, &inv.verdict, &inv.judged, err);

	if (r == 0 && inv.judged)
		r = case_series_each(cs, find_hunted, &reading, err);
	if (r == 0)
		r = case_series_each(cs, read_series, &reading, err);
	if (r == 0)
		r = summarise(&reading, err);
	if (r == 0 && reading.minimize.value != 0)
		r = trigger_read(cs, reading.minimize, &inv.trigger, err);
	if (r == 0 && reading.minimize.value != 0 && reading.minimize.value == reading.main.value)
		rate_of_full_list(&inv);
	strv_deinit(&reading.only);
	slots_judge(&reading.slots, &inv);
	slots_deinit(&reading.slots);
	if (r == 0)
		r = case_decisions(cs, &inv.decisions, err);
	if (r == 0)
		r = case_choices(cs, &inv.choices, err);
	if (r == 0)
		r = people_read(cs, &inv, err);
	if (r < 0) {
		investigation_deinit(&inv);
		return r;
	}
	inv.main_series = series_of(&inv, reading.main);
	rate_of_first_arm(&inv);
	find_cut_slots(cs, &inv);
	judge_observers(&inv);
	find_root(&inv);
	find_sentinel(cs, &inv);
	find_minimal(cs, reading.minimize, &inv, &minimal);
	add_commands(&inv, &minimal);
	fill_in_next(&inv);
	*ret = inv;
	return 0;
}

void layout_read(struct investigation *inv)
{
	const struct block_life *block = inv->judged ? investigation_block(inv) : NULL;

	if (block)
		(void)block_layout_read(block, &inv->layout);
}
