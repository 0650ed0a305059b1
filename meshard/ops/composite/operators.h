// The operators of tensors; a number may stand on either side. Found by the types of their operands
// (argument-dependent lookup), so that `a + 2 * b` needs no using-directive.
//
// There is no operator==. It would have to give a tensor of bools, while generic code (std::find,
// the defaulted == of a struct that holds tensors, test frameworks) takes what == gives for one
// bool. Say equal(a, b), or compare handles by their value(). There is no && and || (they could not
// stop early), and no << and >> (a stream's): say logical_and, logical_or, bitwise_left_shift,
// bitwise_right_shift.
#pragma once
#include "meshard/graph/tensor.h"

namespace meshard {

/// add, subtract, multiply
Tensor operator+(In a, In b);
Tensor operator-(In a, In b);
Tensor operator*(In a, In b);
/// divide: floating point, for integers too
Tensor operator/(In a, In b);
/// remainder: the sign of b
Tensor operator%(In a, In b);
/// negative
Tensor operator-(In x);

/// less, less_equal, greater, greater_equal: tensors of bools
Tensor operator<(In a, In b);
Tensor operator<=(In a, In b);
Tensor operator>(In a, In b);
Tensor operator>=(In a, In b);

/// bitwise_and, bitwise_or, bitwise_xor, bitwise_invert: of bools, logic
Tensor operator&(In a, In b);
Tensor operator|(In a, In b);
Tensor operator^(In a, In b);
Tensor operator~(In x);

/// `a += b` is `a = a + b`: the handle gets the new value, which is marked as `a` was. Copies of
/// the handle keep the old one.
Tensor& operator+=(Tensor& a, In b);
Tensor& operator-=(Tensor& a, In b);
Tensor& operator*=(Tensor& a, In b);
Tensor& operator/=(Tensor& a, In b);

}  // namespace meshard
