#include "model/mappings.h"

#include <stdbool.h>
#include <string.h>

#include "base/vec.h"

/* What is left of the line that is being read. */
struct maps_cursor {
	const char *at, *end;
};

static bool take_hex(struct maps_cursor *c, uint64_t *ret)
{
	const char *start = c->at;
	uint64_t value = 0;

	for (; c->at < c->end && c->at - start < 16; c->at++) {
		char ch = *c->at;

		if (ch >= '0' && ch <= '9')
			value = value << 4 | (uint64_t)(ch - '0');
		else if (ch >= 'a' && ch <= 'f')
			value = value << 4 | (uint64_t)(ch - 'a' + 10);
		else
			break;
	}
	*ret = value;
	return c->at > start;
}

static bool take(struct maps_cursor *c, char ch)
{
	if (c->at == c->end || *c->at != ch)
		return false;
	c->at++;
	return true;
}

static bool take_perms(struct maps_cursor *c, unsigned int *ret)
{
	static const char letters[] = "rwxs";
	unsigned int perms = 0;

	if (c->end - c->at < 4)
		return false;
	for (unsigned int i = 0; i < 4; i++) {
		char ch = *c->at++;

		if (ch == letters[i])
			perms |= 1u << i; /* the order of enum mapping_perms */
		else if (ch != '-' && !(i == 3 && ch == 'p'))
			return false;
	}
	*ret = perms;
	return true;
}

/* A word that does not matter here, and the blanks after it. */
static bool skip_word(struct maps_cursor *c)
{
	const char *start = c->at;

	while (c->at < c->end && *c->at != ' ')
		c->at++;
	if (c->at == start)
		return false;
	while (c->at < c->end && *c->at == ' ')
		c->at++;
	return true;
}

static char *copy_path(const struct maps_cursor *c)
{
	char *path = mem_strndup(c->at, (size_t)(c->end - c->at)), *to = path;

	for (const char *from = path; *from; from++) {
		if (strncmp(from, "\\012", 4) == 0) {
			*to++ = '\n';
			from += 3;
		} else {
			*to++ = *from;
		}
	}
	*to = '\0';
	return path;
}

static bool parse_line(struct mappings *mappings, struct maps_cursor c)
{
	struct mapping m = { 0 };

	if (!take_hex(&c, &m.start) || !take(&c, '-') || !take_hex(&c, &m.end) || !take(&c, ' ') ||
	    !take_perms(&c, &m.perms) || !take(&c, ' ') || !take_hex(&c, &m.file_offset) ||
	    !take(&c, ' ') || !skip_word(&c) || !skip_word(&c) || m.end <= m.start)
		return false;
	if (c.at < c.end)
		m.path = copy_path(&c);
	VEC_PUSH(mappings, m);
	return true;
}

size_t mappings_parse(struct mappings *mappings, const char *text, size_t len)
{
	const char *end = text + len;
	size_t bad = 0;

	while (text < end) {
		const char *newline = memchr(text, '\n', (size_t)(end - text));
		struct maps_cursor line = { text, newline ? newline : end };

		bad += !parse_line(mappings, line);
		text = line.end + 1;
	}
	return bad;
}

void mappings_deinit(struct mappings *mappings)
{
	VEC_FREE(mappings, m, mem_free((char *)m->path));
}
