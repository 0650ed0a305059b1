#include "meshard/array/dtype/small_float.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace meshard {
namespace {

// FNV-1a, 64 bits, of the little-endian bytes (as the generator of the table computes it).
struct Hash {
  std::uint64_t value = 0xCBF29CE484222325ull;
  template <class T>
  void add(T number) {
    for (std::size_t i = 0; i < sizeof(T); ++i)
      value = (value ^ (static_cast<std::uint64_t>(number) >> (8 * i) & 0xFF)) * 0x100000001B3ull;
  }
};

std::uint32_t bits_of(float value) {
  return std::isnan(value) ? 0x7FC00000u : std::bit_cast<std::uint32_t>(value);
}

template <class T>
void check_decoding(std::uint64_t expected, std::string_view table) {
  using Bits = typename T::bits_type;
  Hash hash;
  for (std::uint32_t code = 0; code <= std::numeric_limits<Bits>::max(); ++code) {
    T value = T::from_bits(static_cast<Bits>(code));
    std::uint32_t bits = bits_of(static_cast<float>(value));
    hash.add(bits);
    EXPECT_EQ(value.is_nan(), bits == 0x7FC00000u) << "code " << code;
    if (!table.empty()) {
      std::string digits(table.substr(code * 8, 8));
      EXPECT_EQ(bits, std::stoul(digits, nullptr, 16)) << "code " << code;
    }
    // Every number is its own nearest code.
    if (!value.is_nan()) {
      EXPECT_EQ(T(static_cast<float>(value)).bits(), code);
    }
    EXPECT_EQ(bits_of(static_cast<float>(static_cast<double>(value))), bits);
  }
  EXPECT_EQ(hash.value, expected);
}

// Numbers at, just below and just above the midpoints of neighboring positive codes.
template <class T>
std::vector<float> middles() {
  using Bits = typename T::bits_type;
  constexpr bool kSigned = !std::is_same_v<T, Float8E8M0FNU>;
  std::uint32_t codes = (std::numeric_limits<Bits>::max() + 1u) / (kSigned ? 2 : 1);
  std::vector<double> finite;
  // The neighbors of the smallest scale are subnormal as floats: tested by hand below.
  for (std::uint32_t code = kSigned ? 0 : 1; code < codes; ++code) {
    auto value = static_cast<double>(T::from_bits(static_cast<Bits>(code)));
    if (std::isfinite(value)) finite.push_back(value);
  }
  finite.push_back(2 * finite.back() - finite[finite.size() - 2]);
  std::vector<float> inputs;
  for (std::size_t i = 0; i + 1 < finite.size(); ++i) {
    auto middle = static_cast<float>(finite[i] + (finite[i + 1] - finite[i]) / 2);
    inputs.push_back(std::nextafter(middle, 0.0f));
    inputs.push_back(middle);
    inputs.push_back(std::nextafter(middle, HUGE_VALF));
  }
  std::size_t count = inputs.size();
  for (std::size_t i = 0; kSigned && i < count; ++i) inputs.push_back(-inputs[i]);
  return inputs;
}

template <class T>
void check_rounding(std::size_t count, std::uint64_t expected) {
  std::vector<float> inputs = middles<T>();
  EXPECT_EQ(inputs.size(), count);
  Hash hash;
  for (float input : inputs) {
    hash.add(T(input).bits());
    EXPECT_EQ(T(input).bits(), T(static_cast<double>(input)).bits());
  }
  EXPECT_EQ(hash.value, expected);
}

#define SMALL_FLOAT(type, decoded, count, rounded, table)                            \
  TEST(SmallFloat, type##DecodesEveryCode) { check_decoding<type>(decoded, table); } \
  TEST(SmallFloat, type##RoundsAtEveryMiddle) { check_rounding<type>(count, rounded); }
#include "meshard/array/dtype/small_float_test_data.inc"
#undef SMALL_FLOAT

// The codes that ml_dtypes 0.6.0 gives for numbers that a format cannot represent.
TEST(SmallFloat, SpecialNumbers) {
  const double inf = HUGE_VAL, nan = std::nan("");
  EXPECT_EQ(Half(65520.0).bits(), 0x7C00);
  EXPECT_EQ(BFloat16(-inf).bits(), 0xFF80);
  EXPECT_EQ(BFloat16(nan).bits(), 0x7FC0);
  EXPECT_EQ(Float8E4M3FN(nan).bits(), 0x7F);
  EXPECT_EQ(Float8E4M3FN(-nan).bits(), 0xFF);
  EXPECT_EQ(Float8E4M3FN(-inf).bits(), 0xFF);
  EXPECT_EQ(Float8E4M3FN(-1e-30).bits(), 0x80);
  EXPECT_EQ(Float8E4M3FN(464.0).bits(), 0x7E);
  EXPECT_EQ(Float8E4M3FN(465.0).bits(), 0x7F);
  EXPECT_EQ(Float8E5M2(nan).bits(), 0x7E);
  EXPECT_EQ(Float8E5M2(61440.0).bits(), 0x7C);
  EXPECT_EQ(Float8E4M3(1e30).bits(), 0x78);
  EXPECT_EQ(Float8E3M4(-nan).bits(), 0xF8);
  EXPECT_EQ(Float8E4M3FNUZ(-nan).bits(), 0x80);
  EXPECT_EQ(Float8E4M3FNUZ(-1e-30).bits(), 0x00);
  EXPECT_EQ(Float8E5M2FNUZ(57344.0).bits(), 0x7F);
  EXPECT_EQ(Float8E5M2FNUZ(61440.0).bits(), 0x80);
  EXPECT_EQ(Float8E4M3B11FNUZ(inf).bits(), 0x80);
  EXPECT_EQ(Float8E8M0FNU(0.0).bits(), 0xFF);
  EXPECT_EQ(Float8E8M0FNU(-1.0).bits(), 0xFF);
  EXPECT_EQ(Float8E8M0FNU(1e-300).bits(), 0x00);
  EXPECT_EQ(Float8E8M0FNU(0x1.7ffffcp-127f).bits(), 0x00);
  EXPECT_EQ(Float8E8M0FNU(0x1.8p-127f).bits(), 0x01);
  EXPECT_EQ(Float8E8M0FNU(std::numeric_limits<double>::denorm_min()).bits(), 0x00);
}

// Rounding a double to float first would round twice and give the even neighbor.
TEST(SmallFloat, DoublesRoundOnce) {
  double just_above_a_tie = 1.0 + std::ldexp(1.0, -11) + std::ldexp(1.0, -40);
  EXPECT_EQ(Half(1.0 + std::ldexp(1.0, -11)).bits(), 0x3C00);
  EXPECT_EQ(Half(just_above_a_tie).bits(), 0x3C01);
}

TEST(SmallFloat, ComparesByValue) {
  EXPECT_EQ(Half(0.0), Half(-0.0));
  EXPECT_FALSE(Half(std::nan("")) == Half(std::nan("")));
  EXPECT_FALSE(Float8E8M0FNU(-1.0) == Float8E8M0FNU(-1.0));
}

}  // namespace
}  // namespace meshard
