#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"
#include "model/frame.h"
#include "model/said.h"

/*
 * Instructions that could make a certain write, found by reading code.
 */

/* How a store lies to the field that was asked for. */
enum scan_fit {
	SCAN_FIT_BEGINS,   /* begins where the field does; how wide that is was not asked */
	SCAN_FIT_EXACT,	   /* writes the field, all of it and nothing else */
	SCAN_FIT_NARROWER, /* writes a part of it */
	SCAN_FIT_WIDER,	   /* begins in it and ends behind it */
	SCAN_FIT_COVERS,   /* begins before it and writes some or all of it */
	SCAN_FIT_ANY,	   /* as many bytes as a register says: rep stos, rep movs */
};

/* Of `store_width` bytes at `store_offset`, and a field of `width` (0: unknown) at `offset`. False
 * when they do not meet. A store of 0 bytes is one of any width. */
bool store_fit(int64_t offset, uint64_t width, int64_t store_offset, uint64_t store_width,
	       enum scan_fit *ret);

enum scan_match {
	SCAN_STORE,
	SCAN_IMMEDIATE, /* has the value as an immediate operand */
	SCAN_REFERENCE, /* has the address as an operand, but does not write there */
};

/* Identifiers as the JSON documents have them. */
const char *scan_fit_name(enum scan_fit fit);
const char *scan_match_name(enum scan_match match);

/* What to look for. */
struct scan_query {
	bool store; /* stores at `offset` from a base register */
	int64_t offset;
	uint64_t width;	    /* 0: any that begin at or cover `offset` */
	uint32_t registers; /* bit N: register N may be the base; 0: all but the stack pointer */
	bool stack;	    /* stores relative to the stack pointer, push and call too */
	bool has_value;	    /* `value` as an immediate */
	uint64_t value;
	uint64_t low,
		high; /* stores to these addresses, and other uses of them; equal: not asked */
};

#define SCAN_CODE_BYTES 16

struct scan_hit {
	enum scan_match match;
	enum scan_fit fit; /* SCAN_STORE */
	uint64_t address;  /* in the process; in a file its own */
	uint8_t bytes[SCAN_CODE_BYTES];
	unsigned int length;
	char *instruction;
	const char *kind;   /* SCAN_STORE: identifier of what kind of store; static */
	unsigned int width; /* 0: any, or none */
	const char *base;   /* register name; NULL for none; static */
	int64_t displacement;
	struct stack frames; /* where it is: the function, those it is inlined into after it */
	bool executed;	     /* was seen to run */
};

/* Code that was seen to run, for struct scan_hit: as watch recorded it. */
struct seen_code {
	const char *module; /* path; NULL for emitted code */
	uint64_t offset;    /* address in the module's file, or in the process */
	/* Of emitted code in another process: its function and the instruction; else NULL. */
	const char *function, *text;
};

struct scan_region {
	char *name; /* path of the module, or "[emitted code]" … */
	uint64_t bytes;
	uint64_t unread; /* of them, gone or not kept */
	size_t hits;
};

struct scan_report {
	char *subject; /* what was scanned: path, "process 12", "trial 7" */
	struct scan_query query;
	char *global; /* --global, as given; NULL for none */
	VEC(struct scan_region) regions;
	VEC(struct scan_hit) hits; /* by region, then address */
	uint64_t bytes, instructions;
	uint64_t undecoded;	 /* bytes that are no instruction: data, padding */
	uint64_t stack_left_out; /* stores of the field relative to the stack pointer, not listed */
	uint64_t limited;	 /* hits beyond the limit, counted only */
	double seconds;
	bool seen_known;	/* `executed` of the hits means something */
	struct said_list notes; /* what could not be scanned, a sentence each */
};

void scan_report_deinit(struct scan_report *report);
