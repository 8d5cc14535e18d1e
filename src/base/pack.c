#include "base/pack.h"

#include <string.h>

#define PACK_NULL UINT64_MAX

void pack_u64(struct strbuf *sb, uint64_t value)
{
	strbuf_add(sb, &value, sizeof(value));
}

void pack_str(struct strbuf *sb, const char *text)
{
	if (!text) {
		pack_u64(sb, PACK_NULL);
		return;
	}
	pack_u64(sb, strlen(text));
	strbuf_adds(sb, text);
}

void pack_bytes(struct strbuf *sb, const struct strbuf *bytes)
{
	pack_u64(sb, bytes->len);
	strbuf_add(sb, bytes->data, bytes->len);
}

void pack_strv(struct strbuf *sb, const struct strv *strv)
{
	pack_u64(sb, strv->count);
	for (size_t i = 0; i < strv->count; i++)
		pack_str(sb, strv->items[i]);
}

uint64_t unpack_u64(struct unpacker *u)
{
	uint64_t value = 0;

	if (u->left < sizeof(value)) {
		u->broken = true;
		u->left = 0;
		return 0;
	}
	memcpy(&value, u->at, sizeof(value));
	u->at += sizeof(value);
	u->left -= sizeof(value);
	return value;
}

/* Where `len` bytes lie, which are then over; NULL when there are not so many. */
static const char *unpack_span(struct unpacker *u, uint64_t len)
{
	const char *at = u->at;

	if (len > u->left) {
		u->broken = true;
		u->left = 0;
		return NULL;
	}
	u->at += len;
	u->left -= len;
	return at;
}

char *unpack_str(struct unpacker *u)
{
	uint64_t len = unpack_u64(u);
	const char *at;

	if (u->broken || len == PACK_NULL)
		return NULL;
	at = unpack_span(u, len);
	return at ? mem_strndup(at, len) : NULL;
}

void unpack_bytes(struct unpacker *u, struct strbuf *ret)
{
	uint64_t len = unpack_u64(u);
	const char *at = unpack_span(u, len);

	if (at)
		strbuf_add(ret, at, len);
}

void unpack_strv(struct unpacker *u, struct strv *ret)
{
	uint64_t count = unpack_u64(u);

	for (uint64_t i = 0; i < count && !u->broken; i++) {
		char *text = unpack_str(u);

		if (text)
			strv_take(ret, text);
	}
}
