#pragma once

#include <stdint.h>

#define WHEN_MAX 32

/* A moment, in milliseconds since the epoch, as "2026-04-27T07:12:25Z". Returns `text`. */
const char *when_text(int64_t ms, char text[WHEN_MAX]);
