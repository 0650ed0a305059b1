#include "meshard/ops/factorization.h"

#include <gtest/gtest.h>

#include "meshard/graph/record.h"
#include "meshard/ops/definition/op_table.h"
#include "meshard/ops/op_testutil.h"
#include "tests/support/emitted.h"
#include "tests/support/matchers.h"

namespace meshard {
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
      ErrorCode::kInvalidArgument, {"factorization_test.cc:", "[cholesky]", "square", "f32[2,3]"}));
  EXPECT_TRUE(throws_error([] { cholesky(input({2})); }, ErrorCode::kInvalidArgument,
                           {"factorization_test.cc:", "[cholesky]", "f32[2]"}));
}

TEST(Eigh, Types) {
  auto [values, vectors] = eigh(input({2, 3, 3}));
  EXPECT_EQ(values.type().to_string() + " " + vectors.type().to_string(), "f32[2,3] f32[2,3,3]");
  EXPECT_EQ(rule_of(values),
            "([i, j, k])->([i, l], [i, m, n]) {i=2, j=3, k=3, l=3, m=3, n=3} "
            "need_replication={j, k, l, m, n}");
  auto [real_values, complex_vectors] = eigh(input({3, 3}, DType::c128));
  EXPECT_EQ(real_values.type().to_string() + " " + complex_vectors.type().to_string(),
            "f64[3] c128[3,3]");
  EXPECT_EQ(eigvalsh(input({3, 3}, DType::c64)).type().to_string(), "f32[3]");
  EXPECT_TRUE(throws_error(
      [] {
        eigh(input({2, 3}));
      },
      ErrorCode::kInvalidArgument, {"factorization_test.cc:", "[eigh]", "f32[2,3]"}));
}

TEST(Qr, Types) {
  auto [q, r] = qr(input({2, 5, 3}));
  EXPECT_EQ(q.type().to_string() + " " + r.type().to_string(), "f32[2,5,3] f32[2,3,3]");
  auto [square_q, square_r] = qr(input({2, 5, 3}), true);
  EXPECT_EQ(square_q.type().to_string() + " " + square_r.type().to_string(),
            "f32[2,5,5] f32[2,5,3]");
  auto [wide_q, wide_r] = qr(input({3, 5}, DType::c128));
  EXPECT_EQ(wide_q.type().to_string() + " " + wide_r.type().to_string(), "c128[3,3] c128[3,5]");
  EXPECT_EQ(qr(input({3, 3}, DType::bf16)).r.dtype(), DType::bf16);
  EXPECT_TRUE(
      throws_error([] { qr(input({3})); }, ErrorCode::kInvalidArgument, {"[qr]", "f32[3]"}));
}

}  // namespace
}  // namespace meshard
