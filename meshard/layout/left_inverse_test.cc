#include "meshard/layout/left_inverse.h"

#include "meshard/layout/layout_testutil.h"
#include "meshard/layout/orthogonal.h"
#include "meshard/layout/sorted_modes.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

bool has_stride_zero(const Layout& layout) {
  for (std::size_t i = 0; i < layout.shape().leaves().size(); ++i)
    if (layout.shape().leaves()[i] > 1 && layout.stride().leaves()[i] == 0) return true;
  return false;
}

// The smallest stride of a mode that interlocks with modes of smaller stride.
std::int64_t first_interlocking(const Layout& layout) {
  std::int64_t reach = 0;
  for (const Mode& mode : sorted_modes(layout)) {
    if (mode.stride < reach) return mode.stride;
    reach = mode.stride * mode.size;
  }
  return layout.cosize();
}

// @post of left_inverse
void check_left_inverse(const Layout& layout) {
  Result<Layout> answer = left_inverse(layout);
  if (!answer) {  // then values repeat, or at least modes interlock
    EXPECT_FALSE(is_orthogonal(layout)) << layout.to_string();
    return;
  }
  const Layout& result = *answer;
  std::string text = cat(layout, " -> ", result);
  if (has_stride_zero(layout)) {
    EXPECT_EQ(result.to_string(), "1:0") << text;
    return;
  }
  std::int64_t bound = std::min(result.size(), first_interlocking(layout));
  for (std::int64_t i = 0; i < layout.size(); ++i) {
    if (layout(i) < bound) {
      EXPECT_EQ(result(layout(i)), i) << text;
    }
  }
  if (!is_orthogonal(layout)) return;
  EXPECT_GE(bound, layout.cosize()) << text;
  // The numbers between the values map to distinct indices that the layout does not have.
  std::vector<bool> seen(static_cast<std::size_t>(result.size()));
  for (std::int64_t index : values_of(result)) {
    EXPECT_FALSE(seen.at(static_cast<std::size_t>(index))) << text;
    seen.at(static_cast<std::size_t>(index)) = true;
  }
}

TEST(LeftInverse, Postconditions) {
  TestRandom random;
  for (int round = 0; round < 2000 && !testing::Test::HasFailure(); ++round)
    check_left_inverse(random_layout(random));
  for (const Layout& layout : picked_layouts()) check_left_inverse(layout);
}

TEST(LeftInverse, PermutationsAndTheirMultiplesHaveOne) {
  TestRandom random;
  for (int round = 0; round < 500; ++round) {
    Layout layout = random_permuted_layout(random);
    check_left_inverse(layout);
    IntVector strides;
    for (std::int64_t stride : layout.stride().leaves()) strides.push_back(3 * stride);
    check_left_inverse(Layout(layout.shape(), layout.shape().with_leaves(strides)));
  }
}

TEST(LeftInverse, Examples) {
  auto text = [](const char* layout) {
    return left_inverse(Layout::parse(layout).value())->to_string();
  };
  EXPECT_EQ(text("(8,4):(1,8)"), "(4,8):(1,4)");
  EXPECT_EQ(text("3:8"), "(3,8):(1,3)");
  // 13 is not a multiple of 6: R covers only the values below 12.
  EXPECT_EQ(text("(6,2):(1,13)"), "12:2");
  EXPECT_EQ(text("(8,3):(9,2)"), "(3,2):(1,24)");
  EXPECT_EQ(text("():()"), "1:0");
  // 8 is also a value of the mode of size 4, and R returns its index there.
  EXPECT_EQ(text("(2,4):(8,4)"), "(4,4):(1,8)");
  // R is correct for the values 0 and 2, but not for 3, which interlocks with 2 and 4.
  EXPECT_EQ(text("(3,2):(2,3)"), "(3,2):(2,6)");
}

TEST(LeftInverse, Refusals) {
  auto refuses = [](const char* layout, const std::vector<std::string>& parts) {
    return throws_error([&] { (void)left_inverse(Layout::parse(layout).value()).value(); },
                        ErrorCode::kInvalidArgument, parts);
  };
  EXPECT_TRUE(refuses("(3,2):(2,-1)", {"(3,2):(2,-1)", "mode 2:-1", "negative"}));
  EXPECT_TRUE(refuses("(8,2):(1,2)", {"mode 2:2 lies within the extent", "8"}));
  EXPECT_TRUE(refuses("2:4611686018427387904", {"64 bits"}));
}

}  // namespace
}  // namespace meshard
