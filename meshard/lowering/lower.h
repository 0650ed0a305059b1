// From a graph to the text that the compiler reads.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "meshard/graph/evaluator.h"
#include "meshard/mesh/mesh.h"
#include "meshard/sharding/sharding.h"

namespace meshard {

/// One argument or result of a lowered program.
struct LoweredValue {
  /// As the user knows it.
  TensorType type;
  /// As the program takes or gives it: with the padding that makes its sharding even.
  TensorType padded;
  /// The sharding that the text asks for; empty: the compiler chooses.
  std::optional<Sharding> sharding;

  /// True if the sharding asked for is the whole of it: no dimension is left open to the compiler.
  bool is_exact() const;
};

/// A program as StableHLO with Shardy shardings, for logical devices 0..n-1.
struct LoweredModule {
  /// The program's.
  std::string name = {};
  std::string text;
  /// Gives logical device i the id mesh.device_id(i). Empty: one device, any.
  std::optional<Mesh> mesh;
  /// All meshes that the program names, over the same devices; `mesh` is the first.
  std::vector<Mesh> meshes;
  /// Parameters, then captured values.
  std::vector<LoweredValue> arguments;
  std::vector<LoweredValue> results;

  std::int64_t num_partitions() const { return mesh ? mesh->size() : 1; }
};

/// The program as module text. Op number n of the graph is located `n<n>`. The text does not depend
/// on device ids nor on source lines.
///
/// An argument or result with a sharding that does not divide its size is padded at the module's
/// boundary: the compiler would silently drop such a sharding. Values inside have their own sizes.
/// @error what ProgramMeshes throws; unimplemented if an op cannot be written; invalid argument if
/// a result is a local value, or a program with manual axes is to be unsharded.
LoweredModule lower(const Program& program);

}  // namespace meshard
