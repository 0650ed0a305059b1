#include "meshard/array/dtype/dtype.h"

#include <limits>

#include "meshard/base/cat.h"
#include "meshard/base/error.h"

namespace meshard {
namespace {

constexpr std::string_view kNames[kDTypeCount] = {
#define MESHARD_DTYPE(name, type, stablehlo) \
#name == std::string_view("bool_") ? std::string_view("bool") : std::string_view(#name),
#include "meshard/array/dtype/dtypes.inc"
};
constexpr std::string_view kStablehloNames[kDTypeCount] = {
#define MESHARD_DTYPE(name, type, stablehlo) stablehlo,
#include "meshard/array/dtype/dtypes.inc"
};

Result<DType> find_name(std::string_view text, const std::string_view (&names)[kDTypeCount]) {
  for (int i = 0; i < kDTypeCount; ++i)
    if (names[i] == text) return static_cast<DType>(i);
  return Error(ErrorCode::kInvalidArgument,
               cat("[dtype] unknown dtype \"", text, "\"; the dtypes are ", join(names, ", ")));
}

DType promote_integers(DType a, DType b) {
  if (is_signed_integer(a) == is_signed_integer(b)) return a > b ? a : b;
  DType with_sign = is_signed_integer(a) ? a : b;
  DType without = is_signed_integer(a) ? b : a;
  if (without == DType::u64) return kDefaultFloat;
  if (size_in_bytes(with_sign) > size_in_bytes(without)) return with_sign;
  // The enumerators i16, i32, i64 are at a fixed distance from u8, u16, u32.
  int wider = static_cast<int>(without) - static_cast<int>(DType::u8) + 1;
  return static_cast<DType>(static_cast<int>(DType::i8) + wider);
}

DType promote_floats(DType a, DType b, SourceLocation where) {
  if (is_float8(a) || is_float8(b))
    throw_invalid(where, "[promote] 8-bit floats are not promoted implicitly: ", to_string(a),
                  " and ", to_string(b), "; convert one operand with astype");
  if (a > b) std::swap(a, b);
  return a == DType::f16 && b == DType::bf16 ? DType::f32 : b;
}

// The parts are promoted as floats are.
DType promote_complex(DType a, DType b, SourceLocation where) {
  DType left = real_dtype(a), right = real_dtype(b);
  if (is_integer(left)) return b;
  if (is_integer(right)) return a;
  return complex_dtype(promote_floats(left, right, where));
}

template <class T>
FloatLimits limits_of_small() {
  FloatLimits limits{};
  limits.max = static_cast<double>(T::highest());
  limits.lowest = -limits.max;
  limits.epsilon = 1.0 / static_cast<double>(1 << T::mantissa_bits);
  limits.smallest_normal = static_cast<double>(T::smallest_normal());
  limits.has_infinity = T::special == SpecialCodes::kIeee;
  return limits;
}

}  // namespace

std::string_view to_string(DType d) { return kNames[static_cast<int>(d)]; }
std::string_view stablehlo_name(DType d) { return kStablehloNames[static_cast<int>(d)]; }
Result<DType> parse_dtype(std::string_view text) { return find_name(text, kNames); }
Result<DType> parse_stablehlo_dtype(std::string_view text) {
  return find_name(text, kStablehloNames);
}

DType promote(DType a, DType b, SourceLocation where) {
  if (a == b || b == DType::bool_) return a;
  if (a == DType::bool_) return b;
  if (is_complex(a) || is_complex(b)) return promote_complex(a, b, where);
  if (is_floating(a) != is_floating(b)) return is_floating(a) ? a : b;
  return is_floating(a) ? promote_floats(a, b, where) : promote_integers(a, b);
}

DType promote_scalar(DType array, ScalarKind scalar) {
  if (scalar == ScalarKind::kFloat && !is_inexact(array)) return kDefaultFloat;
  if (scalar == ScalarKind::kInteger && array == DType::bool_) return kDefaultInteger;
  return array;
}

IntegerLimits integer_limits(DType d) {
  internal_check(!is_inexact(d), "integer_limits of a floating type");
  if (d == DType::bool_) return {0, 1};
  unsigned bits = static_cast<unsigned>(size_in_bytes(d) * 8);
  if (is_unsigned_integer(d)) return {0, ~std::uint64_t{0} >> (64 - bits)};
  std::uint64_t max = ~std::uint64_t{0} >> (65 - bits);
  return {-static_cast<std::int64_t>(max) - 1, max};
}

FloatLimits float_limits(DType d) {
  internal_check(is_floating(d), "float_limits of a type that is not floating");
  return visit_dtype(d, []<class T>() -> FloatLimits {
    if constexpr (std::is_same_v<T, Float8E8M0FNU>) {
      double smallest = static_cast<double>(T::from_bits(0));
      return {smallest, static_cast<double>(T::from_bits(0xFE)), 1.0, smallest, false};
    } else if constexpr (std::is_floating_point_v<T>) {
      using Limits = std::numeric_limits<T>;
      return {Limits::lowest(), Limits::max(), Limits::epsilon(), Limits::min(), true};
    } else if constexpr (std::is_integral_v<T> || std::is_same_v<T, Complex64> ||
                         std::is_same_v<T, Complex128>) {
      return {};
    } else {
      return limits_of_small<T>();
    }
  });
}

}  // namespace meshard
