/*
 * The one place where text becomes HTML.
 */
#include "report/page/html.h"

#include <assert.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>

#include "base/auto.h"
#include "base/mem.h"
#include "base/strbuf.h"
#include "model/known_secrets.h"
#include "page_css.h"
#include "page_js.h"

#define DEPTH_MAX 64

struct html {
	FILE *out;
	const struct share *share;
	const char *root;
	const char *open[DEPTH_MAX];
	unsigned int depth;
};

static const struct {
	const char *tag, *text, *hash;
} assets[] = {
	[ASSET_STYLE] = { "style", page_css, "'sha256-" page_css_sha256 "'" },
	[ASSET_SCRIPT] = { "script", page_js, "'sha256-" page_js_sha256 "'" },
};

struct html *html_new(FILE *out, const struct share *share, const char *root)
{
	struct html *h = mem_alloc(sizeof(*h));

	*h = (struct html){ .out = out, .share = share, .root = root };
	return h;
}

void html_free(struct html *h)
{
	assert(h->depth == 0);
	mem_free(h);
}

int html_shared(const struct html *h)
{
	return h->share != NULL;
}

void html_doctype(struct html *h)
{
	(void)fputs("<!doctype html>\n", h->out);
}

/* Names are literals of ours; a mistake must not wait for a hostile program to be seen. */
static void put_name(struct html *h, const char *name)
{
	static const char letters[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-0123456789";

	assert(name[0] != '\0' && name[strspn(name, letters)] == '\0');
	(void)fputs(name, h->out);
}

/* Where text is read from left to right, nothing may turn that around: the marks of Unicode for it
 * (U+202A to U+202E, U+2066 to U+2069) are three bytes each. */
static bool turns_around(const unsigned char *at)
{
	return at[0] == 0xe2 && ((at[1] == 0x80 && at[2] >= 0xaa && at[2] <= 0xae) ||
				 (at[1] == 0x81 && at[2] >= 0xa6 && at[2] <= 0xa9));
}

static void put_escaped(struct html *h, const char *text)
{
	for (const unsigned char *at = (const unsigned char *)text; *at != '\0'; at++) {
		switch (*at) {
		case '<':
			(void)fputs("&lt;", h->out);
			break;
		case '>':
			(void)fputs("&gt;", h->out);
			break;
		case '&':
			(void)fputs("&amp;", h->out);
			break;
		case '"':
			(void)fputs("&quot;", h->out);
			break;
		case '\'':
			(void)fputs("&#39;", h->out);
			break;
		default:
			if (turns_around(at)) {
				(void)fprintf(h->out, "\\x%02x\\x%02x\\x%02x", at[0], at[1], at[2]);
				at += 2;
			} else {
				(void)fputc(*at, h->out);
			}
		}
	}
}

/* Lines stay lines; other controls and broken UTF-8 become \xNN. */
static char *printable(const char *text)
{
	struct strbuf sb = { 0 };

	while (*text != '\0') {
		size_t len = strcspn(text, "\n\t");

		strbuf_add_printable(&sb, text, len);
		text += len;
		if (*text != '\0')
			strbuf_addc(&sb, *text++);
	}
	return strbuf_take(&sb);
}

static bool continues_path(char c)
{
	return c == '/' || c == '.' || c == '-' || c == '_' || (c >= '0' && c <= '9') ||
	       (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* The project's own files are named from its root. */
static char *from_root(const char *text, const char *root)
{
	size_t len = root ? strlen(root) : 0;
	struct strbuf sb = { 0 };
	bool inside = false;

	if (len < 2)
		return mem_strdup(text);
	while (*text != '\0') {
		if (!inside && strncmp(text, root, len) == 0 && text[len] == '/' &&
		    text[len + 1] > ' ') {
			text += len + 1;
			inside = true;
			continue;
		}
		inside = continues_path(*text);
		strbuf_addc(&sb, *text++);
	}
	return strbuf_take(&sb);
}

/* `root`: what is left out in front of paths; NULL: nothing. */
static void put_text(struct html *h, const char *text, const char *root)
{
	AUTO(mem_freep) char *shared = h->share ? share_text(h->share, text) : NULL;
	AUTO(mem_freep) char *named = from_root(shared ? shared : text, root);
	AUTO(mem_freep) char *shown = NULL;

	if (named) {
		secret_hide(named, strlen(named));
		shown = printable(named);
	}
	if (shown)
		put_escaped(h, shown);
}

/* What could load something, run something, or lead away. */
static bool attribute_allowed(const char *name, const char *value)
{
	if (strcmp(name, "href") == 0)
		return value[0] == '#';
	return strncmp(name, "on", 2) != 0 && strcmp(name, "style") != 0 &&
	       strcmp(name, "src") != 0 && strcmp(name, "srcdoc") != 0 &&
	       strcmp(name, "action") != 0;
}

static void put_tag(struct html *h, const char *tag, va_list args)
{
	const char *name;

	(void)fputc('<', h->out);
	put_name(h, tag);
	while ((name = va_arg(args, const char *)) != NULL) {
		const char *value = va_arg(args, const char *);

		if (!value)
			continue;
		assert(attribute_allowed(name, value));
		(void)fputc(' ', h->out);
		put_name(h, name);
		(void)fputs("=\"", h->out);
		put_text(h, value, NULL);
		(void)fputc('"', h->out);
	}
}

void el(struct html *h, const char *tag, ...)
{
	va_list args;

	assert(h->depth < DEPTH_MAX);
	h->open[h->depth++] = tag;
	va_start(args, tag);
	put_tag(h, tag, args);
	va_end(args);
	(void)fputc('>', h->out);
}

void leaf(struct html *h, const char *tag, ...)
{
	va_list args;

	va_start(args, tag);
	put_tag(h, tag, args);
	va_end(args);
	(void)fputs("/>", h->out);
}

/* A line of its own for what a person who reads the source would want there. */
static bool ends_line(const char *tag)
{
	static const char *const tags[] = {
		"section", "p",	  "li",	 "tr", "h1", "h2",	"h3",
		"div",	   "svg", "pre", "ul", "ol", "details", "head"
	};

	for (size_t i = 0; i < ARRAY_SIZE(tags); i++)
		if (strcmp(tags[i], tag) == 0)
			return true;
	return false;
}

void el_end(struct html *h)
{
	const char *tag;

	assert(h->depth > 0);
	tag = h->open[--h->depth];
	(void)fputs("</", h->out);
	put_name(h, tag);
	(void)fputs(ends_line(tag) ? ">\n" : ">", h->out);
}

void txt(struct html *h, const char *text)
{
	if (text)
		put_text(h, text, h->root);
}

void txt_exact(struct html *h, const char *text)
{
	put_text(h, text, NULL);
}

void el_txt(struct html *h, const char *tag, const char *class, const char *text)
{
	el_of(h, text, tag, "class", class, NULL);
}

void el_link_to(struct html *h, const char *class, const char *text, const char *href)
{
	el_of(h, text, "a", "class", class, "href", href, NULL);
}

void html_asset(struct html *h, enum html_asset asset)
{
	(void)fprintf(h->out, "<%s>%s</%s>\n", assets[asset].tag, assets[asset].text,
		      assets[asset].tag);
}

const char *html_asset_hash(enum html_asset asset)
{
	return assets[asset].hash;
}
