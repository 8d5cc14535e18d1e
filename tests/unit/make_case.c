/*
 * Makes a case with a made-up story in it, for tests of the reports:
 *
 *	make_case DIR STORY ROOT [FILE]
 *
 * ROOT is where the story's program is said to have been run.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "case_fixture.h"
#include "evidence_fixture.h"
#include "judge/judge.h"
#include "search/minimize/minimiser.h"

static struct err err;

static int check(int r)
{
	if (r < 0) {
		(void)fprintf(stderr, "make_case: %s\n", err.message);
		exit(1);
	}
	return r;
}

static void add_word(struct strbuf *sb, const char *name, const char *value)
{
	strbuf_addf(sb, "%s %zu:%s\n", name, strlen(value), value);
}

static struct series_id series(struct case_store *cs, const char *command, const char *const *args,
			       const char *root, const char *observer)
{
	AUTO(strbuf_deinit) struct strbuf settings = { 0 };
	struct series_found found;

	add_word(&settings, "command", command);
	for (; *args; args++)
		add_word(&settings, "arg", *args);
	add_word(&settings, "cwd", root);
	add_word(&settings, "observe", observer);
	strbuf_adds(&settings, "jobs 4\ntimeout 0\n");
	check(case_series(cs,
			  &(struct series_identity){ .command = command,
						     .settings = strbuf_str(&settings),
						     .program = "build 1" },
			  5, &found, &err));
	return found.id;
}

/* Every `each`th of them fails. */
static uint64_t add_trials(struct case_store *cs, struct series_id id, uint64_t first,
			   uint64_t count, uint64_t each)
{
	static const char *const crumbs[] = { "warm up", "benchmark", "done", NULL };

	for (uint64_t i = 0; i < count; i++) {
		bool fails = each > 0 && i % each == 0;

		check(add_made(cs, id,
			       &(struct made_trial){ .number = first + i,
						     .position = i + 1,
						     .signal = fails ? 11 : 0,
						     .test = fails ? "test_issue1270" : NULL,
						     .last_crumb = "benchmark",
						     .crumbs = fails ? NULL : crumbs },
			       &err));
	}
	return first + count;
}

static void add_list_run(struct case_store *cs, struct series_id id, uint64_t number,
			 const struct list_run *run, bool fails)
{
	AUTO(signatures_deinit) struct signatures signatures = { 0 };
	struct made_trial made = { .signal = fails ? 11 : 0, .test = "test_issue1270" };
	AUTO(trial_end_deinit)
	struct trial_end end = { .signal = fails ? 11 : 0, .exit_status = fails ? -1 : 0 };

	if (fails) {
		struct signature s;

		made_signature(&made, &s);
		VEC_PUSH(&signatures.list, s);
	}
	check(case_add_trial(cs,
			     &(struct trial_record){ .number = { number },
						     .series = id,
						     .position = number,
						     .end = &end,
						     .signatures = &signatures,
						     .list_run = run },
			     &err));
}

/* Four tests, of which the second and the last are needed. */
static uint64_t add_minimize(struct case_store *cs, const char *const *args, const char *root,
			     uint64_t number)
{
	static const struct {
		const char *items;
		unsigned int purpose;
		unsigned int runs, failed;
	} lists[] = {
		{ "0-3", MINIMISER_BASELINE, 10, 3 }, { "1,3", MINIMISER_PROOF, 12, 4 },
		{ "0,3", MINIMISER_SEARCH, 9, 0 },    { "3", MINIMISER_PROOF, 14, 0 },
		{ "1-3", MINIMISER_SEARCH, 3, 1 },
	};
	AUTO(strv_deinit) struct strv names = { 0 };
	struct series_id id = series(cs, "minimize", args, root, "none");

	strv_add(&names, "test_add");
	strv_add(&names, "test_alias_output_to_input");
	strv_add(&names, "test_mean");
	strv_add(&names, "test_issue1270");
	check(case_set_items(cs, id, &names, &err));
	for (size_t i = 0; i < ARRAY_SIZE(lists); i++)
		for (unsigned int n = 0; n < lists[i].runs; n++)
			add_list_run(cs, id, number++,
				     &(struct list_run){ .items = lists[i].items,
							 .purpose = lists[i].purpose,
							 .complete = true,
							 .told = true },
				     n < lists[i].failed);
	return number;
}

static void add(struct case_store *cs, struct evidence e)
{
	(void)strcpy(e.signature, e.failing ? "5e60ffa017" : "");
	check(case_add_evidence(cs, &e, &err));
	evidence_deinit(&e);
}

static void judge(struct case_store *cs)
{
	AUTO(evidence_list_deinit) struct evidence_list list = { 0 };
	AUTO(verdict_deinit) struct verdict verdict = { 0 };

	check(case_evidence(cs, &list, &err));
	judge_evidence(&list, &verdict);
	check(case_add_verdict(cs, &verdict, &err));
}

static void note(struct case_store *cs, const char *stage, const char *text)
{
	AUTO(said_deinit) struct said said = { 0 };

	said_as_text(&said, text);
	check(case_add_decision(cs, stage, &said, &err));
}

static void decide(struct case_store *cs)
{
	note(cs, "rate", "4 of 20 failed; one signature stands out");
	note(cs, "watch", "hw watch chosen: 4 candidates, rate unchanged (p = 0.61)");
}

static void narrow(struct case_store *cs)
{
	for (uint64_t i = 1; i <= 3; i++) {
		add(cs, made_crash(i, FAULT_NULL));
		add(cs, made_watch(i, 3));
		add(cs, made_write((struct made_write){ .trial = i, .width = 1, .nth = 2 }));
	}
	for (uint64_t i = 4; i <= 5; i++)
		add(cs, made_write((struct made_write){ .trial = i,
							.passing = true,
							.writer = "object_set",
							.new = 0x7f0000000097 + (i << 20),
							.nth = 1,
							.behind = (uint8_t)i }));
	add(cs, made_hop(1, 3, 3, 73));
	decide(cs);
	judge(cs);
}

static void dangling(struct case_store *cs)
{
	for (uint64_t i = 1; i <= 2; i++) {
		add(cs, made_freed_use(i, false));
		add(cs, made_holder(i, true));
		add(cs, made_crash(i, FAULT_NULL));
	}
	judge(cs);
}

/* No verdict is stored: the report judges what it finds. */
static void doubted(struct case_store *cs)
{
	add(cs, made_canary(1, CANARY_AFTER));
	add(cs, made_race(2, false));
}

/* Everything that could break out of a report. */
static void hostile(struct case_store *cs)
{
	static const char bad[] = "</td>|`*[x](http://evil) <script>_a_\x1b[31m\n@you";
	AUTO(strbuf_deinit) struct strbuf printable = { 0 };

	/* As the tool stores what came from the target. */
	strbuf_add_printable(&printable, bad, strlen(bad));
	for (uint64_t i = 1; i <= 2; i++) {
		struct evidence e = made_write((struct made_write){ .trial = i, .width = 1 });

		mem_free(e.write->instruction);
		e.write->instruction = mem_strdup(strbuf_str(&printable));
		mem_free(e.write->writer.frames[0].function);
		e.write->writer.frames[0].function = mem_strdup(strbuf_str(&printable));
		mem_free(e.write->home.field);
		e.write->home.field = mem_strdup(strbuf_str(&printable));
		said_as_text(&e.note, strbuf_str(&printable));
		add(cs, e);
	}
	note(cs, bad, bad);
	judge(cs);
}

static void replace(char **text, const char *by)
{
	mem_free(*text);
	*text = mem_strdup(by);
}

/* Texts of a file, line by line, wherever a program's text can stand: five to a piece of evidence.
 */
static void payloads(struct case_store *cs, const char *path)
{
	FILE *file = fopen(path, "re");
	struct evidence e = { 0 };
	char *line = NULL;
	size_t room = 0;
	uint64_t count = 0;

	if (!file)
		exit(1);
	while (getline(&line, &room, file) > 0) {
		AUTO(strbuf_deinit) struct strbuf text = { 0 };

		strbuf_add_printable(&text, line, strcspn(line, "\n"));
		if (count % 5 == 0) {
			e = made_write((struct made_write){
				.trial = 1 + count / 5 % 20, .writer = "x", .width = 1 });
			replace(&e.write->instruction, strbuf_str(&text));
		} else if (count % 5 == 1)
			replace(&e.write->writer.frames[0].function, strbuf_str(&text));
		else if (count % 5 == 2)
			replace(&e.write->writer.frames[0].file, strbuf_str(&text));
		else if (count % 5 == 3)
			replace(&e.write->home.field, strbuf_str(&text));
		else
			said_as_text(&e.note, strbuf_str(&text));
		/* Not every piece says its instruction. */
		if (count % 5 == 0)
			note(cs, "chase", strbuf_str(&text));
		if (count++ % 5 == 4)
			add(cs, e);
	}
	free(line);
	(void)fclose(file);
	judge(cs);
}

/* The first thread holds a mutex at the start of the block, the second does not. */
static void race(struct case_store *cs)
{
	for (uint64_t i = 1; i <= 3; i++) {
		struct evidence e = made_race(i, true);
		int32_t mutex[10] = { 1, 0, e.race->first->tid, 1 };

		strbuf_add(&e.race->first->block.bytes, mutex, sizeof(mutex));
		memset(mutex, 0, sizeof(mutex));
		strbuf_add(&e.race->second->block.bytes, mutex, sizeof(mutex));
		add(cs, e);
	}
	judge(cs);
}

/* With a write that somebody chose to watch. */
static void sighted(struct case_store *cs)
{
	narrow(cs);
	add(cs, made_any(EVIDENCE_SIGHTING));
}

static void growth(struct case_store *cs)
{
	add(cs, made_growth());
	judge(cs);
}

/* What has pictures of its own: a file that was cut, a count of references. */
static void amounts(struct case_store *cs)
{
	for (uint64_t i = 1; i <= 2; i++)
		add(cs, made_mapping(i, true));
	add(cs, made_account(3));
	judge(cs);
}

int main(int argc, char **argv)
{
	static const char *const plain[] = { "./app", "--bench", "it's", NULL };
	static const char *const odd[] = { "./app", "a|b`c\nd", "$(reboot)", NULL };
	AUTO(case_closep) struct case_store *cs = NULL;
	const char *story = argc > 2 ? argv[2] : "";
	const char *const *args = strcmp(story, "hostile") == 0 ? odd : plain;
	uint64_t number = 1;

	if (argc < 4)
		return 2;
	check(case_open(argv[1], CASE_WRITE, &cs, &err));
	if (strcmp(story, "empty") == 0)
		return 0;
	if (strcmp(story, "minimize") != 0)
		number = add_trials(cs, series(cs, "repro", args, argv[3], "ids"), number, 20, 5);
	if (strcmp(story, "repro") != 0)
		number = add_minimize(cs, args, argv[3], number);
	if (strcmp(story, "narrow") == 0)
		narrow(cs);
	else if (strcmp(story, "dangling") == 0)
		dangling(cs);
	else if (strcmp(story, "doubted") == 0)
		doubted(cs);
	else if (strcmp(story, "hostile") == 0)
		hostile(cs);
	else if (strcmp(story, "sighted") == 0)
		sighted(cs);
	else if (strcmp(story, "race") == 0)
		race(cs);
	else if (strcmp(story, "growth") == 0)
		growth(cs);
	else if (strcmp(story, "amounts") == 0)
		amounts(cs);
	else if (strcmp(story, "payloads") == 0)
		payloads(cs, argv[4]);
	return 0;
}
