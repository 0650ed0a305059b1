// Exponentials and logarithms.
#pragma once
#include "meshard/graph/tensor.h"

namespace meshard {

/// The exponential (base e) of each element. Integers are computed in f32.
Tensor exp(In x);

/// exp(x) - 1, accurate also for small elements. Integers are computed in f32.
Tensor expm1(In x);

/// The natural logarithm of each element; NaN below zero. Integers are computed in f32.
Tensor log(In x);

/// log(1 + x), accurate also for small elements. Integers are computed in f32.
Tensor log1p(In x);

/// 1 / (1 + exp(-x)) of each element, also known as sigmoid. Integers are computed in f32.
Tensor logistic(In x);

}  // namespace meshard
