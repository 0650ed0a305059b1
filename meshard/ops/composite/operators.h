// The operators of tensors; either operand may be a number. They are found by argument-dependent
// lookup, so that `a + 2 * b` needs no using-directive.
//
// There is no operator==. It would have to return a tensor of bools, while generic code (std::find,
// the defaulted == of a struct that holds tensors, test frameworks) expects one bool. Use equal(a,
// b), or compare handles by their value(). There are no && and || (they could not short-circuit),
// and no << and >> (used for streams): use logical_and, logical_or, bitwise_left_shift,
// bitwise_right_shift.
#pragma once
#include "meshard/array/host_array.h"
#include "meshard/graph/tensor.h"

namespace meshard {

/// add, subtract, multiply
Tensor operator+(In a, In b);
Tensor operator-(In a, In b);
Tensor operator*(In a, In b);
/// divide: in floating point, for integers too
Tensor operator/(In a, In b);
/// remainder: has the sign of b
Tensor operator%(In a, In b);
/// negative
Tensor operator-(In x);

/// less, less_equal, greater, greater_equal: tensors of bools
Tensor operator<(In a, In b);
Tensor operator<=(In a, In b);
Tensor operator>(In a, In b);
Tensor operator>=(In a, In b);

/// bitwise_and, bitwise_or, bitwise_xor, bitwise_invert: logical operations on bools
Tensor operator&(In a, In b);
Tensor operator|(In a, In b);
Tensor operator^(In a, In b);
Tensor operator~(In x);

/// `a += b` is `a = a + b`: the handle gets the new value, marked as `a` was. Copies of the handle
/// keep the old value.
Tensor& operator+=(Tensor& a, In b);
Tensor& operator-=(Tensor& a, In b);
Tensor& operator*=(Tensor& a, In b);
Tensor& operator/=(Tensor& a, In b);

/// Replaces the contents of a handle: `x` becomes a tensor of the array's elements. It keeps its
/// annotation, so that the new shards of a marked value are transferred directly to their devices.
/// Copies of the handle keep the old value. The rvalue overload takes the array; the other shares
/// its immutable block.
/// @error invalid argument if the array has another shape or dtype than `x`.
void assign(Tensor& x, HostArray&& array, SourceLocation where = SourceLocation::current());
void assign(Tensor& x, const HostArray& array, SourceLocation where = SourceLocation::current());

}  // namespace meshard
