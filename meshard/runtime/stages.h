// Recorded programs over several sets of devices, cut into programs of one set each.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "meshard/graph/evaluator.h"
#include "meshard/graph/graph.h"
#include "meshard/mesh/mesh.h"

namespace meshard {

/// One program of an evaluation: recorded nodes that run on one set of devices, when what they need
/// of other sets has been computed.
struct Stage {
  /// Names the devices; empty: one device, any.
  std::optional<Mesh> mesh;
  /// What it computes for its callers and for later stages.
  std::vector<Value> results;
  /// Of each result: computed of unplaced values alone (leaf.h).
  std::vector<bool> unplaced;
};

/// Cuts a recorded program into stages, in an order in which each finds its operands computed.
///
/// A node runs on the devices of the mesh that it names, else of its placed operands. Where these
/// are on several sets, tensors of rank 0 follow the others; then the smallest set is taken if all
/// others contain it, since values that are replicated on those are there too. Nodes without a
/// placed operand run where they are used first. Every node belongs to exactly one stage.
/// @error invalid argument if placed operands of one node are on different sets of devices and
/// cannot be brought together, naming both and where they come from.
std::vector<Stage> split_by_devices(const Graph& graph);

/// The program with all its leaves on the devices of `mesh`: a stored value of another set is
/// replaced by its copy on these devices if it is replicated or of rank 0, else by a leaf that is
/// copied when the program runs; a parameter by one that says nothing of where its argument is. The
/// same program if there is no such leaf.
/// @error invalid argument: a placed value of another set that is not replicated there.
Graph on_devices_of(const Graph& graph, const Mesh& mesh, SourceLocation where);

/// The mesh whose devices a traced program runs on, by the rule of split_by_devices for one node
/// that uses all leaves and names all meshes of the program. Empty: no mesh is named.
/// @error invalid argument at `where`: see split_by_devices
std::optional<Mesh> devices_of_program(const Graph& graph, SourceLocation where = {});

}  // namespace meshard
