#include "meshard/ops/rng_bit_generator.h"

#include <gtest/gtest.h>

#include "meshard/ops/op_testutil.h"
#include "tests/support/emitted.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

TEST(RngBitGenerator, EmitsAndRule) {
  RandomBits made = rng_bit_generator(input({2}, DType::u64), {4, 8});
  EXPECT_EQ(emitted(made.state),
            "%0, %1 = \"stablehlo.rng_bit_generator\"(%arg0) <{rng_algorithm = "
            "#stablehlo<rng_algorithm THREE_FRY>}> : (tensor<2xui64>) -> (tensor<2xui64>, "
            "tensor<4x8xui32>)");
  EXPECT_EQ(made.bits.type(), (TensorType{DType::u32, {4, 8}}));
  EXPECT_EQ(rule_of(made.state), "([i])->([i], [j, k]) {i=2, j=4, k=8} need_replication={i, j, k}");
}

TEST(RngBitGenerator, Errors) {
  EXPECT_TRUE(throws_error(
      [] { rng_bit_generator(input({3}, DType::u64), {4}); }, ErrorCode::kInvalidArgument,
      {"rng_bit_generator_test.cc:", "THREE_FRY must be u64[2]", "not u64[3]"}));
  EXPECT_TRUE(
      throws_error([] { rng_bit_generator(input({2}), {4}, DType::u32, RngAlgorithm::kPhilox); },
                   ErrorCode::kInvalidArgument, {"u64[2] or u64[3]", "not f32[2]"}));
  EXPECT_TRUE(throws_error([] { rng_bit_generator(input({2}, DType::u64), {4}, DType::f32); },
                           ErrorCode::kInvalidArgument, {"generates integers, not f32"}));
}

}  // namespace
}  // namespace meshard
