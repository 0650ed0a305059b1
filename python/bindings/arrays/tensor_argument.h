#pragma once
#include <nanobind/nanobind.h>

#include "python/bindings/arrays/tensors.h"

namespace meshard::python {

/// The tensor of an argument which cannot be a number. @error type error: it is a number
inline const Tensor& tensor_argument(const Operand& operand) {
  auto* given = const_cast<Operand*>(&operand);
  settle_operands(std::span(&given, 1));  // a scalar of NumPy is a tensor here
  if (!operand.is_tensor()) throw nanobind::type_error("a tensor is needed here, not a number");
  return *operand.tensor();
}

}  // namespace meshard::python
