#pragma once

#include "debuginfo/symbols.h"
#include "engine/scan/scan.h"

/* What scan.c and scan_source.c share. */

/* One process, or one file as if it were mapped at its own addresses. */
struct scan_source {
	const struct snapshot *snapshot;
	/* All bytes or nothing. */
	bool (*read)(void *ctx, taddr address, void *buf, size_t len);
	void *ctx;
};

struct scanner {
	const struct scan_request *request;
	struct scan_report *report;
	struct symbols *symbols;
	uint64_t total, done; /* bytes of code */
	double started;
};

void scanner_init(struct scanner *scanner, const struct scan_request *request,
		  struct symbols *symbols, struct scan_report *report);

/* Adds a mapping's code to what is to be scanned, for the progress. */
void scanner_expect(struct scanner *scanner, uint64_t bytes);

/* Scans the code of one of the source's mappings. */
void scanner_sweep(struct scanner *scanner, const struct scan_source *source,
		   const struct mapping *mapping);

void scanner_finish(struct scanner *scanner);
