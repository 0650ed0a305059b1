// The dtype in which composites compute.
#pragma once
#include <string_view>

#include "meshard/graph/tensor.h"
#include "meshard/ops/cast.h"
#include "meshard/ops/definition/operand.h"

namespace meshard::internal {

/// The dtype in which a composite of floats computes. f64, c64 and c128 are unchanged; all others
/// are f32, because narrow floats lose too much precision in intermediate results.
inline DType computation_dtype(DType dtype) {
  return dtype == DType::f64 || is_complex(dtype) ? dtype : DType::f32;
}

/// The result dtype of a composite of floats: the operand's, or f32 for integers and bools.
inline DType float_result_dtype(DType dtype) { return is_inexact(dtype) ? dtype : kDefaultFloat; }

/// x in computation_dtype.
inline Tensor for_computation(const Tensor& x) { return astype(x, computation_dtype(x.dtype())); }

/// Checks that x is real, for composites that are not defined for complex numbers.
/// @error invalid argument naming the composite, if x is complex.
inline void check_real(std::string_view name, const In& x) {
  if (x.tensor && x.tensor->defined() && is_complex(x.tensor->dtype()))
    throw_invalid(effective_source(x.where), "[", name, "] takes real numbers, not ",
                  x.tensor->type(), ": use abs, real or imag of complex ones");
}

/// The operand of a composite that is not defined for complex numbers.
/// @error as check_real; a tensor without a value.
inline Tensor real_operand(std::string_view name, const In& x) {
  check_real(name, x);
  return operand_tensor(name, x);
}

/// The same, with integers and bools converted to f32.
inline Tensor real_floating_operand(std::string_view name, const In& x) {
  Tensor operand = real_operand(name, x);
  return astype(operand, float_result_dtype(operand.dtype()));
}

/// The operand of a composite that accepts complex numbers, with integers and bools converted to
/// f32.
inline Tensor floating_operand(std::string_view name, const In& x) {
  Tensor operand = operand_tensor(name, x);
  return astype(operand, float_result_dtype(operand.dtype()));
}

}  // namespace meshard::internal
