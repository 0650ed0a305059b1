#include "meshard/layout/logical_product.h"

#include "meshard/layout/complement.h"
#include "meshard/layout/injective.h"
#include "meshard/layout/layout_testutil.h"
#include "meshard/layout/orthogonal.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

// @post of logical_product for a layout; false where it refuses.
bool check_logical_product(const Layout& a, const Layout& b) {
  Result<Layout> result = logical_product(a, b);
  if (!result) return false;
  std::string text = cat(a, " times ", b, " -> ", *result);
  Layout places = complement(a, a.size() * b.cosize()).value();
  EXPECT_EQ(result->mode(0), a) << text;
  EXPECT_EQ(result->mode(1).size(), b.size()) << text;
  if (is_orthogonal(a)) {
    EXPECT_EQ(is_injective(*result), is_injective(a) && is_injective(b)) << text;
  }
  for (std::int64_t i = 0; i < a.size(); ++i)
    for (std::int64_t j = 0; j < b.size(); ++j)
      if ((*result)(IntTuple{i, j}) != a(i) + places(b(j))) {
        ADD_FAILURE() << text << " at " << i << ", " << j;
        return true;
      }
  return true;
}

TEST(LogicalProduct, Postconditions) {
  TestRandom random;
  int answered = 0;
  for (int round = 0; round < 2000 && !testing::Test::HasFailure(); ++round) {
    Layout a = round % 2 == 0 ? random_layout(random) : random_permuted_layout(random);
    Layout b(IntTuple{random.between(1, 4), random.between(1, 4)},
             IntTuple{random.between(0, 9), random.between(0, 3)});
    if (a.size() * b.size() < 1000) answered += check_logical_product(a, b);
  }
  EXPECT_GT(answered, 600);
  for (const Layout& a : picked_layouts())
    for (const Layout& b : picked_layouts())
      if (a.size() * b.size() < 1000) check_logical_product(a, b);
}

TEST(LogicalProduct, Examples) {
  auto text = [](const char* a, const char* b) {
    return logical_product(Layout::parse(a).value(), Tiler::parse(b).value())->to_string();
  };
  EXPECT_EQ(text("4:1", "3:1"), "(4,3):(1,4)");
  EXPECT_EQ(text("(2,2):(4,1)", "6:1"), "((2,2),(3,2)):((4,1),(8,2))");
  EXPECT_EQ(text("(2,2):(4,1)", "(4,2):(2,1)"), "((2,2),(4,2)):((4,1),(8,2))");
  EXPECT_EQ(text("(4,6):(6,1)", "<2:2, 3:1>"), "((4,2),(6,3)):((6,2),(1,6))");
  EXPECT_EQ(text("(4,6):(6,1)", "_"), "(4,6):(6,1)");
}

TEST(LogicalProduct, Refusals) {
  auto refuses = [](const char* a, const char* b, const std::vector<std::string>& parts) {
    return throws_error(
        [&] { (void)logical_product(Layout::parse(a).value(), Tiler::parse(b).value()).value(); },
        ErrorCode::kInvalidArgument, parts);
  };
  EXPECT_TRUE(refuses("4:1", "3", {"[logical_product] of 4:1 and 3", "pass 3:1"}));
  EXPECT_TRUE(refuses("(4,6):(6,1)", "<_, 3>", {"an integer"}));
  EXPECT_TRUE(refuses("4:1", "<2:1, 3:1>", {"2 elements", "1 modes"}));
  EXPECT_TRUE(refuses("4:4", "4:3", {"[composition]"}));
  EXPECT_TRUE(refuses("(2,3):(2,1)", "2:1", {"[complement]"}));
  EXPECT_TRUE(refuses("4:1", "2:4611686018427387903", {"64 bits"}));
}

}  // namespace
}  // namespace meshard
