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

}  // namespace
}  // namespace meshard
