#include "buffer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "alloc.h"

void buffer_init(struct buffer *b)
{
	*b = (struct buffer){ 0 };
}

void buffer_deinit(struct buffer *b)
{
	free(b->data);
	buffer_init(b);
}

static void put(struct buffer *b, uint64_t v, size_t bytes)
{
	b->data = fz_grow(b->data, &b->capacity, b->size + bytes, 1);
	for (size_t i = 0; i < bytes; i++)
		b->data[b->size++] = (unsigned char)(v >> (8 * i));
}

static uint64_t get(struct buffer *b, size_t bytes)
{
	uint64_t v = 0;

	if (b->short_read || b->size - b->cursor < bytes) {
		b->short_read = true;
		return 0;
	}
	for (size_t i = 0; i < bytes; i++)
		v |= (uint64_t)b->data[b->cursor++] << (8 * i);
	return v;
}

void buffer_put_u8(struct buffer *b, uint8_t v)
{
	put(b, v, 1);
}

void buffer_put_u32(struct buffer *b, uint32_t v)
{
	put(b, v, 4);
}

void buffer_put_i64(struct buffer *b, int64_t v)
{
	put(b, (uint64_t)v, 8);
}

void buffer_put_f64(struct buffer *b, double v)
{
	uint64_t bits;

	memcpy(&bits, &v, sizeof(bits));
	put(b, bits, 8);
}

uint8_t buffer_get_u8(struct buffer *b)
{
	return (uint8_t)get(b, 1);
}

uint32_t buffer_get_u32(struct buffer *b)
{
	return (uint32_t)get(b, 4);
}

int64_t buffer_get_i64(struct buffer *b)
{
	return (int64_t)get(b, 8);
}

double buffer_get_f64(struct buffer *b)
{
	uint64_t bits = get(b, 8);
	double v;

	memcpy(&v, &bits, sizeof(v));
	return v;
}

bool buffer_save(const struct buffer *b, const char *path)
{
	FILE *f = fopen(path, "wb");
	bool ok;

	if (!f)
		return false;
	ok = fwrite(b->data, 1, b->size, f) == b->size;
	return fclose(f) == 0 && ok;
}

bool buffer_load(struct buffer *b, const char *path)
{
	FILE *f = fopen(path, "rb");
	int c;
	bool ok;

	if (!f)
		return false;
	while ((c = getc(f)) != EOF)
		put(b, (uint64_t)c, 1);
	ok = !ferror(f);
	fclose(f);
	return ok;
}
