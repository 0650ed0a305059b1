#include "meshard/layout/tiled_product.h"

#include "meshard/layout/layout_testutil.h"
#include "meshard/layout/zipped_product.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

// @post of tiled_product
TEST(TiledProduct, IsTheFunctionOfZippedProduct) {
  TestRandom random;
  int answered = 0;
  for (int round = 0; round < 500; ++round) {
    Layout a(IntTuple{random.between(1, 5), random.between(1, 5), random.between(1, 3)});
    auto copies = [&] { return Layout(IntTuple(random.between(1, 4)), random.between(1, 3)); };
    Tiler tiler{copies(), copies()};
    Result<Layout> zipped = zipped_product(a, tiler), tiled = tiled_product(a, tiler);
    ASSERT_EQ(tiled.ok(), zipped.ok());
    if (!tiled) continue;
    ++answered;
    EXPECT_EQ(tiled->rank(), 4u);
    EXPECT_EQ(values_of(*tiled), values_of(*zipped));
  }
  EXPECT_GT(answered, 150);
}

TEST(TiledProduct, Examples) {
  auto text = [](const char* a, const char* b) {
    return tiled_product(Layout::parse(a).value(), Tiler::parse(b).value())->to_string();
  };
  EXPECT_EQ(text("(4,6):(6,1)", "<2:2, 3:1>"), "((4,6),2,3):((6,1),2,6)");
  EXPECT_EQ(text("(2,2):(4,1)", "6:1"), "((2,2),3,2):((4,1),8,2)");
  EXPECT_TRUE(throws_error([] { (void)tiled_product(Layout(IntTuple(4)), Tiler{2}).value(); },
                           ErrorCode::kInvalidArgument, {"[logical_product]", "an integer"}));
}

}  // namespace
}  // namespace meshard
