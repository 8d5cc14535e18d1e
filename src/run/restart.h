#pragma once

#include <stdint.h>
#include <sys/types.h>

/*
 * System calls that a stop of ours would cut short.
 *
 * Most are taken up again by the kernel when a thread goes on after PTRACE_INTERRUPT. Some return
 * EINTR instead, as they do after SIGSTOP and SIGCONT (signal(7), "Interruption of system calls and
 * library functions by stop signals"); programs that nobody stops have never seen that. These are
 * taken up again, too. A call with a time limit in memory is left as it is.
 */

/* One per thread: a wait with a time limit that has been taken up again. */
struct restart {
	uint64_t instruction;
	uint64_t deadline_ns;
	int left_ms; /* the limit that it was given */
};

/* The thread has stopped because it was interrupted, and for no other reason. */
void restart_call(pid_t tid, struct restart *restart);
