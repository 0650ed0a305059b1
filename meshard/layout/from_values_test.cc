#include "meshard/layout/from_values.h"

#include <limits>

#include "meshard/layout/coalesce.h"
#include "meshard/layout/layout_testutil.h"

namespace meshard {
namespace {

TEST(FromValues, FindsEveryLayoutFromItsValues) {
  TestRandom random;
  std::vector<Layout> layouts = picked_layouts();
  for (int round = 0; round < 300; ++round) {
    layouts.push_back(random_signed_layout(random));
    layouts.push_back(random_permuted_layout(random));
  }
  for (const Layout& layout : layouts) {
    std::int64_t offset = random.between(-5, 5);
    std::vector<std::int64_t> values;
    for (std::int64_t i = 0; i < layout.size(); ++i) values.push_back(offset + layout(i));
    std::optional<Layout> found = from_values(values);
    ASSERT_TRUE(found) << layout.to_string();
    EXPECT_EQ(*found, coalesce(layout)) << layout.to_string();
  }
}

TEST(FromValues, RefusesWhatIsNoLayout) {
  EXPECT_FALSE(from_values({0, 1, 2, 4}));
  EXPECT_FALSE(from_values({0, 1, 4, 6}));  // would pass for (2,2):(4,1) without verification
  EXPECT_FALSE(from_values({0, 1, 2, 3, 10, 11, 13, 12}));
  EXPECT_FALSE(from_values({0, 1, 3}));
  EXPECT_FALSE(from_values({0, 1, 4, 5, 9, 8}));
  EXPECT_FALSE(from_values({0, 2, 1, 4, 3, 5}));
  EXPECT_EQ(from_values({7})->size(), 1);
}

// The differences and their multiples do not all fit 64 bits (checked under UBSan).
TEST(FromValues, HandlesValuesAtTheEndsOfTheRange) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();
  EXPECT_FALSE(from_values({1, 8'000'000'000'000'000'001, 0, 1105000, 46976}));
  EXPECT_FALSE(from_values({kLeast, kMost}));
  EXPECT_FALSE(from_values({kMost, kLeast, 0}));
  EXPECT_FALSE(from_values({0, kMost, kLeast}));
  // (2,2):(s,s') whose last value would be s + s'.
  EXPECT_FALSE(from_values({0, kMost, kMost - 1, 5}));
  EXPECT_FALSE(from_values({0, kMost}));   // its cosize does not fit
  EXPECT_FALSE(from_values({0, kLeast}));  // that stride stands for a hole
  EXPECT_EQ(from_values({0, kMost - 1})->to_string(), "2:9223372036854775806");
  EXPECT_EQ(from_values({kMost, 0})->to_string(), "2:-9223372036854775807");
}

}  // namespace
}  // namespace meshard
