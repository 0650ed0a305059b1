#include "meshard/array/number.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/support/matchers.h"

namespace meshard {
namespace {

using namespace dtypes;

template <class T>
T held(DType dtype, auto number) {
  return scalar_array(Scalar(number), dtype).template data<T>()[0];
}

bool refused(DType dtype, auto number, const char* shown) {
  return throws_error([&] { (void)scalar_array(Scalar(number), dtype); },
                      ErrorCode::kInvalidArgument,
                      {"number_test.cc:", cat(dtype, " cannot hold ", shown)});
}

TEST(Number, IntegersAreHeldExactlyOrRefused) {
  EXPECT_EQ(held<std::int8_t>(i8, -128), -128);
  EXPECT_EQ(held<std::uint8_t>(u8, 255), 255);
  EXPECT_EQ(held<std::int64_t>(i64, std::numeric_limits<std::int64_t>::min()),
            std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(held<std::uint64_t>(u64, std::numeric_limits<std::uint64_t>::max()),
            std::numeric_limits<std::uint64_t>::max());
  EXPECT_TRUE(refused(i8, -129, "-129"));
  EXPECT_TRUE(refused(i8, 128, "128: it holds -128 to 127"));
  EXPECT_TRUE(refused(u8, 256, "256"));
  EXPECT_TRUE(refused(u8, -1, "-1: it holds 0 to 255"));
  EXPECT_TRUE(refused(i32, 5000000000, "5000000000"));
  EXPECT_TRUE(refused(u64, -1, "-1: it holds 0 to 18446744073709551615"));
  EXPECT_TRUE(refused(i64, std::numeric_limits<std::uint64_t>::max(), "18446744073709551615"));
}

TEST(Number, FloatsInIntegersKeepTheirWholePart) {
  EXPECT_EQ(held<std::int32_t>(i32, 2.75), 2);
  EXPECT_EQ(held<std::uint8_t>(u8, 255.5), 255);
  EXPECT_EQ(held<std::uint8_t>(u8, -0.5), 0);
  EXPECT_EQ(held<std::int64_t>(i64, -0x1p63), std::numeric_limits<std::int64_t>::min());
  EXPECT_TRUE(refused(i64, 0x1p63, "9223372036854775808"));
  EXPECT_TRUE(refused(u64, 0x1p64, "18446744073709551616"));
  EXPECT_TRUE(refused(i32, std::numeric_limits<double>::infinity(), "inf"));
  EXPECT_TRUE(refused(u8, std::nan(""), "nan"));
}

TEST(Number, FloatsRoundAndDoNotOverflow) {
  EXPECT_EQ(held<float>(f32, 0.1), 0.1f);
  EXPECT_EQ(held<float>(f32, (std::int64_t{1} << 24) + 1), 16777216.0f);
  // 2^64 - 1 rounds to 2^64 and is not treated as -1.
  EXPECT_EQ(held<float>(f32, std::numeric_limits<std::uint64_t>::max()), 0x1p64f);
  EXPECT_EQ(held<double>(f64, std::numeric_limits<std::uint64_t>::max()), 0x1p64);
  EXPECT_EQ(held<float>(f32, 1e-300), 0.0f);
  EXPECT_TRUE(refused(f32, 1e300, "1e+300: it holds numbers from -3.4"));
  EXPECT_TRUE(refused(f32, -1e300, "-1e+300"));
  EXPECT_TRUE(refused(f16, 65520, "65520"));  // halfway between the largest number and 2^16
  EXPECT_EQ(scalar_array(Scalar(65519), f16).item<float>(), 65504.0f);
  EXPECT_TRUE(refused(f8e4m3fn, 1000, "1000"));  // a dtype without infinity
  EXPECT_TRUE(refused(c64, 1e300, "1e+300"));
  EXPECT_TRUE(refused(f8e8m0fnu, -1, "-1"));
  EXPECT_EQ(scalar_array(Scalar(2.5), c128).item<double>(), 2.5);
}

TEST(Number, LongDoublesBeyondDoublesAreRefused) {
  if constexpr (std::numeric_limits<long double>::max_exponent >
                std::numeric_limits<double>::max_exponent) {
    EXPECT_TRUE(refused(f64, std::numeric_limits<long double>::max(), "a number above"));
  }
  EXPECT_EQ(held<double>(f64, 2.5L), 2.5);
}

TEST(Number, InfinitiesAndNanAreValuesOfFloats) {
  EXPECT_EQ(held<float>(f32, std::numeric_limits<double>::infinity()),
            std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::isnan(held<float>(f32, std::nan(""))));
  EXPECT_TRUE(
      std::isinf(scalar_array(Scalar(-std::numeric_limits<float>::infinity()), f16).item<float>()));
}

TEST(Number, BoolsAreTrueForAnythingButZero) {
  EXPECT_TRUE(held<bool>(bool_, 256));
  EXPECT_TRUE(held<bool>(bool_, 1e300));
  EXPECT_FALSE(held<bool>(bool_, 0.0));
  EXPECT_EQ(held<std::int8_t>(i8, true), 1);
  EXPECT_EQ(held<float>(f32, true), 1.0f);
}

TEST(Number, Text) {
  EXPECT_EQ(Scalar(-5).to_string(), "-5");
  EXPECT_EQ(Scalar(std::numeric_limits<std::uint64_t>::max()).to_string(), "18446744073709551615");
  EXPECT_EQ(Scalar(1e300).to_string(), "1e+300");
  EXPECT_EQ(Scalar(true).to_string(), "true");
  EXPECT_EQ(Scalar(std::numeric_limits<std::uint64_t>::max()).as_double(), 0x1p64);
}

}  // namespace
}  // namespace meshard
