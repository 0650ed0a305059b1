#include "meshard/ops/rounding.h"

#include <gtest/gtest.h>

#include "meshard/graph/leaf.h"
#include "tests/support/check_vjp.h"
#include "tests/support/emitted.h"

namespace meshard {
namespace {

TEST(Rounding, Emits) {
  Tensor x = from_host<float>({1, 2}, {2});
  EXPECT_EQ(emitted(floor(x)), "%0 = stablehlo.floor %arg0 : tensor<2xf32>");
  EXPECT_EQ(emitted(ceil(x)), "%0 = stablehlo.ceil %arg0 : tensor<2xf32>");
  EXPECT_EQ(emitted(round(x)), "%0 = stablehlo.round_nearest_even %arg0 : tensor<2xf32>");
  EXPECT_EQ(emitted(round_nearest_afz(x)),
            "%0 = stablehlo.round_nearest_afz %arg0 : tensor<2xf32>");
  EXPECT_EQ(emitted(trunc(x)), R"(%t0 = stablehlo.constant dense<0.0> : tensor<2xf32>
%t1 = "stablehlo.compare"(%arg0, %t0) <{comparison_direction = #stablehlo<comparison_direction LT>}> : (tensor<2xf32>, tensor<2xf32>) -> tensor<2xi1>
%t2 = stablehlo.ceil %arg0 : tensor<2xf32>
%t3 = stablehlo.floor %arg0 : tensor<2xf32>
%0 = "stablehlo.select"(%t1, %t2, %t3) : (tensor<2xi1>, tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>)");
}

TEST(Rounding, LeavesIntegersAlone) {
  Tensor x = from_host<std::int64_t>({1, 2}, {2});
  for (auto op : {floor, ceil, round, round_nearest_afz, trunc})
    EXPECT_EQ(op(x).value(), x.value());
}

TEST(Rounding, HasNoSlope) {
  Tensor x = from_host<float>({1.5f, 2}, {2});
  for (auto op : {floor, ceil, round, round_nearest_afz, trunc})
    EXPECT_FALSE(recorded_vjp(op(x), x)[0].defined());
}

}  // namespace
}  // namespace meshard
