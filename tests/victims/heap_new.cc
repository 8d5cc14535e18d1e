/*
 * Operator new and delete of a shared library that is not the C++ library. OPERATORS says which of
 * them it has: 1: new and delete, over malloc. 2: all of them, over malloc, with a cache of what
 * was deleted, which is freed in the end. 3: delete alone, which counts; new is the C++ library's.
 * 4: small objects from chunks of malloc's, others from malloc. Without it this is the program:
 * `heap_new fine` or `heap_new overflow`.
 */
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>
#include <vector>

#ifdef OPERATORS
static size_t deleted;

#if OPERATORS == 2
static struct spare {
	spare *next;
	size_t size;
} * spares;

static void *get(size_t size)
{
	size = size < sizeof(spare) ? sizeof(spare) : size;
	for (spare **at = &spares; *at; at = &(*at)->next) {
		if ((*at)->size != size)
			continue;
		spare *found = *at;
		*at = found->next;
		return found;
	}
	return malloc(size);
}

static void put(void *ptr, size_t size)
{
	spare *kept = (spare *)ptr;

	if (!kept || size < sizeof(spare) || deleted % 3 == 0) {
		free(ptr);
		return;
	}
	kept->next = spares;
	kept->size = size;
	spares = kept;
}

__attribute__((destructor)) static void trim()
{
	while (spares) {
		spare *kept = spares;

		spares = kept->next;
		free(kept);
	}
}
#elif OPERATORS == 4
static char *chunks[64], *chunk, *chunk_end;
static size_t chunk_count;
static struct cell {
	cell *next;
} * cells;

static void *get(size_t size)
{
	void *got = cells;

	if (size > 64)
		return malloc(size);
	if (got) {
		cells = cells->next;
		return got;
	}
	if (chunk == chunk_end) {
		chunk = chunks[chunk_count++] = (char *)malloc(4096);
		chunk_end = chunk + 4096;
	}
	chunk += 64;
	return chunk - 64;
}

static void put(void *ptr, size_t)
{
	for (size_t i = 0; i < chunk_count; i++) {
		if ((char *)ptr < chunks[i] || (char *)ptr >= chunks[i] + 4096)
			continue;
		((cell *)ptr)->next = cells;
		cells = (cell *)ptr;
		return;
	}
	free(ptr);
}
#else
static void *get(size_t size)
{
	return malloc(size ? size : 1);
}

static void put(void *ptr, size_t)
{
	free(ptr);
}
#endif

#if OPERATORS != 3
void *operator new(size_t size)
{
	void *got = get(size);

	if (!got)
		throw std::bad_alloc();
	return got;
}
#endif

void operator delete(void *ptr, size_t size) noexcept
{
	deleted++;
	put(ptr, size);
}

void operator delete(void *ptr) noexcept
{
	deleted++;
	put(ptr, 0);
}

#if OPERATORS == 2
void *operator new[](size_t size)
{
	return operator new(size);
}

void operator delete[](void *ptr) noexcept
{
	deleted++;
	put(ptr, 0);
}
#endif

size_t deleted_count()
{
	return deleted;
}

#else
size_t deleted_count();

struct node {
	node *next;
	long values[5];
};

__attribute__((noipa)) static void fill(node *node, size_t bytes)
{
	memset(node->values, 0x41, bytes);
}

int main(int argc, char **argv)
{
	std::vector<std::string> texts;
	node *nodes = nullptr;
	long sum = 0;

	for (int i = 0; i < 300; i++) {
		node *made = new node();

		made->next = nodes;
		nodes = made;
		texts.push_back(std::string(40 + i % 7, 'a') + std::to_string(i));
		if (i % 5 == 0) {
			nodes = made->next;
			delete made;
			texts.erase(texts.begin() + i / 10);
		}
	}
	fill(nodes->next,
	     sizeof(nodes->values) + (argc > 1 && !strcmp(argv[1], "overflow") ? 12 : 0));
	while (nodes) {
		node *next = nodes->next;

		sum += nodes->values[0];
		delete nodes;
		nodes = next;
	}
	texts.clear();
	printf("%ld %zu\n", sum, deleted_count());
	return 0;
}
#endif
