// C++ numbers as operands and fill values: one rule decides which numbers a dtype can hold.
#pragma once
#include <concepts>
#include <cstdint>
#include <limits>
#include <string>
#include <type_traits>

#include "meshard/array/dtype/dtype.h"
#include "meshard/array/host_array.h"

namespace meshard {

/// A value: a C++ number with its kind, without loss of precision. As an operand it is weakly
/// typed: it takes the other operand's dtype where the kinds allow.
struct Scalar {
  ScalarKind kind = ScalarKind::kInteger;
  /// The integer value; 0 or 1 for bool. If is_above_i64, the bits of the unsigned number.
  std::int64_t integer = 0;
  double floating = 0;
  /// True for an unsigned number above the largest i64.
  bool is_above_i64 = false;
  /// True for a finite `long double` outside the range of f64.
  bool is_above_f64 = false;

  Scalar() = default;
  template <class T>
  requires std::is_arithmetic_v<T>
  explicit Scalar(T number) {
    if constexpr (std::same_as<T, bool>) {
      kind = ScalarKind::kBool;
      integer = number;
    } else if constexpr (std::integral<T>) {
      integer = static_cast<std::int64_t>(number);
      is_above_i64 = std::unsigned_integral<T> && integer < 0;
    } else {
      kind = ScalarKind::kFloat;
      floating = static_cast<double>(number);
      if constexpr (std::numeric_limits<T>::max_exponent >
                    std::numeric_limits<double>::max_exponent)
        is_above_f64 = number - number == 0 && floating - floating != 0;
    }
  }

  /// The nearest double.
  double as_double() const;
  /// `-5`, `18446744073709551615`, `1e+300`, `true`.
  std::string to_string() const;
};

/// Converts the number to an array of rank 0. A float dtype rounds; an integer dtype takes the
/// integer part of a floating-point number; for bool, anything but 0 is true; for a complex dtype
/// the number is the real part.
/// @error invalid argument naming the number and the dtype, if the dtype cannot hold it: an integer
/// out of range, or a finite number beyond the largest of a float dtype. Only float dtypes hold
/// infinities and NaN.
HostArray scalar_array(const Scalar& number, DType dtype,
                       SourceLocation where = SourceLocation::current());

}  // namespace meshard
