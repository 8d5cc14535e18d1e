#pragma once

#include "base/err.h"
#include "model/said.h"
#include "run/job.h"

/*
 * Workers on other machines (worker.h), as one pool: a listener that they come to, a starter that
 * has them started (starter.h), and what each of them is doing.
 *
 * A trial counts when its own result has come, told by its attempt, which no other has. When a
 * worker is lost, its trials are lost with it: told as such, and neither passed nor failed.
 */
struct fleet;

struct fleet_request {
	const char *runner;    /* "slurm", "slurm:OPTIONS", "ssh:HOST,HOST", "exec:TEMPLATE" */
	const char *bind;      /* an address of this machine, with ":PORT" if wanted; NULL: found */
	unsigned int slots;    /* workers to start */
	const char *agent_dir; /* NULL: none */
	const struct strv *ship; /* files and directories; NULL: none */
	/* Something that the user should know. */
	void (*say)(void *ctx, const struct said *said);
	void *say_ctx;
};

/* Is it a runner at all; does it mean other machines? */
int fleet_check(const char *runner, bool *ret_remote, struct err *err);

int fleet_open(const struct fleet_request *request, struct fleet **ret, struct err *err);
/* Sends the workers away and waits until what started them has ended. */
void fleet_close(struct fleet *fleet);
AUTO_DEFINE(struct fleet, fleet_close)

/* Trials that were lost with their machine so far. */
uint64_t fleet_lost(const struct fleet *fleet);

/* Trials of these settings, which must live until fleet_end(). */
int fleet_begin(struct fleet *fleet, const struct trial_settings *settings, unsigned int slots,
		struct err *err);
/* Ends what runs. */
void fleet_end(struct fleet *fleet);

/* Is there a worker for one more trial of this slot? */
bool fleet_takes(const struct fleet *fleet, unsigned int slot);
/* Has a result come that nobody has taken yet? */
bool fleet_has_result(const struct fleet *fleet);
unsigned int fleet_depth(const struct fleet *fleet, unsigned int slot);
unsigned int fleet_busy(const struct fleet *fleet);
int fleet_start(struct fleet *fleet, const struct trial_job *job, struct err *err);
/* As pool_wait(). */
int fleet_wait(struct fleet *fleet, int wake_fd, int timeout_ms, struct trial_result *ret,
	       struct err *err);
