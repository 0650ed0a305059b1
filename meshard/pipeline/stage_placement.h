// Where the values of a stage are.
#pragma once
#include "meshard/graph/tensor.h"
#include "meshard/mesh/mesh.h"

namespace meshard::internal {

/// True if the value has a sharding over the devices of `mesh`.
bool is_on(const Tensor& value, const Mesh& mesh);

/// The sharding over `mesh` that is most like `sharding`: each dimension is split along the axes of
/// the same names, as far as they exist and divide it evenly. Without a sharding: replicated.
Sharding like_sharding(const std::optional<Sharding>& sharding, const Mesh& mesh,
                       const Shape& shape);

/// The value on the devices of `mesh`: itself if it is there, else a copy in like_sharding().
Tensor placed(const Tensor& value, const Mesh& mesh);

}  // namespace meshard::internal
