#pragma once

#include "base/strbuf.h"
#include "model/evidence.h"
#include "model/said.h"
#include "model/verdict.h"
#include "model/watch_report.h"

/*
 * The words for what was found out: every sentence of a verdict, of evidence, of a ledger. A row
 * each in words_*.c.
 *
 *	{0}          the first value; {0:x} in hexadecimal, {0:.1f} a real number,
 *	{0:s}        "s" unless it is 1,
 *	{0?a|b}      a where there is such a value and it is not 0, else b (or nothing),
 *	{1*, }       all values from there on, with ", " between them,
 *	[; by {2}]   left out where a value in it is not known,
 *	\            before any of these signs: the sign itself.
 */
struct sentence_row {
	const char *id, *text;
};

extern const struct sentence_row words_verdict[], words_doubts[], words_ledger[],
	words_evidence_rows[], words_faults[], words_hunt[], words_notes[];
extern const size_t words_verdict_count, words_doubts_count, words_ledger_count,
	words_evidence_count, words_faults_count, words_hunt_count, words_notes_count;

/* The text behind an id; NULL: there is none. */
const char *words_text(const char *id);

/* The text behind "KIND:NAME". */
const char *words_named(const char *kind, const char *name);

/* As the beginning of a sentence. A name of the program's stays as it is; that of a field begins
 * with its kind. */
void words_capital(char *text);

/* Adds the sentence; nothing where nothing is said. */
void words_add(const struct said *said, struct strbuf *sb);

/* The sentence; NULL where nothing is said. The caller's to free. */
char *words_of(const struct said *said);

/* The same for a page, which has files and lines elsewhere: functions by their name alone, fields
 * as words_field() tells them. */
char *words_plainly(const struct said *said);

/* A text of its own for each. */
void words_list(const struct said_list *list, struct strv *ret);

/* One sentence about a piece of evidence, the same in every report. */
void words_evidence(const struct evidence *evidence, struct strbuf *sb);
char *words_evidence_plainly(const struct evidence *evidence);

/* "struct object.word (block K, offset 8, 8 bytes)". */
void words_home(const struct home *home, struct strbuf *sb);

/* "struct object.word", "the 8 bytes at offset 24 of a block": without what finds it in another
 * run. */
void words_field(const struct home *home, struct strbuf *sb);

/* "not tested". */
const char *words_status(enum ledger_status status);

/* One observation may decide several: the entry at which its reason is told, that of what is
 * confirmed before all others. */
const struct ledger_entry *words_because_of(const struct verdict *verdict,
					    const struct ledger_entry *h);

/* "narrower than the field"; NULL: not known. */
const char *words_fit(enum store_fit fit);

/* "a freed block is used". */
const char *words_class(enum verdict_class class);
/* The same, as it is true of this one: variables of functions are no blocks. */
const char *words_verdict_of(const struct verdict *v);

/* "handed out again": how the time ended for which an object was watched. */
const char *words_watched_end(enum log_watched_end end);

/* "guards around blocks". */
const char *words_experiment(enum experiment_kind kind);
