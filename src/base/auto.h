#pragma once

/*
 * Owned locals. AUTO(fn) runs fn(&variable) when the variable leaves its scope;
 * TAKE(pointer) hands the object on and disarms that. To keep something until then is use enough.
 */
#define AUTO(fn) __attribute__((cleanup(fn), unused))

#define TAKE(ptr)                               \
	({                                      \
		__typeof__(ptr) taken_ = (ptr); \
		(ptr) = NULL;                   \
		taken_;                         \
	})

/* Defines name##p(), the form that AUTO() wants, for a function that frees one object. */
#define AUTO_DEFINE(type, name)                \
	static inline void name##p(type **obj) \
	{                                      \
		name(*obj);                    \
	}

#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))
