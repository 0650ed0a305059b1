// Arithmetic of nested tuples, integer by integer.
#pragma once
#include <cstdint>

#include "meshard/layout/int_tuple.h"

namespace meshard {

/// The sum of the products of integers at the same place: (2,3) and (4,5) give 23.
/// @error a and b differ in nesting; the sum does not fit 64 bits.
std::int64_t inner_product(const IntTuple& a, const IntTuple& b);

/// The products of integers at the same place, nested as `a` is. Where `a` has an integer and `b` a
/// tuple, the tuple counts as its product.
/// @error b does not fit a's nesting; a product does not fit 64 bits.
IntTuple elementwise_product(const IntTuple& a, const IntTuple& b);

/// The largest integer of a tuple; 0 for `()`.
std::int64_t largest(const IntTuple& tuple);

/// -1, 0 or 1 for each integer, nested as `tuple` is.
IntTuple signs(const IntTuple& tuple);

/// What is left of shape `a` when `b` indices at a time count as one, rounded up: integer by
/// integer for a tuple b; for an integer b divided off from left to right: (3,4) by 6 is (1,2). A
/// tuple b over an integer a counts as its product.
/// @pre all integers are positive
/// @error two of the integers where neither divides the other; b does not fit a's nesting.
Result<IntTuple> shape_divide(const IntTuple& a, const IntTuple& b);

/// The strides of the compact row-major layout of `shape`, the last mode's being `start`. If
/// `start` is a tuple, its elements start the modes of `shape` one by one.
/// @error start does not fit shape's nesting; a stride does not fit 64 bits.
IntTuple compact_stride(const IntTuple& shape, const IntTuple& start = 1);

}  // namespace meshard
