// A program as prediction sees it: the text of a module, with called functions, loops, branches and
// manual computations written out.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "meshard/array/shape.h"
#include "meshard/explain/collectives/collective.h"
#include "meshard/sharding/propagate_program.h"

namespace meshard {

/// Value type: a collective that the program itself contains, in a manual computation.
struct StatedCollective {
  CollectiveKind kind = CollectiveKind::kAllReduce;
  /// The logical devices of each group; of a permutation, its pairs. Empty: a single group of all.
  std::vector<std::vector<std::int64_t>> groups = {};
  /// The axes along which the groups are, if the program names them instead of the devices.
  std::optional<AxisList> axes = std::nullopt;
};

/// Value type: what a prediction says about an op.
struct RuledOpFacts {
  OriginPlace origin = {};
  /// What requests the op's moves: `the mark`, `the manual function`; empty if nothing does.
  std::string_view asked_by = {};
  /// The index of the region that the op is in.
  std::size_t region = 0;
  /// True if every element keeps its indices: where shards of operand and result are of equal size,
  /// none moves.
  bool keeps_indices = false;
  /// True for a matrix product or convolution, whose operands are the values and the weights.
  bool is_product = false;
  /// Set for a collective of the program: it moves its operands.
  std::optional<StatedCollective> stated = std::nullopt;
};

/// Value type: ops that run equally often: those of the program, of a loop, or of a branch.
struct RuledRegion {
  /// The enclosing region; for the program itself, 0.
  std::size_t parent = 0;
  /// How often the region runs in one run of the program: the product of the trip counts.
  std::int64_t executions = 1;
  /// False if a trip count is unknown; such a loop counts as one iteration.
  bool executions_known = true;
  /// True if the region is a branch, or inside of one.
  bool conditional = false;
  /// For a branch: the region of the first branch of the same op. Only one of them runs.
  std::optional<std::size_t> first_branch = std::nullopt;
};

/// Value type: the ops of a program that have sharding rules, in program order, and its values.
struct RuledProgram {
  std::vector<RuledOp> ops;
  /// By op.
  std::vector<RuledOpFacts> facts;
  /// By value.
  std::vector<TensorType> types;
  /// The place where each value was made; empty if unknown.
  std::vector<std::string> made_at;
  /// Region 0 is the program. A region comes after its parent.
  std::vector<RuledRegion> regions = {{}};

  std::size_t add_value(TensorType type, std::string made = {}) {
    types.push_back(std::move(type));
    made_at.push_back(std::move(made));
    return types.size() - 1;
  }
  /// A loop in region `parent`. @param trips none: unknown
  std::size_t add_loop(std::size_t parent, std::optional<std::int64_t> trips);
  /// A branch in region `parent`. @param first the first branch of the same op; none: this one
  std::size_t add_branch(std::size_t parent, std::optional<std::size_t> first);
  /// True if `inner` is `outer`, or inside of it.
  bool is_inside(std::size_t inner, std::size_t outer) const;
};

/// The regions that count if of all branches of an op the one with the most bytes is taken; of
/// equal ones, the first.
/// @param bytes of each region, over all executions, without the regions inside of it
std::vector<bool> regions_with_most(const RuledProgram& program, const std::vector<double>& bytes);

}  // namespace meshard
