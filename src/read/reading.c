#include "read/reading.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/fd.h"
#include "read/clash.h"
#include "read/logs_open.h"
#include "read/poison_found.h"
#include "read/sanitizer_report.h"
#include "wire/checksum.h"

#define REPORT_MAX (2u << 20) /* of output, from its end */

/* Which parts have been asked for. */
enum reading_part {
	PART_LOGS,
	PART_PLACES,
	PART_HITS,
	PART_TRUNCATIONS,
	PART_MOMENTS,
	PART_DAMAGE,
	PART_REPORTED,
	PART_CRASHES,				       /* + enum crash_depth */
	PART_BACKTRACKS = PART_CRASHES + CRASH_DEPTHS, /* + enum backtrack_through */
};

struct reading {
	struct reading_of of;
	unsigned int holders;
	char name[24];
	unsigned int done; /* 1 << enum reading_part */
	struct event_logs logs;
	int trouble; /* why they could not be opened; 0: they could */
	struct err err;
	struct crash_places places;
	struct crash_report crashes[CRASH_DEPTHS];
	struct crash_reading backtracks[BACKTRACK_THROUGHS];
	struct trial_hits hits;
	struct truncations truncations;
	struct moments moments;
	struct damage damage;
	struct reported reported; /* tool NULL: nothing was */
};

struct reading *reading_open(const struct reading_of *of)
{
	struct reading *reading = mem_alloc(sizeof(*reading));

	reading->of = *of;
	reading->holders = 1;
	(void)snprintf(reading->name, sizeof(reading->name), "%llu", (unsigned long long)of->trial);
	return reading;
}

struct reading *reading_share(struct reading *reading)
{
	reading->holders++;
	return reading;
}

void reading_forget_end(struct reading *reading)
{
	damage_deinit(&reading->damage);
	moments_deinit(&reading->moments);
	reading->damage = (struct damage){ 0 };
	reading->moments = (struct moments){ 0 };
	reading->done &= ~(1u << PART_DAMAGE | 1u << PART_MOMENTS);
	reading->of.end = NULL;
}

void reading_close(struct reading *reading)
{
	if (!reading || --reading->holders > 0)
		return;
	reading_forget_end(reading);
	reported_deinit(&reading->reported);
	truncations_deinit(&reading->truncations);
	trial_hits_deinit(&reading->hits);
	for (unsigned int i = 0; i < BACKTRACK_THROUGHS; i++)
		crash_reading_deinit(&reading->backtracks[i]);
	for (unsigned int i = 0; i < CRASH_DEPTHS; i++)
		crash_report_deinit(&reading->crashes[i]);
	crash_places_deinit(&reading->places);
	event_logs_deinit(&reading->logs);
	mem_free(reading);
}

uint64_t reading_trial(const struct reading *reading)
{
	return reading->of.trial;
}

const char *reading_name(const struct reading *reading)
{
	return reading->name;
}

struct symbols *reading_symbols(const struct reading *reading)
{
	return reading->of.symbols;
}

bool reading_is(const struct reading *reading, const struct reading_of *of)
{
	return reading->of.trials == of->trials && reading->of.trial == of->trial &&
	       (of->signal == 0 || reading->of.signal == of->signal);
}

/* Is it this caller who has to work it out? True once for each part. */
static bool begin(struct reading *reading, unsigned int part)
{
	bool first = !(reading->done & 1u << part);

	reading->done |= 1u << part;
	return first;
}

/* The logs are there, and this caller has to work the part out of them. */
static bool begin_from_logs(struct reading *reading, unsigned int part)
{
	struct event_logs *logs;

	return begin(reading, part) && reading_logs(reading, &logs, NULL) == 0;
}

int reading_logs(struct reading *reading, struct event_logs **ret, struct err *err)
{
	if (begin(reading, PART_LOGS))
		reading->trouble = event_logs_open(reading->of.trials, reading->name,
						   &reading->logs, &reading->err);
	if (reading->trouble < 0)
		return err_set(err, reading->trouble, "%s", reading->err.message);
	*ret = &reading->logs;
	return 0;
}

static const struct crash_places *places_of(struct reading *reading)
{
	if (begin_from_logs(reading, PART_PLACES))
		crash_places_find(&reading->logs, reading->of.signal, &reading->places);
	return &reading->places;
}

const struct crash_report *reading_crashes(struct reading *reading, enum crash_depth depth)
{
	if (begin_from_logs(reading, PART_CRASHES + depth))
		crash_report_read(places_of(reading), &reading->logs.notes, reading->of.symbols,
				  depth, &reading->crashes[depth]);
	return &reading->crashes[depth];
}

const struct crash *reading_crash(struct reading *reading, enum crash_depth depth)
{
	const struct crash_report *report = reading_crashes(reading, depth);

	return report->crashes.count > 0 ? &report->crashes.items[0] : NULL;
}

const struct crash_reading *reading_backtrack(struct reading *reading,
					      enum backtrack_through through)
{
	if (begin_from_logs(reading, PART_BACKTRACKS + through))
		crash_reading_read(&reading->logs, places_of(reading), reading->of.trial, through,
				   reading->of.symbols, &reading->backtracks[through]);
	return &reading->backtracks[through];
}

void reading_tell_proof(struct reading *reading, struct evidence_list *ret)
{
	const struct crash *crash = reading_crash(reading, CRASH_WHOLE);
	bool cut = crash && crash->fault == FAULT_MAPPING_SHRANK;
	size_t from = ret->list.count;

	if (!crash || !(cut || crash->fault == FAULT_ABORT || crash_is_plain(crash)))
		return;
	crash_reading_tell_crash(reading_backtrack(reading, THROUGH_OBJECTS), crash, ret);
	for (size_t i = from; i < ret->list.count; i++) {
		ret->list.items[i].failing = cut;
		SAY(&ret->list.items[i].note, "noted:observed");
	}
}

const struct trial_hits *reading_hits(struct reading *reading)
{
	if (begin_from_logs(reading, PART_HITS))
		trial_hits_read(&reading->logs, &reading->hits);
	return &reading->hits;
}

/* The end of a stream as the slot kept it; a report is the last that a program says. */
static size_t read_stream(const struct reading *reading, const char *stream, char *buf, size_t room)
{
	AUTO(mem_freep) char *path = mem_printf("%s/%s", reading->name, stream);
	AUTO(fd_closep)
	int fd = openat(reading->of.trials, path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	bool is_ours = fd >= 0 && fd_check_owner_of(fd, reading->of.trials, path, NULL) == 0;
	off_t size = is_ours ? lseek(fd, 0, SEEK_END) : -1;
	off_t from = size > (off_t)room ? size - (off_t)room : 0;
	size_t len = 0;
	ssize_t n;

	while (size > 0 && len < room &&
	       (n = pread(fd, buf + len, room - len, from + (off_t)len)) > 0)
		len += (size_t)n;
	return len;
}

/* The C library stops a program that was built with _FORTIFY_SOURCE before one of its own functions
 * writes behind an object whose size the compiler knew. Its message goes by. */
static void stopped_by_library(struct reading *reading, struct reported *ret)
{
	const struct crash *crash = reading_crash(reading, CRASH_SITE);
	const struct frame *site = crash ? stack_site(&crash->stack) : NULL;
	const char *what = site && crash->abort_message
				   ? strstr(crash->abort_message, "buffer overflow")
				   : NULL;
	const char *end = what ? strstr(what, " ***") : NULL;

	if (!end)
		return;
	*ret = (struct reported){ .kind = REPORTED_OVERFLOW,
				  .tool = mem_strdup("_FORTIFY_SOURCE"),
				  .what = mem_strndup(what, (size_t)(end - what)),
				  .write = true };
	for (size_t i = (size_t)(site - crash->stack.frames); i < crash->stack.count; i++)
		(void)stack_push(&ret->user, &crash->stack.frames[i]);
}

const struct reported *reading_reported(struct reading *reading)
{
	if (begin(reading, PART_REPORTED)) {
		AUTO(mem_freep) char *text = mem_alloc(REPORT_MAX);

		if (!sanitizer_report_read(text, read_stream(reading, "stderr", text, REPORT_MAX),
					   &reading->reported))
			(void)sanitizer_report_read(
				text, read_stream(reading, "stdout", text, REPORT_MAX),
				&reading->reported);
		if (!reading->reported.tool)
			stopped_by_library(reading, &reading->reported);
	}
	return reading->reported.tool ? &reading->reported : NULL;
}

char *reading_clash(struct reading *reading)
{
	static const char *const streams[] = { "stderr", "stdout" };
	AUTO(mem_freep) char *text = mem_alloc(REPORT_MAX + 1);
	char *line = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(streams) && !line; i++) {
		text[read_stream(reading, streams[i], text, REPORT_MAX)] = '\0';
		line = clash_read(text);
	}
	return line;
}

uint64_t reading_outcome(const struct reading *reading)
{
	static const char *const streams[] = { "stderr", "stdout" };
	AUTO(mem_freep) char *text = mem_alloc(REPORT_MAX);
	const struct trial_end *end = reading->of.end;
	uint64_t sum = end ? checksum_mix((uint64_t)end->exit_status, (uint64_t)end->signal) : 0;

	for (size_t i = 0; i < ARRAY_SIZE(streams); i++) {
		size_t len = read_stream(reading, streams[i], text, REPORT_MAX);

		sum = checksum_add(checksum_mix(sum, len), text, len);
	}
	return sum | 1;
}

const struct truncations *reading_truncations(struct reading *reading)
{
	if (begin_from_logs(reading, PART_TRUNCATIONS))
		truncations_read(&reading->logs, reading->of.symbols, &reading->truncations);
	return &reading->truncations;
}

const struct moments *reading_moments(struct reading *reading)
{
	const struct trial_end *end = reading->of.end;

	if (begin(reading, PART_MOMENTS) && end)
		moments_from_milestones(end->milestones.items, end->milestones.count,
					reading->of.lines_chosen, &reading->moments);
	return &reading->moments;
}

static void find_poison(struct reading *reading, const struct damage_source *of)
{
	static const char *const streams[] = { "stderr", "stdout" };
	AUTO(mem_freep) char *text = mem_alloc(REPORT_MAX);
	const struct crash_places *places = places_of(reading);

	for (size_t i = 0; i < ARRAY_SIZE(streams); i++)
		poison_find_in_output(of, text, read_stream(reading, streams[i], text, REPORT_MAX),
				      &reading->damage);
	if (places->list.count > 0)
		poison_find_in_crash(of, &places->list.items[0], &reading->damage);
}

const struct damage *reading_damage(struct reading *reading)
{
	static const struct trial_end unknown;

	if (begin_from_logs(reading, PART_DAMAGE)) {
		struct damage_source of = { .logs = &reading->logs,
					    .symbols = reading->of.symbols,
					    .trial = reading->of.trial,
					    .moments = reading_moments(reading),
					    .end = reading->of.end ? reading->of.end : &unknown };

		damage_read(&of, &reading->damage);
		if (poison_is_there(&of))
			find_poison(reading, &of);
	}
	return &reading->damage;
}

void reading_prune(struct reading *reading)
{
	struct event_logs *logs;

	if (reading_logs(reading, &logs, NULL) == 0)
		event_logs_prune(logs, reading->of.trials, reading->name);
}
