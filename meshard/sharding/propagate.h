// Sharding propagation: from an op's operands to its results.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "meshard/sharding/sharding.h"
#include "meshard/sharding/sharding_rule.h"

namespace meshard {

/// How much propagate() may decide.
enum class Propagating : std::uint8_t {
  kPredict,  ///< what a compiler would do: may gather, extend and cut axes
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

}  // namespace meshard
