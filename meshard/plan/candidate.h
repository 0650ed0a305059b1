// The meshes and shardings that a search may try.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "meshard/array/shape.h"
#include "meshard/mesh/mesh.h"
#include "meshard/sharding/partition_spec.h"

namespace meshard {

/// A value: an argument whose sharding the search may choose. Open dimensions of `spec` are free;
/// axes that it names stay where they are, and closed dimensions stay closed.
struct FreeValue {
  /// As the user knows it.
  std::string name;
  TensorType type;
  PartitionSpec spec;
  friend bool operator==(const FreeValue&, const FreeValue&) = default;
};

/// A value: one choice: the mesh's axes with their sizes, and a closed spec for each free value.
struct PlanCandidate {
  std::vector<MeshAxis> axes;
  std::vector<PartitionSpec> specs;

  /// `data=4,model=2; P("data", none); P(none, "model")`: one line, different for different
  /// candidates.
  std::string to_string() const;
  friend bool operator==(const PlanCandidate&, const PlanCandidate&) = default;
};

/// Every way to write `devices` as a product of `count` sizes, in lexicographic order: those of 4
/// as two are (1, 4), (2, 2), (4, 1). @error invalid argument: devices or count is below 1
std::vector<std::vector<std::int64_t>> mesh_shapes(std::int64_t devices, std::size_t count);

/// Every closed spec of a value over these axes: each axis of size above 1 that the value's spec
/// does not name splits one of its open dimensions or none, behind the axes that are there, in the
/// order of the mesh. Only those whose axes divide every dimension.
/// @post different specs, all dividing; none if the axes it names already do not divide
/// @error invalid argument: the spec is longer than the value's rank, or names an axis that is not
/// there
std::vector<PartitionSpec> spec_candidates(const FreeValue& value,
                                           const std::vector<MeshAxis>& axes);

/// True if the axes of every dimension divide its size. @pre as spec_candidates()
bool divides(const PartitionSpec& spec, const Shape& shape, const std::vector<MeshAxis>& axes);

/// Bytes of one device's part: the value's bytes over the product of its axes' sizes.
/// @pre divides(spec, type.shape, axes)
double shard_bytes(const PartitionSpec& spec, const TensorType& type,
                   const std::vector<MeshAxis>& axes);

}  // namespace meshard
