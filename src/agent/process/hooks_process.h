/*
 * exec, spawn, exit and what belongs to them: hooks_process.c.
 */
#ifndef REDHAND_AGENT_HOOKS_PROCESS_H
#define REDHAND_AGENT_HOOKS_PROCESS_H

/* What is still to be written down of programs that children started. _sigsafe */
void process_exiting_sigsafe(void);

#endif
