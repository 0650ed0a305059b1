#include "meshard/ops/atan2.h"

#include <gtest/gtest.h>

#include "meshard/graph/leaf.h"
#include "tests/support/emitted.h"
#include "tests/support/interpreter.h"

namespace meshard {
namespace {

TEST(Atan2, Emits) {
  Tensor x = from_host<float>({1, 2}, {2}), y = from_host<float>({3, 4}, {2});
  EXPECT_EQ(emitted(atan2(x, y)), "%0 = stablehlo.atan2 %arg0, %arg1 : tensor<2xf32>");
}

TEST(Atan2, KnowsTheQuadrants) {
  Tensor angle =
      atan2(from_host<double>({1, 1, -1, -1}, {4}), from_host<double>({1, -1, -1, 1}, {4}));
  std::vector<double> got = interpret(angle).to_vector<double>();
  const double kQuarter = 0.7853981633974483;  // pi / 4
  EXPECT_NEAR(got[0], kQuarter, 1e-15);
  EXPECT_NEAR(got[1], 3 * kQuarter, 1e-15);
  EXPECT_NEAR(got[2], -3 * kQuarter, 1e-15);
  EXPECT_NEAR(got[3], -kQuarter, 1e-15);
}

}  // namespace
}  // namespace meshard
