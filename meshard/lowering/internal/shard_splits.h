// How the operands of ops that run on shards (OpTraits::runs_on_shards) are split.
#pragma once
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "meshard/graph/graph.h"
#include "meshard/lowering/program_mesh.h"
#include "meshard/sharding/propagate.h"

namespace meshard {

/// The shardings of all values of a program that follow from those of its leaves, marks and
/// explicit axes by the sharding rules of the ops (propagate_program). Refers to its arguments.
class ShardSplits {
 public:
  /// @pre the program runs on several devices
  ShardSplits(const Graph& graph, const ProgramMeshes& meshes);

  /// The shardings of the operands and results of a call.
  struct Shardings {
    std::vector<Sharding> operands, results;
  };
  /// The shardings with which each device can compute its own part of a node: split as the operands
  /// are, along what the op's rule passes through. Dimensions of several factors, and everything
  /// else, are whole. Sizes may be uneven.
  Shardings of(const Node& node) const;

 private:
  std::size_t number(const Value& value) const {
    return numbers_.at({value.node(), value.index()});
  }
  PartialSharding known(const Value& value) const;

  const Graph& graph_;
  const Mesh& mesh_;
  std::map<std::pair<const Node*, std::uint32_t>, std::size_t> numbers_;
  std::vector<PartialSharding> values_;
};

}  // namespace meshard
