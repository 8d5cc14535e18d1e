#pragma once

#include "judge/facts.h"
#include "model/verdict.h"

/*
 * What the raw evidence about one caught store means: where it lies, whose pointer it went through,
 * what it left, what the same instruction did before. Private to judge/.
 *
 * Each function answers one question and decides nothing. Whether the answer speaks for or against
 * a verdict stands in considerations.c.
 */

bool block_is_freed(const struct block_life *block);

/* It hit a guard: the field lies beside its own block. */
bool store_on_guard(const struct write_seen *w);

/* The block that the store's pointer belongs to; NULL where the pointer says nothing. */
const struct block_life *store_meant_block(const struct write_seen *w);

/* Overflow or underflow of a live block; VERDICT_NOT_CAUGHT: the store lies inside. */
enum verdict_class store_beside(const struct block_life *block, uint64_t start, uint64_t len);

/* The class by place alone, freed blocks left aside: overflow, underflow, wide, narrow. */
enum verdict_class store_on_live_block(const struct write_seen *w);

/* The same with freed blocks. */
enum verdict_class store_by_place(const struct write_seen *w);

/* From the end of the block that was meant to the store, or from the store to its start. */
uint64_t store_distance(const struct write_seen *w);

/* A loop moves its pointer on; upwards; downwards. */
bool store_in_loop(const struct write_seen *w);
bool store_loops_up(const struct write_seen *w);
bool store_loops_down(const struct write_seen *w);

/* The place in the object is fixed in the code, and the pointer was to the object's start: whoever
 * writes so means the field. */
bool store_names_field(const struct write_seen *w);

/* The pointer was to an object that begins inside the block. */
bool store_in_piece(const struct write_seen *w);

/* The block is so large that the program may deal out pieces of it. */
bool store_may_be_dealt_out(const struct write_seen *w);

/* It may have come out of a neighbour: a loop moves the pointer, or it wrote a few bytes in the
 * middle of a field. */
bool store_may_have_run(const struct write_seen *w);

/* One vector store of memcpy(), strcpy() and the like: its width says nothing. */
bool store_in_copy(const struct write_seen *w);

/* It wrote the whole block. */
bool store_covers_block(const struct write_seen *w);

/* It set the whole field to NULL, or to all bits. */
bool store_clears_field(const struct write_seen *w);

/* Did it change a part of a pointer, so that it leads elsewhere? */
bool store_bends_pointer(const struct write_seen *w);

/* What stood in the home at the failure is as it should be: a pointer to a live block, a function's
 * own variable, something that the reader came upon by mistake. `w` is who wrote it; NULL: nobody
 * was caught. */
bool value_is_right(const struct value_found *found, const struct write_seen *w);

/* The same of what this store left. */
bool store_leaves_live_pointer(const struct write_seen *w);

/* What it left is an address that could be read at the failure, in no known block. */
bool store_leaves_readable(const struct write_seen *w);

/* What it left was the address of a block at the time of the store. */
bool store_leaves_block_address(const struct write_seen *w);

/* It gave the field its first value; nobody had written there since the block's birth, which was
 * watched. */
bool store_is_first(const struct write_seen *w);

/* Read, changed and written back. */
bool store_is_update(const struct write_seen *w);

/* In this block's life the field was only ever written in parts. */
bool store_by_parts(const struct write_seen *w);

/* It filled its own new block. */
bool store_fills_own_block(const struct write_seen *w);

/* Another kind of block had the place before. */
bool store_place_recycled(const struct write_seen *w);

/* The field was found by the value that stands there, and other places held that value as well. */
bool store_has_twin(const struct write_seen *w);

/* That the block had been freed is inferred, or cannot be known. */
bool store_free_inferred(const struct write_seen *w);
bool store_free_unknown(const struct write_seen *w);

/* A whole address was stored, and the failure found nothing mapped there: something may have been
 * mapped there at the time of the store. */
bool store_target_unmapped(const struct facts *facts, const struct evidence *write);

#define REPEATED 3 /* times that are no accident */

/* How often the same instruction left a non-pointer there without a failure, in place of the same
 * kind of value as this time; in this trial or another. */
uint64_t store_repeats(const struct evidence_list *list, const struct evidence *write);

/* REPEATED times, and no pointer stood there before: the field holds a number. */
bool repeats_with_numbers(const struct evidence_list *list, const struct evidence *write);

/* It replaced a non-pointer that it had not put there itself. */
bool store_over_number(const struct evidence_list *list, const struct evidence *write);

/* In two trials that passed, somebody put a non-pointer into that field. */
bool store_numbers_pass(const struct evidence_list *list, const struct evidence *write);

/* The wrong free whose pointer this store left in its place; NULL: it is none's. */
const struct bad_free *store_of_freed(const struct facts *facts, const struct evidence *write);

/* Did it move a pointer to the block, the only one that the program kept, so that the free was
 * wrong? */
bool store_moves_freed(const struct facts *facts, const struct evidence *write);
