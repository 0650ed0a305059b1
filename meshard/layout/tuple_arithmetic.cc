#include "meshard/layout/tuple_arithmetic.h"

#include <algorithm>
#include <vector>

namespace meshard {
namespace {

[[noreturn]] void throw_unlike(std::string_view operation, const IntTuple& a, const IntTuple& b) {
  throw_invalid({}, "[", operation, "] ", a, " and ", b, " differ in nesting");
}

std::int64_t checked_product(std::string_view operation, std::int64_t a, std::int64_t b) {
  std::int64_t product;
  if (__builtin_mul_overflow(a, b, &product))
    throw_invalid({}, "[", operation, "] ", a, " times ", b, " does not fit 64 bits");
  return product;
}

// The tuple of the results of `element(a[i], b[i])`.
template <class Element>
IntTuple by_element(std::string_view operation, const IntTuple& a, const IntTuple& b,
                    Element element) {
  if (b.is_integer() || a.rank() != b.rank()) throw_unlike(operation, a, b);
  std::vector<IntTuple> elements;
  for (std::size_t i = 0; i < a.rank(); ++i) elements.push_back(element(a[i], b[i]));
  return IntTuple(std::span<const IntTuple>(elements));
}

IntTuple quotient(const IntTuple& a, const IntTuple& b) {
  if (!a.is_integer() && !b.is_integer()) return by_element("shape_divide", a, b, quotient);
  if (!a.is_integer()) {
    IntTuple divisor = b;
    std::vector<IntTuple> elements;
    for (std::size_t i = 0; i < a.rank(); ++i) {
      elements.push_back(quotient(a[i], divisor));
      divisor = quotient(divisor, a[i]);
    }
    return IntTuple(std::span<const IntTuple>(elements));
  }
  std::int64_t size = a.value(), divisor = b.product();
  if (size < 1 || divisor < 1) throw_invalid({}, "[shape_divide] ", a, " by ", b, ": not positive");
  if (size % divisor != 0 && divisor % size != 0)
    throw_invalid({}, "[shape_divide] ", a, " by ", b, ": neither divides the other");
  return (size - 1) / divisor + 1;
}

// The strides of `shape`. On return, `running` is the stride of the mode to its left.
IntTuple strides_from(const IntTuple& shape, std::int64_t& running) {
  if (shape.is_integer()) {
    IntTuple stride(running);
    running = checked_product("compact_stride", running, shape.value());
    return stride;
  }
  std::vector<IntTuple> strides(shape.rank());
  for (std::size_t i = shape.rank(); i-- > 0;) strides[i] = strides_from(shape[i], running);
  return IntTuple(std::span<const IntTuple>(strides));
}

}  // namespace

std::int64_t inner_product(const IntTuple& a, const IntTuple& b) {
  if (!a.congruent(b)) throw_unlike("inner_product", a, b);
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < a.leaves().size(); ++i)
    if (__builtin_add_overflow(sum, checked_product("inner_product", a.leaves()[i], b.leaves()[i]),
                               &sum))
      throw_invalid({}, "[inner_product] of ", a, " and ", b, " does not fit 64 bits");
  return sum;
}

IntTuple elementwise_product(const IntTuple& a, const IntTuple& b) {
  if (!a.is_integer()) return by_element("elementwise_product", a, b, elementwise_product);
  return checked_product("elementwise_product", a.value(), b.product());
}

std::int64_t largest(const IntTuple& tuple) {
  std::span<const std::int64_t> leaves = tuple.leaves();
  return leaves.empty() ? 0 : *std::max_element(leaves.begin(), leaves.end());
}

IntTuple signs(const IntTuple& tuple) {
  IntVector signs;
  for (std::int64_t leaf : tuple.leaves()) signs.push_back((leaf > 0) - (leaf < 0));
  return tuple.with_leaves(signs);
}

Result<IntTuple> shape_divide(const IntTuple& a, const IntTuple& b) {
  try {
    return quotient(a, b);
  } catch (const Error& error) {
    return error;
  }
}

IntTuple compact_stride(const IntTuple& shape, const IntTuple& start) {
  if (!start.is_integer()) {
    if (shape.is_integer()) throw_unlike("compact_stride", shape, start);
    return by_element(
        "compact_stride", shape, start,
        [](const IntTuple& mode, const IntTuple& first) { return compact_stride(mode, first); });
  }
  std::int64_t running = start.value();
  return strides_from(shape, running);
}

}  // namespace meshard
