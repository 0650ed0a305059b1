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

TEST(Eigh, TypesAndText) {
  auto [values, vectors] = eigh(input({2, 3, 3}));
  EXPECT_EQ(values.type().to_string() + " " + vectors.type().to_string(), "f32[2,3] f32[2,3,3]");
  std::string text = emitted(values);
  EXPECT_NE(text.find("call_target_name = \"Eigh\""), text.npos) << text;
  EXPECT_TRUE(throws_error(
      [] {
        eigh(input({2, 3}));
      },
      ErrorCode::kInvalidArgument, {"factorization_test.cc:", "[eigh]", "f32[2,3]"}));
  EXPECT_TRUE(throws_error(
      [] {
        eigh(input({3, 3}, DType::c64));
      },
      ErrorCode::kInvalidArgument, {"[eigh]", "c64[3,3]"}));
}

TEST(Qr, Types) {
  auto [q, r] = qr(input({2, 5, 3}));
  EXPECT_EQ(q.type().to_string() + " " + r.type().to_string(), "f32[2,5,3] f32[2,3,3]");
  auto [wide_q, wide_r, sign] = signed_qr(input({3, 5}, DType::f64));
  EXPECT_EQ(wide_q.type().to_string() + " " + wide_r.type().to_string(), "f64[3,3] f64[3,5]");
  EXPECT_EQ(sign.type().to_string(), "f64[]");
  EXPECT_EQ(qr(input({3, 3}, DType::bf16)).r.dtype(), DType::bf16);
  EXPECT_TRUE(throws_error(
      [] {
        qr(input({3, 3}, DType::c64));
      },
      ErrorCode::kInvalidArgument, {"factorization_test.cc:", "[qr]", "c64[3,3]"}));
  EXPECT_TRUE(
      throws_error([] { qr(input({3})); }, ErrorCode::kInvalidArgument, {"[qr]", "f32[3]"}));
}

TEST(Qr, CallsTheCompilersFactorization) {
  std::string text = emitted(qr(input({4, 3})).q);
  EXPECT_NE(text.find("call_target_name = \"Qr\""), text.npos) << text;
  EXPECT_NE(text.find("call_target_name = \"ProductOfElementaryHouseholderReflectors\""), text.npos)
      << text;
}

}  // namespace
}  // namespace meshard
