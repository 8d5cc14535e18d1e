#include "run/pool.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fault.h"
#include "base/fd.h"
#include "base/strbuf.h"
#include "base/talk.h"
#include "run/keeper.h"
#include "run/remote/fleet.h"
#include "run/slot.h"

struct seat {
	pid_t pid;			/* of its keeper; 0 until forked */
	int socket;			/* -1 when closed */
	unsigned int depth;		/* jobs sent and not yet answered */
	struct strbuf sent[POOL_DEPTH]; /* these, the oldest first */
	unsigned int deaths;		/* of slots in a row, without an answer between them */
};

/* A slot that dies is replaced; when that helps nothing, the next trial will not help either. */
#define DEATHS_MAX 3

struct pool {
	const struct trial_settings *settings;
	int lock_fd;
	struct fleet *fleet; /* NULL: the slots are here */
	struct seat *seats;
	unsigned int count;
	unsigned int last; /* slot that was served last: the next look starts behind it */
	struct strbuf message;
};

/* What the slot's process keeps of ours: its socket and the case's lock. */
static void keep_only(int *socket, int lock_fd)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	/* Whoever reads our stdout must see its end when we are gone. stderr stays, for our own
	 * diagnostics. */
	if (null >= 0) {
		(void)dup2(null, 0);
		(void)dup2(null, 1);
	}
	/* Away from 3 and 4 first, then down to them. No further away than need be: there may be
	 * a low limit on descriptors. */
	*socket = fcntl(*socket, F_DUPFD_CLOEXEC, 5);
	if (lock_fd >= 0)
		lock_fd = fcntl(lock_fd, F_DUPFD_CLOEXEC, 5);
	*socket = dup3(*socket, 3, O_CLOEXEC);
	if (lock_fd >= 0)
		(void)dup3(lock_fd, 4, O_CLOEXEC);
	(void)close_range(lock_fd >= 0 ? 5 : 4, ~0u, 0);
}

static int seat_open(struct pool *pool, unsigned int slot, struct err *err)
{
	struct seat *seat = &pool->seats[slot];
	int pair[2], fault = fault_hits("fork");

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
		return err_set_errno(err, -errno, "cannot make a socket for slot %u", slot);
	seat->pid = fault > 0 ? (errno = fault, -1) : fork();
	if (seat->pid < 0) {
		int r = err_set_errno(err, -errno, "cannot start a process for slot %u", slot);

		fd_close(pair[0]);
		fd_close(pair[1]);
		seat->pid = 0;
		(void)err_set_remedy(err, "fewer slots (-j)");
		return r;
	}
	if (seat->pid == 0) {
		int socket = pair[1];

		keep_only(&socket, pool->lock_fd);
		keeper_main(socket, slot, pool->settings);
	}
	fd_close(pair[1]);
	seat->socket = pair[0];
	return 0;
}

int pool_open(unsigned int slots, const struct trial_settings *settings, int lock_fd,
	      struct pool **ret, struct err *err)
{
	AUTO(pool_closep) struct pool *pool = mem_alloc(sizeof(*pool));
	int r = 0;

	pool->settings = settings;
	pool->lock_fd = lock_fd;
	pool->count = slots;
	if (settings->shared.fleet) {
		r = fleet_begin(settings->shared.fleet, settings, slots, err);
		if (r < 0)
			return r;
		pool->fleet = settings->shared.fleet;
		*ret = TAKE(pool);
		return 0;
	}
	pool->seats = mem_alloc(slots * sizeof(pool->seats[0]));
	for (unsigned int i = 0; i < slots; i++)
		fd_init(&pool->seats[i].socket);
	for (unsigned int i = 0; i < slots && r == 0; i++)
		r = seat_open(pool, i, err);
	if (r < 0)
		return r;
	*ret = TAKE(pool);
	return 0;
}

static void seat_wait(struct seat *seat)
{
	while (seat->pid > 0 && waitpid(seat->pid, NULL, 0) < 0 && errno == EINTR)
		;
	seat->pid = 0;
}

void pool_close(struct pool *pool)
{
	if (!pool)
		return;
	if (pool->fleet)
		fleet_end(pool->fleet);
	/* All at once, then wait: they clean up side by side. */
	for (unsigned int i = 0; pool->seats && i < pool->count; i++)
		fd_close(pool->seats[i].socket);
	for (unsigned int i = 0; pool->seats && i < pool->count; i++) {
		seat_wait(&pool->seats[i]);
		for (unsigned int k = 0; k < POOL_DEPTH; k++)
			strbuf_deinit(&pool->seats[i].sent[k]);
	}
	mem_free(pool->seats);
	strbuf_deinit(&pool->message);
	mem_free(pool);
}

unsigned int pool_slots(const struct pool *pool)
{
	return pool->count;
}

unsigned int pool_depth(const struct pool *pool, unsigned int slot)
{
	return pool->fleet ? fleet_depth(pool->fleet, slot) : pool->seats[slot].depth;
}

bool pool_takes(const struct pool *pool, unsigned int slot)
{
	return !pool->fleet || fleet_takes(pool->fleet, slot);
}

bool pool_has_result(const struct pool *pool)
{
	return pool->fleet && fleet_has_result(pool->fleet);
}

unsigned int pool_busy_count(const struct pool *pool)
{
	unsigned int busy = 0;

	if (pool->fleet)
		return fleet_busy(pool->fleet);
	for (unsigned int i = 0; i < pool->count; i++)
		busy += pool->seats[i].depth > 0;
	return busy;
}

static int slot_lost(unsigned int slot, int code, struct err *err)
{
	(void)err_set(err, code, "the process of slot %u has died %d times in a row", slot,
		      DEATHS_MAX);
	return err_set_remedy(err, "run the same command again: it goes on where it was");
}

/* The slot has died. Another one takes its place, and its trials are run again: nothing of them is
 * left once its keeper has gone. */
static int seat_renew(struct pool *pool, unsigned int slot, int code, struct err *err)
{
	struct seat *seat = &pool->seats[slot];
	int r;

	fd_close(seat->socket);
	seat->socket = -1;
	seat_wait(seat);
	if (++seat->deaths >= DEATHS_MAX)
		return slot_lost(slot, code, err);
	log_debug("slot %u died: another one", slot);
	r = seat_open(pool, slot, err);
	for (unsigned int i = 0; i < seat->depth && r == 0; i++)
		if (message_send(seat->socket, &seat->sent[i]) < 0)
			return seat_renew(pool, slot, -EPIPE, err);
	return r;
}

int pool_start(struct pool *pool, const struct trial_job *job, struct err *err)
{
	struct seat *seat;
	struct strbuf *message;

	if (pool->fleet)
		return fleet_start(pool->fleet, job, err);
	seat = &pool->seats[job->slot];
	message = &seat->sent[seat->depth++];
	strbuf_clear(message);
	trial_job_pack(job, message);
	return message_send(seat->socket, message) < 0 ? seat_renew(pool, job->slot, -EPIPE, err)
						       : 0;
}

static void drop_oldest(struct seat *seat)
{
	struct strbuf oldest = seat->sent[0];

	for (unsigned int i = 1; i < POOL_DEPTH; i++)
		seat->sent[i - 1] = seat->sent[i];
	seat->sent[POOL_DEPTH - 1] = oldest;
	seat->depth--;
}

static int take_result(struct pool *pool, unsigned int slot, struct trial_result *ret,
		       struct err *err)
{
	int r = message_receive(pool->seats[slot].socket, &pool->message);

	if (r > 0 && !trial_result_unpack(pool->message.data, pool->message.len, ret)) {
		trial_result_deinit(ret);
		*ret = (struct trial_result){ 0 };
		r = -EBADMSG;
	}
	if (r <= 0)
		return seat_renew(pool, slot, r < 0 ? r : -EPIPE, err);
	drop_oldest(&pool->seats[slot]);
	pool->seats[slot].deaths = 0;
	pool->last = slot;
	return 1;
}

int pool_wait(struct pool *pool, int wake_fd, int timeout_ms, struct trial_result *ret,
	      struct err *err)
{
	AUTO(mem_freep) struct pollfd *fds = NULL;

	if (pool->fleet)
		return fleet_wait(pool->fleet, wake_fd, timeout_ms, ret, err);
	fds = mem_alloc((pool->count + 1) * sizeof(*fds));
	for (unsigned int i = 0; i < pool->count; i++)
		fds[i] = (struct pollfd){ .fd = pool->seats[i].depth > 0 ? pool->seats[i].socket
									 : -1,
					  .events = POLLIN };
	fds[pool->count] = (struct pollfd){ .fd = wake_fd, .events = POLLIN };
	if (poll(fds, pool->count + 1, timeout_ms) < 0)
		return errno == EINTR ? 0
				      : err_set_errno(err, -errno, "cannot wait for the trials");
	if (fds[pool->count].revents)
		return 0;
	for (unsigned int k = 1; k <= pool->count; k++) {
		unsigned int slot = (pool->last + k) % pool->count;

		if (fds[slot].revents)
			return take_result(pool, slot, ret, err);
	}
	return 0;
}
