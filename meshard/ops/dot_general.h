#pragma once
#include <optional>

#include "meshard/graph/tensor.h"
#include "meshard/sharding/sharding.h"

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
  std::optional<Sharding> result_sharding;  ///< over a mesh with explicit axes
  MESHARD_FIELDS(lhs_contracting, rhs_contracting, lhs_batch, rhs_batch, result_dtype,
                 result_sharding)
};

/// Sums of products over the contracting dimensions, for each index of the batch dimensions. The
/// result's dimensions: batch, then the rest of lhs, then the rest of rhs, each in order. Operands
/// are promoted to one dtype; `result_dtype` asks for a wider result (i8 by i8 in i32).
///
///     dot_general(a, b, {.lhs_contracting = {1}, .rhs_contracting = {0}})  // matrix product
///
/// `result_sharding` says how the result is to lie. Over explicit axes it must be said where both
/// operands split a contracting dimension: the parts may be summed everywhere or in parts.
/// @error result_sharding describes more dimensions than the result has, or is over another mesh
/// than explicit operands.
Tensor dot_general(In lhs, In rhs, DotDimensions dimensions,
                   std::optional<DType> result_dtype = std::nullopt,
                   std::optional<Sharding> result_sharding = std::nullopt);

}  // namespace meshard
