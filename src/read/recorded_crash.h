#pragma once

#include "arch/operands.h"
#include "read/logs.h"

/*
 * Crashes as they were recorded: which of a trial's records count, and one of them with everything
 * that belongs to it. What they mean is told by crash_report.h.
 */
struct crash_place {
	struct event_log *log;
	struct log_item item;
	int signal;
	int ended_by; /* the signal that a handler of it ended the process with; else the same */
	uint32_t tid;
	uint64_t follows; /* the crash whose handler led to this one; 0 = none */
	bool final;	  /* the process died of it */
	bool raised;	  /* by the process itself, not by an instruction */
	bool in_handler;  /* while that handler ran: also an abort() in it */
	bool expected;	  /* its signal is what the command died of */
	uint64_t realtime_ns;
};

struct crash_places {
	VEC(struct crash_place) list;
};

/* All crashes of the trial that are not ordinary life, the one that counts first: `signal` is what
 * the command itself died of (0: it did not). They point into `logs`. */
void crash_places_find(struct event_logs *logs, int signal, struct crash_places *ret);
void crash_places_deinit(struct crash_places *places);

/* One record with everything that belongs to it. It borrows the log. */
struct crash_record {
	struct event_log *log;
	struct log_item item;
	struct log_crash raw;
	struct mappings mappings;
	VEC(struct piece) pieces;
	size_t pieces_owned; /* the first ones; those behind them point into `python.blob` */
	void *stack;
	size_t stack_len;
	uint64_t stack_address;
	struct log_file_size *files;
	size_t file_count;
	struct fault_operands operands; /* empty when the code could not be read */
	struct python_memory python;
	bool whole_blocks; /* set by the caller: objects of hooked allocators do not count */
};

/* Everything of one record. The caller has zeroed `ret`. */
void crash_record_open(const struct crash_place *place, struct crash_record *ret);
void crash_record_deinit(struct crash_record *record);

/* It as a snapshot, which borrows from it. */
void crash_record_snapshot(const struct crash_record *record, struct snapshot *ret);
