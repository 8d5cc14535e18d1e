#pragma once

#include "arch/decoded.h"
#include "arch/store.h"

/*
 * From instructions to what store.h says about them. Private to arch/.
 */

/* An operand in memory, and the whole instruction if it writes to memory, as store.h has them. */
void operand_take(const struct decoded *d, const ZydisDecodedOperand *operand,
		  struct memory_operand *ret);
bool store_take(const struct decoded *d, struct store *ret);

/* Of a masked store: which register has the mask. Stays as it is when that cannot be told. */
void store_mask_take(const struct decoded *d, const ZydisDecodedOperand *to,
		     struct store_mask *ret);

/* Narrows what a masked store wrote, by its mask. */
void writer_mask(const struct trap *trap, struct writer *writer);
