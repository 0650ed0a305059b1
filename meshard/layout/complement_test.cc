#include "meshard/layout/complement.h"

#include <set>

#include "meshard/layout/layout_testutil.h"
#include "meshard/layout/sorted_modes.h"
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

}  // namespace
}  // namespace meshard
