#include "meshard/layout/filter.h"

#include <set>

#include "meshard/layout/layout_testutil.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

// @post of filter
void check_filter(const Layout& layout) {
  Layout result = filter(layout);
  std::vector<std::int64_t> before = values_of(layout), after = values_of(result);
  EXPECT_EQ(std::set<std::int64_t>(after.begin(), after.end()),
            std::set<std::int64_t>(before.begin(), before.end()))
      << layout.to_string() << " -> " << result.to_string();
  if (result.size() > 1) {
    for (std::int64_t stride : result.stride().leaves()) EXPECT_NE(stride, 0);
  }
}

TEST(Filter, Postconditions) {
  TestRandom random;
  for (int round = 0; round < 500; ++round) check_filter(random_signed_layout(random));
  for (const Layout& layout : picked_layouts()) check_filter(layout);
}

TEST(Filter, Examples) {
  auto text = [](const char* layout) { return filter(Layout::parse(layout).value()).to_string(); };
  EXPECT_EQ(text("2:0"), "1:0");
  EXPECT_EQ(text("(2,3,4):(4,0,1)"), "8:1");
  EXPECT_EQ(text("((1,4),2):((7,3),0)"), "4:3");
  Layout two = Layout::parse("((2,3),(3,2)):((0,1),(2,0))").value();
  EXPECT_EQ(filter(two, IntTuple{1, 1})->to_string(), "(3,3):(1,2)");
  EXPECT_EQ(filter(two, IntTuple{1})->to_string(), "(3,(3,2)):(1,(2,0))");
  EXPECT_EQ(filter(two, IntTuple{IntTuple{1}, 1})->to_string(), "((1,3),3):((0,1),2)");
  EXPECT_EQ(filter(two, 5).value(), filter(two));
  EXPECT_TRUE(throws_error(
      [&] {
        (void)filter(two, IntTuple{1, 1, 1}).value();
      },
      ErrorCode::kInvalidArgument, {"[filter]", "3 elements", "2 modes"}));
}

}  // namespace
}  // namespace meshard
