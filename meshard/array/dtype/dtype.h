// Element types, their names and their promotion rules.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

#include "meshard/array/dtype/complex.h"
#include "meshard/array/dtype/small_float.h"
#include "meshard/base/result.h"
#include "meshard/base/source_location.h"

namespace meshard {

/// A value: the type of an array's elements. dtypes.inc lists them: `DType::bool_`, `DType::f32`.
enum class DType : std::uint8_t {
#define MESHARD_DTYPE(name, type, stablehlo) name,
#include "meshard/array/dtype/dtypes.inc"
};
/// The number of dtypes.
inline constexpr int kDTypeCount =
#define MESHARD_DTYPE(name, type, stablehlo) 1 +
#include "meshard/array/dtype/dtypes.inc"
    0;

/// Short names for element types: `using namespace meshard::dtypes; zeros({2, 3}, f32)`.
namespace dtypes {
#define MESHARD_DTYPE(name, type, stablehlo) inline constexpr DType name = DType::name;
#include "meshard/array/dtype/dtypes.inc"
}  // namespace dtypes

/// The dtypes used when only the kind (integer, float) is known, as in JAX without 64-bit mode.
inline constexpr DType kDefaultInteger = DType::i32;
inline constexpr DType kDefaultFloat = DType::f32;
/// i8 to i64, or u8 to u64.
constexpr bool is_signed_integer(DType d) { return d >= DType::i8 && d < DType::u8; }
constexpr bool is_unsigned_integer(DType d) { return d >= DType::u8 && d < DType::f16; }
/// Signed or unsigned; bool is not an integer (array API kinds).
constexpr bool is_integer(DType d) { return d >= DType::i8 && d < DType::f16; }
/// A real floating-point type.
constexpr bool is_floating(DType d) { return d >= DType::f16 && d < DType::c64; }
constexpr bool is_float8(DType d) { return d >= DType::f8e4m3fn && d < DType::c64; }
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
  constexpr std::uint8_t kSizes[kDTypeCount] = {
#define MESHARD_DTYPE(name, type, stablehlo) sizeof(type),
#include "meshard/array/dtype/dtypes.inc"
  };
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
/// The DType of a name. @error invalid argument if the text is not the StableHLO name of a DType.
Result<DType> parse_stablehlo_dtype(std::string_view text);

namespace internal {
template <class T>
constexpr int dtype_index_of() {
  if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {  // also long long
    int base = static_cast<int>(std::is_signed_v<T> ? DType::i8 : DType::u8);
    return base + (sizeof(T) == 1 ? 0 : sizeof(T) == 2 ? 1 : sizeof(T) == 4 ? 2 : 3);
  }
#define MESHARD_DTYPE(name, type, stablehlo) \
  if constexpr (std::is_same_v<T, type>) return static_cast<int>(DType::name);
#include "meshard/array/dtype/dtypes.inc"
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
#define MESHARD_DTYPE(name, type, stablehlo) \
  case DType::name: {                        \
    return f.template operator()<type>();    \
  }
#include "meshard/array/dtype/dtypes.inc"
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
/// The smallest and the largest value. @pre `d` is bool or an integer type
IntegerLimits integer_limits(DType d);

/// Properties of a floating-point type.
struct FloatLimits {
  double lowest;           ///< most negative finite value; for f8e8m0fnu the smallest positive one
  double max;              ///< largest finite value
  double epsilon;          ///< distance from 1 to the next larger value
  double smallest_normal;  ///< smallest positive normal number
  bool has_infinity;
};
/// The limits of a type. @pre `d` is a real floating-point type
FloatLimits float_limits(DType d);

}  // namespace meshard
