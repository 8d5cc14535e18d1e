#include "run/capture.h"

#include <string.h>

#include "base/auto.h"
#include "base/fd.h"
#include "base/mem.h"
#include "model/known_secrets.h"

void capture_init(struct capture *c, uint64_t limit, line_fn on_line, void *ctx)
{
	*c = (struct capture){
		.head_limit = (size_t)(limit / 4),
		.ring_size = (size_t)(limit - limit / 4),
		.on_line = on_line,
		.ctx = ctx,
	};
}

void capture_deinit(struct capture *c)
{
	strbuf_deinit(&c->head);
	strbuf_deinit(&c->line);
	mem_free(c->ring);
	c->ring = NULL;
}

void capture_reset(struct capture *c)
{
	strbuf_clear(&c->head);
	strbuf_clear(&c->line);
	c->ring_at = 0;
	c->total = 0;
	c->line_start = c->line_end = 0;
}

static void end_line(struct capture *c)
{
	size_t len = c->line.len;

	if (len > 0 && c->line.data[len - 1] == '\r')
		len--;
	if (len > 0)
		secret_hide(c->line.data, len);
	c->on_line(c->ctx, strbuf_str(&c->line), len);
	strbuf_clear(&c->line);
}

static void split_lines(struct capture *c, const char *bytes, size_t len)
{
	uint64_t at = c->total;

	while (len > 0) {
		const char *newline = memchr(bytes, '\n', len);
		size_t part = newline ? (size_t)(newline - bytes) : len;
		size_t room = CAPTURE_LINE_MAX - c->line.len;

		strbuf_add(&c->line, bytes, part < room ? part : room);
		c->line_end = at + part;
		if (!newline)
			return;
		end_line(c);
		at += part + 1;
		c->line_start = at;
		bytes = newline + 1;
		len -= part + 1;
	}
}

static void ring_add(struct capture *c, const char *bytes, size_t len)
{
	if (c->ring_size == 0)
		return;
	if (!c->ring)
		c->ring = mem_alloc(c->ring_size);
	if (len > c->ring_size) {
		bytes += len - c->ring_size;
		len = c->ring_size;
	}
	while (len > 0) {
		size_t part = c->ring_size - c->ring_at;

		if (part > len)
			part = len;
		memcpy(c->ring + c->ring_at, bytes, part);
		c->ring_at = (c->ring_at + part) % c->ring_size;
		bytes += part;
		len -= part;
	}
}

void capture_add(struct capture *c, const char *bytes, size_t len)
{
	size_t room = c->head_limit - c->head.len;
	size_t part = len < room ? len : room;

	split_lines(c, bytes, len);
	c->total += len;
	strbuf_add(&c->head, bytes, part);
	ring_add(c, bytes + part, len - part);
}

void capture_finish(struct capture *c)
{
	if (c->line.len > 0)
		end_line(c);
}

int capture_save(const struct capture *c, int dir, const char *name, struct err *err)
{
	AUTO(strbuf_deinit) struct strbuf text = { 0 };
	uint64_t tail = c->total - c->head.len;
	size_t joined = 0; /* from here on the text has no gap */

	strbuf_add(&text, strbuf_str(&c->head), c->head.len);
	if (tail > c->ring_size) {
		if (text.len > 0)
			secret_hide(text.data, text.len);
		strbuf_addf(&text, "\n[redhand: %llu bytes left out here; see --output-limit]\n",
			    (unsigned long long)(tail - c->ring_size));
		joined = text.len;
		if (c->ring) {
			strbuf_add(&text, c->ring + c->ring_at, c->ring_size - c->ring_at);
			strbuf_add(&text, c->ring, c->ring_at);
		}
	} else if (c->ring) {
		strbuf_add(&text, c->ring, (size_t)tail);
	}
	if (text.len > joined)
		secret_hide(text.data + joined, text.len - joined);
	return file_write_at(dir, name, strbuf_str(&text), text.len, err);
}
