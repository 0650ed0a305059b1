// Splits recorded programs over several sets of devices into programs over one set each.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "meshard/graph/evaluator.h"
#include "meshard/graph/graph.h"
#include "meshard/mesh/mesh.h"
#include "meshard/runtime/internal/process_runtime.h"

namespace meshard {

/// One program of an evaluation. Its recorded nodes run on one set of devices, after their operands
/// on other sets have been computed.
struct Stage {
  /// The devices; empty: any one device.
  std::optional<Mesh> mesh;
  /// The values that it computes for callers and for later stages.
  std::vector<Value> results;
  /// For each result, whether it is computed only from unplaced values (leaf.h).
  std::vector<bool> unplaced;
};

/// Splits a recorded program into stages, ordered so that operands are computed before their users.
///
/// A node runs on the devices of the mesh that it names, otherwise on the devices of its placed
/// operands.
/// If these are on several sets, rank-0 tensors follow the others. Then the smallest set is used if
/// all others contain it and their values are replicated, because replicated values are available
/// there too. Nodes without a placed operand run where they are first used. Every node belongs to
/// exactly one stage.
/// @error invalid argument if placed operands of one node are on different sets of devices and
/// cannot be combined; the message names both sets and where they come from.
std::vector<Stage> split_by_devices(const Graph& graph);

/// Returns the program with all its leaves on the devices of `mesh`. A stored value of another set
/// is replaced by its copy on these devices if it is replicated or of rank 0, and otherwise by a
/// leaf that is copied when the program runs. A parameter of another set is replaced by one that
/// does not specify where its argument is. Returns the same program if there is no such leaf.
/// @error invalid argument: a placed value of another set is not replicated on these devices.
Graph on_devices_of(Runtime& runtime, const Graph& graph, const Mesh& mesh, SourceLocation where);

/// The mesh whose devices a traced program runs on. Follows the rule of split_by_devices, for one
/// node that uses all leaves and names all meshes of the program. Empty: the program names no mesh.
/// @error invalid argument at `where`: see split_by_devices
std::optional<Mesh> devices_of_program(const Graph& graph, SourceLocation where = {});

}  // namespace meshard
