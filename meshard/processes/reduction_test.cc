#include "meshard/processes/reduction.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

namespace meshard {
namespace {

using testing::HasSubstr;

/// One element of each block, combined.
template <class T>
T combined(Reduction op, const std::vector<T>& elements) {
  std::vector<const void*> blocks;
  std::vector<unsigned char> bytes(elements.size() * sizeof(T));
  for (std::size_t i = 0; i < elements.size(); ++i) {
    T element = elements[i];
    std::memcpy(&bytes[i * sizeof(T)], &element, sizeof(T));
    blocks.push_back(&bytes[i * sizeof(T)]);
  }
  T result{};
  combine_blocks(op, dtype_of<T>(), blocks, &result, 1);
  return result;
}

TEST(Reductions, NamesParse) {
  for (int i = 0; i < kReductionCount; ++i) {
    auto op = static_cast<Reduction>(i);
    EXPECT_EQ(parse_reduction(to_string(op)).value(), op);
  }
  EXPECT_THAT(parse_reduction("mean").error().message(), HasSubstr("\"mean\""));
}

TEST(Reductions, InvalidPairsAreNamed) {
  EXPECT_TRUE(check_reduction(Reduction::kMax, DType::f8e5m2).ok());
  EXPECT_TRUE(check_reduction(Reduction::kXor, DType::bool_).ok());
  EXPECT_TRUE(check_reduction(Reduction::kProduct, DType::c128).ok());
  EXPECT_THAT(check_reduction(Reduction::kMin, DType::c64).error().message(), HasSubstr("c64"));
  EXPECT_THAT(check_reduction(Reduction::kAnd, DType::bf16).error().message(),
              HasSubstr("bit by bit"));
  EXPECT_FALSE(check_reduction(static_cast<Reduction>(7), DType::f32).ok());
  EXPECT_FALSE(check_reduction(Reduction::kSum, static_cast<DType>(kDTypeCount)).ok());
}

TEST(Reductions, Integers) {
  EXPECT_EQ(combined<std::int32_t>(Reduction::kSum, {1, 2, -7}), -4);
  EXPECT_EQ(combined<std::int8_t>(Reduction::kSum, {127, 1}), -128);
  EXPECT_EQ(combined<std::uint16_t>(Reduction::kProduct, {65535, 65535}), 1);
  EXPECT_EQ(combined<std::int64_t>(Reduction::kMin, {4, -5, 6}), -5);
  EXPECT_EQ(combined<std::uint64_t>(Reduction::kMax, {4, ~std::uint64_t{0}, 6}), ~std::uint64_t{0});
  EXPECT_EQ(combined<std::uint8_t>(Reduction::kAnd, {0b1110, 0b0111}), 0b0110);
  EXPECT_EQ(combined<std::uint8_t>(Reduction::kOr, {0b1000, 0b0001}), 0b1001);
  EXPECT_EQ(combined<std::uint8_t>(Reduction::kXor, {0b1100, 0b1010}), 0b0110);
}

TEST(Reductions, SumsOfBoolsAreOr) {
  EXPECT_EQ(combined<bool>(Reduction::kSum, {true, true}), true);
  EXPECT_EQ(combined<bool>(Reduction::kProduct, {true, false}), false);
  EXPECT_EQ(combined<bool>(Reduction::kMin, {true, false}), false);
  EXPECT_EQ(combined<bool>(Reduction::kMax, {true, false}), true);
  EXPECT_EQ(combined<bool>(Reduction::kXor, {true, true, true}), true);
}

// 1 + 2^-9 + 2^-9 is 1 in bf16 if each sum is rounded, and 1 + 2^-8 rounds to even, 1; three
// addends make 1 + 3 * 2^-9, which rounds to 1 + 2^-7.
TEST(Reductions, NarrowFloatsAreRoundedOnce) {
  BFloat16 small(std::ldexp(1.0f, -9));
  EXPECT_EQ(static_cast<float>(
                combined<BFloat16>(Reduction::kSum, {BFloat16(1.0f), small, small, small})),
            1.0f + std::ldexp(1.0f, -7));
  Float8E4M3FN half_step(std::ldexp(1.0f, -5));  // 1 + 2^-5 rounds to 1; 1 + 3 * 2^-5 to 1 + 2^-3
  EXPECT_EQ(static_cast<float>(combined<Float8E4M3FN>(
                Reduction::kSum, {Float8E4M3FN(1.0f), half_step, half_step, half_step})),
            1.0f + std::ldexp(1.0f, -3));
}

/// Every code, combined with nothing, is unchanged, and doubled as its value says.
template <class T>
void check_all_codes() {
  for (unsigned code = 0; code < 1u << (8 * sizeof(T)); ++code) {
    T value = T::from_bits(static_cast<typename T::bits_type>(code));
    T same = combined<T>(Reduction::kMax, {value});
    T twice = combined<T>(Reduction::kSum, {value, value});
    if (value.is_nan()) {
      EXPECT_TRUE(same.is_nan() && twice.is_nan()) << code;
    } else {
      EXPECT_EQ(same.bits(), value.bits()) << code;
      EXPECT_EQ(twice.bits(), T(2 * static_cast<double>(value)).bits()) << code;
    }
  }
}

TEST(Reductions, AllCodesOfNarrowFloats) {
  check_all_codes<Half>();
  check_all_codes<BFloat16>();
  check_all_codes<Float8E4M3FN>();
  check_all_codes<Float8E5M2>();
  check_all_codes<Float8E4M3>();
  check_all_codes<Float8E3M4>();
  check_all_codes<Float8E4M3FNUZ>();
  check_all_codes<Float8E5M2FNUZ>();
  check_all_codes<Float8E4M3B11FNUZ>();
  check_all_codes<Float8E8M0FNU>();
}

TEST(Reductions, MinAndMaxOfFloats) {
  float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(std::isnan(combined<float>(Reduction::kMin, {1, nan, 2})));
  EXPECT_TRUE(std::isnan(combined<float>(Reduction::kMax, {nan, 2})));
  EXPECT_TRUE(std::signbit(combined<double>(Reduction::kMin, {0.0, -0.0})));
  EXPECT_FALSE(std::signbit(combined<double>(Reduction::kMax, {-0.0, 0.0})));
  EXPECT_EQ(static_cast<float>(combined<Half>(Reduction::kMax, {Half(-1.5f), Half(2.5f)})), 2.5f);
}

TEST(Reductions, ComplexNumbers) {
  EXPECT_EQ(combined<Complex64>(Reduction::kSum, {{1, 2}, {3, -5}}), Complex64(4, -3));
  EXPECT_EQ(combined<Complex128>(Reduction::kProduct, {{1, 2}, {3, -5}}), Complex128(13, 1));
}

TEST(Reductions, ManyElementsAndInPlace) {
  std::vector<float> a(5000), b(5000);
  for (int i = 0; i < 5000; ++i) a[i] = static_cast<float>(i), b[i] = static_cast<float>(2 * i);
  const void* blocks[] = {a.data(), b.data()};
  combine_blocks(Reduction::kSum, DType::f32, blocks, b.data(), b.size());
  for (int i = 0; i < 5000; ++i) ASSERT_EQ(b[i], 3.0f * static_cast<float>(i));
}

TEST(Reductions, WideOnesAreRoundedLater) {
  EXPECT_EQ(wide_type(DType::bf16), DType::f32);
  EXPECT_EQ(wide_type(DType::f64), DType::f64);
  EXPECT_EQ(wide_type(DType::u8), DType::u8);
  // 256 + 1 has nine bits: one more than a bf16.
  const BFloat16 large(256), one(1);
  const void* blocks[] = {&large, &one};
  float sum = 0;
  combine_blocks_wide(Reduction::kSum, DType::bf16, blocks, &sum, 1);
  EXPECT_EQ(sum, 257);
  const void* sums[] = {&sum, &sum};
  combine_blocks(Reduction::kSum, DType::f32, sums, &sum, 1);
  BFloat16 rounded(0);
  round_wide(DType::bf16, &sum, &rounded, 1);
  EXPECT_EQ(static_cast<float>(rounded), 514 - 2);  // a tie: to even
  const std::int8_t numbers[] = {100, 100};
  const void* bytes[] = {&numbers[0], &numbers[1]};
  std::int8_t wrapped = 0;
  combine_blocks_wide(Reduction::kSum, DType::i8, bytes, &wrapped, 1);
  EXPECT_EQ(wrapped, -56);
}

}  // namespace
}  // namespace meshard
