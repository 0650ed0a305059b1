// The element-wise ops of one and two operands: how each is called, the op of StableHLO or CHLO
// that it becomes, and the function that it computes, in double or in 64-bit integers. The tests of
// the ops, the interpreter and the conformance suite read it. A new element-wise op needs one row.
#pragma once
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>
#include <span>
#include <string_view>

#include "meshard/ops/arithmetic.h"
#include "meshard/ops/bitwise.h"
#include "meshard/ops/comparison.h"
#include "meshard/ops/division.h"
#include "meshard/ops/exponential.h"
#include "meshard/ops/power.h"
#include "meshard/ops/rounding.h"
#include "meshard/ops/selection.h"
#include "meshard/ops/special_function.h"
#include "meshard/ops/trigonometric.h"

namespace meshard {

/// An op of one operand.
struct UnaryOp {
  std::string_view name;
  Tensor (*call)(In);
  /// The op of StableHLO or CHLO, from their specifications. Empty if the text of the op is
  /// compared in the test of its family.
  std::string_view mnemonic;
  /// The function of floats; null if there is none.
  double (*real)(double) = nullptr;
  /// The function of integers and bools. Null if there is none: integers are computed in f32.
  std::int64_t (*whole)(std::int64_t, DType) = nullptr;
};

/// An op of two operands.
struct BinaryOp {
  std::string_view name;
  Tensor (*call)(In, In);
  std::string_view mnemonic;
  double (*real)(double, double) = nullptr;
  std::int64_t (*whole)(std::int64_t, std::int64_t, DType) = nullptr;
};

/// Functions that the C++ library does not have.
namespace reference {

using I = std::int64_t;
using U = std::uint64_t;

inline double erf_inv(double x) {
  if (x == 0) return x;
  if (!(std::abs(x) < 1)) return std::abs(x) == 1 ? std::copysign(INFINITY, x) : NAN;
  // Bisects the interval until it is a single number.
  double low = -7, high = 7;
  for (int i = 0; i < 200; ++i) (std::erf((low + high) / 2) < x ? low : high) = (low + high) / 2;
  return (low + high) / 2;
}

/// By the recurrence up to 16, then the asymptotic series (Abramowitz and Stegun, 6.3.5
/// and 6.3.18).
inline double digamma(double x) {
  if (x <= 0 && x == std::floor(x)) return NAN;
  if (x < 0) return digamma(1 - x) - std::numbers::pi / std::tan(std::numbers::pi * x);
  double sum = 0;
  for (; x < 16; x += 1) sum -= 1 / x;
  double y = 1 / (x * x);
  return sum + std::log(x) - 0.5 / x -
         y * (1.0 / 12 - y * (1.0 / 120 - y * (1.0 / 252 - y * (1.0 / 240 - y / 132))));
}

/// By the Euler-Maclaurin formula after 12 terms, for s > 1 and q > 0.
inline double zeta(double s, double q) {
  constexpr double kBernoulli[] = {1.0 / 12,         -1.0 / 720,     1.0 / 30240,
                                   -1.0 / 1209600,   1.0 / 47900160, -691.0 / 1307674368000,
                                   1.0 / 74724249600};
  double sum = 0;
  for (int k = 0; k < 12; ++k, q += 1) sum += std::pow(q, -s);
  sum += std::pow(q, 1 - s) / (s - 1) + std::pow(q, -s) / 2;
  double term = s * std::pow(q, -s - 1);
  for (int j = 0; j < 7; ++j) {
    sum += kBernoulli[j] * term;
    term *= (s + 2 * j + 1) * (s + 2 * j + 2) / (q * q);
  }
  return sum;
}

/// The derivative of digamma of order n, for x > 0.
inline double polygamma(double n, double x) {
  if (n == 0) return digamma(x);
  double size = std::tgamma(n + 1) * zeta(n + 1, x);
  return std::fmod(n, 2) == 0 ? -size : size;
}

/// As in Python; infinities and zeros as in the array API standard.
inline double floor_divide(double a, double b) {
  if (a == 0 || b == 0 || !std::isfinite(a) || !std::isfinite(b)) return std::floor(a / b);
  double rest = std::fmod(a, b);
  double quotient = (a - rest) / b;
  return std::round(rest != 0 && (rest < 0) != (b < 0) ? quotient - 1 : quotient);
}

/// As in Python: with the sign of b, also where it is zero.
inline double remainder(double a, double b) {
  double rest = std::fmod(a, b);
  if (rest == 0) return std::copysign(0.0, b);
  return (rest < 0) != (b < 0) ? rest + b : rest;
}

inline int width_of(DType dtype) {
  return dtype == DType::bool_ ? 1 : 8 * static_cast<int>(size_in_bytes(dtype));
}
/// The bits of an integer of `dtype`, which is stored in 64 bits with its sign.
inline U bits_of(I x, DType dtype) { return static_cast<U>(x) & (~U{0} >> (64 - width_of(dtype))); }

inline bool is_below(I a, I b, DType dtype) {
  return dtype == DType::u64 ? static_cast<U>(a) < static_cast<U>(b) : a < b;
}

/// a^n modulo 2^64.
inline I power(I a, I n, DType) {
  U result = 1;
  for (U factor = static_cast<U>(a); n > 0; n >>= 1, factor *= factor)
    if (n & 1) result *= factor;
  return static_cast<I>(result);
}

}  // namespace reference

/// The ops of one operand.
inline std::span<const UnaryOp> unary_ops() {
  using namespace reference;
  static constexpr UnaryOp kOps[] = {
      {"abs", abs, "stablehlo.abs", [](double x) { return std::abs(x); },
       [](I x, DType) { return x < 0 ? -x : x; }},
      {"acos", acos, "chlo.acos", [](double x) { return std::acos(x); }},
      {"acosh", acosh, "chlo.acosh", [](double x) { return std::acosh(x); }},
      {"asin", asin, "chlo.asin", [](double x) { return std::asin(x); }},
      {"asinh", asinh, "chlo.asinh", [](double x) { return std::asinh(x); }},
      {"atan", atan, "chlo.atan", [](double x) { return std::atan(x); }},
      {"atanh", atanh, "chlo.atanh", [](double x) { return std::atanh(x); }},
      {"bitwise_invert", bitwise_invert, "", nullptr, [](I x, DType) { return ~x; }},
      {"cbrt", cbrt, "stablehlo.cbrt", [](double x) { return std::cbrt(x); }},
      {"ceil", ceil, "stablehlo.ceil", [](double x) { return std::ceil(x); },
       [](I x, DType) { return x; }},
      {"cos", cos, "stablehlo.cosine", [](double x) { return std::cos(x); }},
      {"cosh", cosh, "chlo.cosh", [](double x) { return std::cosh(x); }},
      {"count_leading_zeros", count_leading_zeros, "", nullptr,
       [](I x, DType dtype) {
         return I{width_of(dtype) - 64 + std::countl_zero(bits_of(x, dtype))};
       }},
      {"digamma", digamma, "chlo.digamma", reference::digamma},
      {"erf", erf, "chlo.erf", [](double x) { return std::erf(x); }},
      {"erf_inv", erf_inv, "chlo.erf_inv", reference::erf_inv},
      {"erfc", erfc, "chlo.erfc", [](double x) { return std::erfc(x); }},
      {"exp", exp, "stablehlo.exponential", [](double x) { return std::exp(x); }},
      {"expm1", expm1, "stablehlo.exponential_minus_one", [](double x) { return std::expm1(x); }},
      {"floor", floor, "stablehlo.floor", [](double x) { return std::floor(x); },
       [](I x, DType) { return x; }},
      {"isfinite", isfinite, "stablehlo.is_finite",
       [](double x) { return std::isfinite(x) ? 1.0 : 0.0; }},
      {"lgamma", lgamma, "chlo.lgamma", [](double x) { return std::lgamma(x); }},
      {"log", log, "stablehlo.log", [](double x) { return std::log(x); }},
      {"log1p", log1p, "stablehlo.log_plus_one", [](double x) { return std::log1p(x); }},
      {"logical_not", logical_not, "", nullptr, [](I x, DType) { return I{!x}; }},
      {"logistic", logistic, "stablehlo.logistic", [](double x) { return 1 / (1 + std::exp(-x)); }},
      {"negative", negative, "stablehlo.negate", [](double x) { return -x; },
       [](I x, DType) { return -x; }},
      {"popcnt", popcnt, "", nullptr,
       [](I x, DType dtype) { return I{std::popcount(bits_of(x, dtype))}; }},
      {"round", round, "stablehlo.round_nearest_even", [](double x) { return std::nearbyint(x); },
       [](I x, DType) { return x; }},
      {"round_nearest_afz", round_nearest_afz, "stablehlo.round_nearest_afz",
       [](double x) { return std::round(x); }, [](I x, DType) { return x; }},
      {"rsqrt", rsqrt, "stablehlo.rsqrt", [](double x) { return 1 / std::sqrt(x); }},
      {"sign", sign, "", [](double x) { return x > 0   ? 1.0
                                               : x < 0 ? -1.0
                                                       : x + 0.0; },
       [](I x, DType) { return I{x > 0} - I{x < 0}; }},
      {"sin", sin, "stablehlo.sine", [](double x) { return std::sin(x); }},
      {"sinh", sinh, "chlo.sinh", [](double x) { return std::sinh(x); }},
      {"sqrt", sqrt, "stablehlo.sqrt", [](double x) { return std::sqrt(x); }},
      {"tan", tan, "stablehlo.tan", [](double x) { return std::tan(x); }},
      {"tanh", tanh, "stablehlo.tanh", [](double x) { return std::tanh(x); }},
      {"trunc", trunc, "", [](double x) { return std::trunc(x); }, [](I x, DType) { return x; }},
  };
  return kOps;
}

/// The ops of two operands.
inline std::span<const BinaryOp> binary_ops() {
  using namespace reference;
  static constexpr BinaryOp kOps[] = {
      {"add", add, "stablehlo.add", [](double a, double b) { return a + b; },
       [](I a, I b, DType) { return static_cast<I>(static_cast<U>(a) + static_cast<U>(b)); }},
      {"atan2", atan2, "stablehlo.atan2", [](double a, double b) { return std::atan2(a, b); }},
      {"bitwise_and", bitwise_and, "", nullptr, [](I a, I b, DType) { return a & b; }},
      {"bitwise_left_shift", bitwise_left_shift, "", nullptr,
       [](I a, I b, DType dtype) {
         return b >= width_of(dtype) ? I{0} : static_cast<I>(static_cast<U>(a) << b);
       }},
      {"bitwise_or", bitwise_or, "", nullptr, [](I a, I b, DType) { return a | b; }},
      {"bitwise_right_shift", bitwise_right_shift, "", nullptr,
       [](I a, I b, DType dtype) {
         if (is_signed(dtype)) return a >> (b > 63 ? 63 : b);
         return b >= width_of(dtype) ? I{0} : static_cast<I>(static_cast<U>(a) >> b);
       }},
      {"bitwise_xor", bitwise_xor, "", nullptr, [](I a, I b, DType) { return a ^ b; }},
      {"divide", divide, "stablehlo.divide", [](double a, double b) { return a / b; }},
      {"equal", equal, "", [](double a, double b) { return a == b ? 1.0 : 0.0; },
       [](I a, I b, DType) { return I{a == b}; }},
      {"floor_divide", floor_divide, "", reference::floor_divide,
       [](I a, I b, DType) { return a / b - I{a % b != 0 && (a % b < 0) != (b < 0)}; }},
      {"fmod", fmod, "stablehlo.remainder", [](double a, double b) { return std::fmod(a, b); },
       [](I a, I b, DType) { return a % b; }},
      {"greater", greater, "", [](double a, double b) { return a > b ? 1.0 : 0.0; },
       [](I a, I b, DType dtype) { return I{is_below(b, a, dtype)}; }},
      {"greater_equal", greater_equal, "", [](double a, double b) { return a >= b ? 1.0 : 0.0; },
       [](I a, I b, DType dtype) { return I{!is_below(a, b, dtype)}; }},
      {"less", less, "", [](double a, double b) { return a < b ? 1.0 : 0.0; },
       [](I a, I b, DType dtype) { return I{is_below(a, b, dtype)}; }},
      {"less_equal", less_equal, "", [](double a, double b) { return a <= b ? 1.0 : 0.0; },
       [](I a, I b, DType dtype) { return I{!is_below(b, a, dtype)}; }},
      {"logical_and", logical_and, "", nullptr, [](I a, I b, DType) { return a & b; }},
      {"logical_or", logical_or, "", nullptr, [](I a, I b, DType) { return a | b; }},
      {"logical_xor", logical_xor, "", nullptr, [](I a, I b, DType) { return a ^ b; }},
      {"maximum", maximum, "stablehlo.maximum",
       [](double a, double b) {
         return std::isnan(a) || a > b || (a == b && !std::signbit(a)) ? a : b;
       },
       [](I a, I b, DType dtype) { return is_below(a, b, dtype) ? b : a; }},
      {"minimum", minimum, "stablehlo.minimum",
       [](double a, double b) {
         return std::isnan(a) || a < b || (a == b && std::signbit(a)) ? a : b;
       },
       [](I a, I b, DType dtype) { return is_below(b, a, dtype) ? b : a; }},
      {"multiply", multiply, "stablehlo.multiply", [](double a, double b) { return a * b; },
       [](I a, I b, DType) { return static_cast<I>(static_cast<U>(a) * static_cast<U>(b)); }},
      {"nextafter", nextafter, "chlo.next_after"},  // depends on the dtype
      {"not_equal", not_equal, "", [](double a, double b) { return a != b ? 1.0 : 0.0; },
       [](I a, I b, DType) { return I{a != b}; }},
      {"polygamma", polygamma, "chlo.polygamma", reference::polygamma},
      {"pow", pow, "stablehlo.power", [](double a, double b) { return std::pow(a, b); }, power},
      {"remainder", remainder, "", reference::remainder,
       [](I a, I b, DType) { return ((a % b) + b) % b; }},
      {"shift_right_logical", shift_right_logical, "", nullptr,
       [](I a, I b, DType dtype) {
         return b >= width_of(dtype) ? I{0} : static_cast<I>(bits_of(a, dtype) >> b);
       }},
      {"subtract", subtract, "stablehlo.subtract", [](double a, double b) { return a - b; },
       [](I a, I b, DType) { return static_cast<I>(static_cast<U>(a) - static_cast<U>(b)); }},
      {"truncated_divide", truncated_divide, "", nullptr, [](I a, I b, DType) { return a / b; }},
      {"zeta", zeta, "chlo.zeta", reference::zeta},
  };
  return kOps;
}

/// The row of an op; null if it has none.
template <class Row>
const Row* row_of(std::span<const Row> rows, std::string_view name) {
  for (const Row& row : rows)
    if (row.name == name) return &row;
  return nullptr;
}

}  // namespace meshard
