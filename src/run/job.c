#include "run/job.h"

#include <string.h>

const char *const observer_names[] = { [OBSERVE_NONE] = "none",	  [OBSERVE_VALGRIND] = "valgrind",
				       [OBSERVE_CRASH] = "crash", [OBSERVE_IDS] = "ids",
				       [OBSERVE_WATCH] = "watch", [OBSERVE_HEAP] = "heap",
				       [OBSERVE_FENCE] = "fence", NULL };

void trial_settings_deinit(struct trial_settings *settings)
{
	MEM_FREE(settings->cwd, settings->stdin_path, settings->trials.path,
		 settings->trials.tmp_dirs, settings->agent_dir);
	strbuf_deinit(&settings->plan_items);
	strv_deinit(&settings->allocators);
	mem_free(settings->breadcrumb.text);
	if (settings->breadcrumb.given)
		regfree(&settings->breadcrumb.regex);
	VEC_FOREACH (&settings->fail_on, rule) {
		mem_free(rule->pattern);
		regfree(&rule->regex);
	}
	VEC_DEINIT(&settings->fail_on);
}

void trial_job_deinit(struct trial_job *job)
{
	strv_deinit(&job->argv);
	mem_free(job->cwd);
	strv_deinit(&job->env);
	VEC_FREE(&job->files, file, MEM_FREE(file->name, file->content));
	VEC_DEINIT(&job->wanted.tests);
	strv_deinit(&job->held);
	strbuf_deinit(&job->plan_items);
}

void trial_result_deinit(struct trial_result *result)
{
	mem_free(result->trouble);
	trial_end_deinit(&result->end);
}

static void pack_chaos(struct strbuf *sb, const struct chaos *chaos)
{
	pack_u64(sb, chaos->knobs);
	pack_u64(sb, chaos->seed);
	pack_u64(sb, chaos->pad_bytes);
	pack_u64(sb, chaos->gap_bytes);
	pack_u64(sb, chaos->heap_bytes);
	pack_u64(sb, (uint64_t)(int64_t)chaos->core);
	pack_u64(sb, chaos->hold_weight);
	pack_u64(sb, chaos->arm_us);
}

static void unpack_chaos(struct unpacker *u, struct chaos *ret)
{
	ret->knobs = (unsigned int)unpack_u64(u);
	ret->seed = unpack_u64(u);
	ret->pad_bytes = unpack_u64(u);
	ret->gap_bytes = unpack_u64(u);
	ret->heap_bytes = unpack_u64(u);
	ret->core = (int)(int64_t)unpack_u64(u);
	ret->hold_weight = unpack_u64(u);
	ret->arm_us = unpack_u64(u);
}

void trial_job_pack(const struct trial_job *job, struct strbuf *sb)
{
	pack_u64(sb, job->number.value);
	pack_u64(sb, job->slot);
	pack_u64(sb, job->learn);
	pack_u64(sb, job->without_ids);
	pack_u64(sb, job->pages);
	pack_u64(sb, job->python);
	pack_u64(sb, job->wild);
	pack_u64(sb, job->examined);
	pack_u64(sb, job->growth);
	pack_u64(sb, job->observer);
	pack_strv(sb, &job->argv);
	pack_str(sb, job->cwd);
	pack_strv(sb, &job->env);
	pack_u64(sb, job->files.count);
	VEC_FOREACH (&job->files, file) {
		pack_str(sb, file->name);
		pack_str(sb, file->content);
	}
	pack_u64(sb, job->wanted.stop_after);
	pack_u64(sb, job->wanted.marks);
	pack_u64(sb, job->wanted.tests.count);
	VEC_FOREACH (&job->wanted.tests, test)
		pack_u64(sb, *test);
	pack_strv(sb, &job->held);
	pack_u64(sb, job->held_after_lines);
	pack_bytes(sb, &job->plan_items);
	pack_chaos(sb, &job->chaos);
}

bool trial_job_unpack(const char *bytes, size_t len, struct trial_job *ret)
{
	struct unpacker u = { .at = bytes, .left = len };
	uint64_t files, tests;

	ret->number.value = unpack_u64(&u);
	ret->slot = (unsigned int)unpack_u64(&u);
	ret->learn = unpack_u64(&u) != 0;
	ret->without_ids = unpack_u64(&u) != 0;
	ret->pages = unpack_u64(&u) != 0;
	ret->python = unpack_u64(&u) != 0;
	ret->wild = unpack_u64(&u) != 0;
	ret->examined = unpack_u64(&u) != 0;
	ret->growth = unpack_u64(&u) != 0;
	ret->observer = (enum observer)unpack_u64(&u);
	unpack_strv(&u, &ret->argv);
	ret->cwd = unpack_str(&u);
	unpack_strv(&u, &ret->env);
	files = unpack_u64(&u);
	for (uint64_t i = 0; i < files && !u.broken; i++) {
		struct trial_file file = { .name = unpack_str(&u) };

		file.content = unpack_str(&u);
		VEC_PUSH(&ret->files, file);
		if (!file.name || !file.content)
			return false;
	}
	ret->wanted.stop_after = (uint32_t)unpack_u64(&u);
	ret->wanted.marks = unpack_u64(&u) != 0;
	tests = unpack_u64(&u);
	for (uint64_t i = 0; i < tests && !u.broken; i++)
		VEC_PUSH(&ret->wanted.tests, (uint32_t)unpack_u64(&u));
	unpack_strv(&u, &ret->held);
	ret->held_after_lines = unpack_u64(&u);
	unpack_bytes(&u, &ret->plan_items);
	unpack_chaos(&u, &ret->chaos);
	return !u.broken && ret->argv.count > 0;
}

/* The plain numbers of a trial_end, in one place for both directions. */
/* clang-format off */
#define END_NUMBERS(X) \
	X(exit_status) X(signal) X(timed_out) X(stray.pid) X(stray.signal) \
	X(observed.pid) X(observed.signal) X(hid_its_own) X(by_observer) X(cuts) X(milestones_full) \
	X(leftovers) X(started) X(strayed) X(came_through) X(stopped) X(started_ms) \
	X(wall_ns) X(user_ns) X(system_ns) X(peak_kib) X(stdout_bytes) X(stderr_bytes)
/* clang-format on */

void trial_result_pack(const struct trial_result *result, struct strbuf *sb)
{
	const struct trial_end *end = &result->end;

	pack_u64(sb, result->number.value);
	pack_u64(sb, result->slot);
	pack_u64(sb, result->left);
	pack_str(sb, result->trouble);
	pack_u64(sb, (uint64_t)(int64_t)result->trouble_code);
#define PACK_NUMBER(field) pack_u64(sb, (uint64_t)(int64_t)end->field);
	END_NUMBERS(PACK_NUMBER)
	pack_str(sb, end->matched);
	pack_str(sb, end->running_test);
	pack_strv(sb, &end->failed_tests);
	pack_str(sb, end->last_crumb);
	pack_u64(sb, end->pairs.count);
	VEC_FOREACH (&end->pairs, pair) {
		pack_str(sb, pair->from);
		pack_str(sb, pair->to);
	}
	pack_u64(sb, end->milestones.count);
	VEC_FOREACH (&end->milestones, milestone) {
		pack_u64(sb, milestone->kind);
		pack_u64(sb, (uint64_t)milestone->fd);
		pack_u64(sb, milestone->start);
		pack_u64(sb, milestone->end);
		pack_u64(sb, milestone->arrived_ns);
		pack_str(sb, milestone->name);
		pack_str(sb, milestone->text);
	}
}

static bool unpack_milestones(struct unpacker *u, struct trial_end *end)
{
	uint64_t count = unpack_u64(u);

	for (uint64_t i = 0; i < count && !u->broken; i++) {
		struct milestone milestone = { .kind = (enum milestone_kind)unpack_u64(u) };

		milestone.fd = (int)unpack_u64(u);
		milestone.start = unpack_u64(u);
		milestone.end = unpack_u64(u);
		milestone.arrived_ns = unpack_u64(u);
		milestone.name = unpack_str(u);
		milestone.text = unpack_str(u);
		if (!milestone.name || !milestone.text || milestone.kind > MILESTONE_TEST_END) {
			milestone_deinit(&milestone);
			return false;
		}
		VEC_PUSH(&end->milestones, milestone);
	}
	return !u->broken;
}

bool trial_result_unpack(const char *bytes, size_t len, struct trial_result *ret)
{
	struct unpacker u = { .at = bytes, .left = len };
	struct trial_end *end = &ret->end;
	uint64_t pairs;

	ret->number.value = unpack_u64(&u);
	ret->slot = (unsigned int)unpack_u64(&u);
	ret->left = unpack_u64(&u) != 0;
	ret->trouble = unpack_str(&u);
	ret->trouble_code = (int)(int64_t)unpack_u64(&u);
#define UNPACK_NUMBER(field) end->field = (__typeof__(end->field))(int64_t)unpack_u64(&u);
	END_NUMBERS(UNPACK_NUMBER)
	end->matched = unpack_str(&u);
	end->running_test = unpack_str(&u);
	unpack_strv(&u, &end->failed_tests);
	end->last_crumb = unpack_str(&u);
	pairs = unpack_u64(&u);
	for (uint64_t i = 0; i < pairs && !u.broken; i++) {
		struct crumb_pair pair = { .from = unpack_str(&u) };

		pair.to = unpack_str(&u);
		if (!pair.from || !pair.to) {
			mem_free(pair.from);
			mem_free(pair.to);
			return false;
		}
		VEC_PUSH(&end->pairs, pair);
	}
	return unpack_milestones(&u, end);
}

char *trial_substitute(const char *text, unsigned int slot, struct trial_number number)
{
	AUTO(strbuf_deinit) struct strbuf sb = { 0 };

	while (*text != '\0') {
		if (strncmp(text, "{slot}", 6) == 0) {
			strbuf_addf(&sb, "%u", slot);
			text += 6;
		} else if (strncmp(text, "{trial}", 7) == 0) {
			strbuf_addf(&sb, "%llu", (unsigned long long)number.value);
			text += 7;
		} else {
			strbuf_addc(&sb, *text++);
		}
	}
	return strbuf_take(&sb);
}
