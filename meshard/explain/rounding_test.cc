#include "meshard/explain/rounding.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "meshard/graph/abstract_tensor.h"
#include "meshard/graph/record.h"
#include "meshard/ops/all.h"
#include "tests/support/random.h"

namespace meshard {
namespace {

HostArray array_of(std::vector<float> values, Shape shape) {
  return HostArray::from_vector(std::move(values), std::move(shape));
}

std::int64_t terms_of(const Tensor& tensor) { return summed_terms(*tensor.value().node()); }

TEST(Rounding, TermsOfASum) {
  internal::TraceScope scope;
  Tensor x = abstract_tensor({8, 128}, DType::f32), w = abstract_tensor({128, 16}, DType::f32);
  EXPECT_EQ(terms_of(sum(x)), 8 * 128);
  EXPECT_EQ(terms_of(sum(x, {1})), 128);
  EXPECT_EQ(terms_of(matmul(x, w)), 128);
  EXPECT_EQ(terms_of(cumulative_sum(x, 1)), 128);
  EXPECT_EQ(terms_of(tanh(x)), 1);
  EXPECT_EQ(terms_of(max(x)), 1);
  EXPECT_EQ(terms_of(reshape(x, {1024})), 1);
}

// Sums of random terms in many orders differ by less than the bound, and the sum without an eighth
// of its terms by more.
TEST(Rounding, TheBoundIsBetweenTheErrorOfOrdersAndThatOfAMissingShard) {
  internal::TraceScope scope;
  TestRandom random;
  std::normal_distribution<double> normal;
  for (std::int64_t n : {64, 4096, 65536}) {
    for (double mean : {0.0, 1.0}) {
      std::vector<float> terms(static_cast<std::size_t>(n));
      for (float& term : terms) term = static_cast<float>(normal(random) + mean);
      auto forward = [&](std::size_t from, std::size_t to) {
        float total = 0;
        for (std::size_t i = from; i < to; ++i) total += terms[i];
        return total;
      };
      float whole = forward(0, terms.size()), backward = 0, in_parts = 0;
      for (std::size_t i = terms.size(); i-- > 0;) backward += terms[i];
      std::size_t part = terms.size() / 8;
      for (std::size_t p = 0; p < 8; ++p) in_parts += forward(p * part, (p + 1) * part);
      std::vector<HostArray> operands = {array_of(terms, {n})};
      Tensor x = abstract_tensor({n}, DType::f32);
      double bound =
          explained_by_rounding(*sum(x).value().node(), operands, array_of({whole}, {}), 8);
      EXPECT_LT(std::abs(whole - backward), bound);
      EXPECT_LT(std::abs(whole - in_parts), bound);
      // The standard deviation of an eighth of the terms; their sum, if they have one sign.
      double missing =
          std::max(std::sqrt(static_cast<double>(n) / 8), mean * static_cast<double>(n) / 8);
      EXPECT_GT(missing, 4 * bound) << n << " " << mean;
    }
  }
}

TEST(Rounding, NothingIsExplainedWhereNothingIsAdded) {
  internal::TraceScope scope;
  Tensor x = abstract_tensor({4}, DType::f32);
  std::vector<HostArray> operands = {array_of({1, 2, 3, 4}, {4})};
  EXPECT_EQ(explained_by_rounding(*exp(x).value().node(), operands, operands[0], 8), 0);
}

}  // namespace
}  // namespace meshard
