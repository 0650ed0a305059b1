// The shardings that a program gives its values.
#pragma once
#include "meshard/graph/tensor.h"
#include "meshard/sharding/sharding.h"

namespace meshard {

class Placements;    // sharding/dtensor_placements.h
class ShardingSpec;  // sharding/sharding_spec.h

/// Shards the value of `x` over `mesh` as given by `spec`:
/// `mark_sharding(x, mesh, P("data", none))`. Dimensions beyond the spec are not split. `x` itself
/// is unchanged.
///
/// An existing value (host data, a computed result) is placed now: each shard is transferred
/// directly from host memory to its device, and a value on devices is resharded there. A value that
/// is only recorded, and every value inside a trace or a function that is being differentiated,
/// gets a sharding_constraint. A value that already has this sharding is returned unchanged.
/// @error the spec names more dimensions than x has (or, while StrictSpecs is in effect, fewer), or
/// an axis that the mesh does not have; a dimension that does not divide evenly, on a mesh that
/// rejects uneven sizes (Mesh::with_uneven).
Tensor mark_sharding(In x, const Mesh& mesh, const PartitionSpec& spec);
Tensor mark_sharding(In x, const Sharding& sharding);
/// The same with one placement for each axis of the mesh, as DTensor writes it:
/// `mark_sharding(x, mesh, Placements{Shard(0), Replicate()})`.
/// @error the errors of Placements::sharding, and of the overload with a spec
Tensor mark_sharding(In x, const Mesh& mesh, const Placements& placements);
/// The same over the global mesh (mesh/global_mesh.h).
/// @error failed precondition: no global mesh is set; the errors of the overload with a mesh
Tensor mark_sharding(In x, const PartitionSpec& spec);
/// The same with a loader's spec, applied to a tensor of x's dimensions.
/// @error as ShardingSpec::sharding: a minibatch whose rows cannot be distributed evenly.
Tensor mark_sharding(In x, const ShardingSpec& spec);

/// Makes mark_sharding in this thread require a spec entry for every dimension. Specs (and
/// shardings) with fewer entries than the tensor has dimensions are rejected while it exists, as in
/// torch_xla. Scopes nest.
/// @pre destroyed by the thread that created it
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

/// The same value without its annotation. sharding() is empty, and the value is unplaced, as if it
/// had never been placed. No data moves: a program on the devices that hold its bytes uses them in
/// their stored sharding; a program on other devices gets a copy. `x` itself is unchanged.
///
/// For a recorded value that was marked, the result is the value before the mark: the compiler
/// chooses its sharding again.
Tensor clear_sharding(In x);

}  // namespace meshard
