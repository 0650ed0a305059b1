// Helpers shared by full_to_shard and shard_to_full.
#pragma once
#include <optional>

#include "meshard/graph/op_def.h"
#include "meshard/mesh/axis_set.h"
#include "meshard/sharding/sharding.h"

namespace meshard::internal {

/// Checks the sharding with which a value of type `full` enters or leaves the manual axes `manual`.
/// @error through call.fail: it has another number of dimensions, uses an axis that is not manual
/// or a sub-axis, has an open dimension, or has replicated or unreduced axes.
void check_manual_sharding(const OpCall& call, const std::optional<Sharding>& sharding,
                           const AxisList& manual, const TensorType& full);

/// The axes that split a dimension. @pre they are whole axes
AxisSet splitting_axes(const Sharding& sharding);

}  // namespace meshard::internal
