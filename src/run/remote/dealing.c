/*
 * Trials, dealt to the workers that are there, and what comes of them: an attempt each.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/now.h"
#include "base/tree.h"
#include "run/remote/fleet_inside.h"
#include "run/remote/orders.h"

static void push_result(struct fleet *f, const struct trial_result *result)
{
	VEC_PUSH(&f->errand.results, *result);
}

static void trial_name(uint64_t number, char ret[24])
{
	(void)snprintf(ret, 24, "%llu", (unsigned long long)number);
}

static void drop_files(const struct fleet *f, const struct sent *sent)
{
	char name[24];

	trial_name(sent->number.value, name);
	if (f->errand.trials >= 0)
		(void)tree_remove_at(f->errand.trials, name, NULL);
}

void deal_parcel_over(struct member *m)
{
	parcel_deinit(&m->parcel);
	fd_close(m->parcel.dir);
	m->parcel.dir = -1;
	m->parcel_attempt = 0;
}

/* The worker has one more, or one less. That its slot has one less is so only when the result has
 * been taken. */
static void set_depth(struct fleet *f, struct member *m, int by)
{
	f->idle -= m->ready && m->depth == 0;
	m->depth = (unsigned int)((int)m->depth + by);
	f->idle += m->ready && m->depth == 0;
}

static void release(struct fleet *f, struct member *m, struct sent *sent)
{
	sent->attempt = 0;
	set_depth(f, m, -1);
}

void deal_unbind(struct fleet *f, struct member *m)
{
	if (m->slot >= 0 && f->errand.by_slot && (unsigned int)m->slot < f->errand.slots)
		f->errand.by_slot[m->slot] = NULL;
	m->slot = -1;
}

/* Its trials are nobody's fault: they are run again. */
void deal_lost(struct fleet *f, struct member *m)
{
	for (size_t i = 0; i < POOL_DEPTH; i++) {
		struct sent *sent = &m->sent[i];

		if (sent->attempt == 0)
			continue;
		if (m->parcel_attempt == sent->attempt)
			drop_files(f, sent);
		push_result(f, &(struct trial_result){ .number = sent->number,
						       .slot = sent->slot,
						       .lost = true,
						       .machine = m->machine });
		f->lost++;
		release(f, m, sent);
	}
}

/* ---- what workers say about trials ---- */

static struct sent *find_sent(struct member *m, uint64_t attempt)
{
	for (size_t i = 0; i < POOL_DEPTH; i++)
		if (attempt != 0 && m->sent[i].attempt == attempt)
			return &m->sent[i];
	return NULL;
}

/* The directory that a trial's files go into, made anew. */
static int make_directory(const struct fleet *f, const struct sent *sent)
{
	char name[24];

	trial_name(sent->number.value, name);
	if (mkdirat(f->errand.trials, name, 0700) < 0 &&
	    (errno != EEXIST || tree_remove_at(f->errand.trials, name, NULL) < 0 ||
	     mkdirat(f->errand.trials, name, 0700) < 0))
		return -1;
	return openat(f->errand.trials, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

void deal_files(struct fleet *f, struct member *m, const struct link_frame *frame)
{
	struct unpacker u = { .at = frame->bytes, .left = frame->len };
	uint64_t attempt = unpack_u64(&u);
	const struct sent *sent = find_sent(m, attempt);
	struct err err = { 0 };
	int r;

	if (u.broken || (m->parcel_attempt != 0 && m->parcel_attempt != attempt)) {
		fleet_lose(f, m, "unreadable files");
		return;
	}
	/* Of a trial that was ended meanwhile. */
	if (!sent)
		return;
	if (m->parcel_attempt == 0) {
		parcel_init(&m->parcel, make_directory(f, sent));
		m->parcel_attempt = attempt;
	}
	if (m->parcel.dir < 0) {
		(void)err_set_errno(&err, -errno, "cannot make a trial's directory");
		fleet_stop(f, err.code, &err);
		return;
	}
	r = parcel_put(&m->parcel, frame->type, u.at, u.left, &err);
	if (r == -EBADMSG)
		fleet_lose(f, m, err.message);
	else if (r < 0)
		fleet_stop(f, r, &err);
}

/* What it left has come before. */
static void settle_files(struct fleet *f, struct member *m, const struct sent *sent, bool left)
{
	bool came = m->parcel_attempt == sent->attempt;

	if (came)
		deal_parcel_over(m);
	if (came && !left)
		drop_files(f, sent);
	if (!came && left)
		fd_close(make_directory(f, sent));
}

void deal_result(struct fleet *f, struct member *m, const struct link_frame *frame)
{
	struct unpacker u = { .at = frame->bytes, .left = frame->len };
	struct trial_result result = { 0 };
	uint64_t attempt = unpack_u64(&u);
	struct sent *sent = find_sent(m, attempt);

	if (!u.broken && !sent)
		return; /* of a trial that was ended meanwhile */
	if (u.broken || !trial_result_unpack(u.at, u.left, &result) ||
	    result.number.value != sent->number.value) {
		trial_result_deinit(&result);
		fleet_lose(f, m, "unreadable result");
		return;
	}
	settle_files(f, m, sent, result.left && !result.trouble);
	if (result.trouble) {
		fleet_give_up_on(f, m, result.trouble_code, result.trouble, "");
		trial_result_deinit(&result);
		return;
	}
	f->sorry.code = 0;
	result.slot = sent->slot;
	result.machine = m->machine;
	release(f, m, sent);
	push_result(f, &result);
}

/* ---- the pool's side ---- */

void deal_orders(struct fleet *f, struct member *m)
{
	if (!m->ready || !f->errand.settings || m->told)
		return;
	link_send(&m->link, FRAME_SETTINGS, &f->errand.orders);
	m->told = true;
	for (unsigned int i = 0; i < f->errand.slots && m->slot < 0; i++)
		if (!f->errand.by_slot[i]) {
			f->errand.by_slot[i] = m;
			m->slot = (int)i;
		}
}

static int open_trials(const struct trial_settings *settings, struct err *err)
{
	int fd = open(settings->trials.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);

	return fd < 0 ? err_set_errno(err, -errno, "cannot open '%s'", settings->trials.path) : fd;
}

int fleet_begin(struct fleet *f, const struct trial_settings *settings, unsigned int slots,
		struct err *err)
{
	char cwd[PATH_MAX];

	fleet_end(f);
	if (!getcwd(cwd, sizeof(cwd)))
		return err_set_errno(err, -errno, "cannot find out where we are");
	f->errand.trials = open_trials(settings, err);
	if (f->errand.trials < 0)
		return f->errand.trials;
	strbuf_clear(&f->errand.orders);
	orders_pack(settings, cwd, environ, &f->errand.orders);
	f->errand.settings = settings;
	f->errand.slots = slots;
	f->errand.by_slot = mem_alloc(slots * sizeof(f->errand.by_slot[0]));
	f->errand.depth = mem_alloc(slots * sizeof(f->errand.depth[0]));
	f->wake_fd = -1;
	f->attentive_ns = f->left_ns = clock_ns();
	VEC_FOREACH (&f->members, m) {
		deal_orders(f, *m);
		fleet_push_out(f, *m);
	}
	return 0;
}

void fleet_end(struct fleet *f)
{
	static const struct strbuf nothing;

	if (!f->errand.settings)
		return;
	VEC_FOREACH (&f->members, at) {
		struct member *m = *at;

		for (size_t i = 0; i < POOL_DEPTH; i++)
			if (m->sent[i].attempt != 0) {
				if (m->parcel_attempt == m->sent[i].attempt)
					drop_files(f, &m->sent[i]);
				release(f, m, &m->sent[i]);
			}
		deal_parcel_over(m);
		if (m->told)
			link_send(&m->link, FRAME_STOP, &nothing);
		m->told = false;
		m->slot = -1;
		fleet_push_out(f, m);
	}
	fleet_sweep(f);
	for (; f->errand.taken < f->errand.results.count; f->errand.taken++)
		trial_result_deinit(&f->errand.results.items[f->errand.taken]);
	VEC_DEINIT(&f->errand.results);
	f->errand.taken = 0;
	mem_free(f->errand.by_slot);
	mem_free(f->errand.depth);
	f->errand.by_slot = NULL;
	f->errand.depth = NULL;
	f->busy = 0;
	fd_close(f->errand.trials);
	f->errand.trials = -1;
	strbuf_deinit(&f->errand.orders);
	f->errand.settings = NULL;
}

bool fleet_has_result(const struct fleet *f)
{
	return f->errand.taken < f->errand.results.count;
}

bool fleet_takes(const struct fleet *f, unsigned int slot)
{
	const struct member *m = f->errand.by_slot[slot];

	return m ? m->depth < POOL_DEPTH : f->idle > 0;
}

unsigned int fleet_depth(const struct fleet *f, unsigned int slot)
{
	return f->errand.depth[slot];
}

unsigned int fleet_busy(const struct fleet *f)
{
	return f->busy;
}

static struct member *pick(const struct fleet *f, unsigned int slot)
{
	struct member *m = f->errand.by_slot[slot];

	if (m && m->depth < POOL_DEPTH)
		return m;
	VEC_FOREACH (&f->members, other)
		if ((*other)->ready && (*other)->told && (*other)->depth == 0)
			return *other;
	return NULL;
}

int fleet_start(struct fleet *f, const struct trial_job *job, struct err *err)
{
	AUTO(strbuf_deinit) struct strbuf payload = { 0 };
	struct member *m = pick(f, job->slot);
	struct sent *sent = NULL;

	if (!m)
		return err_set(err, -EAGAIN, "no worker is free for slot %u", job->slot);
	for (size_t i = 0; i < POOL_DEPTH && !sent; i++)
		if (m->sent[i].attempt == 0)
			sent = &m->sent[i];
	*sent = (struct sent){ .attempt = ++f->attempts, .number = job->number, .slot = job->slot };
	set_depth(f, m, 1);
	f->errand.depth[job->slot]++;
	f->busy++;
	pack_u64(&payload, sent->attempt);
	trial_job_pack(job, &payload);
	link_send(&m->link, FRAME_JOB, &payload);
	fleet_push_out(f, m);
	return 0;
}

int deal_pop(struct fleet *f, struct trial_result *ret)
{
	if (f->errand.taken == f->errand.results.count)
		return 0;
	*ret = f->errand.results.items[f->errand.taken++];
	f->errand.depth[ret->slot]--;
	f->busy--;
	if (f->errand.taken == f->errand.results.count)
		f->errand.taken = f->errand.results.count = 0;
	return 1;
}
