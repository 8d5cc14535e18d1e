// Scopes, bases, templates and methods for test_types.
#include <cstdlib>

namespace shapes {

struct base {
	virtual ~base() = default;
	int base_field = 1;
};

class box : public base {
public:
	static int made;
	long width = 2;
	__attribute__((noinline)) long total(const int &scale) { return width * scale + base_field; }
	static box *make();
};

int box::made;

__attribute__((noinline)) box *box::make()
{
	made++;
	return new box;
}

template <class T> struct holder {
	char tag;
	T value;
	__attribute__((noinline)) T get(T plus) { return value + plus; }
};

namespace {
int hidden_count = 4;
}

} // namespace shapes

namespace other {
struct box {
	char lid[3];
	char width;
};
box a_box;
} // namespace other

int main(int argc, char **argv)
{
	shapes::box *b = shapes::box::make();
	shapes::holder<long> h = { 'x', argc };
	long sum = b->total(argc) + h.get(3) + shapes::hidden_count++ + other::a_box.width;

	(void)argv;
	delete b;
	return (int)sum;
}
