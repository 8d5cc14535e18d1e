/*
 * Lines of pixels. line_brighten() works on eight pixels at a time and rounds the width up; the
 * brush of the next line pays for it.
 */
#include <emmintrin.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "chase_truth.h"

struct colour {
	const char *name;
	uint32_t value;
};

struct brush {
	struct colour *colour;
	struct colour *border;
	long width;
};

struct line {
	uint32_t *pixels;
	struct brush *brush;
	int width;
};

APART static struct colour *colour_new(const char *name, uint32_t value)
{
	struct colour *colour = malloc(sizeof(*colour));

	if (!colour)
		exit(3);
	colour->name = name;
	colour->value = value;
	return colour;
}

APART static uint32_t *pixels_new(int width)
{
	uint32_t *pixels = calloc((size_t)width, sizeof(*pixels));

	if (!pixels)
		exit(3);
	return pixels;
}

APART static struct brush *brush_new(struct colour *colour, struct colour *border)
{
	struct brush *brush = malloc(sizeof(*brush));

	if (!brush)
		exit(3);
	brush->colour = colour;
	brush->border = border;
	brush->width = 2;
	return brush;
}

APART static void line_init(struct line *line, int width, struct colour *a, struct colour *b)
{
	line->width = width;
	line->pixels = pixels_new(width);
	line->brush = brush_new(a, b);
	for (int x = 0; x < width; x++)
		line->pixels[x] = (uint32_t)x * 0x010203u;
}

APART static void line_brighten(struct line *line, int by)
{
	__m128i more = _mm_set1_epi8((char)by);

	for (int x = 0; x < line->width; x += 8) {
		__m128i *at = (__m128i *)(line->pixels + x);
		__m128i low = _mm_adds_epu8(_mm_loadu_si128(at), more);
		__m128i high = _mm_adds_epu8(_mm_loadu_si128(at + 1), more);

		_mm_storeu_si128(at, low);
		_mm_storeu_si128(at + 1, high);
	}
}

APART static uint32_t line_draw(const struct line *line)
{
	uint32_t sum = line->brush->colour->value ^ line->brush->border->value;

	for (int x = 0; x < line->width; x++)
		sum = sum * 31 + line->pixels[x];
	return sum;
}

int main(void)
{
	struct colour *red = colour_new("red", 0xff0000), *blue = colour_new("blue", 0xff);
	static struct line lines[120];
	uint32_t sum = 0;

	tell_truth("class overflow\n"
		   "writer chase_vector.c:line_brighten\n"
		   "allocator chase_vector.c:pixels_new\n");
	for (int i = 0; i < 120; i++)
		line_init(&lines[i], i == 71 ? 26 : 24, i % 2 ? red : blue, red);
	for (int i = 0; i < 120; i++)
		line_brighten(&lines[i], i % 40 + 1);
	for (int i = 0; i < 120; i++)
		sum += line_draw(&lines[i]);
	printf("sum %08x\n", sum);
	return 0;
}
