// Storage types for the 16-bit and 8-bit floats. They hold bits and convert; arithmetic is done in
// float or double. No supported compiler has all these types, and meshard must not depend on one
// that does.
#pragma once
#include <bit>
#include <cstdint>
#include <type_traits>

#include "meshard/base/cat.h"

namespace meshard {

/// How a format uses the highest codes: infinities and NaNs, or finite values.
enum class SpecialCodes : std::uint8_t {
  kIeee,      ///< infinities and NaNs fill the highest exponent
  kFinite,    ///< "FN": no infinity; only the all-ones codes are NaN
  kFiniteUz,  ///< "FNUZ": no infinity, no negative zero; the code of -0 is the only NaN
};

/// A value: a number in a binary floating-point format with a sign bit, stored as its bits.
///
/// Conversion from double (and so from float) rounds once, to nearest, ties to even. Values that
/// are too large become infinity if the format has one, otherwise NaN (as in ml_dtypes). NaN keeps
/// its sign if the format has a signed NaN, but never its payload.
template <class Bits, int kExponentBits, int kMantissaBits, int kBias, SpecialCodes kSpecial>
class SmallFloat {
 public:
  using bits_type = Bits;
  static constexpr int exponent_bits = kExponentBits;
  static constexpr int mantissa_bits = kMantissaBits;
  static constexpr int bias = kBias;
  static constexpr SpecialCodes special = kSpecial;
  /// The exponent of the smallest normal number.
  static constexpr int min_exponent = 1 - kBias;

  constexpr SmallFloat() = default;
  explicit constexpr SmallFloat(double value) : bits_(encode(value)) {}
  explicit constexpr SmallFloat(float value) : bits_(encode(value)) {}
  template <class T>
  requires std::is_integral_v<T>
  explicit constexpr SmallFloat(T value) : bits_(encode(static_cast<double>(value))) {}
  static constexpr SmallFloat from_bits(Bits bits) {
    SmallFloat value;
    value.bits_ = bits;
    return value;
  }

  constexpr Bits bits() const { return bits_; }
  /// Exact.
  explicit constexpr operator double() const { return decode(bits_); }
  /// Exact.
  explicit constexpr operator float() const { return static_cast<float>(decode(bits_)); }

  constexpr bool is_nan() const {
    Bits magnitude = bits_ & kMagnitudeMask;
    if constexpr (kSpecial == SpecialCodes::kIeee) return magnitude > kInfinity;
    if constexpr (kSpecial == SpecialCodes::kFinite) return magnitude == kMagnitudeMask;
    return bits_ == kSignBit;
  }
  /// The shortest decimal that rounds to the same float: `0.5`, `inf`, `nan`.
  std::string to_string() const { return is_nan() ? "nan" : cat(static_cast<float>(*this)); }
  static constexpr SmallFloat highest() { return from_bits(kMaxFinite); }
  static constexpr SmallFloat smallest_normal() {
    return from_bits(static_cast<Bits>(1u << kMantissaBits));
  }
  static constexpr SmallFloat smallest_subnormal() { return from_bits(1); }

  /// Compares values: NaN differs from itself, and +0 equals -0.
  friend constexpr bool operator==(SmallFloat a, SmallFloat b) {
    return static_cast<double>(a) == static_cast<double>(b);
  }

 private:
  static constexpr Bits kSignBit = static_cast<Bits>(1u << (kExponentBits + kMantissaBits));
  static constexpr Bits kMagnitudeMask = static_cast<Bits>(kSignBit - 1u);
  static constexpr Bits kInfinity =
      static_cast<Bits>(((1u << kExponentBits) - 1u) << kMantissaBits);
  static constexpr Bits kMaxFinite = static_cast<Bits>(
      kSpecial == SpecialCodes::kIeee ? kInfinity - 1u
                                      : kMagnitudeMask - (kSpecial == SpecialCodes::kFinite));

  static constexpr Bits nan_code(bool negative) {
    if constexpr (kSpecial == SpecialCodes::kFiniteUz) return kSignBit;
    unsigned code = kSpecial == SpecialCodes::kIeee ? kInfinity | 1u << (kMantissaBits - 1)
                                                    : unsigned{kMagnitudeMask};
    return static_cast<Bits>(code | (negative ? unsigned{kSignBit} : 0u));
  }
  static constexpr Bits encode(double value) {
    std::uint64_t wide = std::bit_cast<std::uint64_t>(value);
    bool negative = wide >> 63;
    int field = static_cast<int>(wide >> 52 & 0x7FF);
    std::uint64_t significand = wide & ((std::uint64_t{1} << 52) - 1);
    if (field == 0x7FF) {
      if (significand != 0 || kSpecial != SpecialCodes::kIeee) return nan_code(negative);
      return static_cast<Bits>(kInfinity | (negative ? unsigned{kSignBit} : 0u));
    }
    // A subnormal double is far below half of any format's smallest number, so setting the implicit
    // bit that it lacks does not matter.
    significand |= std::uint64_t{1} << 52;
    int above = field - 1023 - min_exponent;  // exponent minus that of the smallest normal number
    int shift = 52 - kMantissaBits + (above < 0 ? -above : 0);
    std::uint64_t code = 0;
    if (field != 0 && shift < 63) {
      code = significand >> shift;
      std::uint64_t rest = significand & ((std::uint64_t{1} << shift) - 1);
      std::uint64_t half = std::uint64_t{1} << (shift - 1);
      if (rest > half || (rest == half && (code & 1))) ++code;
    }
    if (above > 0) code += static_cast<std::uint64_t>(above) << kMantissaBits;
    if (code > kMaxFinite) {
      if (kSpecial != SpecialCodes::kIeee) return nan_code(negative);
      code = kInfinity;
    }
    if (code == 0 && kSpecial == SpecialCodes::kFiniteUz) return 0;
    return static_cast<Bits>(code | (negative ? unsigned{kSignBit} : 0u));
  }
  static constexpr double decode(Bits bits) {
    bool negative = bits & kSignBit;
    unsigned magnitude = bits & kMagnitudeMask;
    std::uint64_t sign = std::uint64_t{negative} << 63;
    if (from_bits(bits).is_nan()) return std::bit_cast<double>(sign | std::uint64_t{0x7FF8} << 48);
    if (kSpecial == SpecialCodes::kIeee && magnitude == kInfinity)
      return std::bit_cast<double>(sign | std::uint64_t{0x7FF0} << 48);
    unsigned exponent = magnitude >> kMantissaBits;
    unsigned fraction = magnitude & ((1u << kMantissaBits) - 1u);
    if (exponent == 0) {
      constexpr double kQuantum = std::bit_cast<double>(
          static_cast<std::uint64_t>(min_exponent - kMantissaBits + 1023) << 52);
      double value = fraction * kQuantum;
      return negative ? -value : value;
    }
    return std::bit_cast<double>(
        sign | static_cast<std::uint64_t>(static_cast<int>(exponent) - kBias + 1023) << 52 |
        static_cast<std::uint64_t>(fraction) << (52 - kMantissaBits));
  }

  Bits bits_ = 0;
};
/// An element of the dtype with this name; of f16: Half.
using Half = SmallFloat<std::uint16_t, 5, 10, 15, SpecialCodes::kIeee>;
using BFloat16 = SmallFloat<std::uint16_t, 8, 7, 127, SpecialCodes::kIeee>;
using Float8E4M3FN = SmallFloat<std::uint8_t, 4, 3, 7, SpecialCodes::kFinite>;
using Float8E5M2 = SmallFloat<std::uint8_t, 5, 2, 15, SpecialCodes::kIeee>;
using Float8E4M3 = SmallFloat<std::uint8_t, 4, 3, 7, SpecialCodes::kIeee>;
using Float8E3M4 = SmallFloat<std::uint8_t, 3, 4, 3, SpecialCodes::kIeee>;
using Float8E4M3FNUZ = SmallFloat<std::uint8_t, 4, 3, 8, SpecialCodes::kFiniteUz>;
using Float8E5M2FNUZ = SmallFloat<std::uint8_t, 5, 2, 16, SpecialCodes::kFiniteUz>;
using Float8E4M3B11FNUZ = SmallFloat<std::uint8_t, 4, 3, 11, SpecialCodes::kFiniteUz>;

/// A value: a power of two from 2^-127 to 2^127, or NaN (0xFF). It has no sign, zero or infinity.
/// Used as the scale of a block of smaller numbers (OCP Microscaling Formats, version 1.0).
class Float8E8M0FNU {
 public:
  using bits_type = std::uint8_t;

  constexpr Float8E8M0FNU() = default;
  /// Rounds to the nearest power of two, ties up (as in ml_dtypes: the significand 1 is odd).
  /// Negative numbers, zeros, infinities and values that round above 2^127 become NaN; values that
  /// are too small become 2^-127.
  explicit constexpr Float8E8M0FNU(double value) : bits_(encode(value)) {}
  explicit constexpr Float8E8M0FNU(float value) : bits_(encode(value)) {}
  template <class T>
  requires std::is_integral_v<T>
  explicit constexpr Float8E8M0FNU(T value) : bits_(encode(static_cast<double>(value))) {}
  static constexpr Float8E8M0FNU from_bits(std::uint8_t bits) {
    Float8E8M0FNU value;
    value.bits_ = bits;
    return value;
  }

  constexpr std::uint8_t bits() const { return bits_; }
  explicit constexpr operator double() const {
    if (is_nan()) return std::bit_cast<double>(std::uint64_t{0x7FF8} << 48);
    return std::bit_cast<double>(static_cast<std::uint64_t>(bits_ - 127 + 1023) << 52);
  }
  explicit constexpr operator float() const {
    return static_cast<float>(static_cast<double>(*this));
  }
  constexpr bool is_nan() const { return bits_ == 0xFF; }
  /// The shortest decimal that rounds to the same float: `0.5`, `nan`.
  std::string to_string() const { return is_nan() ? "nan" : cat(static_cast<float>(*this)); }
  friend constexpr bool operator==(Float8E8M0FNU a, Float8E8M0FNU b) {
    return a.bits_ == b.bits_ && !a.is_nan();
  }

 private:
  static constexpr std::uint8_t encode(double value) {
    std::uint64_t wide = std::bit_cast<std::uint64_t>(value);
    if (wide >> 63 || wide == 0 || wide >> 52 == 0x7FF) return 0xFF;
    int code = static_cast<int>(wide >> 52) - 1023 + 127;
    if (wide >> 51 & 1) ++code;  // the fraction is at least one half
    if (code < 0) return 0;
    return static_cast<std::uint8_t>(code > 0xFE ? 0xFF : code);
  }

  std::uint8_t bits_ = 0;
};

}  // namespace meshard
