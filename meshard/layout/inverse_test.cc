#include <set>

#include "meshard/layout/algebra.h"
#include "meshard/layout/internal/by_mode.h"
#include "meshard/layout/layout_testutil.h"
#include "meshard/layout/values.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

bool divisible_chain(const Layout& layout) {
  std::int64_t reach = 1;
  for (const Mode& mode : sorted_modes(layout)) {
    if (mode.stride == 0) continue;
    if (mode.stride % reach != 0) return false;
    reach = mode.stride * mode.size;
  }
  return true;
}

// @post of complement; false where it refuses.
bool check_complement(const Layout& layout, std::int64_t cotarget) {
  Result<Layout> result = complement(layout, cotarget);
  if (!result) return false;
  std::string text = cat(layout, " in ", cotarget, " -> ", *result);
  std::vector<std::int64_t> offsets = values_of(*result), values = values_of(layout);
  std::set<std::int64_t> own(values.begin(), values.end()), all;
  for (std::size_t i = 1; i < offsets.size(); ++i) EXPECT_LT(offsets[i - 1], offsets[i]) << text;
  for (std::int64_t offset : offsets)
    for (std::int64_t value : own)
      EXPECT_TRUE(all.insert(offset + value).second) << text << ": " << offset + value << " twice";
  if (divisible_chain(layout)) {
    for (std::int64_t i = 0; i < cotarget; ++i)
      EXPECT_EQ(all.count(i), 1u) << text << " misses " << i;
  }
  return true;
}

bool repeats_beside_zero_strides(const Layout& layout) {
  IntVector sizes, strides;
  for (const Mode& mode : sorted_modes(layout)) {
    if (mode.stride == 0) continue;
    sizes.push_back(mode.size);
    strides.push_back(mode.stride);
  }
  std::vector<std::int64_t> values =
      values_of(Layout(IntTuple::flat(sizes), IntTuple::flat(strides)));
  return std::set<std::int64_t>(values.begin(), values.end()).size() != values.size();
}

TEST(Complement, Postconditions) {
  TestRandom random;
  int answered = 0, refused = 0;
  for (int round = 0; round < 3000; ++round) {
    Layout layout = round % 3 == 0 ? random_permuted_layout(random) : random_layout(random);
    bool done = check_complement(layout, random.between(1, 600));
    (done ? answered : refused) += 1;
    EXPECT_FALSE(done && repeats_beside_zero_strides(layout)) << layout.to_string();
    EXPECT_TRUE(done || round % 3 != 0) << layout.to_string();
    if (testing::Test::HasFailure()) break;
  }
  for (const Layout& layout : picked_layouts())
    for (std::int64_t cotarget : {1, 7, 48, 100}) check_complement(layout, cotarget);
  EXPECT_GT(answered, 1000);
  EXPECT_GT(refused, 300);
}

TEST(Complement, Examples) {
  EXPECT_EQ(complement(Layout(IntTuple(4), IntTuple(1)), 24)->to_string(), "6:4");
  EXPECT_EQ(complement(Layout(IntTuple(4), IntTuple(2)), 16)->to_string(), "(2,2):(8,1)");
  EXPECT_EQ(complement(Layout({2, 2}, {4, 1}), 16)->to_string(), "(2,2):(8,2)");
  EXPECT_EQ(complement(Layout(IntTuple(4), IntTuple(0)), 100)->to_string(), "100:1");
  EXPECT_EQ(complement(Layout(), 1)->to_string(), "1:0");
  // The last copy extends beyond 10.
  EXPECT_EQ(complement(Layout(IntTuple(4)), 10)->to_string(), "3:4");
  // 6 is not a multiple of 4: the values 4 and 5 are not covered.
  EXPECT_EQ(complement(Layout({4, 6}, {1, 6}), 48)->to_string(), "2:36");
}

TEST(Complement, Refusals) {
  auto refuses = [](const Layout& layout, std::int64_t cotarget,
                    const std::vector<std::string>& parts) {
    return throws_error([&] { (void)complement(layout, cotarget).value(); },
                        ErrorCode::kInvalidArgument, parts);
  };
  EXPECT_TRUE(refuses(Layout({2, 3}, {2, 1}), 6, {"(2,3):(2,1)", "mode 2:2", "overlaps", "3"}));
  EXPECT_TRUE(refuses(Layout({8, 2}, {1, 2}), 16, {"mode 2:2"}));
  EXPECT_TRUE(refuses(Layout({2, 2}, {1, 1}), 4, {"mode 2:1"}));
  EXPECT_TRUE(refuses(Layout({3, 2}, {2, 3}), 8, {"mode 2:3"}));
  EXPECT_TRUE(refuses(Layout(IntTuple(2), IntTuple(-1)), 4, {"2:-1", "negative"}));
  EXPECT_TRUE(refuses(Layout(), 0, {"below 1"}));
  std::int64_t large = std::int64_t{1} << 62;
  EXPECT_TRUE(refuses(Layout(IntTuple(2), IntTuple(large)), 4, {"64 bits"}));
}

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

// @post of right_inverse
void check_right_inverse(const Layout& layout) {
  Layout result = right_inverse(layout);
  for (std::int64_t i = 0; i < result.size(); ++i)
    ASSERT_EQ(layout(result(i)), i) << layout.to_string() << " -> " << result.to_string();
  EXPECT_LE(result.size(), layout.size());
}

TEST(RightInverse, Postconditions) {
  TestRandom random;
  for (int round = 0; round < 1000; ++round) {
    check_right_inverse(random_layout(random));
    check_right_inverse(random_signed_layout(random));
  }
  for (const Layout& layout : picked_layouts()) check_right_inverse(layout);
}

TEST(RightInverse, PermutationsAreInvertedWhole) {
  TestRandom random;
  for (int round = 0; round < 500; ++round) {
    Layout layout = random_permuted_layout(random);
    check_right_inverse(layout);
    EXPECT_EQ(right_inverse(layout).size(), layout.size()) << layout.to_string();
  }
}

TEST(RightInverse, Examples) {
  auto text = [](const char* layout) {
    return right_inverse(Layout::parse(layout).value()).to_string();
  };
  EXPECT_EQ(text("(8,4):(1,8)"), "(4,8):(1,4)");
  EXPECT_EQ(text("(2,4):(8,1)"), "4:1");  // a gap follows
  EXPECT_EQ(text("3:8"), "1:0");
  EXPECT_EQ(text("(2,4):(0,1)"), "1:0");
}

}  // namespace
}  // namespace meshard
