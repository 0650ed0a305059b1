// Writes the nodes of a program: the body of its function.
#pragma once
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "meshard/graph/graph.h"
#include "meshard/lowering/manual_regions.h"
#include "meshard/lowering/program_mesh.h"
#include "meshard/stablehlo/module_writer.h"

namespace meshard {

/// Knows what each value of a graph is called in the module's text. Refers to its arguments.
class NodeWriter {
 public:
  using SsaValue = stablehlo::Value;

  NodeWriter(const Graph& graph, const ProgramMeshes& meshes, stablehlo::ModuleWriter& writer);

  /// Leaf number `leaf` is called so.
  void name_leaf(std::uint32_t leaf, SsaValue value) { leaves_[leaf] = value; }
  /// Writes all nodes. @pre all leaves are named.
  /// @error unimplemented if an op cannot be written.
  void write_nodes();
  /// What a value is called. @pre it is a leaf, or written
  SsaValue value_of(const Value& value) const;

  /// Writes the slice that cuts the padding off, or the zeros that make it; gives back the value if
  /// there is none.
  SsaValue cut(SsaValue padded, const TensorType& from, const TensorType& to,
               std::uint32_t location);
  SsaValue pad(SsaValue value, const TensorType& from, const TensorType& to,
               std::uint32_t location);

 private:
  void write(const Node& node);
  void write(const ManualRegion& region);
  // An operand as a scatter can bear it: `value`, or that with a constraint.
  SsaValue scattered(const Node& node, std::size_t operand, SsaValue value);
  // Of a result whose sharding is part of it; empty: nothing to pin, or the op is a constraint.
  std::string pin_text(const Node& node, std::uint32_t result) const;
  void write_body(const ManualRegion& region, std::span<const SsaValue> arguments);
  std::string shardings_text(const ManualRegion& region,
                             const std::vector<RegionCrossing>& crossings) const;

  const Graph& graph_;
  const ProgramMeshes& meshes_;
  stablehlo::ModuleWriter& writer_;
  std::vector<SsaValue> leaves_;
  std::vector<SsaValue> first_result_;  // by node, without leaves
  std::int32_t next_result_ = 0;
  // Inside a region: what came in. Between regions: local values on their way from one to another.
  std::map<std::pair<const Node*, std::uint32_t>, SsaValue> entered_, carried_;
};

}  // namespace meshard
