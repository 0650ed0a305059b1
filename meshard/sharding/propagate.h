// Sharding propagation: from an op's operands to its results.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "meshard/sharding/sharding.h"
#include "meshard/sharding/sharding_rule.h"

namespace meshard {

/// How much propagate() may decide.
enum class Propagating : std::uint8_t {
  kPredict,  ///< predicts a compiler: may gather, extend and cut axes
  kInfer,    ///< type inference: anything that the operands leave open is a conflict
};

/// A value: why the operands do not determine shardings of the results.
struct ShardingConflict {
  /// The factor in conflict; none if the conflict concerns a whole tensor.
  std::optional<int> factor;
  /// The conflict in words, with both sides:
  /// `factor j is split by {"x"} in operand 0 and by {"y"} in operand 1`.
  std::string message;
};

/// A value: the shardings of the results, or a conflict.
struct Propagation {
  std::vector<Sharding> results;
  /// Axes that split reduction factors: the op ends with an all-reduce over them.
  AxisList reduced;
  /// Axes that split factors which the op needs whole: the op starts with an all-gather over them.
  AxisList gathered;
  std::optional<ShardingConflict> conflict;

  bool ok() const { return !conflict; }
};

/// Assigns the axes of one dimension to its factors, the most significant first. Appends to
/// by_factor, which has an entry for each factor of the rule.
/// @param may_cut whether an axis may be cut into sub-axes for different factors
/// @return false if the axes do not match the factors, or match only if cut and may_cut is false
bool deal_axes(const Mesh& mesh, const ShardingRule& rule, const DimensionFactors& factors,
               const AxisList& axes, bool may_cut, std::vector<AxisList>& by_factor);

/// The shardings of an op's results, from its rule and the shardings of its operands. Operands are
/// not resharded.
///
/// Each factor is split as in the operands that have it. If one operand's axes extend another's,
/// the longer list is used (any list extends that of an unsplit dimension). There is a conflict if
/// two operands split a factor differently, an axis would split two factors, the axes of a
/// dimension do not match its factors, a result dimension would be strided, or an operand is
/// unreduced. Result dimensions are closed.
///
/// kInfer is stricter, like JAX's explicit axes: operands that split a factor must split it in the
/// same way; no axis is cut between two factors; a factor that the op needs whole must not be
/// split; and a reduction factor may be split in one operand only (with two, the result could be
/// summed or left unreduced). An axis that does not appear in the results causes no conflict. If
/// all factors of a result dimension are split, the dimension gets their axes in order, although
/// that moves data.
/// @error the number or a rank of the operands differs from the rule's; no operands; operands on
/// different meshes.
Propagation propagate(const ShardingRule& rule, std::span<const Sharding> operands,
                      Propagating how = Propagating::kPredict);

// Sharding propagation through a whole program: a recorded graph, or the text of a module.

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
