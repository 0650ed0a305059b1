#include "meshard/layout/internal/bounded_sum.h"

#include <set>

#include "tests/support/random.h"

namespace meshard {
namespace {

TEST(BoundedSum, AgreesWithAllSums) {
  TestRandom random;
  for (int round = 0; round < 1500; ++round) {
    BoundedTerms terms;
    std::set<std::int64_t> sums{0};
    for (std::int64_t i = random.between(0, 4); i > 0; --i) {
      std::int64_t step = random.between(-30, 30), count = random.between(0, 6);
      terms.push_back({step, count});
      std::set<std::int64_t> next;
      for (std::int64_t sum : sums)
        for (std::int64_t c = 0; c <= count; ++c) next.insert(sum + c * step);
      sums = next;
    }
    for (std::int64_t target = *sums.begin() - 3; target <= *sums.rbegin() + 3; ++target)
      ASSERT_EQ(has_bounded_sum(terms, target), sums.count(target) == 1) << target;
  }
}

TEST(BoundedSum, TheLastTwoStepsAreDecidedAtOnce) {
  std::int64_t p = 1'000'000'007, q = 998'244'353, many = std::int64_t{1} << 31;
  // Frobenius: p q - p - q is the largest number that is not a sum of p's and q's.
  WideInt frobenius = WideInt{p} * q - p - q;
  EXPECT_FALSE(has_bounded_sum({{p, many}, {q, many}}, frobenius));
  EXPECT_TRUE(has_bounded_sum({{p, many}, {q, many}}, frobenius + 1));
}

}  // namespace
}  // namespace meshard
