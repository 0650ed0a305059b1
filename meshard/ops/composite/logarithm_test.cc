#include "meshard/ops/composite/logarithm.h"

#include <gtest/gtest.h>

#include <cmath>

#include "meshard/graph/leaf.h"
#include "tests/support/interpreter.h"

namespace meshard {
namespace {

TEST(Logarithm, OfBaseTwoAndTen) {
  for (double x : {0.001, 0.5, 1.0, 2.0, 10.0, 12345.0}) {
    Tensor at = from_host<double>({x}, {1});
    EXPECT_NEAR(interpret(log2(at)).item<double>(), std::log2(x), 1e-14);
    EXPECT_NEAR(interpret(log10(at)).item<double>(), std::log10(x), 1e-14);
  }
  for (double x : {-3.0, 0.0, 0.5, 10.0})
    EXPECT_NEAR(interpret(exp2(from_host<double>({x}, {1}))).item<double>(), std::exp2(x),
                1e-12 * std::exp2(x));
}

TEST(Logarithm, ComputesIntegersInF32) {
  Tensor whole = from_host<std::int32_t>({1, 2}, {2});
  for (auto op : {exp2, log2, log10}) EXPECT_EQ(op(whole).dtype(), DType::f32);
}

}  // namespace
}  // namespace meshard
