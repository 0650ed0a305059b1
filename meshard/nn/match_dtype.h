// Internal: converts parameters to the dtype of a layer's input.
#pragma once
#include "meshard/ops/all.h"

namespace meshard::nn {

/// A parameter converted to the dtype of `x`, so that layers compute in the dtype of their input. A
/// complex parameter stays complex: with a real input the result is complex.
inline Tensor match_dtype(const Tensor& parameter, const Tensor& x) {
  if (is_complex(parameter.dtype()) && !is_complex(x.dtype())) return parameter;
  return astype(parameter, x.dtype());
}

}  // namespace meshard::nn
