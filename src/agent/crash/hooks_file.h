/*
 * Who cuts files: hooks_file.c.
 */
#pragma once

void file_switch_on(void);
