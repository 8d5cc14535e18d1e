#pragma once

#include "debuginfo/symbols.h"
#include "studies/scan/code_scan.h"

/* What code_scan.c and scan_source.c share. */

/* One process, or one file as if it were mapped at its own addresses. */
struct scan_source {
	const struct snapshot *snapshot;
	/* All bytes or nothing. */
	bool (*read)(void *ctx, taddr address, void *buf, size_t len);
	void *ctx;
	bool recorded; /* files are read from the disk, not from memory */
};

struct scanner {
	const struct scan_request *request;
	struct scan_query query; /* the request's, with addresses in the process at hand */
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

/* The bytes of a global variable, or of its part, by the file's own addresses. */
int scan_global(const char *path, const char *global, uint64_t *ret_low, uint64_t *ret_high,
		struct err *err);

void scanner_finish(struct scanner *scanner);
