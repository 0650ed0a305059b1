#include "meshard/ops/cholesky.h"

#include <gtest/gtest.h>

#include "meshard/graph/record.h"
#include "meshard/ops/op_testutil.h"
#include "tests/support/emitted.h"
#include "tests/support/matchers.h"

namespace meshard {

extern const OpDef cholesky_op;

namespace {

TEST(Cholesky, EmitsAsSpecified) {
  Tensor x = input({3, 4, 4});
  Tensor y = record(cholesky_op, nullptr, {&x}, SourceLocation::current());
  EXPECT_EQ(emitted(y),
            "%0 = \"stablehlo.cholesky\"(%arg0) <{lower = true}> : (tensor<3x4x4xf32>) -> "
            "tensor<3x4x4xf32>");
  EXPECT_EQ(rule_of(y), "([i, j, k])->([i, j, k]) {i=3, j=4, k=4} need_replication={j, k}");
}

TEST(Cholesky, Types) {
  EXPECT_EQ(cholesky(input({2, 2}, DType::i32)).dtype(), DType::f32);
  EXPECT_EQ(cholesky(input({2, 2}, DType::bf16)).dtype(), DType::bf16);
  EXPECT_EQ(cholesky(input({2, 2}, DType::c128), true).dtype(), DType::c128);
  EXPECT_TRUE(throws_error(
      [] {
        cholesky(input({2, 3}));
      },
      ErrorCode::kInvalidArgument, {"cholesky_test.cc:", "[cholesky]", "square", "f32[2,3]"}));
  EXPECT_TRUE(throws_error([] { cholesky(input({2})); }, ErrorCode::kInvalidArgument,
                           {"cholesky_test.cc:", "[cholesky]", "f32[2]"}));
}

}  // namespace
}  // namespace meshard
