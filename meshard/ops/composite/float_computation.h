// The dtype in which composites compute.
#pragma once
#include "meshard/graph/tensor.h"
#include "meshard/ops/astype.h"

namespace meshard {

/// f64 for f64, else f32: narrow floats lose too much on the way.
inline DType computation_dtype(DType dtype) {
  return dtype == DType::f64 ? DType::f64 : DType::f32;
}

/// What a composite of floats returns for operands of `dtype`: the same, f32 for integers and
/// bools.
inline DType float_result_dtype(DType dtype) { return is_floating(dtype) ? dtype : kDefaultFloat; }

/// x in computation_dtype.
inline Tensor for_computation(const Tensor& x) { return astype(x, computation_dtype(x.dtype())); }

}  // namespace meshard
