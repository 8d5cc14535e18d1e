#pragma once

#include "model/crash.h"
#include "model/mappings.h"
#include "wire/log_format.h"

/* What a crash's facts say about its kind. Private to read/. */
struct fault_facts {
	const struct log_crash *crash;
	const struct mappings *mappings;
	const struct log_file_size *files;
	size_t file_count;
	uint64_t wanted; /* the address that the instruction formed: a protection fault has none */
	bool has_wanted;
	bool null_based; /* it added an index to a register that held NULL */
	uint64_t jump;	 /* where the instruction would have gone on */
	bool has_jump;
	const char *source; /* the register behind which the bad pointer was found, or NULL */
	uint64_t load;	    /* where an index led from there, to the bad pointer */
	bool has_load;
	uint64_t source_value; /* or the pointer itself, as a variable of the stack still has it */
	bool has_source_value;
	const char *base; /* the one that the address was formed with, or NULL */
	uint64_t divisor; /* of a division */
	bool has_divisor;
};

/* Sets fault, words, file and its sizes in `ret`, whose blocks and abort message are there. */
/* Did it fail where it went on, not at what it wanted to read or write? */
bool fault_jumped(const struct log_crash *crash);

void fault_classify(const struct fault_facts *facts, struct crash *ret);
