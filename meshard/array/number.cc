#include "meshard/array/number.h"

#include <bit>
#include <cmath>

#include "meshard/base/cat.h"
#include "meshard/base/error.h"

namespace meshard {
namespace {

// True if the number, truncated to an integer, is within the dtype's limits.
bool fits_integer(const Scalar& number, const IntegerLimits& limits) {
  if (number.kind == ScalarKind::kFloat) {
    // The lower limit and the upper limit plus one are powers of two or zero, so exact as doubles.
    double whole = std::trunc(number.floating),
           end = std::ldexp(1.0, static_cast<int>(std::bit_width(limits.max)));
    return whole >= static_cast<double>(limits.min) && whole < end;
  }
  if (number.is_above_i64) return static_cast<std::uint64_t>(number.integer) <= limits.max;
  return number.integer >= limits.min &&
         (number.integer < 0 || static_cast<std::uint64_t>(number.integer) <= limits.max);
}

// Converts without a range check: integers keep their low bits, all else converts as in astype.
HostArray converted(const Scalar& number, DType dtype) {
  if (number.kind == ScalarKind::kFloat) return HostArray::scalar(number.floating).astype(dtype);
  if (number.is_above_i64)
    return HostArray::scalar(static_cast<std::uint64_t>(number.integer)).astype(dtype);
  return HostArray::scalar(number.integer).astype(dtype);
}

[[noreturn]] void does_not_fit(const Scalar& number, DType dtype, SourceLocation where) {
  std::string range;
  if (is_integer(dtype)) {
    IntegerLimits limits = integer_limits(dtype);
    range = cat(limits.min, " to ", limits.max);
  } else if (DType real = real_dtype(dtype); real == DType::f8e8m0fnu) {
    range = "the powers of two from 2^-127 to 2^127";
  } else {
    range = cat("numbers from ", float_limits(real).lowest, " to ", float_limits(real).max);
  }
  throw_invalid(where, "[number] ", dtype, " cannot hold ", number, ": it holds ", range,
                "; use a wider dtype, or convert the other operand with astype first");
}

}  // namespace

double Scalar::as_double() const {
  if (kind == ScalarKind::kFloat) return floating;
  if (is_above_i64) return static_cast<double>(static_cast<std::uint64_t>(integer));
  return static_cast<double>(integer);
}

std::string Scalar::to_string() const {
  if (kind == ScalarKind::kBool) return integer != 0 ? "true" : "false";
  if (kind == ScalarKind::kFloat) return is_above_f64 ? "a number above 1.8e308" : cat(floating);
  return is_above_i64 ? cat(static_cast<std::uint64_t>(integer)) : cat(integer);
}

HostArray scalar_array(const Scalar& number, DType dtype, SourceLocation where) {
  if (dtype == DType::bool_) return converted(number, dtype);
  if (is_integer(dtype)) {
    if (!fits_integer(number, integer_limits(dtype))) does_not_fit(number, dtype, where);
    return converted(number, dtype);
  }
  if (dtype == DType::f32 && number.kind == ScalarKind::kFloat && !number.is_above_f64) {
    // The usual operand: one array, and one conversion.
    auto value = static_cast<float>(number.floating);
    if (std::isfinite(number.floating) && !std::isfinite(value)) does_not_fit(number, dtype, where);
    return HostArray::scalar(value);
  }
  HostArray array = converted(number, dtype);
  bool finite = number.kind != ScalarKind::kFloat || std::isfinite(number.floating);
  if (number.is_above_f64 || (finite && !std::isfinite(array.item<double>())))
    does_not_fit(number, dtype, where);
  return array;
}

}  // namespace meshard
