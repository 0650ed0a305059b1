#include "meshard/ops/reduce_precision.h"

#include <gtest/gtest.h>

#include "meshard/ops/op_testutil.h"
#include "tests/support/check_vjp.h"
#include "tests/support/emitted.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

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
  EXPECT_EQ(slope.value()->attributes_as<ReducePrecisionAttributes>().mantissa_bits, 10);
}

TEST(ReducePrecision, Errors) {
  EXPECT_TRUE(throws_error([] { reduce_precision(input({2}), 0, 10); }, ErrorCode::kInvalidArgument,
                           {"reduce_precision_test.cc:", "0 exponent bits", "10 mantissa bits"}));
  EXPECT_EQ(reduce_precision(input({2}, DType::i32), 5, 10).dtype(), DType::f32);
}

}  // namespace
}  // namespace meshard
