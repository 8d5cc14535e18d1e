#pragma once

#include <stdio.h>

#include "model/frame.h"

/* Helpers for the text reports. Private to report/. */

/* "function  file:line", and how sure that is. No newline (crash_text.c). */
void text_frame(const struct frame *frame, FILE *out);
