#pragma once

#include <stdio.h>

#include "base/auto.h"
#include "base/mem.h"
#include "report/share.h"

/*
 * HTML, written element by element. Private to report/.
 *
 * Nothing that comes through here can become markup: there is no function for raw text. Texts and
 * values of attributes are escaped, characters that a browser or a reader could be fooled by
 * (controls, broken UTF-8, changes of the writing direction) are spelled out, links lead to places
 * of the same page only, and names of elements and attributes are our own, which is asserted:
 * `style`, `src` and handlers of events are none of them.
 */
struct html;

/* Does something with a text that is put together: `text_`. */
#define WITH_TEXT(what, ...)                                           \
	({                                                             \
		AUTO(mem_freep) char *text_ = mem_printf(__VA_ARGS__); \
		what;                                                  \
	})

/* A document that goes to `out`. `share`: what is left out of every text; NULL: nothing. `root`:
 * the project's, left out in front of paths; NULL. Both are kept, not copied. */
struct html *html_new(FILE *out, const struct share *share, const char *root);

/* Everything must have been closed. */
void html_free(struct html *h);

/* <!doctype html>. */
void html_doctype(struct html *h);

/* Opens an element with its attributes: names and values by turns, NULL at the end. An attribute
 * whose value is NULL is left out. */
void el(struct html *h, const char *tag, ...) __attribute__((sentinel));

/* A whole one: a text, and the element around it. */
#define el_of(h, text, ...)         \
	do {                        \
		el(h, __VA_ARGS__); \
		txt(h, text);       \
		el_end(h);          \
	} while (0)

/* The same, of one that has no contents and needs no end. */
void leaf(struct html *h, const char *tag, ...) __attribute__((sentinel));

/* Closes the element that was opened last. */
void el_end(struct html *h);

/* Text, escaped; NULL is nothing. */
void txt(struct html *h, const char *text);
/* With paths as they are: what will be pasted. */
void txt_exact(struct html *h, const char *text);
#define txtf(h, ...) WITH_TEXT(txt(h, text_), __VA_ARGS__)

/* An element that holds nothing but this text; `class` may be NULL. */
void el_txt(struct html *h, const char *tag, const char *class, const char *text);
#define el_txtf(h, tag, class, ...) WITH_TEXT(el_txt(h, tag, class, text_), __VA_ARGS__)

/* A link to a place of this page: "#…". */
void el_link_to(struct html *h, const char *class, const char *text, const char *href);
#define el_link(h, class, text, ...) WITH_TEXT(el_link_to(h, class, text, text_), __VA_ARGS__)

/* What is embedded at build time: the whole contents of <style> or <script>, by their names. */
enum html_asset { ASSET_STYLE, ASSET_SCRIPT };
void html_asset(struct html *h, enum html_asset asset);

/* As Content-Security-Policy has them: "'sha256-…'". */
const char *html_asset_hash(enum html_asset asset);

/* Are memory contents left out? */
int html_shared(const struct html *h);
