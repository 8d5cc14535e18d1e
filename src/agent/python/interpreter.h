/*
 * CPython's own view of a thread that crashes: the memory that names its Python frames.
 *
 * The layouts and the walk are wire/python_layout.h and wire/python_record.h. Where the interpreter
 * keeps its state is looked up twice: by the loader in the constructor (real.h), and, if it was not
 * there yet (a program that loads libpython later), in the dynamic symbols of the mapped files,
 * with reads that cannot fault.
 */
#pragma once

#include "agent/core/log.h"

/* Adds PYTHON and its blob to a crash, if this process runs an interpreter that we know;
 * or to a hit, of which only tid and fs_base matter. _sigsafe */
void interpreter_write_sigsafe(struct log_writer *writer, const struct log_crash *crash);

/* Adds PYTHON_CODE and its blob to the events. False: another thread is at it, and nothing was
 * done. _sigsafe */
bool interpreter_code_sigsafe(const struct log_python_code *record);
