// Internal: parameters in the dtype of what a layer is given.
#pragma once
#include "meshard/ops/all.h"

namespace meshard::nn {

/// A parameter in the dtype of `x`, so that layers compute in the dtype of their input. A complex
/// parameter stays complex: next to a real input the result is complex.
inline Tensor match_dtype(const Tensor& parameter, const Tensor& x) {
  if (is_complex(parameter.dtype()) && !is_complex(x.dtype())) return parameter;
  return astype(parameter, x.dtype());
}

}  // namespace meshard::nn
