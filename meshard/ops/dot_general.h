#pragma once
#include <optional>

#include "meshard/graph/tensor.h"
#include "meshard/sharding/sharding.h"
#include "meshard/stablehlo/types.h"

namespace meshard {

/// Sums of products over the contracting dimensions, for each index of the batch dimensions. The
/// result's dimensions: batch, then the rest of lhs, then the rest of rhs, each in order. Operands
/// are promoted to one dtype; `result_dtype` requests a wider result (i8 by i8 in i32).
///
///     dot_general(a, b, {.lhs_contracting = {1}, .rhs_contracting = {0}})  // matrix product
///
/// `result_sharding` is the sharding of the result. Over explicit axes it is required where both
/// operands split a contracting dimension, because the sum can be replicated or scattered.
/// @error result_sharding has more dimensions than the result, or a different mesh than explicit
/// operands.
Tensor dot_general(In lhs, In rhs, DotDimensions dimensions,
                   std::optional<DType> result_dtype = std::nullopt,
                   std::optional<Sharding> result_sharding = std::nullopt);

}  // namespace meshard
