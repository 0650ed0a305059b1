#include "meshard/ops/nextafter.h"

#include <gtest/gtest.h>

#include "meshard/graph/leaf.h"
#include "tests/support/check_vjp.h"
#include "tests/support/emitted.h"

namespace meshard {
namespace {

TEST(Nextafter, Emits) {
  Tensor x = from_host<float>({1, 2}, {2});
  EXPECT_EQ(
      emitted(nextafter(x, x)),
      R"(%0 = "chlo.next_after"(%arg0, %arg1) : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>)");
}

TEST(Nextafter, BroadcastsAndComputesIntegersInF32) {
  Tensor whole = from_host<std::int32_t>({1, 2}, {2, 1});
  EXPECT_EQ(nextafter(1, whole).type(), (TensorType{DType::f32, Shape{2, 1}}));
  EXPECT_EQ(nextafter(whole, from_host<double>({1, 2}, {2})).type(),
            (TensorType{DType::f64, Shape{2, 2}}));
}

}  // namespace
}  // namespace meshard
