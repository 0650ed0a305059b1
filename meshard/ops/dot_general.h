#pragma once
#include <optional>

#include "meshard/graph/tensor.h"

namespace meshard {

/// Which dimensions of the two operands of dot_general belong together: entry i of one list to
/// entry i of the other. Negative numbers count from the last.
struct DotDimensions {
  Dimensions lhs_contracting = {}, rhs_contracting = {};
  Dimensions lhs_batch = {}, rhs_batch = {};
};

struct DotGeneralAttributes {
  Dimensions lhs_contracting, rhs_contracting;
  Dimensions lhs_batch, rhs_batch;
  DType result_dtype = DType::f32;
  MESHARD_FIELDS(lhs_contracting, rhs_contracting, lhs_batch, rhs_batch, result_dtype)
};

/// Sums of products over the contracting dimensions, for each index of the batch dimensions. The
/// result's dimensions: batch, then the rest of lhs, then the rest of rhs, each in order. Operands
/// are promoted to one dtype; `result_dtype` asks for a wider result (i8 by i8 in i32).
///
///     dot_general(a, b, {.lhs_contracting = {1}, .rhs_contracting = {0}})  // matrix product
Tensor dot_general(In lhs, In rhs, DotDimensions dimensions,
                   std::optional<DType> result_dtype = std::nullopt);

}  // namespace meshard
