// Element types, their names and their promotion rules.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

#include "meshard/array/complex.h"
#include "meshard/array/small_float.h"
#include "meshard/base/result.h"
#include "meshard/base/source_location.h"

namespace meshard {

/// A value: the type of an array's elements. The order is fixed: tables are indexed by it.
enum class DType : std::uint8_t {
  bool_,  ///< one byte, 0 or 1
  i8,
  i16,
  i32,
  i64,
  u8,
  u16,
  u32,
  u64,
  f16,
  bf16,
  f32,
  f64,
  f8e4m3fn,
  f8e5m2,
  f8e4m3,
  f8e3m4,
  f8e4m3fnuz,
  f8e5m2fnuz,
  f8e4m3b11fnuz,
  f8e8m0fnu,
  c64,   ///< two f32; complex64 in the array API
  c128,  ///< two f64; complex128 in the array API
};
inline constexpr int kDTypeCount = 23;

/// Short names for element types: `using namespace meshard::dtypes; zeros({2, 3}, f32)`.
namespace dtypes {
inline constexpr DType bool_ = DType::bool_;
inline constexpr DType i8 = DType::i8;
inline constexpr DType i16 = DType::i16;
inline constexpr DType i32 = DType::i32;
inline constexpr DType i64 = DType::i64;
inline constexpr DType u8 = DType::u8;
inline constexpr DType u16 = DType::u16;
inline constexpr DType u32 = DType::u32;
inline constexpr DType u64 = DType::u64;
inline constexpr DType f16 = DType::f16;
inline constexpr DType bf16 = DType::bf16;
inline constexpr DType f32 = DType::f32;
inline constexpr DType f64 = DType::f64;
inline constexpr DType f8e4m3fn = DType::f8e4m3fn;
inline constexpr DType f8e5m2 = DType::f8e5m2;
inline constexpr DType f8e4m3 = DType::f8e4m3;
inline constexpr DType f8e3m4 = DType::f8e3m4;
inline constexpr DType f8e4m3fnuz = DType::f8e4m3fnuz;
inline constexpr DType f8e5m2fnuz = DType::f8e5m2fnuz;
inline constexpr DType f8e4m3b11fnuz = DType::f8e4m3b11fnuz;
inline constexpr DType f8e8m0fnu = DType::f8e8m0fnu;
inline constexpr DType c64 = DType::c64;
inline constexpr DType c128 = DType::c128;
}  // namespace dtypes

/// The dtypes used when only the kind (integer, float) is known, as in JAX without 64-bit mode.
inline constexpr DType kDefaultInteger = DType::i32;
inline constexpr DType kDefaultFloat = DType::f32;

constexpr bool is_signed_integer(DType d) { return d >= DType::i8 && d <= DType::i64; }
constexpr bool is_unsigned_integer(DType d) { return d >= DType::u8 && d <= DType::u64; }
/// Signed or unsigned; bool is not an integer (array API kinds).
constexpr bool is_integer(DType d) { return d >= DType::i8 && d <= DType::u64; }
/// A real floating-point type.
constexpr bool is_floating(DType d) { return d >= DType::f16 && d <= DType::f8e8m0fnu; }
constexpr bool is_float8(DType d) { return d >= DType::f8e4m3fn && d <= DType::f8e8m0fnu; }
constexpr bool is_complex(DType d) { return d >= DType::c64; }
/// True for real and complex floating-point types: those with derivatives.
constexpr bool is_inexact(DType d) { return d >= DType::f16; }
/// The dtype of a complex number's parts; other dtypes are returned unchanged.
constexpr DType real_dtype(DType d) {
  return d == DType::c64 ? DType::f32 : d == DType::c128 ? DType::f64 : d;
}
/// The complex dtype whose parts can hold a real dtype: c128 for f64, otherwise c64.
constexpr DType complex_dtype(DType d) {
  return d == DType::f64 || d == DType::c128 ? DType::c128 : DType::c64;
}
/// True if the type has negative values.
constexpr bool is_signed(DType d) {
  return is_signed_integer(d) || (is_inexact(d) && d != DType::f8e8m0fnu);
}

/// The size of one element in bytes.
constexpr std::size_t size_in_bytes(DType d) {
  constexpr std::uint8_t kSizes[kDTypeCount] = {1, 1, 2, 4, 8, 1, 2, 4, 8, 2, 2, 4,
                                                8, 1, 1, 1, 1, 1, 1, 1, 1, 8, 16};
  return kSizes[static_cast<int>(d)];
}

/// The name of a dtype, as the enumerator without underscore: `f32`, `bool`, `f8e4m3fn`.
std::string_view to_string(DType d);
inline void append(std::string& out, DType d) { out.append(to_string(d)); }
/// Parses the output of to_string.
/// @error invalid argument, listing the known names.
Result<DType> parse_dtype(std::string_view text);

/// The name of the element type in StableHLO text: `f32`, `i1`, `ui8`, `f8E4M3FN`.
std::string_view stablehlo_name(DType d);
/// @error invalid argument if the text is not the StableHLO name of a DType.
Result<DType> parse_stablehlo_dtype(std::string_view text);

namespace internal {
template <class T>
constexpr int dtype_index_of() {
  if constexpr (std::is_same_v<T, bool>) return static_cast<int>(DType::bool_);
  if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
    int base = static_cast<int>(std::is_signed_v<T> ? DType::i8 : DType::u8);
    return base + (sizeof(T) == 1 ? 0 : sizeof(T) == 2 ? 1 : sizeof(T) == 4 ? 2 : 3);
  }
  if constexpr (std::is_same_v<T, float>) return static_cast<int>(DType::f32);
  if constexpr (std::is_same_v<T, double>) return static_cast<int>(DType::f64);
  if constexpr (std::is_same_v<T, Half>) return static_cast<int>(DType::f16);
  if constexpr (std::is_same_v<T, BFloat16>) return static_cast<int>(DType::bf16);
  if constexpr (std::is_same_v<T, Float8E4M3FN>) return static_cast<int>(DType::f8e4m3fn);
  if constexpr (std::is_same_v<T, Float8E5M2>) return static_cast<int>(DType::f8e5m2);
  if constexpr (std::is_same_v<T, Float8E4M3>) return static_cast<int>(DType::f8e4m3);
  if constexpr (std::is_same_v<T, Float8E3M4>) return static_cast<int>(DType::f8e3m4);
  if constexpr (std::is_same_v<T, Float8E4M3FNUZ>) return static_cast<int>(DType::f8e4m3fnuz);
  if constexpr (std::is_same_v<T, Float8E5M2FNUZ>) return static_cast<int>(DType::f8e5m2fnuz);
  if constexpr (std::is_same_v<T, Float8E4M3B11FNUZ>) return static_cast<int>(DType::f8e4m3b11fnuz);
  if constexpr (std::is_same_v<T, Float8E8M0FNU>) return static_cast<int>(DType::f8e8m0fnu);
  if constexpr (std::is_same_v<T, Complex64>) return static_cast<int>(DType::c64);
  if constexpr (std::is_same_v<T, Complex128>) return static_cast<int>(DType::c128);
  return -1;
}
}  // namespace internal

/// C++ types that can be elements of an array.
template <class T>
concept Element = internal::dtype_index_of<T>()
>= 0;

/// The dtype of a C++ type: `dtype_of<float>()` is f32.
template <Element T>
constexpr DType dtype_of() {
  return static_cast<DType>(internal::dtype_index_of<T>());
}

/// Calls `f.template operator()<T>()` with the C++ type of `d`:
/// `visit_dtype(d, [&]<class T>() { ... })`.
template <class F>
decltype(auto) visit_dtype(DType d, F&& f) {
  switch (d) {
    case DType::bool_: return f.template operator()<bool>();
    case DType::i8: return f.template operator()<std::int8_t>();
    case DType::i16: return f.template operator()<std::int16_t>();
    case DType::i32: return f.template operator()<std::int32_t>();
    case DType::i64: return f.template operator()<std::int64_t>();
    case DType::u8: return f.template operator()<std::uint8_t>();
    case DType::u16: return f.template operator()<std::uint16_t>();
    case DType::u32: return f.template operator()<std::uint32_t>();
    case DType::u64: return f.template operator()<std::uint64_t>();
    case DType::f16: return f.template operator()<Half>();
    case DType::bf16: return f.template operator()<BFloat16>();
    case DType::f32: return f.template operator()<float>();
    case DType::f64: return f.template operator()<double>();
    case DType::f8e4m3fn: return f.template operator()<Float8E4M3FN>();
    case DType::f8e5m2: return f.template operator()<Float8E5M2>();
    case DType::f8e4m3: return f.template operator()<Float8E4M3>();
    case DType::f8e3m4: return f.template operator()<Float8E3M4>();
    case DType::f8e4m3fnuz: return f.template operator()<Float8E4M3FNUZ>();
    case DType::f8e5m2fnuz: return f.template operator()<Float8E5M2FNUZ>();
    case DType::f8e4m3b11fnuz: return f.template operator()<Float8E4M3B11FNUZ>();
    case DType::f8e8m0fnu: return f.template operator()<Float8E8M0FNU>();
    case DType::c64: return f.template operator()<Complex64>();
    case DType::c128: break;
  }
  return f.template operator()<Complex128>();
}

/// The result dtype of an operation on two arrays. Commutative. For operands of the same kind, this
/// is the table of the array API standard (2023.12, "Type Promotion Rules"). Where the standard
/// does not define the result, it is JAX's lattice:
///
/// | a              | b                     | result                              | from      |
/// |----------------|-----------------------|-------------------------------------|-----------|
/// | any            | the same              | the same                            | array API |
/// | signed         | signed                | the wider                           | array API |
/// | unsigned       | unsigned              | the wider                           | array API |
/// | unsigned, n bits | signed, more bits   | the signed one                      | array API |
/// | unsigned, n < 64 | signed, n or fewer  | signed with 2n bits                 | array API |
/// | u64            | signed                | f32                                 | JAX       |
/// | f32            | f64                   | f64                                 | array API |
/// | f16, bf16      | f32 or f64            | f32 or f64                          | JAX       |
/// | f16            | bf16                  | f32                                 | JAX       |
/// | bool           | any                   | the other                           | JAX       |
/// | integer        | float                 | the float                           | JAX       |
/// | 8-bit float    | any other float       | an error: convert one explicitly    | JAX       |
/// | c64            | c128, f64             | c128                                | array API |
/// | complex        | any other             | the complex one                     | JAX       |
///
/// @error invalid argument naming both types.
DType promote(DType a, DType b, SourceLocation where = SourceLocation::current());

/// The kind of a C++ scalar that is combined with an array. Scalars are weakly typed: the array
/// keeps its dtype unless its kind is lower than the scalar's (bool < integer < float).
enum class ScalarKind : std::uint8_t { kBool, kInteger, kFloat };

/// The result dtype of an operation on an array and a C++ scalar:
///
/// | scalar  | bool array | integer array | float array |
/// |---------|------------|---------------|-------------|
/// | bool    | bool       | the array's   | the array's |
/// | integer | i32        | the array's   | the array's |
/// | float   | f32        | f32           | the array's |
///
/// A complex array keeps its dtype.
DType promote_scalar(DType array, ScalarKind scalar);

/// The smallest and largest value of an integer type or of bool (0, 1).
struct IntegerLimits {
  std::int64_t min;
  std::uint64_t max;
};
/// @pre `d` is bool or an integer type
IntegerLimits integer_limits(DType d);

/// Properties of a floating-point type.
struct FloatLimits {
  double lowest;           ///< most negative finite value; for f8e8m0fnu the smallest positive one
  double max;              ///< largest finite value
  double epsilon;          ///< distance from 1 to the next larger value
  double smallest_normal;  ///< smallest positive normal number
  bool has_infinity;
};
/// @pre `d` is a real floating-point type
FloatLimits float_limits(DType d);

}  // namespace meshard
