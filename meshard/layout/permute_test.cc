#include "meshard/layout/permute.h"

#include <algorithm>

#include "meshard/layout/layout_testutil.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

// @post of permute
TEST(Permute, Postconditions) {
  TestRandom random;
  for (int round = 0; round < 300; ++round) {
    Layout layout = random_layout(random);
    if (layout.shape().is_integer()) continue;
    std::vector<std::int64_t> order;
    for (std::size_t k = 0; k < layout.rank(); ++k) order.push_back(static_cast<std::int64_t>(k));
    std::shuffle(order.begin(), order.end(), random);
    Layout result = permute(layout, order);
    ASSERT_EQ(result.rank(), layout.rank());
    for (int probe = 0; probe < 20; ++probe) {
      std::vector<IntTuple> from, to;
      for (std::size_t k = 0; k < layout.rank(); ++k)
        from.push_back(random.between(0, layout.mode(k).size() - 1));
      for (std::int64_t k : order) to.push_back(from[static_cast<std::size_t>(k)]);
      ASSERT_EQ(result(IntTuple(std::span<const IntTuple>(to))),
                layout(IntTuple(std::span<const IntTuple>(from))))
          << layout.to_string() << " -> " << result.to_string();
    }
  }
}

TEST(Permute, Examples) {
  Layout layout = Layout::parse("(2,(3,4),5):(60,(20,5),1)").value();
  EXPECT_EQ(permute(layout, {2, 0, 1}).to_string(), "(5,2,(3,4)):(1,60,(20,5))");
  EXPECT_EQ(permute(layout, {0, 1, 2}), layout);
  EXPECT_EQ(permute(Layout(), {}), Layout());
  for (const IntVector& order :
       {IntVector{0, 1}, IntVector{0, 1, 1}, IntVector{1, 2, 3}, IntVector{-1, 0, 1}})
    EXPECT_TRUE(throws_error([&] { permute(layout, order); }, ErrorCode::kInvalidArgument,
                             {"[permute]", "3 modes", layout.to_string()}));
}

}  // namespace
}  // namespace meshard
