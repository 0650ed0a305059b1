#pragma once
#include "meshard/graph/tensor.h"
#include "meshard/sharding/sharding.h"
#include "meshard/sharding/sharding_spec.h"

namespace meshard {

/// The value of `x`, laid out over `mesh` as `spec` says: `mark_sharding(x, mesh, P("data",
/// none))`. Dimensions beyond the spec are not split. `x` itself stays as it is.
///
/// A value that exists (host data, a computed result) is placed now: each shard goes straight from
/// the host's bytes to its device, and a value on devices is resharded there. A value that is only
/// recorded, and every value inside a trace or a function that is being differentiated, gets a
/// sharding_constraint. A value that lies like this already is returned as it is.
/// @error the spec names more dimensions than x has, or an axis that the mesh lacks.
Tensor mark_sharding(In x, const Mesh& mesh, const PartitionSpec& spec);
Tensor mark_sharding(In x, const Sharding& sharding);
/// Over the global mesh (mesh/global_mesh.h). @error there is none; as above.
Tensor mark_sharding(In x, const PartitionSpec& spec);
/// As a loader's spec says of a tensor of x's dimensions.
/// @error as ShardingSpec::sharding's: a minibatch whose rows cannot be dealt out evenly.
Tensor mark_sharding(In x, const ShardingSpec& spec);

}  // namespace meshard
