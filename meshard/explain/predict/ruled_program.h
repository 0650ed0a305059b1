// A program as prediction sees it: made from a graph, or from the text of a module.
#pragma once
#include <cstddef>
#include <vector>

#include "meshard/array/shape.h"
#include "meshard/base/source_location.h"
#include "meshard/explain/collectives/collective.h"
#include "meshard/sharding/propagate_program.h"

namespace meshard {

/// Value type: what a prediction says about an op.
struct RuledOpFacts {
  OriginPlace origin = {};
  /// True for a sharding mark: its moves are requested.
  bool asked = false;
  /// How often the op runs.
  double repeats = 1;
  /// Where each operand was made; may be shorter than the operands.
  std::vector<SourceLocation> made_at = {};
};

/// Value type: the ops of a program that have sharding rules, in program order, and its values.
struct RuledProgram {
  std::vector<RuledOp> ops;
  /// By op.
  std::vector<RuledOpFacts> facts;
  /// By value.
  std::vector<TensorType> types;

  std::size_t add_value(TensorType type) {
    types.push_back(std::move(type));
    return types.size() - 1;
  }
};

}  // namespace meshard
