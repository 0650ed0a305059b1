// The shardings of an op's results, from those of its operands.
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
  kPredict,  ///< as a compiler would: it gathers, continues and cuts axes where that helps
  kInfer,    ///< as a type is inferred: what the operands do not say is a conflict
};

/// A value: why no sharding of the results follows from the operands.
struct ShardingConflict {
  /// The factor it is about; none if it is about a whole tensor.
  std::optional<int> factor;
  /// In words, with both sides: `factor j is split by {"x"} in operand 0 and by {"y"} in operand
  /// 1`.
  std::string message;
};

/// A value: the shardings of the results, or a conflict.
struct Propagation {
  std::vector<Sharding> results;
  /// Axes that split reduction factors: the op ends with an all-reduce over them.
  AxisList reduced;
  /// Axes that split factors which the op needs whole: it begins with an all-gather over them.
  AxisList gathered;
  std::optional<ShardingConflict> conflict;

  bool ok() const { return !conflict; }
};

/// Deals the axes of one dimension out to its factors, the most significant first: appends to
/// by_factor, which has an entry for each factor of the rule.
/// @param may_cut whether an axis may be cut into sub-axes for two factors
/// @return false if they do not fall on the factors, or only in parts where that is not allowed
bool deal_axes(const Mesh& mesh, const ShardingRule& rule, const DimensionFactors& factors,
               const AxisList& axes, bool may_cut, std::vector<AxisList>& by_factor);

/// Shardings of the results of an op with this rule whose operands are sharded so, without any
/// reshard.
///
/// Each factor is split as in the operands that have it; where one operand's axes continue
/// another's, the longer list counts (unsplit dimensions are continued by anything). A conflict:
/// two operands split a factor differently; an axis would split two factors; the axes of a
/// dimension do not fall on its factors; a result dimension would be strided; an operand is
/// unreduced. Result dimensions are closed.
///
/// kInfer is stricter, in the manner of JAX's explicit axes: operands that split a factor split it
/// alike; no axis is cut between two factors; what the op needs whole is not split; and a reduction
/// is split in one operand only (for two the results may be summed or stay to be summed). An axis
/// that is gone from the results conflicts with nothing. Merged dimensions that are all split give
/// their axes one after another, though that moves data.
/// @error operands of other number or rank than the rule's; no operand; operands on different
/// meshes.
Propagation propagate(const ShardingRule& rule, std::span<const Sharding> operands,
                      Propagating how = Propagating::kPredict);

}  // namespace meshard
