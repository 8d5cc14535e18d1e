/*
 * From statements to sentences. See wording.h.
 */
#include "report/wording.h"

#include "base/cstr.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const struct {
	const struct sentence_row *rows;
	const size_t *count;
} tables[] = {
	{ words_verdict, &words_verdict_count }, { words_doubts, &words_doubts_count },
	{ words_ledger, &words_ledger_count },	 { words_evidence_rows, &words_evidence_count },
	{ words_faults, &words_faults_count },	 { words_hunt, &words_hunt_count },
	{ words_notes, &words_notes_count },
};

const char *words_text(const char *id)
{
	for (size_t i = 0; i < ARRAY_SIZE(tables); i++)
		for (size_t j = 0; j < *tables[i].count; j++)
			if (strcmp(tables[i].rows[j].id, id) == 0)
				return tables[i].rows[j].text;
	return NULL;
}

const char *words_named(const char *kind, const char *name)
{
	AUTO(mem_freep) char *id = mem_printf("%s:%s", kind, name);

	return words_text(id);
}

const char *words_fit(enum store_fit fit)
{
	static const char *const words[FIT_KINDS] = { [FIT_NARROW] = "narrower than the field",
						      [FIT_EXACT] = "as wide as the field",
						      [FIT_WIDE] = "wider than the field" };

	return fit < FIT_KINDS ? words[fit] : NULL;
}

void words_capital(char *text)
{
	size_t len = text ? strspn(text, "abcdefghijklmnopqrstuvwxyz") : 0;
	const char *rest = text ? text + len + (strspn(text + len, ":,") == 1) : NULL;

	if (len > 0 && (*rest == '\0' || (*rest == ' ' && rest[1] != '(')) &&
	    strncmp(text, "struct ", 7) != 0 && strncmp(text, "union ", 6) != 0)
		text[0] = (char)(text[0] - 'a' + 'A');
}

static bool is_known(const struct said_value *value)
{
	return value && value->kind != SAID_NONE && (value->kind != SAID_SITE || value->text);
}

static bool is_true(const struct said_value *value)
{
	return is_known(value) && (value->kind > SAID_REAL || value->number != 0);
}

static void add_real(struct strbuf *sb, double value, const char *spec)
{
	int digits = spec[0] == '.' ? (int)strtol(spec + 1, NULL, 10) : 6;

	if (strchr(spec, 'f'))
		strbuf_addf(sb, "%.*f", digits, value);
	else
		strbuf_addf(sb, "%.*g", digits, value);
}

struct pen {
	const struct said *said;
	struct strbuf *sb;
	bool missing; /* a value that was asked for is not known */
	bool plain;   /* without file and line, or what finds a block in another run */
};

static void add_said(const struct said *said, struct strbuf *sb, bool plain);

/* "rehome (src/container.c:68)"; plainly the name alone, where there is one. */
static void add_site(const struct pen *pen, const char *site)
{
	const char *place = pen->plain ? strrchr(site, '(') : NULL;
	const char *line = place ? strrchr(place, ':') : NULL;
	bool is_place = line && strspn(line + 1, "0123456789") + 2 == strlen(line) &&
			place - site > 1 && place[-1] == ' ';

	strbuf_add(pen->sb, site, is_place ? (size_t)(place - 1 - site) : strlen(site));
}

static void add_value(const struct pen *pen, const struct said_value *value, const char *spec)
{
	struct strbuf *sb = pen->sb;

	if (spec[0] == 's') {
		strbuf_adds(sb, value->number == 1 ? "" : "s");
		return;
	}
	switch (value->kind) {
	case SAID_NUMBER:
		strbuf_addf(sb, spec[0] == 'x' ? "0x%" PRIx64 : "%" PRIu64, value->number);
		break;
	case SAID_SIGNED:
		strbuf_addf(sb, "%" PRId64, value->integer);
		break;
	case SAID_REAL:
		add_real(sb, value->real, spec);
		break;
	case SAID_TEXT:
		strbuf_adds(sb, value->text);
		break;
	case SAID_SITE:
		add_site(pen, value->text ? value->text : "somebody");
		break;
	case SAID_HOME:
		(pen->plain ? words_field : words_home)(value->home, sb);
		break;
	case SAID_PART:
		add_said(value->part, sb, pen->plain);
		break;
	default:
		break;
	}
}

static const char *put_until(struct pen *pen, const char *at, const char *stops);

static const struct said_value *value_of(const struct pen *pen, unsigned long number)
{
	return number < pen->said->values.count ? &pen->said->values.items[number] : NULL;
}

/* Writes on a sheet of its own; whether that is used the caller decides. */
static const char *put_aside(struct pen *pen, const char *at, const char *stops,
			     struct strbuf *sheet)
{
	struct pen aside = { .said = pen->said, .sb = sheet, .plain = pen->plain };

	at = put_until(&aside, at, stops);
	pen->missing = aside.missing;
	return at;
}

static const char *put_group(struct pen *pen, const char *at)
{
	AUTO(strbuf_deinit) struct strbuf sheet = { 0 };
	struct pen inner = *pen;

	at = put_aside(&inner, at, "]", &sheet);
	if (!inner.missing)
		strbuf_adds(pen->sb, strbuf_str(&sheet));
	return *at == ']' ? at + 1 : at;
}

static const char *put_choice(struct pen *pen, const struct said_value *value, const char *at)
{
	bool first = is_true(value);

	for (unsigned int i = 0; i < 2; i++) {
		AUTO(strbuf_deinit) struct strbuf sheet = { 0 };
		struct pen inner = *pen;

		at = put_aside(&inner, at, "|}", &sheet);
		if (first == (i == 0)) {
			strbuf_adds(pen->sb, strbuf_str(&sheet));
			pen->missing |= inner.missing;
		}
		if (*at != '|')
			break;
		at++;
	}
	return at;
}

static const char *put_list(struct pen *pen, unsigned long from, const char *at)
{
	size_t len = strcspn(at, "}");

	for (size_t i = from; i < pen->said->values.count; i++) {
		if (i > from)
			strbuf_add(pen->sb, at, len);
		add_value(pen, &pen->said->values.items[i], "");
	}
	return at + len;
}

static const char *put_hole(struct pen *pen, const char *at)
{
	char *end;
	unsigned long number = strtoul(at, &end, 10);
	const struct said_value *value = value_of(pen, number);

	at = end;
	if (*at == '?') {
		at = put_choice(pen, value, at + 1);
	} else if (*at == '*') {
		at = put_list(pen, number, at + 1);
	} else {
		char spec[8] = "";
		size_t len = strcspn(at, "}");

		pen->missing |= !is_known(value);
		if (*at == ':' && len <= sizeof(spec))
			memcpy(spec, at + 1, len - 1);
		if (value)
			add_value(pen, value, spec);
		at += len;
	}
	return *at == '}' ? at + 1 : at;
}

static const char *put_until(struct pen *pen, const char *at, const char *stops)
{
	while (*at != '\0' && !strchr(stops, *at)) {
		if (*at == '{') {
			at = put_hole(pen, at + 1);
		} else if (*at == '[') {
			at = put_group(pen, at + 1);
		} else {
			at += *at == '\\' && at[1] != '\0';
			strbuf_addc(pen->sb, *at++);
		}
	}
	return at;
}

static void add_said(const struct said *said, struct strbuf *sb, bool plain)
{
	struct pen pen = { .said = said, .sb = sb, .plain = plain };
	const char *text = said->text || !said->id ? NULL : words_text(said->id);

	if (text)
		(void)put_until(&pen, text, "");
	else
		said_plainly(said, sb);
}

void words_add(const struct said *said, struct strbuf *sb)
{
	add_said(said, sb, false);
}

static char *taken(const struct said *said, bool plain)
{
	struct strbuf sb = { 0 };

	if (!said_anything(said))
		return NULL;
	add_said(said, &sb, plain);
	return strbuf_take(&sb);
}

char *words_of(const struct said *said)
{
	return taken(said, false);
}

char *words_plainly(const struct said *said)
{
	return taken(said, true);
}

void words_list(const struct said_list *list, struct strv *ret)
{
	VEC_FOREACH (&list->list, said)
		strv_take(ret, words_of(said));
}

void words_evidence(const struct evidence *evidence, struct strbuf *sb)
{
	AUTO(said_deinit) struct said said = { 0 };

	evidence_say(evidence, &said);
	words_add(&said, sb);
}

char *words_evidence_plainly(const struct evidence *evidence)
{
	AUTO(said_deinit) struct said said = { 0 };

	evidence_say(evidence, &said);
	return words_plainly(&said);
}

static void add_place(const struct home *home, struct strbuf *sb)
{
	switch (home->kind) {
	case HOME_BLOCK:
		strbuf_addf(sb, "block %s, offset %" PRId64,
			    home->key ? home->key : "of no known key", home->offset);
		break;
	case HOME_GLOBAL:
		if (!home->name && home->module) {
			strbuf_addf(sb, "global %s+0x%" PRIx64, cstr_base(home->module),
				    (uint64_t)home->offset);
			break;
		}
		strbuf_addf(sb, "global %s", home->name ? home->name : "of no known name");
		if (home->offset != 0)
			strbuf_addf(sb, "+%" PRId64, home->offset);
		break;
	case HOME_STACK:
		strbuf_addf(sb, "stack of %s", home->name ? home->name : "an unknown function");
		break;
	case HOME_THREAD:
		strbuf_addf(sb, "thread-local memory at %" PRId64, home->offset);
		break;
	default:
		if (home->address != 0)
			strbuf_addf(sb, "address 0x%" PRIx64, home->address);
		else
			strbuf_adds(sb, "an unknown place");
	}
}

void words_field(const struct home *home, struct strbuf *sb)
{
	if (home->field)
		strbuf_adds(sb, home->field);
	else if (home->kind != HOME_BLOCK)
		add_place(home, sb);
	else if (home->len > 0)
		strbuf_addf(sb, "the %" PRIu64 " byte%s at offset %" PRId64 " of a block",
			    home->len, home->len == 1 ? "" : "s", home->offset);
	else
		strbuf_addf(sb, "offset %" PRId64 " of a block", home->offset);
}

void words_home(const struct home *home, struct strbuf *sb)
{
	if (home->field)
		strbuf_addf(sb, "%s (", home->field);
	add_place(home, sb);
	if (home->len > 0)
		strbuf_addf(sb, ", %" PRIu64 " byte%s", home->len, home->len == 1 ? "" : "s");
	if (home->field)
		strbuf_addc(sb, ')');
}

const char *words_watched_end(enum log_watched_end end)
{
	static const char *const texts[] = { [LOG_WATCHED_STILL] = "still there",
					     [LOG_WATCHED_FREED] = "freed",
					     [LOG_WATCHED_DISPLACED] = "no longer watched",
					     [LOG_WATCHED_AGAIN] = "handed out again",
					     [LOG_WATCHED_MOVED] = "moved by realloc",
					     [LOG_WATCHED_EXIT] = "still there at the end",
					     [LOG_WATCHED_RETURNED] = "returned",
					     [LOG_WATCHED_YIELDED] = "no longer watched" };

	return end < ARRAY_SIZE(texts) ? texts[end] : "?";
}
