/* Types for test_types, which compares offsetof() with what the debug information says. */
#pragma once

struct container;

struct pair {
	short left;
	long right;
};

struct statement {
	int kind;
	struct container *container;
	struct {
		int x;
		union {
			char small;
			double large;
		};
	} inner;
	union { /* no name: its members are the statement's */
		void *pointer;
		unsigned long word;
	};
	int matrix[3][4];
	unsigned int flag : 3, other : 5, wide : 20;
	struct pair pairs[3];
	char tail[];
};

typedef struct {
	float x, y;
} point_t;

typedef point_t const *spot;
