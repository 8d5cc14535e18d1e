#pragma once

#include <stdio.h>
#include <string.h>

#include "model/evidence.h"

/*
 * Made-up evidence for unit tests. The story that most of them tell: an object of 56 bytes,
 * context c0ffee, has a word at offset 24; somebody clears its low bit, and dict_set_item dies.
 */

#define MADE_CONTEXT "c0ffee"
#define MADE_BLOCK 0x500000ull
#define MADE_FIELD (MADE_BLOCK + 24)

static inline void made_frame(struct stack *stack, const char *function, const char *file,
			      uint32_t line, enum frame_kind kind)
{
	(void)stack_push(stack, &(struct frame){ .function = function ? (char *)function : NULL,
						 .file = file ? (char *)file : NULL,
						 .line = line,
						 .module = kind == FRAME_NATIVE
								   ? (char *)"/opt/app/bin/app"
								   : NULL,
						 .offset = kind == FRAME_NATIVE ? 0x1000 + line : 0,
						 .address = 0x400000 + line,
						 .kind = kind });
}

/* "function" in function.c:LINE, called by main. */
static inline void made_stack(struct stack *stack, const char *function, uint32_t line)
{
	char file[128];

	(void)snprintf(file, sizeof(file), "/opt/app/src/%s.c", function);
	made_frame(stack, function, file, line, FRAME_NATIVE);
	made_frame(stack, "main", "/opt/app/src/main.c", 9, FRAME_NATIVE);
}

static inline struct block_life *made_block(uint64_t id, uint64_t start, uint64_t size,
					    enum block_state state)
{
	struct block_life *block = mem_alloc(sizeof(*block));
	char key[64];

	(void)snprintf(key, sizeof(key), MADE_CONTEXT "#%llu", (unsigned long long)id);
	block->id = id;
	block->key = mem_strdup(key);
	block->start = block->value = start;
	block->size = size;
	block->state = state;
	made_stack(&block->allocated, "object_new", 40);
	if (state == BLOCK_FREED) {
		made_stack(&block->freed, "object_free", 77);
		block->freed_events = 12;
	}
	return block;
}

static inline void made_home(struct home *home, uint64_t id)
{
	char key[64];

	(void)snprintf(key, sizeof(key), MADE_CONTEXT "#%llu", (unsigned long long)id);
	*home = (struct home){ .kind = HOME_BLOCK,
			       .key = mem_strdup(key),
			       .block_id = id,
			       .field = mem_strdup("struct object.word"),
			       .offset = 24,
			       .len = 8,
			       .address = MADE_FIELD };
}

/* Facts about a store that go together, by what they mean to the judge. */
enum made_traits {
	MADE_FIRST = 1 << 0, /* the object's first write */
	MADE_OPENS = 1 << 1, /* the block's first write */
	MADE_FREE_INFERRED = 1 << 2,
	MADE_FREE_UNSEEN = 1 << 3,
	MADE_SOUND = 1 << 4,	/* what it left leads to a live block */
	MADE_READABLE = 1 << 5, /* … to no known block, and was read through */
	MADE_NAMED = 1 << 6,	/* through the start of its object, at a fixed place */
	MADE_PIECE = 1 << 7,	/* through a pointer into the block that was kept */
	MADE_RECYCLED = 1 << 8, /* its place was another kind of block's */
	MADE_POINTER = 1 << 9,	/* it stored the address of a block */
	MADE_PARTS = 1 << 10,	/* the field was only written in parts */
	MADE_LOOP = 1 << 11,	/* a loop moves its pointer */
	MADE_LOOP_UP = 1 << 12,
	MADE_LOOP_DOWN = 1 << 13,
	MADE_TWIN = 1 << 14, /* other places held the value */
};

static inline void made_found(struct value_found *f, unsigned int traits)
{
	if (!(traits & (MADE_SOUND | MADE_READABLE | MADE_RECYCLED | MADE_TWIN)))
		return;
	f->known = true;
	f->step = 1;
	f->steps = 2;
	f->read_by_code = !(traits & MADE_TWIN);
	f->leads = traits & MADE_SOUND	    ? LEADS_TO_LIVE
		   : traits & MADE_READABLE ? LEADS_NOWHERE
					    : LEADS_UNKNOWN;
	f->other_places = traits & MADE_TWIN ? 2 : 0;
	f->place_reused = traits & MADE_RECYCLED;
}

static inline void made_code(struct write_seen *w, unsigned int traits)
{
	if (traits & (MADE_NAMED | MADE_PIECE)) {
		bool block = w->victim != NULL;

		w->code = (struct store_code){
			.certain = true,
			.form = w->flags & WRITE_UPDATE && traits & MADE_NAMED ? FORM_MODIFY
									       : FORM_PLAIN,
			.base = block			     ? ADDRESS_POINTER
				: w->home.kind == HOME_STACK ? ADDRESS_FRAME
							     : ADDRESS_FIXED,
			.pointer = block ? w->victim->start + (traits & MADE_PIECE ? 8 : 0) : 0,
			.source = POINTER_LOADED,
		};
		w->code.displacement = (int64_t)(w->home.address - w->code.pointer);
	}
	if (traits & (MADE_LOOP | MADE_LOOP_UP | MADE_LOOP_DOWN))
		w->code.certain = true;
	w->code.motion |= (traits & MADE_LOOP ? MOTION_SOMEWHERE : 0) |
			  (traits & MADE_LOOP_UP ? MOTION_UP : 0) |
			  (traits & MADE_LOOP_DOWN ? MOTION_DOWN : 0);
}

static inline void made_traits(struct write_seen *w, unsigned int traits)
{
	made_found(&w->found, traits);
	made_code(w, traits);
	if (traits & MADE_FIRST)
		w->nth_of_object = 1;
	if (traits & MADE_OPENS)
		w->nth_of_block = 1;
	if (traits & MADE_POINTER)
		w->new_was_block = true;
	if (traits & MADE_PARTS)
		w->parts = (struct write_parts){ .known = true, .writers = 2, .covered = true };
	if (traits & (MADE_FREE_INFERRED | MADE_FREE_UNSEEN))
		w->free_basis = traits & MADE_FREE_INFERRED ? FREE_INFERRED : FREE_UNSEEN;
}

struct made_write {
	uint64_t trial;
	bool passing;
	const char *writer; /* NULL: jit_code, emitted */
	uint32_t line;
	int64_t start; /* of the store, from the field's start */
	unsigned int width;
	uint64_t old, new;	       /* 0, 0: 0x...97 -> 0x...96 */
	unsigned int flags, not_flags; /* besides WRITE_LAST | WRITE_FOUND of a failing trial */
	unsigned int traits;	       /* enum made_traits */
	int tid;
	uint64_t nth; /* with the bytes of the block: 0, 1, …, the new value, `behind` */
	uint8_t behind;
};

static inline void made_bytes(struct block_bytes *block, const struct made_write *made,
			      uint64_t new)
{
	uint8_t bytes[56];

	for (uint8_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = i;
	memcpy(bytes + 24, &new, sizeof(new));
	bytes[48] = made->behind;
	strbuf_add(&block->bytes, bytes, sizeof(bytes));
	block->nth = made->nth;
}

static inline struct evidence made_write(struct made_write made)
{
	struct evidence e = evidence_new(EVIDENCE_WRITE, made.trial, !made.passing);
	struct write_seen *w = e.write;

	made_home(&w->home, 1000 + made.trial);
	w->victim = made_block(1000 + made.trial, MADE_BLOCK, 56, BLOCK_LIVE);
	w->base = made_block(1000 + made.trial, MADE_BLOCK, 56, BLOCK_LIVE);
	w->instruction = mem_strdup(made.width == 1 ? "and byte ptr [rbx+0x18], 0xfe"
						    : "mov qword ptr [rbx+0x18], rax");
	w->width = made.width ? made.width : 8;
	w->store_len = w->width;
	w->store_start = MADE_FIELD + (uint64_t)made.start;
	w->fit = store_fit_of(w->store_start, w->store_len, MADE_FIELD, 8);
	w->old = made.old || made.new ? made.old : 0x7f0000000097;
	w->new = made.old || made.new ? made.new : 0x7f0000000096;
	w->value_len = 8;
	w->flags = (made.passing ? 0 : (unsigned int)(WRITE_LAST | WRITE_FOUND)) | made.flags;
	w->flags &= ~made.not_flags;
	if (made.writer)
		made_stack(&w->writer, made.writer, made.line ? made.line : 31);
	else
		made_frame(&w->writer, "jit_code", NULL, 0, FRAME_JIT);
	if (!made.writer)
		made_frame(&w->writer, "run_loop", "/opt/app/src/loop.c", 210, FRAME_NATIVE);
	w->tid = made.tid ? made.tid : 100;
	w->when_ns = 5000000;
	w->age = 7;
	made_traits(w, made.traits);
	if (made.nth > 0)
		made_bytes(&w->block, &made, w->new);
	return e;
}

static inline struct evidence made_watch(uint64_t trial, uint64_t hits)
{
	struct evidence e = evidence_new(EVIDENCE_WATCH, trial, true);

	made_home(&e.watch->home, 1000 + trial);
	e.watch->victim = made_block(1000 + trial, MADE_BLOCK, 56, BLOCK_LIVE);
	e.watch->mode = mem_strdup("hw");
	e.watch->victim_watched = e.watch->since_birth = e.watch->kernel_writes = true;
	e.watch->hits = hits;
	e.watch->threads = hits > 0;
	return e;
}

static inline struct evidence made_crash(uint64_t trial, enum fault_class fault)
{
	struct evidence e = evidence_new(EVIDENCE_CRASH, trial, true);
	struct crash *c = e.crash;

	c->pid = c->tid = 100;
	c->signal = fault == FAULT_MAPPING_SHRANK ? 7 : 11;
	c->program = mem_strdup("/opt/app/bin/app");
	c->command = mem_strdup("app --bench");
	c->address = 0xab;
	c->fault = fault;
	said_as_text(&c->words, "SIGSEGV reading 0xab, 171 bytes from NULL");
	c->instruction = mem_strdup("mov rax, qword ptr [rdi+0xab]");
	c->origin = mem_strdup("mov rdi, qword ptr [rbx+0x18]");
	made_stack(&c->stack, "dict_set_item", 88);
	VEC_PUSH(&c->blocks, ((struct block_life){ .via = mem_strdup("rbx"),
						   .value = MADE_BLOCK,
						   .id = 1000 + trial,
						   .key = mem_strdup(MADE_CONTEXT "#7"),
						   .start = MADE_BLOCK,
						   .size = 56,
						   .telling = true }));
	made_stack(&c->blocks.items[0].allocated, "object_new", 40);
	c->write = true;
	c->register_count = 2;
	(void)strcpy(c->registers[0].name, "rax");
	(void)strcpy(c->registers[1].name, "rdi");
	c->registers[1].value = 0;
	return e;
}

static inline struct evidence made_outside(uint64_t trial, uint64_t old, uint64_t new)
{
	struct evidence e = evidence_new(EVIDENCE_OUTSIDE, trial, true);

	made_home(&e.outside->home, 1000 + trial);
	e.outside->victim = made_block(1000 + trial, MADE_BLOCK, 56, BLOCK_LIVE);
	e.outside->old = old;
	e.outside->new = new;
	e.outside->value_len = 8;
	e.outside->kernel_writes = true;
	said_as_text(said_new(&e.outside->between), "read(5)");
	return e;
}

static inline struct evidence made_conflation(uint64_t trial, uint64_t first, uint64_t second)
{
	struct evidence e = evidence_new(EVIDENCE_CONFLATION, trial, true);
	struct conflation_seen *c = e.conflation;

	c->address = MADE_BLOCK;
	c->offset = 24;
	c->first_id = first;
	c->second_id = second;
	c->first_key = mem_strdup(MADE_CONTEXT "#1");
	c->second_key = mem_strdup(MADE_CONTEXT "#2");
	c->first_value = 0x97;
	c->second_value = 0x96;
	c->value_len = 8;
	c->first = made_block(first, MADE_BLOCK, 56, BLOCK_FREED);
	c->second = made_block(second, MADE_BLOCK, 56, BLOCK_LIVE);
	c->watched = true;
	return e;
}

static inline struct evidence made_freed_use(uint64_t trial, bool write)
{
	struct evidence e = evidence_new(EVIDENCE_FREED_USE, trial, true);

	e.freed_use->block = made_block(1000 + trial, MADE_BLOCK, 56, BLOCK_FREED);
	e.freed_use->block->poison = true;
	e.freed_use->offset = 24;
	e.freed_use->write = write;
	e.freed_use->instruction = mem_strdup("mov rax, qword ptr [rbx+0x18]");
	made_stack(&e.freed_use->user, "clone_statement", 348);
	return e;
}

/* A read right behind a live block, seen at a fence. */
static inline struct evidence made_over_read(uint64_t trial)
{
	struct evidence e = evidence_new(EVIDENCE_OVER_READ, trial, true);

	e.freed_use->block = made_block(1000 + trial, MADE_BLOCK, 56, BLOCK_LIVE);
	e.freed_use->offset = 56;
	e.freed_use->width = 8;
	e.freed_use->fenced = true;
	e.freed_use->instruction = mem_strdup("mov rax, qword ptr [rbx+0x38]");
	made_stack(&e.freed_use->user, "row_sum", 71);
	return e;
}

static inline struct evidence made_holder(uint64_t trial, bool used)
{
	struct evidence e = evidence_new(EVIDENCE_HOLDER, trial, true);
	struct holder_seen *h = e.holder;

	made_home(&h->home, 2000 + trial);
	h->home.field[0] = 'S'; /* another one */
	h->holder = made_block(2000 + trial, 0x600000, 48, BLOCK_LIVE);
	h->target = made_block(1000 + trial, MADE_BLOCK, 56, BLOCK_FREED);
	made_stack(&h->written_by, "container_swap", 70);
	h->used = used;
	h->exact = true;
	return e;
}

static inline struct evidence made_bad_free(uint64_t trial, enum bad_free_kind kind)
{
	struct evidence e = evidence_new(EVIDENCE_BAD_FREE, trial, true);

	e.bad_free->kind = kind;
	e.bad_free->pointer = MADE_BLOCK;
	if (kind != BAD_FREE_FOREIGN)
		e.bad_free->block = made_block(1000 + trial, MADE_BLOCK, 56,
					       kind == BAD_FREE_DOUBLE ? BLOCK_FREED : BLOCK_LIVE);
	made_stack(&e.bad_free->second, "cache_drop", 55);
	if (kind == BAD_FREE_MISMATCHED)
		e.bad_free->how = mem_strdup("operator new, then free");
	return e;
}

static inline struct evidence made_canary(uint64_t trial, enum canary_side side)
{
	struct evidence e = evidence_new(EVIDENCE_CANARY, trial, true);
	struct canary_broken *c = e.canary;

	c->side = side;
	c->block = made_block(1000 + trial, MADE_BLOCK, 56,
			      side == CANARY_FREED ? BLOCK_FREED : BLOCK_LIVE);
	c->offset = side == CANARY_AFTER ? 56 : side == CANARY_BEFORE ? -1 : 24;
	c->len = 1;
	strbuf_add(&c->expected, "\xfd\0\xfd", 3);
	strbuf_add(&c->found, "A\0\xfd", 3);
	c->last_whole = mem_strdup("test_add");
	c->first_broken = mem_strdup("test_mul");
	return e;
}

static inline struct evidence made_mapping(uint64_t trial, bool cut_seen)
{
	struct evidence e = evidence_new(EVIDENCE_MAPPING, trial, true);

	e.mapping->file = mem_strdup("/opt/app/cache/kernel.bin");
	e.mapping->mapped = 8192;
	e.mapping->present = 100;
	made_stack(&e.mapping->user, "cache_lookup", 120);
	if (cut_seen) {
		e.mapping->cut = mem_alloc(sizeof(*e.mapping->cut));
		e.mapping->cut->trial = trial + 1;
		e.mapping->cut->pid = 4711;
		e.mapping->cut->program = mem_strdup("/opt/app/bin/app");
		e.mapping->cut->how = mem_strdup("ftruncate");
		e.mapping->cut->old_size = 8192;
		e.mapping->cut->new_size = 0;
		e.mapping->cut->before_s = 0.25;
		made_stack(&e.mapping->cut->stack, "cache_store", 64);
	}
	return e;
}

static inline struct evidence made_growth(void)
{
	struct evidence e = evidence_new(EVIDENCE_GROWTH, 0, false);

	e.growth->key = mem_strdup("beef");
	made_stack(&e.growth->site, "group_new", 12);
	e.growth->blocks_per_test = 3.5;
	e.growth->bytes_per_test = 448;
	e.growth->p = 1e-9;
	e.growth->tests = 40;
	e.growth->rises = 39;
	e.growth->trials = e.growth->usable = 3;
	said_as_text(&e.growth->holder, "global segment_cache");
	for (uint64_t level = 2; level <= 142; level += 35)
		VEC_PUSH(&e.growth->levels, level);
	return e;
}

static inline struct evidence made_odds(uint64_t trial, unsigned int bytes)
{
	struct evidence e = evidence_new(EVIDENCE_ODDS, trial, true);

	made_home(&e.odds->home, 1001);
	e.odds->home.len = bytes;
	made_stack(&e.odds->allocated, "object_new", 40);
	e.odds->garbage = e.odds->garbage_failed = 21;
	e.odds->zeroed = 19;
	e.odds->zeroed_failed = 1;
	e.odds->p = 1e-8;
	return e;
}

static inline struct evidence made_reported(uint64_t trial, enum reported_kind kind)
{
	struct evidence e = evidence_new(EVIDENCE_REPORTED, trial, true);

	e.reported->kind = kind;
	e.reported->tool = mem_strdup("AddressSanitizer");
	e.reported->what = mem_strdup("heap-use-after-free");
	e.reported->write = kind != REPORTED_FREED_USE && kind != REPORTED_OVER_READ;
	e.reported->width = 4;
	e.reported->offset = 8;
	e.reported->block = made_block(7, 0x603000, 32, BLOCK_FREED);
	made_stack(&e.reported->user, "object_use", 61);
	made_stack(&e.reported->other, "object_add", 62);
	return e;
}

static inline struct evidence made_race(uint64_t trial, bool lost)
{
	struct evidence e = evidence_new(EVIDENCE_RACE, trial, true);
	struct evidence first = made_write((struct made_write){
		.trial = trial, .writer = "object_ref", .old = 1, .new = 2, .tid = 100 });
	struct evidence second = made_write((struct made_write){
		.trial = trial, .writer = "object_unref", .old = 2, .new = 2, .tid = 101 });

	made_home(&e.race->home, 1000 + trial);
	e.race->victim = made_block(1000 + trial, MADE_BLOCK, 56, BLOCK_LIVE);
	e.race->first = first.write;
	e.race->second = second.write;
	e.race->gap_ns = 340;
	e.race->lost_update = lost;
	if (lost) {
		e.race->read = made_write((struct made_write){ .trial = trial,
							       .writer = "object_unref",
							       .old = 1,
							       .new = 1,
							       .tid = 101 })
				       .write;
		e.race->read->when_ns = 1000;
		e.race->first->when_ns = 1500;
	}
	return e;
}

static inline struct evidence made_host(void)
{
	struct evidence e = evidence_new(EVIDENCE_HOST, 0, true);

	*e.host = (struct host_signs){ .core = -1, .core_p = 1 };
	return e;
}

/* A failure that is no fault: of every run, or of some. */
static inline struct evidence made_failure(bool always)
{
	struct evidence e = evidence_new(EVIDENCE_FAILURE, 3, true);

	(void)strcpy(e.failure->signature, "0123456789");
	e.failure->kind = FAILURE_TEST;
	e.failure->always = always;
	e.failure->summary = mem_strdup("test_schedule says FAILED, exit status 1");
	e.failure->trials = 40;
	e.failure->failed = always ? 40 : 17;
	e.failure->ran = 52;
	e.failure->ran_failed = e.failure->failed;
	return e;
}

/* What the faulting instruction could not use: 0, read from the field that is watched. */
static inline struct evidence made_fault_value(uint64_t trial, bool divisor)
{
	struct evidence e = evidence_new(EVIDENCE_FAULT_VALUE, trial, true);

	e.fault_value->divisor = divisor;
	e.fault_value->source = POINTER_LOADED;
	made_home(&e.fault_value->home, 1000 + trial);
	return e;
}

/* Two functions took and gave back references; `get` gave back more than it took. */
static inline struct evidence made_account(uint64_t trial)
{
	struct evidence e = evidence_new(EVIDENCE_ACCOUNT, trial, true);

	made_home(&e.account->home, 1000 + trial);
	e.account->block = made_block(1000 + trial, MADE_BLOCK, 56, BLOCK_FREED);
	VEC_PUSH(&e.account->parties, ((struct reference_party){ .taken = 1, .given = 1 }));
	VEC_PUSH(&e.account->parties, ((struct reference_party){ .taken = 0, .given = 2 }));
	made_stack(&e.account->parties.items[0].at, "serve", 12);
	made_stack(&e.account->parties.items[1].at, "get", 7);
	return e;
}

/* An experiment that saw nothing in so many failing trials. */
static inline struct evidence made_experiment(enum experiment_kind kind, uint64_t telling)
{
	struct evidence e = evidence_new(EVIDENCE_EXPERIMENT, 0, false);

	*e.experiment = (struct experiment_made){
		.kind = kind, .trials = telling + 2, .telling = telling, .coverage = 1
	};
	return e;
}

static inline struct evidence made_hop(unsigned int number, uint64_t caught, uint64_t watched,
				       uint64_t trials)
{
	struct evidence e = evidence_new(EVIDENCE_HOP, 0, true);

	e.hop->number = number;
	made_home(&e.hop->home, 1001);
	e.hop->caught = caught;
	e.hop->watched = watched;
	e.hop->trials = trials;
	e.hop->key_right = watched;
	e.hop->key_tried = watched;
	e.hop->end = HOP_ORIGIN;
	e.hop->inferred = mem_strdup("the value was made here");
	VEC_PUSH(&e.hop->evidence, 1);
	VEC_PUSH(&e.hop->evidence, 2);
	return e;
}

/* One of each kind, with every part of it filled in. */
static inline struct evidence made_any(enum evidence_kind kind)
{
	struct evidence e;

	switch (kind) {
	case EVIDENCE_CRASH:
		return made_crash(3, FAULT_NULL);
	case EVIDENCE_SIGHTING:
		e = made_write((struct made_write){ .trial = 3, .width = 1 });
		e.kind = EVIDENCE_SIGHTING;
		return e;
	case EVIDENCE_WRITE:
		e = made_write((struct made_write){ .trial = 3, .width = 1 });
		made_home(&e.write->source, 77);
		e.write->source_state = SOURCE_TORN;
		e.write->flags |= WRITE_COPIED;
		e.write->target = made_block(5, 0x700000, 16, BLOCK_FREED);
		e.write->thread = mem_strdup("worker");
		return e;
	case EVIDENCE_WATCH:
		return made_watch(3, 5);
	case EVIDENCE_OUTSIDE:
		return made_outside(3, 1, 3);
	case EVIDENCE_CONFLATION:
		return made_conflation(3, 10, 11);
	case EVIDENCE_FREED_USE:
		return made_freed_use(3, true);
	case EVIDENCE_OVER_READ:
		return made_over_read(3);
	case EVIDENCE_HOLDER:
		return made_holder(3, true);
	case EVIDENCE_BAD_FREE:
		return made_bad_free(3, BAD_FREE_MISMATCHED);
	case EVIDENCE_CANARY:
		return made_canary(3, CANARY_AFTER);
	case EVIDENCE_MAPPING:
		return made_mapping(3, true);
	case EVIDENCE_GROWTH:
		return made_growth();
	case EVIDENCE_RACE:
		return made_race(3, true);
	case EVIDENCE_HOST:
		return made_host();
	case EVIDENCE_FAILURE:
		return made_failure(true);
	case EVIDENCE_EXPERIMENT:
		return made_experiment(EXPERIMENT_GUARDS, 6);
	case EVIDENCE_ODDS:
		return made_odds(3, 8);
	case EVIDENCE_ACCOUNT:
		return made_account(3);
	case EVIDENCE_FAULT_VALUE:
		e = made_fault_value(3, true);
		e.fault_value->returned_by = mem_strdup("find");
		return e;
	case EVIDENCE_REPORTED:
		return made_reported(3, REPORTED_FREED_WRITE);
	default:
		return made_hop(1, 3, 3, 41);
	}
}
