#include "meshard/ops/composite/create.h"

#include <cmath>
#include <limits>

#include "meshard/ops/all.h"
#include "meshard/ops/definition/define.h"
#include "meshard/ops/internal/matrix_operand.h"

namespace meshard {
namespace {

// A constant with one value everywhere.
Tensor splat(const Shape& shape, DType dtype, double value) {
  return broadcast_to(constant(HostArray::full(TensorType{dtype, Shape{}}, value)), shape);
}

void check_number(const In& x, std::string_view name) {
  if (x.tensor)
    throw_invalid(
        effective_source(x.where), "[arange] ", name,
        " is a tensor; the number of elements must be known when the program is recorded");
}

// The number of elements of start, start + step, ... before stop, for whole numbers.
std::int64_t whole_count(std::int64_t start, std::int64_t stop, std::int64_t step) {
  bool up = step > 0;
  if (up ? stop <= start : stop >= start) return 0;
  // Computed modulo 2^64: the exact distance and step are less than that.
  auto low = static_cast<std::uint64_t>(up ? start : stop);
  auto high = static_cast<std::uint64_t>(up ? stop : start);
  auto by = static_cast<std::uint64_t>(step);
  if (!up) by = ~by + 1;
  return static_cast<std::int64_t>((high - low - 1) / by + 1);
}

void check_count(std::string_view op, std::string_view name, std::int64_t count,
                 SourceLocation where) {
  if (count < 0)
    throw_invalid(effective_source(where), "[", op, "] ", name, " = ", count, " is negative");
}

// start + (count - 1) * step; the result fits although the product may overflow.
std::int64_t last_number(std::int64_t start, std::int64_t step, std::int64_t count) {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(start) +
                                   static_cast<std::uint64_t>(count - 1) *
                                       static_cast<std::uint64_t>(step));
}

// The diagonal number of each element of the last two dimensions: column index minus row index.
Tensor diagonal_number(const Shape& shape) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
  int rank = shape.rank();
  bool fits = shape[rank - 1] <= kMost && shape[rank - 2] <= kMost;
  DType index = fits ? kDefaultInteger : DType::i64;
  return subtract(iota(index, shape, -1), iota(index, shape, -2));
}

Shape matrix(std::string_view op, std::int64_t rows, std::optional<std::int64_t> columns,
             SourceLocation where) {
  check_count(op, "rows", rows, where);
  check_count(op, "columns", columns.value_or(rows), where);
  return {rows, columns.value_or(rows)};
}

}  // namespace

Tensor zeros(Shape shape, DType dtype, SourceLocation where) {
  SourceScope line(where);
  return splat(shape, dtype, 0);
}

Tensor ones(Shape shape, DType dtype, SourceLocation where) {
  SourceScope line(where);
  return splat(shape, dtype, 1);
}

Tensor full(Shape shape, In value, std::optional<DType> dtype) {
  SourceScope line(value.where);
  const bool is_complex_value =
      value.tensor && value.tensor->defined() && is_complex(value.tensor->dtype());
  if (is_complex_value && dtype && !is_complex(*dtype))
    throw_invalid(effective_source(value.where), "[full] the value is ", value.tensor->type(),
                  " made at ", value.tensor->where(), ", whose imaginary part ", *dtype,
                  " cannot hold: use a complex dtype, or real(value)");
  Tensor element = dtype ? astype(value, *dtype) : operand_tensor("full", value);
  if (element.rank() != 0)
    throw_invalid(effective_source(value.where), "[full] the value must have rank 0, not ",
                  element.type());
  return broadcast_to(element, shape);
}

Tensor zeros_like(In x, std::optional<DType> dtype) {
  SourceScope line(x.where);
  Tensor like = operand_tensor("zeros_like", x);
  return splat(like.shape(), dtype.value_or(like.dtype()), 0);
}

Tensor ones_like(In x, std::optional<DType> dtype) {
  SourceScope line(x.where);
  Tensor like = operand_tensor("ones_like", x);
  return splat(like.shape(), dtype.value_or(like.dtype()), 1);
}

Tensor full_like(In x, In value, std::optional<DType> dtype) {
  SourceScope line(x.where);
  Tensor like = operand_tensor("full_like", x);
  return full(like.shape(), value, dtype.value_or(like.dtype()));
}

Tensor arange(In start, In stop, In step, std::optional<DType> dtype) {
  SourceScope line(start.where);
  check_number(start, "start");
  check_number(stop, "stop");
  check_number(step, "step");
  const SourceLocation& place = effective_source(start.where);
  double first = start.scalar.as_double(), end = stop.scalar.as_double(),
         by = step.scalar.as_double();
  if (by == 0) throw_invalid(place, "[arange] step cannot be 0");
  auto is_float = [](const In& x) { return x.scalar.kind == ScalarKind::kFloat; };
  bool any_float = is_float(start) || is_float(stop) || is_float(step);
  DType result = dtype.value_or(any_float ? kDefaultFloat : kDefaultInteger);
  auto is_whole = [&](const In& x) { return !is_float(x) && !x.scalar.is_above_i64; };
  bool whole_numbers = is_whole(start) && is_whole(stop) && is_whole(step);
  auto count = whole_numbers
                   ? whole_count(start.scalar.integer, stop.scalar.integer, step.scalar.integer)
                   : static_cast<std::int64_t>(std::max(0.0, std::ceil((end - first) / by)));
  // If the first and the last number fit the dtype, so do all between.
  if (count > 0 && is_integer(result)) {
    (void)scalar_array(start.scalar, result, place);
    if (whole_numbers)
      (void)scalar_array(Scalar(last_number(start.scalar.integer, step.scalar.integer, count)),
                         result, place);
    else
      (void)scalar_array(Scalar(first + static_cast<double>(count - 1) * by), result, place);
  }
  // Fractional steps need floats for the computation, even with an integer result dtype. Whole
  // numbers are computed as integers and rounded once: a bf16 cannot hold the index 301.
  DType computed = result;
  if (is_float(start) || is_float(step))
    computed = promote(result, kDefaultFloat);
  else if (double most = std::abs(first) + std::abs(by) * static_cast<double>(count);
           is_inexact(result) && most < 0x1p62)
    computed = most < 0x1p31 ? DType::i32 : DType::i64;
  Tensor index = iota(computed, Shape{count}, 0);
  auto number_of = [&](const Scalar& number) {
    return constant(scalar_array(number, computed, place));
  };
  // A descending range of an unsigned dtype: it cannot represent the negative step.
  bool down = whole_numbers && by < 0 && is_unsigned_integer(computed);
  if (count > 1 && by != 1)
    index = multiply(
        index,
        number_of(down ? Scalar(-static_cast<std::uint64_t>(step.scalar.integer)) : step.scalar));
  if (down)
    index = subtract(number_of(start.scalar), index);
  else if (first != 0)
    index = add(index, number_of(start.scalar));
  return astype(index, result);
}

Tensor arange(In stop) { return arange(In(0, stop.where), stop); }

Tensor linspace(double start, double stop, std::int64_t num, DType dtype, bool endpoint,
                SourceLocation where) {
  SourceScope line(where);
  check_count("linspace", "num", num, where);
  if (!is_floating(dtype))
    throw_invalid(effective_source(where), "[linspace] takes floats, not ", dtype);
  std::int64_t intervals = endpoint ? num - 1 : num;
  Tensor index = iota(dtype, Shape{num}, 0);
  auto number_of = [&](double value) { return element_wise::literal(value, index); };
  // start * (1 - t) + stop * t, so that the last element is exactly `stop`.
  Tensor t = multiply(index, number_of(intervals > 0 ? 1.0 / static_cast<double>(intervals) : 0));
  if (endpoint && num > 1)
    t = meshard::where(equal(index, number_of(static_cast<double>(intervals))), 1, t);
  return add(multiply(subtract(1, t), number_of(start)), multiply(t, number_of(stop)));
}

Tensor eye(std::int64_t rows, std::optional<std::int64_t> columns, std::int64_t k, DType dtype,
           SourceLocation where) {
  SourceScope line(where);
  return astype(equal(diagonal_number(matrix("eye", rows, columns, where)), k), dtype);
}

Tensor tri(std::int64_t rows, std::optional<std::int64_t> columns, std::int64_t k, DType dtype,
           SourceLocation where) {
  SourceScope line(where);
  return astype(less_equal(diagonal_number(matrix("tri", rows, columns, where)), k), dtype);
}

// If all or no elements are kept, this is known from the shape.
Tensor tril(In x, std::int64_t k) {
  SourceScope line(x.where);
  Tensor operand = internal::matrices("tril", x);
  Shape last{operand.dim(-2), operand.dim(-1)};
  if (k >= last[1] - 1) return operand;
  if (k <= -last[0]) return zeros_like(operand);
  return where(less_equal(diagonal_number(last), k), operand, zeros_like(operand));
}

Tensor triu(In x, std::int64_t k) {
  SourceScope line(x.where);
  Tensor operand = internal::matrices("triu", x);
  Shape last{operand.dim(-2), operand.dim(-1)};
  if (k <= 1 - last[0]) return operand;
  if (k >= last[1]) return zeros_like(operand);
  return where(greater_equal(diagonal_number(last), k), operand, zeros_like(operand));
}

}  // namespace meshard
