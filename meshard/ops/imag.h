#pragma once
#include "meshard/graph/tensor.h"

namespace meshard {

/// The imaginary parts; zeros for real numbers.
Tensor imag(In x);

}  // namespace meshard
