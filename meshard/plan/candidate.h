// The meshes and shardings that a search may try.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "meshard/array/shape.h"
#include "meshard/mesh/mesh.h"
#include "meshard/sharding/partition_spec.h"

namespace meshard {

/// Value type: an argument whose sharding the search may choose. Open dimensions of `spec` are
/// free; the axes that it names stay in place, and closed dimensions stay closed.
struct FreeValue {
  /// The name in the user's program.
  std::string name;
  TensorType type;
  PartitionSpec spec;
  friend bool operator==(const FreeValue&, const FreeValue&) = default;
};

/// Value type: one choice of mesh axes with sizes, and a closed spec for each free value.
struct PlanCandidate {
  std::vector<MeshAxis> axes;
  std::vector<PartitionSpec> specs;

  /// `data=4,model=2; P("data", none); P(none, "model")`: one line, unique for each candidate.
  std::string to_string() const;
  /// The same with the names of the values: `data=4,model=2; w: P("data", none)`. Values without a
  /// name are printed as in to_string() without names.
  std::string to_string(const std::vector<std::string>& names) const;
  friend bool operator==(const PlanCandidate&, const PlanCandidate&) = default;
};

/// True if a dimension is open, so that the compiler may split it.
bool is_open(const PartitionSpec& spec);
bool is_open(const PlanCandidate& candidate);

/// All ways to write `devices` as a product of `count` sizes, in lexicographic order. The products
/// for 4
/// with two sizes are (1, 4), (2, 2), (4, 1). @error invalid argument: devices or count is less
/// than 1
std::vector<std::vector<std::int64_t>> mesh_shapes(std::int64_t devices, std::size_t count);

/// All closed specs of a value over these axes. Each axis with a size greater than 1 that the
/// value's spec does not name shards one open dimension or none. It is appended to the dimension's
/// axes, in mesh order. Only specs whose axes divide every dimension are included.
/// @post distinct specs, all dividing; empty if the axes already in the spec do not divide
/// @error invalid argument: the spec is longer than the value's rank, or names an unknown axis
std::vector<PartitionSpec> spec_candidates(const FreeValue& value,
                                           const std::vector<MeshAxis>& axes);

/// True if the axes of every dimension divide its size. @pre as for spec_candidates()
bool divides(const PartitionSpec& spec, const Shape& shape, const std::vector<MeshAxis>& axes);

/// Bytes of one shard: the value's bytes divided by the product of its axes' sizes.
/// @pre divides(spec, type.shape, axes)
double shard_bytes(const PartitionSpec& spec, const TensorType& type,
                   const std::vector<MeshAxis>& axes);

}  // namespace meshard
