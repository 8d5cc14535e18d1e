// new and delete, rightly and wrongly paired: heap_mismatch WHICH.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <vector>

struct alignas(128) wide {
	long value[3];
};

struct thing {
	std::string name;
	~thing() {}
};

static __attribute__((noinline)) char *made(const char *how)
{
	if (!strcmp(how, "new-free") || !strcmp(how, "new-realloc"))
		return new char;
	if (!strcmp(how, "array-delete"))
		return new char[24];
	return static_cast<char *>(malloc(24));
}

static __attribute__((noinline)) void unmade(const char *how, char *block)
{
	if (!strcmp(how, "new-free"))
		free(block);
	else if (!strcmp(how, "new-realloc"))
		free(realloc(block, 100));
	else if (!strcmp(how, "array-delete"))
		delete block;
	else
		delete[] block;
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "none";
	std::vector<std::unique_ptr<thing>> things;

	for (int i = 0; i < 100; i++) {
		things.emplace_back(new thing{std::string(i, 'x')});
		delete[] new thing[3];
		delete new wide;
		delete[] new wide[2];
		delete new (std::nothrow) int;
		free(memset(malloc(i), 1, i));
	}
	puts("ready");
	fflush(stdout);
	if (strcmp(how, "none"))
		unmade(how, made(how));
	return 0;
}
