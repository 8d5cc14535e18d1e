/*
 * exec, spawn, exit and what belongs to them: hooks_process.c.
 */
#pragma once

/* What is still to be written down of programs that children started. _sigsafe */
void process_exiting_sigsafe(void);
