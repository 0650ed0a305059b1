#include "meshard/layout/zipped_product.h"

#include "meshard/layout/layout_testutil.h"
#include "meshard/layout/logical_product.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

// The values of logical_product, at ((i, j), (k, l)) of ((mode, copies), (mode, copies)).
TEST(ZippedProduct, GathersWhatLogicalProductHas) {
  TestRandom random;
  int answered = 0;
  for (int round = 0; round < 1000; ++round) {
    Layout a(IntTuple{random.between(1, 5), random.between(1, 5), random.between(1, 3)});
    auto copies = [&] { return Layout(IntTuple(random.between(1, 4)), random.between(1, 3)); };
    Tiler tiler{copies(), copies()};
    Result<Layout> logical = logical_product(a, tiler), zipped = zipped_product(a, tiler);
    ASSERT_EQ(logical.ok(), zipped.ok());
    if (!logical) continue;
    ++answered;
    ASSERT_TRUE(is_gathered(random, *logical, *zipped)) << zipped->to_string();
  }
  EXPECT_GT(answered, 300);
}

TEST(ZippedProduct, Examples) {
  auto text = [](const char* a, const char* b) {
    return zipped_product(Layout::parse(a).value(), Tiler::parse(b).value())->to_string();
  };
  EXPECT_EQ(text("(4,6):(6,1)", "<2:2, 3:1>"), "((4,6),(2,3)):((6,1),(2,6))");
  EXPECT_EQ(text("(2,3):(3,1)", "(2,2):(2,1)"), "((2,3),(2,2)):((3,1),(12,6))");
  EXPECT_EQ(text("6:1", "4:1"), "(6,4):(1,6)");
  EXPECT_TRUE(throws_error([] { (void)zipped_product(Layout(IntTuple(4)), 2).value(); },
                           ErrorCode::kInvalidArgument, {"[logical_product]", "an integer"}));
}

}  // namespace
}  // namespace meshard
