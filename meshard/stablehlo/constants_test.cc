#include "meshard/stablehlo/constants.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace meshard::stablehlo {
namespace {

using namespace dtypes;  // NOLINT

TEST(Dense, SplatsAreOneLiteral) {
  EXPECT_EQ(dense_text(HostArray::full<float>({8, 4}, 2.5f)), "dense<2.5> : tensor<8x4xf32>");
  EXPECT_EQ(dense_text(HostArray::scalar(1.0f)), "dense<1.0> : tensor<f32>");
  EXPECT_EQ(dense_text(HostArray::full<std::int32_t>({2}, -7)), "dense<-7> : tensor<2xi32>");
  EXPECT_EQ(dense_text(HostArray::scalar(std::numeric_limits<std::uint64_t>::max())),
            "dense<18446744073709551615> : tensor<ui64>");
  EXPECT_EQ(dense_text(HostArray::full<bool>({9}, true)), "dense<true> : tensor<9xi1>");
  EXPECT_EQ(dense_text(HostArray::scalar(1e30)), "dense<1.0e+30> : tensor<f64>");
  EXPECT_EQ(splat_text({bf16, {1 << 20, 1 << 20}}, 1), "dense<1.0> : tensor<1048576x1048576xbf16>");
}

// 0.1f is 0x3DCCCCCD, whose decimal form is long; the others have no decimal form in MLIR.
TEST(Dense, BitsWhereDigitsWouldNotDo) {
  EXPECT_EQ(splat_text({f32, {}}, 0.1), "dense<0x3DCCCCCD> : tensor<f32>");
  EXPECT_EQ(splat_text({f64, {}}, 0.1), "dense<0.1> : tensor<f64>");
  EXPECT_EQ(splat_text({f32, {2}}, NAN), "dense<0x7FC00000> : tensor<2xf32>");
  EXPECT_EQ(splat_text({f32, {}}, -INFINITY), "dense<0xFF800000> : tensor<f32>");
  EXPECT_EQ(splat_text({f32, {}}, -0.0), "dense<0x80000000> : tensor<f32>");
  EXPECT_EQ(splat_text({f8e4m3fn, {}}, NAN), "dense<0x7F> : tensor<f8E4M3FN>");
  EXPECT_EQ(splat_text({bf16, {}}, INFINITY), "dense<0x7F80> : tensor<bf16>");
}

TEST(Dense, ArraysAreBytes) {
  EXPECT_EQ(dense_text(HostArray::from_vector<std::int16_t>({1, -2})),
            "dense<\"0x0100FEFF\"> : tensor<2xi16>");
  EXPECT_EQ(dense_text(HostArray::from_vector<float>({1.0f, 0.0f}, {1, 2})),
            "dense<\"0x0000803F00000000\"> : tensor<1x2xf32>");
  EXPECT_EQ(dense_text(HostArray::from_vector<float>({0.0f, -0.0f})),
            "dense<\"0x0000000000000080\"> : tensor<2xf32>");
  EXPECT_EQ(dense_text(HostArray::zeros({f32, {0, 3}})), "dense<> : tensor<0x3xf32>");
}

// The hexadecimal form of bools is not the same in all versions of MLIR.
TEST(Dense, BoolsAreWords) {
  EXPECT_EQ(dense_text(HostArray::from_vector<bool>({1, 0, 1})),
            "dense<[true, false, true]> : tensor<3xi1>");
  EXPECT_EQ(dense_text(HostArray::from_vector<bool>({1, 0, 0, 1}, {2, 1, 2})),
            "dense<[[[true, false]], [[false, true]]]> : tensor<2x1x2xi1>");
}

TEST(Constants, ComplexNumbersArePairs) {
  EXPECT_EQ(dense_text(HostArray::full<Complex64>({2}, {1, -2.5f})),
            "dense<(1.0, -2.5)> : tensor<2xcomplex<f32>>");
  EXPECT_EQ(splat_text({DType::c128, {}}, 3), "dense<(3.0, 0.0)> : tensor<complex<f64>>");
  EXPECT_EQ(dense_text(HostArray::from_vector<Complex64>({{1, 0}, {0, 1}})),
            "dense<\"0x0000803F00000000000000000000803F\"> : tensor<2xcomplex<f32>>");
}

}  // namespace
}  // namespace meshard::stablehlo
