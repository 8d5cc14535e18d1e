/*
 * The same heap (own_heap.c) under C++, with operators of the program's own that call malloc and free,
 * directly and by way of each other: `own_new MODE`, stale or fine. With -DPLAIN the operators are the C++
 * library's.
 */
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <vector>

#ifndef PLAIN
__attribute__((noipa)) static void *get(size_t size)
{
	void *got = malloc(size ? size : 1);

	if (!got)
		throw std::bad_alloc();
	return got;
}

__attribute__((noinline)) void *operator new(size_t size)
{
	return get(size);
}

__attribute__((noinline)) void *operator new[](size_t size)
{
	return operator new(size);
}

__attribute__((noinline)) void operator delete(void *ptr) noexcept
{
	free(ptr);
}

__attribute__((noinline)) void operator delete[](void *ptr) noexcept
{
	operator delete(ptr);
}

__attribute__((noinline)) void operator delete(void *ptr, size_t) noexcept
{
	operator delete(ptr);
}

#endif

struct thing {
	thing *self = this;
	long value;
	char name[24] = "";
	explicit thing(long v) : value(v) {}
};

__attribute__((noipa)) static thing *thing_new(long value)
{
	return new thing(value);
}

__attribute__((noipa)) static void thing_drop(thing *t)
{
	delete t;
}

__attribute__((noipa)) static long thing_value(const thing *t)
{
	return t->self->value;
}

int main(int argc, char **argv)
{
	if (argc > 1 && strcmp(argv[1], "stale") == 0) {
		thing *t = thing_new(1);
		char *others[2];

		thing_drop(t);
		for (char *&other : others) {
			other = new char[sizeof(thing)];
			memset(other, 'A', sizeof(thing));
		}
		printf("%ld\n", thing_value(t));
		return 0;
	}
	for (int i = 0; i < 300; i++) {
		std::vector<std::string> words(i % 7, std::string(i % 50 + 1, 'w'));
		auto shared = std::make_shared<thing>(i);
		char *volatile array = new char[i + 1];
		thing *aligned = new (std::nothrow) thing(i);

		delete[] array;
		delete aligned;
	}
	try {
		operator delete(operator new((size_t)1 << 40));
	} catch (const std::bad_alloc &) {
		puts("no memory");
	}
	return 0;
}
