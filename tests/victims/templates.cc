/* A C++ program that dies in a template's method; prints its stack as templates_stack in the test
 * expects it: "function line", innermost first. */
#include <cstdio>
#include <string>
#include <vector>

static int *volatile nowhere;
static volatile int sink;

namespace shapes
{
namespace
{
struct hidden {
	__attribute__((noinline)) int area(int x) const
	{
		int r = *nowhere + x; static_assert(__LINE__ == 17, "printed below");
		sink = sink + 1;
		return r;
	}
};
}

template <typename T> class box
{
public:
	explicit box(T v) : value(v) {}
	__attribute__((noinline)) T total(const std::string &name)
	{
		hidden h;
		T r = h.area(static_cast<int>(name.size())) + value;
		sink = sink + 1;
		return r;
	}

private:
	T value;
};
}

int main()
{
	shapes::box<long> box(4);
	auto run = [&box](int times) __attribute__((noinline)) {
		long sum = 0;
		for (int i = 0; i < times; i++)
			sum += box.total("name");
		sink = sink + 1;
		return sum;
	};

	/* Inlined, and without a name that the linker would know. */
	auto twice = [&run](int times) __attribute__((always_inline)) {
		long sum = run(times);
		sink = sink + 1;
		return sum;
	};

	std::puts("shapes::(anonymous namespace)::hidden::area(int) const 17");
	std::puts("shapes::box<long>::total(std::__cxx11::basic_string<char, "
		  "std::char_traits<char>, std::allocator<char> > const&) 31");
	std::puts("main::{lambda(int)#1}::operator()(int) const 0");
	std::puts("main::{unnamed#2}::operator() 0");
	std::puts("main 0");
	std::fflush(stdout);
	return static_cast<int>(twice(2));
}
