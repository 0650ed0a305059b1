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
/// @error the spec names more dimensions than x has (or, while StrictSpecs is in force, fewer), or
/// an axis that the mesh lacks; a dimension that does not divide, on a mesh that refuses uneven
/// sizes (Mesh::with_uneven).
Tensor mark_sharding(In x, const Mesh& mesh, const PartitionSpec& spec);
Tensor mark_sharding(In x, const Sharding& sharding);
/// Over the global mesh (mesh/global_mesh.h). @error there is none; as above.
Tensor mark_sharding(In x, const PartitionSpec& spec);
/// As a loader's spec says of a tensor of x's dimensions.
/// @error as ShardingSpec::sharding's: a minibatch whose rows cannot be dealt out evenly.
Tensor mark_sharding(In x, const ShardingSpec& spec);

/// While it lives, mark_sharding of this thread takes only specs (and shardings) with an entry for
/// each dimension of the tensor, as torch_xla does. Scopes nest.
/// @pre destroyed by the thread that made it
///
/// @code
/// Mesh mesh({{"x", 4}});
/// StrictSpecs strict;
/// mark_sharding(ones({8, 3}), mesh, P("x", none));  // P("x") alone is an error here
/// @endcode
class StrictSpecs {
 public:
  StrictSpecs();
  ~StrictSpecs();
  StrictSpecs(const StrictSpecs&) = delete;
  StrictSpecs& operator=(const StrictSpecs&) = delete;
};

}  // namespace meshard
