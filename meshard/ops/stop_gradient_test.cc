#include "meshard/ops/stop_gradient.h"

#include <gtest/gtest.h>

#include "meshard/graph/leaf.h"
#include "tests/support/check_vjp.h"
#include "tests/support/emitted.h"

namespace meshard {
namespace {

TEST(StopGradient, IsAReshapeToTheSameShape) {
  Tensor x = from_host<float>({1, 2, 3, 4, 5, 6}, {2, 3});
  EXPECT_EQ(emitted(stop_gradient(x)),
            R"(%0 = "stablehlo.reshape"(%arg0) : (tensor<2x3xf32>) -> tensor<2x3xf32>)");
}

TEST(StopGradient, PassesNoCotangent) {
  Tensor x = from_host<float>({1, 2, 3, 4, 5, 6}, {2, 3});
  EXPECT_FALSE(recorded_vjp(stop_gradient(x), x)[0].defined());
}

}  // namespace
}  // namespace meshard
