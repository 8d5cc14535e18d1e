// A googletest program whose tests share a registry. Two of them together leave it with an entry
// whose owner has gone; a later one then dies in about one run of three, as the heap pleases.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

namespace {

struct Entry {
	std::vector<int> *values;
};

std::vector<std::unique_ptr<Entry>> registry;
std::vector<int> *shared_values;

bool unlucky()
{
	// Where the stack begins is random, a fresh number in every process.
	int here;
	return (reinterpret_cast<uintptr_t>(&here) >> 8) % 3 == 0;
}

TEST(Registry, StartsEmpty)
{
	EXPECT_TRUE(registry.empty());
}

TEST(Registry, AddsAnEntry)
{
	shared_values = new std::vector<int>{ 1, 2, 3 };
	registry.push_back(std::make_unique<Entry>(Entry{ shared_values }));
	EXPECT_EQ(registry.size(), 1u);
}

class Sizes : public testing::TestWithParam<int> {
};

TEST_P(Sizes, Grow)
{
	EXPECT_EQ(std::string(static_cast<size_t>(GetParam()), 'x').size(),
		  static_cast<size_t>(GetParam()));
}

INSTANTIATE_TEST_SUITE_P(Small, Sizes, testing::Range(0, 12));
INSTANTIATE_TEST_SUITE_P(Named, Sizes, testing::Values(100, 200),
			 [](const auto &i) { return "of" + std::to_string(i.param); });

template <typename T> class Typed : public testing::Test {
};
using Types = testing::Types<char, long>;
TYPED_TEST_SUITE(Typed, Types);
TYPED_TEST(Typed, HasASize)
{
	EXPECT_GT(sizeof(TypeParam), 0u);
}

TEST(Values, AreReleased)
{
	delete shared_values;
	shared_values = nullptr;
}

TEST(Values, DISABLED_NeverRuns)
{
	abort();
}

TEST(Report, Prints)
{
	EXPECT_TRUE(true);
}

TEST(Report, SumsTheRegistry)
{
	for (const auto &entry : registry) {
		// The owner has gone; whether its memory still looks right is a matter of luck.
		if (entry->values != shared_values && unlucky())
			*static_cast<volatile int *>(nullptr) = 1;
	}
}

TEST(Report, IsTheLast)
{
	EXPECT_TRUE(true);
}

} // namespace
