#include "meshard/ops/qr.h"

#include <gtest/gtest.h>

#include "meshard/ops/op_testutil.h"
#include "tests/support/emitted.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

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
      ErrorCode::kInvalidArgument, {"qr_test.cc:", "[qr]", "c64[3,3]"}));
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
