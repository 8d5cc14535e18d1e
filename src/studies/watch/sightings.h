#pragma once

#include "case/case.h"
#include "model/watch_report.h"

/*
 * Keeps what a watch caught as evidence in the case: one sighting for each writer, those that are
 * shown first. Each writer learns the number of its piece.
 */
int sightings_store(struct case_store *cs, struct watch_report *report, struct err *err);
