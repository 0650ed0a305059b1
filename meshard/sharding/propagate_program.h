// Sharding propagation through a whole program: a recorded graph, or the text of a module.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "meshard/sharding/sharding.h"
#include "meshard/sharding/sharding_rule.h"

namespace meshard {

/// A value: one op of a program. Operands and results are numbers of values: one for each operand
/// and result of the rule.
struct RuledOp {
  ShardingRule rule;
  std::vector<std::size_t> operands, results;
};

/// A value: how one value of a program is sharded, as far as that is known.
struct PartialSharding {
  /// False for a value that takes no part: ops with such an operand or result are left out.
  bool known = false;
  /// By dimension.
  std::vector<AxisList> axes = {};
  std::vector<bool> open = {};
  /// Axes that no open dimension may use.
  AxisList forbidden = {};

  /// Every dimension is open.
  static PartialSharding open_value(std::size_t rank);
  /// Missing dimensions are closed.
  static PartialSharding of(const Sharding& sharding, std::size_t rank);

  /// True if no dimension is split.
  bool is_whole() const;
  /// A closed sharding with these axes; nullopt if not known.
  std::optional<Sharding> sharding(const Mesh& mesh) const;
};

/// Propagates the shardings of some values to the others along the ops' rules. It runs forward and
/// backward until nothing changes: first through ops that only pass dimensions through, then
/// through all (after Shardy's op-priority propagation; openxla/shardy,
/// shardy/dialect/sdy/transforms/propagation/op_priority_propagation.h). A dimension receives
/// further axes if it is open and no other dimension of the value uses them; where tensors disagree
/// about a factor, only the common prefix is propagated. Closed dimensions stay unchanged.
///
/// This is a prediction: the compiler's own propagation has more rules for conflicts.
/// @param values by number; changed in place
/// @pre the ops name values of the ranks that their rules have
void propagate_program(const Mesh& mesh, std::span<const RuledOp> ops,
                       std::vector<PartialSharding>& values);

/// Converts the axes of a tensor's dimensions to axes of its factors. A dimension whose axes do not
/// align with its factors counts as whole, and is added to `unfit` if that is not null.
std::vector<AxisList> factor_axes(const Mesh& mesh, const ShardingRule& rule,
                                  const TensorFactors& tensor,
                                  const std::vector<AxisList>& dimensions,
                                  std::vector<std::size_t>* unfit = nullptr);

/// Converts axes of factors to axes of a tensor's dimensions. A factor after one that is not fully
/// split into single elements cannot be sharded: its axes are dropped, and it is added to `strided`
/// if that is not null.
std::vector<AxisList> dimension_axes(const Mesh& mesh, const ShardingRule& rule,
                                     const TensorFactors& tensor,
                                     const std::vector<AxisList>& by_factor,
                                     std::vector<int>* strided = nullptr);

/// A closed sharding with these axes.
Sharding sharding_with_axes(const Mesh& mesh, const std::vector<AxisList>& dimensions);

}  // namespace meshard
