// Writes the nodes of a program: the body of its function.
#pragma once
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "meshard/graph/graph.h"
#include "meshard/lowering/imported_call.h"
#include "meshard/lowering/internal/manual_regions.h"
#include "meshard/lowering/internal/partitioner_needs.h"
#include "meshard/lowering/internal/shard_splits.h"
#include "meshard/lowering/nan_checks.h"
#include "meshard/lowering/program_mesh.h"
#include "meshard/ops/definition/emission.h"
#include "meshard/stablehlo/module_writer.h"

namespace meshard {

/// Writes nodes and maps values of a graph to SSA values. Refers to its arguments. Bodies of nodes
/// are written by separate writers.
class NodeWriter {
 public:
  using SsaValue = stablehlo::Value;

  /// `nan_checks`: the checks to write; null: none. @pre it outlives the writer
  /// `quirks`: those of the compiler.
  NodeWriter(const Graph& graph, const ProgramMeshes& meshes, stablehlo::ModuleWriter& writer,
             NanChecks* nan_checks, QuirkSet quirks);

  /// Sets the SSA value of leaf number `leaf`.
  void name_leaf(std::uint32_t leaf, SsaValue value) { leaves_[leaf] = value; }
  /// Writes all nodes. @pre all leaves have SSA values.
  /// @error unimplemented if an op cannot be lowered.
  void write_nodes();
  /// The SSA value of a value. @pre it is a leaf, or written
  SsaValue value_of(const Value& value) const;
  /// Writes the NaN check of result i of the graph, if there are checks. @pre all nodes are written
  void check_result(std::size_t i);

  /// Writes the slice that removes padding, or the pad with zeros that adds it
  /// (boundary_padding.cc). Returns the value unchanged if there is no padding.
  SsaValue cut(SsaValue padded, const TensorType& from, const TensorType& to, std::uint32_t number);
  SsaValue pad(SsaValue value, const TensorType& from, const TensorType& to, std::uint32_t number);

 private:
  // State shared by the writers of one module.
  struct Counters {
    std::int32_t next_result = 0;
    std::int64_t next_channel = 0;                     // for collectives in bodies
    WindowFills fills;                                 // bodies may be written inline
    std::map<Fingerprint, std::string> imported = {};  // the functions of imported programs
  };
  class Bodies;
  class Finish;
  // For a body: continues the counters, and names nodes like `n7.0.3`.
  NodeWriter(const Graph& graph, const NodeWriter& around, std::string prefix, std::size_t depth);

  // Writes the slice of cut() as the value `result`.
  void write_cut(const stablehlo::Typed& result, const stablehlo::Typed& padded,
                 std::string_view location);
  void write(const Node& node) { write(node, node); }
  // Uses the operands of `takes`, which are equal to those of `node`.
  void write(const Node& node, const Node& takes);
  // Writes the node's own operation, even if another node supersedes it.
  void emit(const Node& node, const Node& takes);
  void write(const ProgramOrder& order, std::span<const ProgramStep> steps);
  void write(const ProgramOrder& order, const ManualRegion& region);
  // Sets the meshes and the channel of a call inside manual axes.
  void describe_place(const Node& node, std::uint32_t number, OpEmission& emission);
  // The sharding that a value of this rank needs at the border of a local node, where the
  // partitioner must not split it (partitioner_needs.h); empty: any.
  std::optional<Sharding> whole_local(const Node& node, int rank) const;
  // True if the node is written in a manual region, so that each device computes its own part
  // (OpTraits::runs_on_shards; shard_regions.cc).
  bool is_on_shards(const Node& node) const;
  void write_on_shards(const Node& node, const OpCall& call, const OpEmission& out);
  // True if the partitioner may split the node's work.
  bool is_partitioned(const Node& node) const;
  // The operand with the constraint or barrier that the quirks of the partitioner need; else
  // `value`.
  SsaValue for_partitioner(const Node& node, std::size_t operand, SsaValue value);
  // `value` after `count` optimization barriers.
  SsaValue behind_barriers(SsaValue value, const TensorType& type, std::size_t count);
  // Writes `result`, whose value is `computed`, in a form that XLA's CPU compiler does not compute
  // again for each user (shared_values.h).
  void write_in_memory(SsaValue result, SsaValue computed, const TensorType& type,
                       std::string_view location);
  // The constraint that the partitioner needs on the result to compute it correctly; empty: none.
  std::string whole_text(const Node& node, std::uint32_t result) const;
  // The explicit sharding of a result; empty if it has none, or the op is a constraint itself.
  std::string pin_text(const Node& node, std::uint32_t result) const;
  void write_body(const ProgramOrder& order, const ManualRegion& region,
                  std::span<const SsaValue> arguments);
  // The SSA value that carries a local value inside a region `depth` deep.
  SsaValue& carrier(const Value& local, std::size_t depth) {
    return carried_[{local.node(), local.index(), depth}];
  }
  std::string shardings_text(const ManualRegion& region,
                             const std::vector<RegionCrossing>& crossings) const;

  // Calls of programs that were written elsewhere (imported_calls.cc).
  void emit_imported_call(const Node& node, const ImportedBody& body, const OpEmission& out);
  const std::string& imported_function(const Node& node, const ImportedBody& body);

  // Host calls and NaN checks (host_calls.cc).
  template <class Body>
  void on_each_device(const ManualAxes* place, std::span<const stablehlo::Typed> arguments,
                      std::span<const stablehlo::Typed> results, Body body);
  template <class Effect>
  void where_taken(const stablehlo::Typed& nothing, Effect effect);
  void emit_host_call(const Node& node, const OpCall& call, const OpEmission& out);
  SsaValue has_nan(SsaValue value, const TensorType& type);
  void report_nan(const ManualAxes* place, SsaValue found, NanCheck check);
  void check_nan(const Node& node, const Node& takes);

  std::string location_of(std::uint32_t number) const {
    return location_.empty() ? prefix_ + std::to_string(number) : location_;
  }

  const Graph& graph_;
  const ProgramMeshes& meshes_;
  stablehlo::ModuleWriter& writer_;
  NanChecks* nan_checks_ = nullptr;
  QuirkSet quirks_;
  std::string prefix_ = "n";
  std::size_t depth_ = 0;          // the number of manual regions around the current position
  std::optional<SsaValue> taken_;  // see OpEmission
  bool is_whole_ = false;          // all values are on one device, or inside a region over all axes
  std::string location_ = {};      // of all nodes; empty: each has its own
  Counters own_counters_;
  Counters& counters_;
  std::vector<SsaValue> leaves_;
  std::vector<SsaValue> first_result_;  // by node, without leaves
  std::optional<ShardSplits> splits_;   // made for the first node that runs on shards
  std::unordered_map<const Node*, const Node*> superseded_;
  std::unordered_set<const Node*> shared_;
  std::unordered_map<const Node*, bool> written_;  // for nodes that supersede others
  // Inside a region: the SSA values of its inputs.
  std::map<std::pair<const Node*, std::uint32_t>, SsaValue> entered_;
  // The SSA values that carry local values from one region to another, by depth.
  std::map<std::tuple<const Node*, std::uint32_t, std::size_t>, SsaValue> carried_;
  // For each SSA value, the bool that is true if it has a NaN.
  std::map<std::pair<int, std::int32_t>, SsaValue> has_nan_;
};

}  // namespace meshard
