/* Bytes for the serializer: written at the end, read from a cursor, little endian. */
#ifndef FUSER_BUFFER_H
#define FUSER_BUFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buffer {
	unsigned char *data;
	size_t size;
	size_t capacity;
	size_t cursor;
	bool short_read; /* some read went past the end; everything since returned 0 */
};

void buffer_init(struct buffer *b);
void buffer_deinit(struct buffer *b);

void buffer_put_u8(struct buffer *b, uint8_t v);
void buffer_put_u32(struct buffer *b, uint32_t v);
void buffer_put_i64(struct buffer *b, int64_t v);
void buffer_put_f64(struct buffer *b, double v);

uint8_t buffer_get_u8(struct buffer *b);
uint32_t buffer_get_u32(struct buffer *b);
int64_t buffer_get_i64(struct buffer *b);
double buffer_get_f64(struct buffer *b);

/* Both return false with errno set when the file cannot be written or read. */
bool buffer_save(const struct buffer *b, const char *path);
bool buffer_load(struct buffer *b, const char *path);

#endif
