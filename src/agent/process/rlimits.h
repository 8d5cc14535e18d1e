/*
 * Limits on memory that the target sets for itself (RLIMIT_AS, RLIMIT_DATA).
 *
 * The kernel counts what the agent has reserved, and that is more than any limit. So what the
 * target asks for is put in force with ours on top, and told to it without. Before exec the limit
 * is as it was asked for: the next image has an agent of its own.
 *
 * A limit that was there before this image is treated alike where it may be raised, which is the
 * superuser's right. Where not, the agent makes do with a part of it (blocks.c, plan_shrink).
 * Children of posix_spawn inherit the limit with ours on top.
 */
#pragma once

/* In the constructor, before anything is mapped: agent.cramped, .tight and .space_limit. */
void limits_begin(void);

/* Around exec. _sigsafe */
void limits_before_exec_sigsafe(const char *path);
void limits_exec_failed_sigsafe(void);
