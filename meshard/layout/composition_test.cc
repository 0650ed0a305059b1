#include "meshard/layout/composition.h"

#include <functional>

#include "meshard/layout/from_values.h"
#include "meshard/layout/layout_testutil.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

// @post of composition; false where it refuses.
bool check_composition(const Layout& a, const Layout& b) {
  Result<Layout> result = composition(a, b);
  if (!result) return false;
  std::string text = cat(a, " after ", b, " -> ", *result);
  EXPECT_EQ(result->size(), b.size()) << text;
  if (!b.shape().is_integer()) {
    EXPECT_EQ(result->rank(), b.rank()) << text;
    for (std::size_t k = 0; k < b.rank() && k < result->rank(); ++k)
      EXPECT_EQ(result->mode(k).size(), b.mode(k).size()) << text << ", mode " << k;
  }
  for (std::int64_t i = 0; i < b.size(); ++i) {
    EXPECT_EQ((*result)(i), a(b(i))) << text << " at " << i;
    if (testing::Test::HasFailure()) return true;
  }
  return true;
}

// By brute force: whether a(b(.)) is a layout with b's modes.
bool composition_exists(const Layout& a, const Layout& b) {
  std::span<const std::int64_t> sizes = b.shape().leaves(), strides = b.stride().leaves();
  for (std::size_t k = 0; k < sizes.size(); ++k) {
    std::vector<std::int64_t> values;
    for (std::int64_t i = 0; i < sizes[k]; ++i) values.push_back(a(i * strides[k]));
    if (!from_values(values)) return false;
  }
  for (std::int64_t i = 0; i < b.size(); ++i) {
    std::int64_t rest = i, sum = 0;
    for (std::size_t k = sizes.size(); k-- > 0; rest /= sizes[k])
      sum += a(rest % sizes[k] * strides[k]);
    if (sum != a(b(i))) return false;
  }
  return true;
}

// Refusals are right, but for carries whose values cancel by coincidence: (8,2,4):(4,-4,2) after
// 3:6 is 0, 0, 0.
void check_refusals(int rounds, int least_answers, const std::function<Layout()>& draw_a,
                    const std::function<Layout()>& draw_b) {
  int answered = 0, missed = 0;
  for (int round = 0; round < rounds && !testing::Test::HasFailure(); ++round) {
    Layout a = draw_a(), b = draw_b();
    if (check_composition(a, b))
      ++answered;
    else
      missed += composition_exists(a, b);
  }
  EXPECT_GE(answered, least_answers);
  EXPECT_LE(missed, rounds / 1000);
}

TEST(Composition, Postconditions) {
  TestRandom random;
  check_refusals(
      8000, 4000,
      [&] {
        return random.between(0, 1) == 0 ? random_permuted_layout(random)
                                         : random_signed_layout(random);
      },
      [&] { return random_layout(random); });
}

TEST(Composition, PostconditionsForOneMode) {
  TestRandom random;
  auto draw = [&](std::int64_t modes, std::int64_t size, std::int64_t low, std::int64_t high) {
    IntVector sizes, strides;
    for (; modes > 0; --modes) {
      sizes.push_back(random.between(1, size));
      strides.push_back(random.between(low, high));
    }
    return Layout(IntTuple::flat(sizes), IntTuple::flat(strides));
  };
  check_refusals(
      20000, 6000, [&] { return draw(random.between(1, 4), 9, -20, 40); },
      [&] { return draw(1, 24, 0, 30); });
}

TEST(Composition, Examples) {
  auto text = [](const Layout& a, const Layout& b) { return composition(a, b)->to_string(); };
  EXPECT_EQ(text(Layout({4, 6}, {1, 4}), Layout(IntTuple{8, 3})), "((4,2),3):((1,12),4)");
  EXPECT_EQ(text(Layout({10, 8, 6, 4}, {7, 5, 3, 2}), Layout(IntTuple(6), IntTuple(12))),
            "(3,2):(5,9)");
}

}  // namespace
}  // namespace meshard
