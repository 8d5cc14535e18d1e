#pragma once

#include <stdio.h>

#include "model/frame.h"
#include "model/said.h"
#include "model/summary.h"

/* Helpers for the text reports. Private to report/. */

/* fprintf(), whose errors the caller finds when it closes the stream. */
void put(FILE *out, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Somebody's words, made printable. */
void text_print(const char *text, FILE *out);

/* What is said, made printable; nothing where nothing is. No newline. */
void text_said(const struct said *said, FILE *out);

/* Words as a shell would take them, made printable. No newline. */
void text_words(char *const *words, FILE *out);

/* A command likewise, without its secrets. */
void text_program(char *const *program, FILE *out);

/* "3 of 20 failed, 15.0 % (95 %: 5.2–36.0 %)". */
void text_rate(const struct rate *rate, FILE *out);

/* How many clean runs would show that it is fixed, at the rate that was seen and at the lowest that
 * its interval allows. Never NULL; no full stop. */
char *text_clean_runs(const struct series_summary *summary);

/* The line of source that the frame stands at, without its indent; NULL when it cannot be read
 * here. The caller's to free. */
char *text_source_line(const struct frame *frame);

/* How the address of the fault varies over trials: "NULL+0x8 in 5 of 8 crashes, 3 other addresses";
 * NULL: none is known. The caller's to free. */
char *text_fault_addresses(const struct series_summary *summary);

/* "function  file:line", and how sure that is. No newline (crash_text.c). */
void text_frame(const struct frame *frame, FILE *out);

/* A frame a line, numbered, at most `limit`; text_stack() also says when there would be more that
 * could not be read (crash_text.c). */
void text_frames(const struct stack *stack, size_t limit, const char *indent, FILE *out);
void text_stack(const struct stack *stack, size_t limit, const char *indent, FILE *out);

/* The source around the first frame whose file can be read here (crash_text.c). */
void text_source(const struct stack *stack, const char *indent, FILE *out);

/* "note: …", a line each, after an empty one; nothing where there is none. */
void text_notes(const struct said_list *notes, FILE *out);
