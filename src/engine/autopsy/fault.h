#pragma once

#include "model/crash.h"
#include "model/mappings.h"
#include "wire/log_format.h"

/* What a crash's facts say about its kind. Private to autopsy/. */
struct fault_facts {
	const struct log_crash *crash;
	const struct mappings *mappings;
	const struct log_file_size *files;
	size_t file_count;
};

/* Sets fault, words, file and its sizes in `ret`, whose blocks and abort message are there. */
void fault_classify(const struct fault_facts *facts, struct crash *ret);
