#pragma once

#include "base/vec.h"
#include "model/evidence.h"
#include "model/scan_report.h"
#include "read/reading.h"

struct scan_request;

/*
 * Instructions that were seen to run, for struct scan_request.
 */
struct seen_list {
	VEC(struct seen_code) list; /* owns its texts */
};

void seen_list_deinit(struct seen_list *list);

/* The request has it from now on; it borrows it. */
void seen_list_give(const struct seen_list *list, struct scan_request *request);

/* Writers that the case has as evidence. */
void seen_from_evidence(const struct evidence_list *evidence, struct seen_list *list);

/* Writers in the logs of a trial, emitted code by its address there. */
void seen_from_trial(struct reading *reading, struct seen_list *list);
