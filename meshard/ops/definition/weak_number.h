// Numbers that are weakly typed although they are tensors: arguments of jitted functions.
#pragma once
#include <optional>

#include "meshard/graph/tensor.h"

namespace meshard {

/// A weakly typed tensor for a number that is computed in the widest dtype of its kind (i64, f64).
/// It has the default dtype of its kind (i32, f32); beside a tensor it takes part as a C++ number
/// does: only its kind counts, and it is converted from the wide dtype. What is computed from
/// weakly typed tensors and C++ numbers alone, element by element, is weakly typed too. Everywhere
/// else it is a tensor of its dtype.
/// @pre `wide` has rank 0 and is an i64, an f64 or a bool, which is returned as it is
Tensor weak_number(const Tensor& wide);

/// The same for a number that i32 or f32 cannot hold. It has the wide dtype itself, and converting
/// it to a dtype that cannot hold it is an error when the program is recorded.
/// @pre `wide` has rank 0 and is an i64, a u64 or an f64
Tensor large_number(const Tensor& wide);

/// The weakly typed number for another wide number that `number` has, as weak_number() or
/// large_number() makes it. @pre `number` is weakly typed
Tensor number_like(const Tensor& number, const Tensor& wide);

/// Throws an error if an operand is a large number, or is computed from one, and `dtype` may not
/// hold it. @error invalid argument
void check_holds_large(const In& x, DType dtype);

/// The wide number behind a weakly typed tensor; undefined for any other operand.
Tensor wide_number(const In& x);

/// The kind of an operand that is weakly typed: a C++ number or a weakly typed tensor.
std::optional<ScalarKind> weak_kind(const In& x);

/// Makes the result of an element-wise op weakly typed. @pre no other thread sees its node
void set_wide_number(const Tensor& result, const Tensor& wide);

}  // namespace meshard
