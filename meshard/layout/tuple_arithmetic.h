// Elementwise arithmetic on nested tuples of integers.
#pragma once
#include <cstdint>

#include "meshard/layout/int_tuple.h"

namespace meshard {

/// The sum of the products of corresponding integers: (2,3) and (4,5) give 23.
/// @error a and b differ in nesting; the sum does not fit 64 bits.
std::int64_t inner_product(const IntTuple& a, const IntTuple& b);

/// The products of corresponding integers, nested like `a`. Where `a` has an integer and `b` a
/// tuple, the tuple counts as its product.
/// @error b does not match a's nesting; a product does not fit 64 bits.
IntTuple elementwise_product(const IntTuple& a, const IntTuple& b);

/// The largest integer of a tuple; 0 for `()`.
std::int64_t largest(const IntTuple& tuple);

/// The sign (-1, 0 or 1) of each integer, nested like `tuple`.
IntTuple signs(const IntTuple& tuple);

/// Shape `a` divided by `b`, rounded up: the number of groups of `b` indices. A tuple b divides
/// integer by integer. An integer b divides the integers of a from left to right: (3,4) by 6 is
/// (1,2). If a is an integer and b a tuple, b counts as its product.
/// @pre all integers are positive
/// @error two corresponding integers where neither divides the other; b does not match a's nesting.
Result<IntTuple> shape_divide(const IntTuple& a, const IntTuple& b);

/// The strides of the compact row-major layout of `shape`; the last stride is `start`. If `start`
/// is a tuple, each element applies to one mode of `shape`.
/// @error start does not match shape's nesting; a stride does not fit 64 bits.
IntTuple compact_stride(const IntTuple& shape, const IntTuple& start = 1);

}  // namespace meshard
