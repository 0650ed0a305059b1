// Writes the nodes of a program: the body of its function.
#pragma once
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "meshard/graph/graph.h"
#include "meshard/lowering/manual_regions.h"
#include "meshard/lowering/program_mesh.h"
#include "meshard/ops/emission.h"
#include "meshard/stablehlo/module_writer.h"

namespace meshard {

/// Knows what each value of a graph is called in the module's text. Refers to its arguments. The
/// programs inside of nodes are written by writers of their own.
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
  SsaValue cut(SsaValue padded, const TensorType& from, const TensorType& to, std::uint32_t number);
  SsaValue pad(SsaValue value, const TensorType& from, const TensorType& to, std::uint32_t number);

 private:
  // What the writers of one module count on.
  struct Counters {
    std::int32_t next_result = 0;
    std::int64_t next_channel = 0;  // of collectives in bodies
  };
  class Bodies;
  // Of a body: the numbers go on, and its nodes are called `n7.0.3`.
  NodeWriter(const Graph& graph, const NodeWriter& around, std::string prefix, std::size_t depth);

  void write(const Node& node) { write(node, node); }
  // With operands of `takes`, which has equal ones.
  void write(const Node& node, const Node& takes);
  // The operation itself, whatever else stands for it.
  void emit(const Node& node, const Node& takes);
  void write(const ProgramOrder& order, std::span<const ProgramStep> steps);
  void write(const ProgramOrder& order, const ManualRegion& region);
  // Whether the partitioner may split the node's work.
  bool is_partitioned(const Node& node) const;
  // An operand as the partitioner can bear it: `value`, or that with a constraint.
  SsaValue bearable(const Node& node, std::size_t operand, SsaValue value);
  // The constraint that the result needs to be computed rightly; empty: none.
  std::string whole_text(const Node& node) const;
  // Of a result whose sharding is part of it; empty: nothing to pin, or the op is a constraint.
  std::string pin_text(const Node& node, std::uint32_t result) const;
  void write_body(const ProgramOrder& order, const ManualRegion& region,
                  std::span<const SsaValue> arguments);
  // What carries a local value `depth` deep is called so.
  SsaValue& carrier(const Value& local, std::size_t depth) {
    return carried_[{local.node(), local.index(), depth}];
  }
  std::string shardings_text(const ManualRegion& region,
                             const std::vector<RegionCrossing>& crossings) const;

  std::string location_of(std::uint32_t number) const { return prefix_ + std::to_string(number); }

  const Graph& graph_;
  const ProgramMeshes& meshes_;
  stablehlo::ModuleWriter& writer_;
  std::string prefix_ = "n";
  std::size_t depth_ = 0;  // in how many manual regions the text is
  Counters own_counters_;
  Counters& counters_;
  std::vector<SsaValue> leaves_;
  std::vector<SsaValue> first_result_;  // by node, without leaves
  std::unordered_map<const Node*, const Node*> superseded_;
  std::unordered_map<const Node*, bool> written_;  // of those that supersede others
  // Inside a region: what came in.
  std::map<std::pair<const Node*, std::uint32_t>, SsaValue> entered_;
  // What carries local values on their way from one region to another, by depth.
  std::map<std::tuple<const Node*, std::uint32_t, std::size_t>, SsaValue> carried_;
};

}  // namespace meshard
