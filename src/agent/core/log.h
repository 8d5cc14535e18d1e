/*
 * The event log as the agent writes it: one file, mapped once, no descriptor kept.
 *
 * Space for a record is taken by one atomic add and never given back; the record's magic number is
 * written last. So a thread that dies in between leaves a hole that the reader steps over, and no
 * writer waits for another. All functions are _sigsafe except log_create.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/log_format.h"
#include "wire/plan.h"

struct log {
	struct log_header *header; /* NULL until created */
	unsigned char *base;	   /* of the mapping */
	uint64_t bytes;
	struct log_thread *threads;
	struct log_context *contexts; /* NULL unless ids */
	struct log_life *rings;	      /* NULL unless ids */
	uint64_t seq;		      /* atomic: last given */
	uint64_t id_base;	      /* ids below came with the fork */
	bool draft;		      /* private memory, not a file: see log_publish_sigsafe() */
	uint32_t filed;		      /* atomic: 0 a draft has no file, 1 being made, 2 it has */
	/* The writer's own idea of the tails: those in the header can be overwritten by the target.
	 */
	uint64_t events_tail, reserve_tail; /* atomic */
	uint64_t events_ready;		    /* asked for up to here; racy, only time hangs on it */
};

extern __attribute__((visibility("hidden"))) struct log log_map;

/* Creates events.PID.N.rhl for the next free N, sizes it (sparse) and maps it; after a fork it is
 * mapped over the parent's, at the same place. False: errno-like reason stays unknown, retire.
 *
 * Observer `crash` begins with a draft in private memory instead: most processes never have
 * anything to tell, and making a file costs more than starting /bin/true. */
bool log_create(void);

/* Makes a draft a file, for what is worth telling: a crash, a retirement, a program that cannot be
 * observed. What other threads append at this very moment may be lost. No-op when it is one. */
void log_publish_sigsafe(void);

/* Copies a draft into its file as it stands now, once or again, and leaves it a draft: for a
 * process that is about to die. Mapping the file and dirtying its pages one by one makes ext4 wait
 * for its journal, which took up to 100 ms; a few large writes do not. */
void log_save_sigsafe(void);

/* Where a record goes. */
enum log_place {
	LOG_TO_EVENTS,
	LOG_TO_RESERVE, /* final crashes */
	LOG_TO_SLOT,	/* provisional crashes, overwritten by the one after the next */
};

/* Half of RESERVE is for final crashes, the rest is two slots. */
#define LOG_RESERVE_BYTES (8u << 20)
#define LOG_SLOT_BYTES (1u << 20)
#define LOG_SLOT_NOTE 64u /* the end of a slot: one record that comes later */

/* The trial's directory, as it was the first time: one that was put in its place since leads
 * nowhere. A descriptor to close (O_PATH), or negative. */
int log_directory_sigsafe(void);

/* A writer of related records: remembers the owner and the place. */
struct log_writer {
	enum log_place place;
	uint64_t owner;		    /* seq of the first record, set by log_begin */
	uint64_t slot_at, slot_end; /* LOG_TO_SLOT only */
	uint32_t blobs, blocks;
};

void log_writer_init_sigsafe(struct log_writer *writer, enum log_place place);

/* One record: fixed part and an optional rest. Returns its seq, 0 when it was dropped. */
uint64_t log_append_sigsafe(struct log_writer *writer, enum log_record_type type, const void *fixed,
			    size_t fixed_bytes, const void *rest, size_t rest_bytes);

/* One record of the events, by itself. */
void log_event_sigsafe(enum log_record_type type, const void *fixed, size_t fixed_bytes);

/* The first record of a group: those after it carry its seq as owner. */
uint64_t log_begin_sigsafe(struct log_writer *writer, enum log_record_type type, const void *fixed,
			   size_t fixed_bytes);

/* Bytes that are known to be readable, cut into pieces. */
void log_blob_sigsafe(struct log_writer *writer, enum log_blob_kind kind, unsigned index,
		      uint64_t address, const void *bytes, size_t len);

/* Memory of the target that may not be readable: stops where reading stops. Returns bytes read. */
size_t log_memory_sigsafe(struct log_writer *writer, enum log_blob_kind kind, unsigned index,
			  uint64_t address, size_t len);

void log_drop_sigsafe(enum log_drop what);

/* Is this address inside the mapped log? */
bool log_holds_sigsafe(uint64_t address);

/* The log's disk is full: puts plain memory in the place of the page that could not be written,
 * so that the interrupted store can be repeated. */
bool log_patch_hole_sigsafe(uint64_t address);
