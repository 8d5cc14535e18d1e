/*
 * Secrets of this process: values of variables and arguments whose names look secret. They are
 * taken out of every record before it is sealed.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* At the start, before the first record. */
void secret_start(char *const *argv, char *const *envp);

/* `address`: where the bytes were copied from; 0: made by us. */
void secret_hide_sigsafe(void *bytes, size_t len, uint64_t address);
