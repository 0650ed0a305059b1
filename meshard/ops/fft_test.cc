#include "meshard/ops/fft.h"

#include <gtest/gtest.h>

#include "meshard/ops/op_testutil.h"
#include "tests/support/emitted.h"
#include "tests/support/matchers.h"

namespace meshard {
namespace {

TEST(Fft, EmitsAsSpecified) {
  Tensor y = fft(input({4, 8}), FftKind::kRfft, {8});
  EXPECT_EQ(emitted(y),
            "%t0 = \"stablehlo.custom_call\"(%arg0) <{call_target_name = \"LayoutConstraint\", "
            "operand_layouts = [dense<[1, 0]> : tensor<2xindex>], "
            "result_layouts = [dense<[1, 0]> : tensor<2xindex>]}> : "
            "(tensor<4x8xf32>) -> tensor<4x8xf32>\n"
            "%t1 = \"stablehlo.fft\"(%t0) <{fft_type = #stablehlo<fft_type RFFT>, fft_length = "
            "array<i64: 8>}> : (tensor<4x8xf32>) -> tensor<4x5xcomplex<f32>>\n"
            "%0 = \"stablehlo.custom_call\"(%t1) <{call_target_name = \"LayoutConstraint\", "
            "operand_layouts = [dense<[1, 0]> : tensor<2xindex>], "
            "result_layouts = [dense<[1, 0]> : tensor<2xindex>]}> : "
            "(tensor<4x5xcomplex<f32>>) -> tensor<4x5xcomplex<f32>>");
  EXPECT_EQ(rule_of(y), "([i, j])->([i, k]) {i=4, j=8, k=5} need_replication={j, k}");
}

TEST(Fft, Types) {
  EXPECT_EQ(fft(input({6})).type().to_string(), "c64[6]");
  EXPECT_EQ(fft(input({6, 4}, DType::f64), 8, 0).type().to_string(), "c128[8,4]");
  EXPECT_EQ(fft(input({6}, DType::i32), 4).type().to_string(), "c64[4]");
  EXPECT_EQ(ifft(input({6}, DType::c128)).type().to_string(), "c128[6]");
  EXPECT_EQ(rfft(input({3, 6})).type().to_string(), "c64[3,4]");
  EXPECT_EQ(rfft(input({3, 7}), std::nullopt, 0).type().to_string(), "c64[2,7]");
  EXPECT_EQ(irfft(input({3, 4}, DType::c64)).type().to_string(), "f32[3,6]");
  EXPECT_EQ(irfft(input({3, 4}, DType::c64), 7).type().to_string(), "f32[3,7]");
  EXPECT_EQ(fftn(input({3, 4, 2, 5})).type().to_string(), "c64[3,4,2,5]");
  EXPECT_EQ(rfftn(input({3, 4, 6}), {1, 2}).type().to_string(), "c64[3,4,4]");
  EXPECT_EQ(irfftn(input({3, 4, 4}, DType::c64), {1, 2}, 7).type().to_string(), "f32[3,4,7]");
  EXPECT_EQ(ifftn(input({3, 4}), 0).type().to_string(), "c64[3,4]");
}

TEST(Fft, ErrorsHaveBothValues) {
  auto fails = [](std::vector<std::string> parts, auto call) {
    parts.emplace_back("fft_test.cc:");
    EXPECT_TRUE(throws_error(call, ErrorCode::kInvalidArgument, parts));
  };
  fails({"[rfft] takes real numbers, not c64[4]"}, [] { rfft(input({4}, DType::c64)); });
  fails({"[fft]", "dimension 1 of f32[4,8] must have size 6"}, [] {
    fft(input({4, 8}), FftKind::kRfft, {6});
  });
  fails({"[fft] fft takes complex numbers, not f32[8]"},
        [] { fft(input({8}), FftKind::kFft, {8}); });
  fails({"4 lengths are given for c64[2,2,2,2,2]"}, [] {
    fft(input({2, 2, 2, 2, 2}, DType::c64), FftKind::kFft, {2, 2, 2, 2});
  });
  fails({"[ifft] invalid length 0"}, [] { ifft(input({4}), 0); });
}

}  // namespace
}  // namespace meshard
