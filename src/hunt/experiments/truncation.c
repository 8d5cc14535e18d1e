/*
 * Files that somebody made shorter while others had them mapped.
 *
 * Who did it is in the log of another trial, which may end after the one that died of it: so it is
 * looked for again. And only some of those who die meet the end of the file (SIGBUS); others read
 * what has come to stand there and stumble later. These point to the mapping as well; where the
 * file is known to have been cut, watching would not show anything, and more of the same are
 * waited for.
 */
#include "hunt/inquiry.h"

#define FILES_NOTED 64u
#define CRASHES_MAX 10u /* that are waited for, at most */

static bool is_code(const struct event_log *log, uint64_t low, uint64_t bytes)
{
	return VEC_ANY(&log->modules, item, item->start < low + bytes && low < item->end);
}

static bool points_into(const struct log_crash *crash, const struct log_file_size *file)
{
	for (unsigned int i = 0; i < LOG_GREG_RSP; i++)
		if (crash->gregs[i] - file->map_low < file->map_bytes)
			return true;
	return crash->fault_address - file->map_low < file->map_bytes;
}

void cuts_note(struct bench *bench, const struct crash_reading *crashed)
{
	const struct crash_record *record = &crashed->record;

	for (size_t i = 0; i < record->file_count; i++) {
		const struct log_file_size *file = &record->files[i];

		if (file->inode == 0 || bench->files.count >= FILES_NOTED ||
		    !points_into(&record->raw, file) ||
		    is_code(record->log, file->map_low, file->map_bytes))
			continue;
		VEC_PUSH(&bench->files,
			 ((struct touched_file){ .device = file->device,
						 .inode = file->inode,
						 .realtime_ns = record->raw.realtime_ns }));
	}
}

static struct file_cut *find_cut(const struct bench *bench, uint64_t device, uint64_t inode,
				 uint64_t before_ns)
{
	struct file_cut *cut = NULL;

	if (inode == 0 || case_find_cut(bench->runner.cs, device, inode, before_ns, &cut, NULL) < 0)
		return NULL;
	return cut;
}

/* Did a crash have its hands in a file that had been cut? */
static bool cuts_suspected(const struct bench *bench)
{
	VEC_FOREACH (&bench->files, file) {
		struct file_cut *cut =
			find_cut(bench, file->device, file->inode, file->realtime_ns);

		file_cut_free(cut);
		if (cut)
			return true;
	}
	return false;
}

static struct crash *crash_of(const struct bench *bench, uint64_t trial)
{
	VEC_FOREACH (&bench->ret->evidence.list, e)
		if (e->kind == EVIDENCE_CRASH && e->trial == trial)
			return e->crash;
	return NULL;
}

void cuts_settle(struct bench *bench)
{
	VEC_FOREACH (&bench->ret->evidence.list, e) {
		struct crash *crash =
			e->kind == EVIDENCE_MAPPING ? crash_of(bench, e->trial) : NULL;
		struct file_cut *cut = crash ? find_cut(bench, crash->file_device,
							crash->file_inode, crash->realtime_ns)
					     : NULL;

		/* The latest before it died: one that was found at the time may be an older one. */
		if (!cut)
			continue;
		file_cut_free(e->mapping->cut);
		e->mapping->cut = cut;
		file_cut_free(crash->cut);
		crash->cut =
			find_cut(bench, crash->file_device, crash->file_inode, crash->realtime_ns);
	}
}

enum cuts_state cuts_state(const struct bench *bench)
{
	enum cuts_state state = CUTS_NONE;

	VEC_FOREACH (&bench->ret->evidence.list, e) {
		if (e->kind != EVIDENCE_MAPPING)
			continue;
		if (e->mapping->cut)
			return CUTS_KNOWN;
		state = CUTS_UNKNOWN;
	}
	return state;
}

bool cuts_wait(const struct bench *bench)
{
	enum cuts_state state = cuts_state(bench);

	return bench->start.count < CRASHES_MAX && state != CUTS_KNOWN &&
	       (state == CUTS_UNKNOWN || cuts_suspected(bench));
}

static bool enough(struct bench *bench)
{
	cuts_settle(bench);
	return !cuts_wait(bench);
}

static const struct round_ops truncation_round = { .id = 1,
						   .observer = OBSERVE_IDS,
						   .replays = true,
						   .read_failing = look_read,
						   .enough = enough };

/* Whoever made the file shorter may be in a trial that has ended since, or is yet to come. */
static bool applies(struct inquiry *inq, struct said *why)
{
	if (!bench_settled(inq->bench))
		return false;
	cuts_settle(inq->bench);
	return cuts_wait(inq->bench);
}

static void price(const struct inquiry *inq, struct price *ret)
{
	price_of_failures(inq, 1, 1.2, ret);
}

static int run(struct inquiry *inq)
{
	struct bench *bench = inq->bench;
	int r;

	BENCH_SAY(bench, "chase:file");
	r = round_run(bench, &truncation_round, inq->err);
	cuts_settle(bench);
	if (r == 0 && cuts_state(bench) == CUTS_KNOWN)
		SAY(&bench->ret->outcome, "outcome:file");
	return r;
}

EXPERIMENT(truncation, .name = "truncation", .question = QUESTION_WHO,
	   .kind = EXPERIMENT_CRASH_RECORD, .chance = 0.5, .refines = true, .applies = applies,
	   .price = price, .run = run);
