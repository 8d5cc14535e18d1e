#pragma once

#include <stddef.h>

#include "read/block_damage.h"
#include "read/recorded_crash.h"

/*
 * Poison that came out: what a freed block was overwritten with names that block
 * (wire/guard_word.h). Where it turns up in what a program prints, as bytes or as a number in
 * decimal or hexadecimal, or in a register of one of the functions that were running when it died,
 * somebody has read the block after its free. Who did is not known from it.
 *
 * The output is somebody else's text: any bytes are read.
 */

/* Has any process of the trial overwritten what it freed? */
bool poison_is_there(const struct damage_source *of);

/* Adds what `text`, some output of the trial, shows. */
void poison_find_in_output(const struct damage_source *of, const char *text, size_t len,
			   struct damage *ret);

/* The same of a crash. */
void poison_find_in_crash(const struct damage_source *of, const struct crash_place *place,
			  struct damage *ret);
