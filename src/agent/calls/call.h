/*
 * A system call of the target that was told to us (calls.h): made where it was to be made, or here
 * with other arguments; what it wrote to watched pages is told as a write of the kernel.
 *
 * Everything here runs in the handler of SIGSYS. Whatever is given a call answers it; call_make()
 * alone does not.
 */
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/ucontext.h>

#include "agent/pages/pages.h"

#define OUTPUTS_MOST 64u
#define CALL_NOT_MADE LONG_MAX /* in place of a result */

/* Its number, what it was given, and what it is given instead. */
struct call {
	ucontext_t *context;
	long number;
	long given[6], made[6];
	unsigned list_at; /* of a list of buffers: the argument that has it; its length is the next
			   */
};

/* Memory that a call writes to: of `low`, at most up to `high`. exact: it wrote all of it. */
struct written_range {
	uint64_t low, high;
	bool exact;
};

struct outputs {
	struct written_range list[OUTPUTS_MOST];
	uint32_t count;
};

static inline uint64_t call_register(const ucontext_t *context, int n)
{
	return (uint64_t)context->uc_mcontext.gregs[n];
}

/* Does an argument point to watched pages? And where it would have to, for the kernel to write
 * there: itself, if it does not. */
static inline bool call_held(long value)
{
	return pages_hold((uint64_t)value);
}

static inline long call_writable(long value)
{
	return call_held(value) ? value + (long)pages.distance : value;
}

/* What lies there must be writable by its own address: pages_let_go_sigsafe(). */
void call_let_go(long address);

/* With the arguments of `made`; answers nothing. */
long call_make(const struct call *call);
void call_answer(struct call *call, long value);

/* Where it was to be made, as far as anybody can tell. Without a gate it is made here. */
void call_pass(struct call *call);

/* What was to be filled, and what of it has been filled when the call says so. */
typedef void (*call_outputs_fn)(const struct call *call, long result, struct outputs *ret);

/* Made here; those who watch what it filled are told. */
void call_redirect(struct call *call, call_outputs_fn outputs_of);

/* Only of what lies in watched pages. bytes UINT64_MAX: it is not known how many. */
void outputs_add(struct outputs *outputs, long low, uint64_t bytes, bool exact);
void outputs_tell(const struct outputs *outputs, struct call *call);

/* One whose arguments point to what it reads and writes, and to nothing that has pointers. */
void call_plain(struct call *call);
void call_plain_outputs(const struct call *call, long result, struct outputs *ret);

struct busy;

/* A call that is being made here. On the stack of its handler. */
struct call_wait {
	const ucontext_t *context;
	long number;
	const struct busy *busy; /* NULL: none */
	struct call_wait *outer;
	uint32_t done; /* arch_call() */
};

/* call_make() for one that may take long. */
long call_wait(const struct call *call, const struct busy *busy);
void call_busy_end(const struct busy *busy);

/* From a gate to where the target made the call. False: it is in none. */
bool call_leave_gate(ucontext_t *context);

/* The C library's own handler of cancellation is called by ours from now on, if there is one. */
void call_cancel_take_sigsafe(void);
/* rt_sigaction about it. */
void call_cancel_action(struct call *call);

/* readv and its kin: what is read goes to a list of buffers, which is argument `at`; the next one
 * is its length. */
void call_list(struct call *call, unsigned at);
void call_recvmsg(struct call *call);
void call_recvmmsg(struct call *call);

void call_sigprocmask(struct call *call);
void call_sigaction(struct call *call);
/* Waiting with another mask: argument `at` points to it. */
void call_masked(struct call *call, unsigned at);
void call_pselect(struct call *call);
