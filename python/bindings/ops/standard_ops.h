// Ops with the special cases of the array API standard.
#pragma once
#include <nanobind/nanobind.h>

#include "meshard/graph/tensor.h"

namespace meshard::python {

/// floor_divide(), but for floats that are zero or infinite the floor of the quotient: inf // 2 is
/// inf, and -0 // 2 is -0.
Tensor standard_floor_divide(In a, In b);

/// remainder(), where a zero has the sign of the divisor.
Tensor standard_remainder(In a, In b);

void bind_standard_ops(nanobind::module_& module);

}  // namespace meshard::python
