/*
 * Sandboxes: filters on system calls that the target puts itself behind (seccomp).
 *
 * A filter knows what the target needs and nothing of us. One that answers with an error costs a
 * part of the record; one that kills for a call that the target never makes would make us the end
 * of it. So filters are read as they are installed, and before one that kills the agent leaves:
 * handlers, masks and stacks are the target's own again, and no hook makes a call of its own.
 *
 * Not seen: a filter that was there before this image (unless an observed process brought it in:
 * then the image is not observed), or that comes by a system call instruction of the target's own.
 *
 * Guards are looked at once more, watches end, watched pages become memory like any other. What
 * lies around blocks stays there, and free() knows of it. Jumps and breakpoints in functions of the
 * target stay, too, and lead nowhere: of the handlers, that of SIGTRAP stays where there are any.
 */
#pragma once

/* The target is about to be traced by somebody who knows nothing of signals that only we have a use
 * for: each would stop it, and nobody may be there to let it go on. */
void sandbox_traced(void);

/* seccomp and prctl by libc's syscall(), from arch/x86_64_syscall.S. */
long sandbox_syscall(long number, long a, long b, long c, long d, long e, long f);
