#include "meshard/ops/rounding.h"

#include <gtest/gtest.h>

#include "meshard/graph/leaf.h"
#include "meshard/ops/op_testutil.h"
#include "tests/support/check_vjp.h"
#include "tests/support/emitted.h"
#include "tests/support/matchers.h"

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

TEST(ReducePrecision, Emits) {
  EXPECT_EQ(
      emitted(reduce_precision(input({2}), 5, 10)),
      "%0 = \"stablehlo.reduce_precision\"(%arg0) <{exponent_bits = 5 : i32, mantissa_bits = 10 "
      ": i32}> : (tensor<2xf32>) -> tensor<2xf32>");
}

TEST(ReducePrecision, TheCotangentIsRoundedAlike) {
  Tensor x = input({2});
  Tensor slope = recorded_vjp(reduce_precision(x, 5, 10), x)[0];
  EXPECT_EQ(slope.value()->op().name, "reduce_precision");
  std::string attributes;
  slope.value()->attributes()->print(attributes);
  EXPECT_EQ(attributes, "exponent_bits=5, mantissa_bits=10");
}

TEST(ReducePrecision, Errors) {
  EXPECT_TRUE(throws_error([] { reduce_precision(input({2}), 0, 10); }, ErrorCode::kInvalidArgument,
                           {"rounding_test.cc:", "0 exponent bits", "10 mantissa bits"}));
  EXPECT_EQ(reduce_precision(input({2}, DType::i32), 5, 10).dtype(), DType::f32);
}

}  // namespace
}  // namespace meshard
