/*
 * Secrets of this process: values of variables and arguments whose names look secret. They are
 * taken out of every record before it is sealed.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "wire/secret_words.h"

/* At the start, before the first record. */
void secret_start(char *const *argv, char *const *envp);

/* `address`: where the bytes were copied from; 0: a text. */
void secret_hide_sigsafe(void *bytes, size_t len, uint64_t address);

/* Of a command as /proc has it, also those that are too short to be known elsewhere. */
void secret_hide_command(char *words, size_t bytes);

/* Registers: each holds what was copied by itself, `each` bytes. */
void secret_hide_registers_sigsafe(void *registers, size_t len, size_t each);
