#include "meshard/layout/logical_divide.h"

#include <algorithm>

#include "meshard/layout/coalesce.h"
#include "meshard/layout/complement.h"
#include "meshard/layout/layout_testutil.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

// @post of logical_divide for a layout; false where it refuses.
bool check_logical_divide(const Layout& a, const Layout& b) {
  Result<Layout> result = logical_divide(a, b);
  if (!result) return false;
  std::string text = cat(a, " by ", b, " -> ", *result);
  Layout rest = complement(b, a.size()).value(), coalesced = coalesce(a);
  EXPECT_EQ(result->rank(), 2u) << text;
  EXPECT_EQ(result->mode(0).size(), b.size()) << text;
  EXPECT_EQ(result->mode(1).size(), rest.size()) << text;
  for (std::int64_t i = 0; i < b.size(); ++i)
    for (std::int64_t j = 0; j < rest.size(); ++j)
      if ((*result)(IntTuple{i, j}) != coalesced(b(i) + rest(j))) {
        ADD_FAILURE() << text << " at " << i << ", " << j;
        return true;
      }
  return true;
}

TEST(LogicalDivide, Postconditions) {
  TestRandom random;
  int answered = 0;
  for (int round = 0; round < 3000 && !testing::Test::HasFailure(); ++round) {
    Layout a = round % 2 == 0 ? random_layout(random) : random_permuted_layout(random);
    std::int64_t size = random.between(1, 6), stride = random.between(1, 6);
    answered += check_logical_divide(a, Layout(IntTuple(size), IntTuple(stride)));
  }
  EXPECT_GT(answered, 1000);
  for (const Layout& a : picked_layouts())
    for (const Layout& b : picked_layouts())
      if (a.size() * b.size() < 5000) check_logical_divide(a, b);
}

// A tile that divides a layout keeps every value exactly once.
TEST(LogicalDivide, IsAPermutationWhereTheTileDivides) {
  TestRandom random;
  for (int round = 0; round < 300; ++round) {
    Layout a = random_permuted_layout(random);
    std::int64_t tile = random.between(1, a.size());
    if (a.size() % tile != 0) continue;
    Result<Layout> result = logical_divide(a, Tiler(tile));
    if (!result) continue;
    std::vector<std::int64_t> values = values_of(*result);
    std::sort(values.begin(), values.end());
    for (std::int64_t i = 0; i < a.size(); ++i)
      ASSERT_EQ(values.at(static_cast<std::size_t>(i)), i) << a.to_string() << " by " << tile;
  }
}

TEST(LogicalDivide, Examples) {
  auto text = [](const char* a, const char* b) {
    return logical_divide(Layout::parse(a).value(), Tiler::parse(b).value())->to_string();
  };
  EXPECT_EQ(text("24:1", "4"), "(4,6):(1,4)");
  EXPECT_EQ(text("24:1", "4:6"), "(4,6):(6,1)");
  EXPECT_EQ(text("(4,6):(6,1)", "<2, 3>"), "((2,2),(3,2)):((6,12),(1,3))");
  EXPECT_EQ(text("(4,6):(6,1)", "<_, 3>"), "(4,(3,2)):(6,(1,3))");
  EXPECT_EQ(text("(4,6):(6,1)", "<2>"), "((2,2),6):((6,12),1)");
  EXPECT_EQ(text("(4,6):(6,1)", "_"), "(4,6):(6,1)");
  EXPECT_EQ(text("3:1", "4"), "(4,1):(1,0)");  // the tile is larger than the layout
}

TEST(LogicalDivide, Refusals) {
  auto refuses = [](const char* a, const char* b, const std::vector<std::string>& parts) {
    return throws_error(
        [&] { (void)logical_divide(Layout::parse(a).value(), Tiler::parse(b).value()).value(); },
        ErrorCode::kInvalidArgument, parts);
  };
  EXPECT_TRUE(refuses("(4,6):(6,1)", "<2, 3, 4>",
                      {"[logical_divide]", "<2, 3, 4>", "3 elements", "2 modes"}));
  EXPECT_TRUE(refuses("(3,4):(100,1)", "6", {"[composition]", "extents that work"}));
  EXPECT_TRUE(refuses("12:1", "(2,2):(1,1)", {"[complement]", "(2,2):(1,1)"}));
}

}  // namespace
}  // namespace meshard
