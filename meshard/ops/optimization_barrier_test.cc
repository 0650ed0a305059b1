#include "meshard/ops/optimization_barrier.h"

#include <gtest/gtest.h>

#include "meshard/ops/op_testutil.h"
#include "tests/support/emitted.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

TEST(OptimizationBarrier, Emits) {
  EXPECT_EQ(emitted(optimization_barrier(input({4}))),
            "%0 = \"stablehlo.optimization_barrier\"(%arg0) : (tensor<4xf32>) -> tensor<4xf32>");
}

TEST(OptimizationBarrier, SeveralPassTogether) {
  std::vector<Tensor> y = optimization_barrier({input({4}), input({2, 2})});
  EXPECT_EQ(emitted(y[1]),
            "%0, %1 = \"stablehlo.optimization_barrier\"(%arg0, %arg1) : (tensor<4xf32>, "
            "tensor<2x2xf32>) -> (tensor<4xf32>, tensor<2x2xf32>)");
  EXPECT_EQ(y[0].value().node(), y[1].value().node());
  EXPECT_TRUE(optimization_barrier(std::vector<Tensor>{}).empty());
  EXPECT_TRUE(throws_error(
      [] {
        optimization_barrier({input({4}), Tensor()});
      },
      ErrorCode::kInvalidArgument, {"operand 1", "no value"}));
}

}  // namespace
}  // namespace meshard
