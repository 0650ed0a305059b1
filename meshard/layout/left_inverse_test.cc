#include "meshard/layout/left_inverse.h"

#include "meshard/layout/injective.h"
#include "meshard/layout/layout_testutil.h"
#include "meshard/layout/orthogonal.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

bool has_stride_zero(const Layout& layout) {
  for (std::size_t i = 0; i < layout.shape().leaves().size(); ++i)
    if (layout.shape().leaves()[i] > 1 && layout.stride().leaves()[i] == 0) return true;
  return false;
}

// @post of left_inverse; false where it refuses.
bool check_left_inverse(const Layout& layout) {
  Result<Layout> result = left_inverse(layout);
  if (has_stride_zero(layout)) {
    EXPECT_EQ(result->to_string(), "1:0") << layout.to_string();
    return true;
  }
  if (!result) return false;
  EXPECT_TRUE(is_injective(layout)) << layout.to_string();
  for (std::int64_t i = 0; i < layout.size(); ++i) {
    if (layout(i) < result->size()) {
      EXPECT_EQ((*result)(layout(i)), i) << layout.to_string() << " -> " << result->to_string();
    }
  }
  if (!is_orthogonal(layout)) return true;
  EXPECT_GE(result->size(), layout.cosize()) << layout.to_string();
  // All between the values goes to indices that the layout does not have, each to another.
  std::vector<bool> seen(static_cast<std::size_t>(result->size()));
  for (std::int64_t index : values_of(*result)) {
    EXPECT_FALSE(seen.at(static_cast<std::size_t>(index))) << result->to_string();
    seen.at(static_cast<std::size_t>(index)) = true;
  }
  return true;
}

TEST(LeftInverse, Postconditions) {
  TestRandom random;
  int answered = 0, refused = 0;
  for (int round = 0; round < 2000 && !testing::Test::HasFailure(); ++round)
    (check_left_inverse(random_layout(random)) ? answered : refused) += 1;
  for (const Layout& layout : picked_layouts()) check_left_inverse(layout);
  EXPECT_GT(answered, 500);
  EXPECT_GT(refused, 300);
}

TEST(LeftInverse, PermutationsAndTheirMultiplesHaveOne) {
  TestRandom random;
  for (int round = 0; round < 500; ++round) {
    Layout layout = random_permuted_layout(random);
    EXPECT_TRUE(check_left_inverse(layout)) << layout.to_string();
    IntVector strides;
    for (std::int64_t stride : layout.stride().leaves()) strides.push_back(3 * stride);
    EXPECT_TRUE(check_left_inverse(Layout(layout.shape(), layout.shape().with_leaves(strides))));
  }
}

TEST(LeftInverse, Examples) {
  auto text = [](const char* layout) {
    return left_inverse(Layout::parse(layout).value())->to_string();
  };
  EXPECT_EQ(text("(8,4):(1,8)"), "(4,8):(1,4)");
  EXPECT_EQ(text("3:8"), "(3,8):(1,3)");
  // 13 is no multiple of 6: only the values below 12 are told apart.
  EXPECT_EQ(text("(6,2):(1,13)"), "12:2");
  EXPECT_EQ(text("(8,3):(9,2)"), "(3,2):(1,24)");
  EXPECT_EQ(text("():()"), "1:0");
}

TEST(LeftInverse, Refusals) {
  auto refuses = [](const char* layout, const std::vector<std::string>& parts) {
    return throws_error([&] { (void)left_inverse(Layout::parse(layout).value()).value(); },
                        ErrorCode::kInvalidArgument, parts);
  };
  EXPECT_TRUE(refuses("(2,3):(2,1)", {"(2,3):(2,1)", "mode 2:2", "reach"}));
  EXPECT_TRUE(refuses("(3,2):(2,3)", {"mode 2:3"}));
  EXPECT_TRUE(refuses("2:-1", {"negative"}));
  EXPECT_TRUE(refuses("2:4611686018427387904", {"64 bits"}));
}

}  // namespace
}  // namespace meshard
