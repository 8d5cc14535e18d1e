/*
 * Who cuts files: hooks_file.c.
 */
#ifndef REDHAND_AGENT_HOOKS_FILE_H
#define REDHAND_AGENT_HOOKS_FILE_H

void file_switch_on(void);

#endif
